//! `/metrics`: how many requests there were, how long they took, and how many objects are stored, with the
//! names, labels and buckets of the real server, in the text format of Prometheus. Nothing else of what the
//! real one counts.

use super::attributes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Response};
use opdev_admission::authorization::Attributes;
use opdev_apimachinery::body::{Body, full};
use opdev_registry::{Catalog, Registry};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper ends of the buckets of latencies, in seconds.
const BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Subresources that are connections.
const CONNECTIONS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// The labels of a request, as the real server sets them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    dry_run: &'static str,
    group: String,
    resource: String,
    scope: &'static str,
    subresource: String,
    verb: &'static str,
    version: String,
}

/// Requests of one sort.
#[derive(Clone, Debug, Default)]
struct Series {
    by_code: BTreeMap<u16, u64>,
    /// Requests that are not streams: how many there were in each bucket, and beyond the last one.
    buckets: [u64; BUCKETS.len() + 1],
    sum: f64,
}

/// The counters of one plane.
#[derive(Debug, Default)]
pub(super) struct Metrics(Mutex<BTreeMap<Labels, Series>>);

/// A request that was answered.
pub(super) struct Answered<'a> {
    pub method: &'a Method,
    pub path: &'a str,
    pub query: &'a str,
    /// The body is an apply.
    pub(super) applies: bool,
    pub code: u16,
    pub(super) took: Duration,
}

impl Labels {
    fn of_request(request: &Answered<'_>) -> Self {
        let wanted = attributes::of_request(request.method.as_str(), request.path, request.query);
        let is_resource = wanted.path.is_none();
        let scope = match &wanted {
            Attributes { path: Some(_), .. } => "",
            Attributes { name, verb, .. } if !name.is_empty() || verb == "create" => "resource",
            Attributes { namespace, .. } if !namespace.is_empty() => "namespace",
            _ => "cluster",
        };
        let verb = match (request.method, wanted.verb.as_str()) {
            (_, "watch") => "WATCH",
            _ if is_resource && CONNECTIONS.contains(&wanted.subresource.as_str()) => "CONNECT",
            (&Method::GET | &Method::HEAD, _) if matches!(scope, "namespace" | "cluster") => "LIST",
            (&Method::GET | &Method::HEAD, _) => "GET",
            (&Method::PATCH, _) if request.applies => "APPLY",
            (&Method::PATCH, _) => "PATCH",
            (&Method::POST, _) => "POST",
            (&Method::PUT, _) => "PUT",
            (&Method::DELETE, "deletecollection") => "DELETECOLLECTION",
            (&Method::DELETE, _) => "DELETE",
            _ => "other",
        };
        let mut parts = request.path.split('/').filter(|part| !part.is_empty());
        let version = parts.nth(if request.path.starts_with("/apis/") { 2 } else { 1 });
        Labels {
            dry_run: if request.query.contains("dryRun=All") { "All" } else { "" },
            group: wanted.group,
            resource: wanted.resource,
            scope,
            subresource: if is_resource { wanted.subresource } else { request.path.to_owned() },
            verb,
            version: version.filter(|_| is_resource).unwrap_or_default().to_owned(),
        }
    }

    /// Takes out what nobody serves: a request that is refused may name anything, and there is no end to
    /// that.
    fn keep_served(&mut self, catalog: &Catalog) {
        match catalog.served().find(&self.group, &self.version, &self.resource) {
            Some(resource) if resource.subresource(&self.subresource).is_some() => {}
            Some(_) => self.subresource.clear(),
            None => {
                let Labels { group, resource, subresource, version, .. } = self;
                for part in [group, resource, subresource, version] {
                    part.clear();
                }
            }
        }
    }

    /// As they stand in braces, by name; `more` comes before.
    fn text(&self, more: &str) -> String {
        let Labels { dry_run, group, resource, scope, subresource, verb, version } = self;
        format!(
            "{more}component=\"apiserver\",dry_run=\"{dry_run}\",group={group:?},resource={resource:?},scope=\"{scope}\",\
             subresource={subresource:?},verb=\"{verb}\",version={version:?}"
        )
    }
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Labels, Series>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request.
    pub(super) fn count(&self, request: &Answered<'_>, catalog: &Catalog) {
        let mut labels = Labels::of_request(request);
        if (400..500).contains(&request.code) {
            labels.keep_served(catalog);
        }
        let stream = matches!(labels.verb, "WATCH" | "CONNECT");
        let mut all = self.lock();
        let series = all.entry(labels).or_default();
        *series.by_code.entry(request.code).or_default() += 1;
        if !stream {
            let seconds = request.took.as_secs_f64();
            let bucket = BUCKETS.iter().position(|end| seconds <= *end).unwrap_or(BUCKETS.len());
            series.buckets[bucket] += 1;
            series.sum += seconds;
        }
    }

    /// The document.
    pub(super) fn answer(&self, registry: &Registry) -> Response<Body> {
        const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
        let mut out = String::new();
        self.write_requests(&mut out);
        write_objects(&mut out, registry);
        let mut response = Response::new(full(out));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(FORMAT));
        response
    }

    fn write_requests(&self, out: &mut String) {
        let all = self.lock().clone();
        head(
            out,
            "apiserver_request_duration_seconds",
            "histogram",
            "[STABLE] How long requests took, in seconds, by verb, group, version, resource, subresource, scope and \
             component.",
        );
        for (labels, series) in &all {
            let count: u64 = series.buckets.iter().sum();
            if count == 0 {
                continue;
            }
            let mut below = 0;
            for (end, found) in
                BUCKETS.iter().map(f64::to_string).chain(["+Inf".to_owned()]).zip(series.buckets)
            {
                below += found;
                let labels = format!("{},le=\"{end}\"", labels.text(""));
                line(out, "apiserver_request_duration_seconds_bucket", &labels, below);
            }
            let labels = labels.text("");
            line(out, "apiserver_request_duration_seconds_sum", &labels, series.sum);
            line(out, "apiserver_request_duration_seconds_count", &labels, count);
        }
        head(
            out,
            "apiserver_request_total",
            "counter",
            "[STABLE] How many requests there were, by verb, group, version, resource, scope, component and HTTP response \
             code.",
        );
        for (labels, series) in &all {
            for (code, count) in &series.by_code {
                line(out, "apiserver_request_total", &labels.text(&format!("code=\"{code}\",")), count);
            }
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    // Writing into a text does not fail.
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn line(out: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{name}{{{labels}}} {value}");
}

fn write_objects(out: &mut String, registry: &Registry) {
    let served = registry.catalog.served();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for resource in served.resources().iter().filter(|resource| resource.is_stored_version()) {
        if resource.has_verb("list") {
            counts.insert((&resource.group, &resource.plural), registry.store.count(&resource.table));
        }
    }
    let help = "How many objects are stored, by kind.";
    head(out, "apiserver_resource_objects", "gauge", &format!("[ALPHA] {help}"));
    for ((group, resource), count) in &counts {
        line(out, "apiserver_resource_objects", &format!("group={group:?},resource={resource:?}"), count);
    }
    head(out, "apiserver_storage_objects", "gauge", &format!("[STABLE] (Deprecated since 1.34.0) {help}"));
    for ((group, resource), count) in &counts {
        let qualified = opdev_apimachinery::error::qualified(group, resource);
        line(out, "apiserver_storage_objects", &format!("resource={qualified:?}"), count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(method: &Method, path: &str, query: &str) -> String {
        let took = Duration::from_millis(30);
        let applies = query.contains("apply");
        Labels::of_request(&Answered { method, path, query, applies, code: 200, took }).text("")
    }

    #[test]
    fn requests_are_labelled_as_by_the_real_server() {
        for (method, path, query, expected) in [
            (Method::GET, "/api/v1/namespaces/a/pods", "", "namespace \"\" LIST v1 pods \"\""),
            (Method::GET, "/api/v1/pods", "watch=1", "cluster \"\" WATCH v1 pods \"\""),
            (Method::GET, "/api/v1/namespaces/a/pods/p/log", "", "resource \"log\" CONNECT v1 pods \"\""),
            (
                Method::PATCH,
                "/apis/apps/v1/namespaces/a/deployments/d",
                "apply",
                "resource \"\" APPLY v1 deployments \"apps\"",
            ),
            (
                Method::POST,
                "/apis/apps/v1/namespaces/a/deployments",
                "",
                "resource \"\" POST v1 deployments \"apps\"",
            ),
            (Method::DELETE, "/api/v1/namespaces/a/pods", "", "namespace \"\" DELETECOLLECTION v1 pods \"\""),
            (Method::GET, "/healthz", "", " \"/healthz\" GET   \"\""),
        ] {
            let took = Duration::ZERO;
            let applies = query == "apply";
            let found =
                Labels::of_request(&Answered { method: &method, path, query, applies, code: 200, took });
            let Labels { scope, subresource, verb, version, resource, group, .. } = found;
            assert_eq!(
                format!("{scope} {subresource:?} {verb} {version} {resource} {group:?}"),
                expected,
                "{path}"
            );
        }
        assert_eq!(
            labels(&Method::GET, "/api/v1/pods", ""),
            "component=\"apiserver\",dry_run=\"\",group=\"\",resource=\"pods\",scope=\"cluster\",subresource=\"\",\
             verb=\"LIST\",version=\"v1\""
        );
    }

    #[test]
    fn latencies_fall_into_buckets() {
        let metrics = Metrics::default();
        for millis in [1, 30, 90_000] {
            let took = Duration::from_millis(millis);
            let (method, path) = (&Method::GET, "/api/v1/pods");
            let answered = Answered { method, path, query: "", applies: false, code: 200, took };
            metrics.count(&answered, &Catalog::new(Vec::new()));
        }
        let mut out = String::new();
        metrics.write_requests(&mut out);
        let value = |start: &str, end: &str| {
            let found = out.lines().find(|line| line.starts_with(start) && line.contains(end));
            found.unwrap().rsplit_once(' ').unwrap().1.to_owned()
        };
        let bucket = "apiserver_request_duration_seconds_bucket";
        assert_eq!(value(bucket, "le=\"0.005\""), "1");
        assert_eq!(value(bucket, "le=\"0.05\""), "2");
        assert_eq!(value(bucket, "le=\"60\""), "2");
        assert_eq!(value(bucket, "le=\"+Inf\""), "3");
        assert_eq!(value("apiserver_request_total", "code=\"200\""), "3");
    }
    #[test]
    fn what_nobody_serves_is_counted_together() {
        let (metrics, catalog) = (Metrics::default(), Catalog::new(opdev_registry::builtin_resources()));
        for n in 0..3 {
            for path in [
                format!("/path-{n}"),
                format!("/apis/group-{n}.io/v1/things"),
                format!("/api/v1/things-{n}"),
                format!("/api/v{n}/pods"),
                format!("/api/v1/namespaces/a/pods/p/part-{n}"),
                format!("/api/v1/namespaces/a/pods/missing-{n}"),
                "/api/v1/namespaces/a/pods/p/log".to_owned(),
            ] {
                let (method, took) = (&Method::GET, Duration::ZERO);
                for code in [403, 404] {
                    metrics.count(
                        &Answered { method, path: &path, query: "", applies: false, code, took },
                        &catalog,
                    );
                }
            }
        }
        let all = metrics.lock();
        let told: Vec<_> =
            all.keys().map(|labels| (labels.resource.as_str(), labels.subresource.as_str())).collect();
        assert_eq!(told, [("", ""), ("", ""), ("pods", ""), ("pods", ""), ("pods", "log")]);
    }
}

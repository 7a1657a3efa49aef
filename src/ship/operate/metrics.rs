//! Metrics of the operator, under the names of controller-runtime and helm-operator, so that their dashboards
//! and alerts go on. Counts events; reads no clock but to say how long reconciles that run have been running.

use super::process;
use super::text::{Exposition, Histogram, Kind};
use jiff::Timestamp;
use opdev_event::{Cause, Event, LoopKind, Outcome, Reconcile, ReconcileStarted, ReleaseStep};
use opdev_object::meta::{Gvk, ObjectKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bounds of `controller_runtime_reconcile_time_seconds`.
const RECONCILE: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];
/// Bounds of the work queue's histograms, as Go multiplies them.
const QUEUE: &[f64] = &[
    1e-8,
    1e-7,
    1e-6,
    9.999999999999999e-6,
    9.999999999999999e-5,
    1e-3,
    1e-2,
    1e-1,
    1.0,
    10.0,
    100.0,
    1000.0,
];

/// The results there are, all of them told from the start.
const RESULTS: [&str; 4] = ["error", "requeue", "requeue_after", "success"];

/// The facts that are fixed for one process.
#[derive(Clone, Debug)]
pub(super) struct About {
    /// The host of the API server, with its port.
    pub(super) server: String,
    /// The name of the Lease, where replicas elect a leader.
    pub(super) lease: Option<String>,
    /// Since when this process runs.
    pub(super) started: Timestamp,
}

/// All counters.
pub(super) struct Metrics {
    about: About,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    leads: bool,
    /// Groups and kinds that are served.
    kinds: BTreeSet<(String, String)>,
    controllers: BTreeMap<String, Controller>,
    /// Passes under way, with their controller.
    running: HashMap<u64, (String, Timestamp)>,
    requests: BTreeMap<(String, String), u64>,
    /// Certificates of the metrics that were read, and that could not be.
    certificates: (u64, u64),
    created: BTreeMap<ObjectKey, (Gvk, f64)>,
    causes: BTreeMap<(String, &'static str), u64>,
    releases: BTreeMap<(String, &'static str, &'static str), u64>,
    loops: BTreeMap<(String, &'static str), u64>,
}

struct Controller {
    workers: usize,
    waiting: usize,
    results: BTreeMap<&'static str, u64>,
    terminal: u64,
    panics: u64,
    retries: u64,
    adds: u64,
    took: Histogram,
    queued: Histogram,
    worked: Histogram,
}

/// The name of a kind's controller, as helm-operator has it.
fn short_name(gvk: &Gvk) -> String {
    format!("{}-controller", gvk.kind.to_lowercase())
}

/// The name where kinds of several groups have the short one: each would count for the other.
fn long_name(gvk: &Gvk) -> String {
    format!("{}.{}-controller", gvk.kind.to_lowercase(), gvk.group)
}

impl Metrics {
    pub(super) fn new(about: About) -> Metrics {
        Metrics { about, counted: Mutex::default() }
    }

    #[cfg(test)]
    pub(super) fn for_tests() -> Metrics {
        let started = Timestamp::UNIX_EPOCH;
        Metrics::new(About { server: "10.0.0.1:443".to_owned(), lease: None, started })
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A kind is served, by so many workers.
    pub(super) fn serves(&self, gvk: &Gvk, workers: usize) {
        self.lock().serve(gvk, workers);
    }

    /// Notes that this process leads, or not.
    pub(super) fn leads(&self, leads: bool) {
        self.lock().leads = leads;
    }

    /// How many objects of a kind wait for a worker.
    pub(super) fn waits(&self, gvk: &Gvk, waiting: usize) {
        let mut counted = self.lock();
        let name = counted.controller(gvk);
        if let Some(one) = counted.controllers.get_mut(&name) {
            one.waiting = waiting;
        }
    }

    /// A call of the API server has ended; without a status where there was no answer.
    pub(super) fn called(&self, method: &str, status: Option<u16>) {
        let code = status.map_or_else(|| "<error>".to_owned(), |status| status.to_string());
        *self.lock().requests.entry((code, method.to_owned())).or_default() += 1;
    }

    /// The certificate of the metrics was read, or could not be.
    pub(super) fn read_certificate(&self, well: bool) {
        let mut counted = self.lock();
        counted.certificates.0 += 1;
        counted.certificates.1 += u64::from(!well);
    }

    /// Takes an event in.
    pub(super) fn hear(&self, event: &Event) {
        let mut counted = self.lock();
        match event {
            Event::ReconcileStarted(started) => counted.begin(started),
            Event::Reconciled(reconcile) => counted.end(reconcile),
            Event::LoopFound(found) => {
                let sort = match found.kind {
                    LoopKind::Fight => "fight",
                    LoopKind::Hot => "hot",
                    LoopKind::Repair => "repair",
                    LoopKind::Upgrade => "upgrade",
                };
                let name = counted.controller(&found.object.gvk);
                *counted.loops.entry((name, sort)).or_default() += 1;
            }
            _ => {}
        }
    }

    /// Everything, as Prometheus reads it.
    pub(super) fn text(&self, now: Timestamp) -> String {
        let counted = self.lock();
        let mut out = Exposition::default();
        controllers(&mut out, &counted);
        queues(&mut out, &counted, now);
        out.family(
            "rest_client_requests_total",
            Kind::Counter,
            "Number of HTTP requests to the API server, by status code, method and host.",
        );
        for ((code, method), count) in &counted.requests {
            let labels =
                [("code", code.as_str()), ("host", self.about.server.as_str()), ("method", method.as_str())];
            out.sample("rest_client_requests_total", &labels, number(*count));
        }
        if let Some(lease) = &self.about.lease {
            out.family(
                "leader_election_master_status",
                Kind::Gauge,
                "Whether this process leads: 1 it does, 0 it stands by.",
            );
            let leads = f64::from(u8::from(counted.leads));
            out.sample("leader_election_master_status", &[("name", lease)], leads);
        }
        out.family("helm_operator_build_info", Kind::Gauge, "The build of the operator's binary.");
        let version = concat!("opdev-", env!("CARGO_PKG_VERSION"));
        out.sample("helm_operator_build_info", &[("commit", "unknown"), ("version", version)], 1.0);
        out.family(
            "resource_created_at_seconds",
            Kind::Gauge,
            "When a custom resource was created, in seconds since 1970.",
        );
        for (key, (gvk, at)) in &counted.created {
            let labels = [
                ("group", gvk.group.as_str()),
                ("kind", gvk.kind.as_str()),
                ("name", key.name.as_str()),
                ("namespace", key.namespace.as_deref().unwrap_or_default()),
                ("version", gvk.version.as_str()),
            ];
            out.sample("resource_created_at_seconds", &labels, *at);
        }
        own(&mut out, &counted);
        servers(&mut out, counted.certificates);
        process::families(&mut out, self.about.started);
        out.finish()
    }
}

impl Controller {
    fn new(workers: usize) -> Controller {
        Controller {
            workers,
            waiting: 0,
            results: RESULTS.iter().map(|result| (*result, 0)).collect(),
            terminal: 0,
            panics: 0,
            retries: 0,
            adds: 0,
            took: Histogram::new(RECONCILE),
            queued: Histogram::new(QUEUE),
            worked: Histogram::new(QUEUE),
        }
    }
}

impl Counted {
    fn serve(&mut self, gvk: &Gvk, workers: usize) {
        let others: Vec<Gvk> = self.kinds.iter().map(|(group, kind)| Gvk::new(group, "", kind)).collect();
        self.kinds.insert((gvk.group.clone(), gvk.kind.clone()));
        // Before the first of a second group comes, nothing has been counted yet.
        for other in others.iter().filter(|other| short_name(other) == short_name(gvk)) {
            if let Some(known) = self.controllers.remove(&short_name(other)) {
                let name = self.controller(other);
                self.controllers.insert(name, known);
            }
        }
        let name = self.controller(gvk);
        self.controllers.insert(name, Controller::new(workers));
    }

    /// The name of a kind's controller.
    fn controller(&self, gvk: &Gvk) -> String {
        let short = short_name(gvk);
        let is_other =
            |(group, kind): &&(String, String)| *group != gvk.group && kind.eq_ignore_ascii_case(&gvk.kind);
        if self.kinds.iter().any(|known| is_other(&known)) { long_name(gvk) } else { short }
    }

    fn begin(&mut self, started: &ReconcileStarted) {
        let name = self.controller(&started.object.gvk);
        if let Some(one) = self.controllers.get_mut(&name) {
            one.adds += 1;
        }
        self.running.insert(started.id, (name, started.at));
    }

    fn end(&mut self, reconcile: &Reconcile) {
        self.running.remove(&reconcile.id);
        let name = self.controller(&reconcile.object.gvk);
        for Cause { kind, .. } in &reconcile.causes {
            *self.causes.entry((name.clone(), kind.name())).or_default() += 1;
        }
        let outcome = if reconcile.failure.is_some() { "failed" } else { "succeeded" };
        for release in &reconcile.releases {
            let step = match release.step {
                ReleaseStep::Installed => "install",
                ReleaseStep::Upgraded => "upgrade",
                ReleaseStep::Rewritten => "rewrite",
                ReleaseStep::RolledBack => "rollback",
            };
            *self.releases.entry((name.clone(), step, outcome)).or_default() += 1;
        }
        if matches!(reconcile.outcome, Outcome::Gone | Outcome::Uninstalled) {
            self.created.remove(&reconcile.object.key());
        }
        let Some(one) = self.controllers.get_mut(&name) else { return };
        let result = match (&reconcile.failure, &reconcile.requeue) {
            (Some(_), _) => "error",
            (None, Some(requeue)) if requeue.after.is_zero() => "requeue",
            (None, Some(_)) => "requeue_after",
            (None, None) => "success",
        };
        *one.results.entry(result).or_default() += 1;
        if let Some(failure) = &reconcile.failure {
            one.terminal += u64::from(reconcile.requeue.is_none());
            one.retries += u64::from(reconcile.requeue.is_some());
            one.panics += u64::from(failure.chain.first().is_some_and(|line| line.contains("panicked")));
        }
        one.took.observe(reconcile.took.as_secs_f64());
        one.worked.observe(reconcile.took.as_secs_f64());
        one.queued.observe(reconcile.queued.as_secs_f64());
    }

    /// How long the reconciles of a controller have been running, in seconds.
    fn unfinished<'c>(&'c self, name: &'c str, now: Timestamp) -> impl Iterator<Item = f64> + 'c {
        let of = self.running.values().filter(move |(of, _)| of == name);
        of.map(move |(_, at)| now.duration_since(*at).as_secs_f64().max(0.0))
    }
}

impl Metrics {
    /// When a custom resource was created.
    pub(super) fn created(&self, gvk: &Gvk, key: ObjectKey, at: Timestamp) {
        let seconds = at.as_duration().as_secs_f64().floor();
        self.lock().created.insert(key, (gvk.clone(), seconds));
    }
}

fn controllers(out: &mut Exposition, counted: &Counted) {
    let each =
        |out: &mut Exposition, name: &str, kind, help: &str, value: &dyn Fn(&str, &Controller) -> f64| {
            out.family(name, kind, help);
            for (controller, one) in &counted.controllers {
                out.sample(name, &[("controller", controller)], value(controller, one));
            }
        };
    let active = |controller: &str| counted.running.values().filter(|(of, _)| of == controller).count();
    each(
        out,
        "controller_runtime_active_workers",
        Kind::Gauge,
        "Number of reconciles under way.",
        &|name, _| number(active(name) as u64),
    );
    each(
        out,
        "controller_runtime_max_concurrent_reconciles",
        Kind::Gauge,
        "How many reconciles may be under way at once.",
        &|_, one| number(one.workers as u64),
    );
    each(
        out,
        "controller_runtime_reconcile_errors_total",
        Kind::Counter,
        "Number of reconciles that failed.",
        &|_, one| number(one.results.get("error").copied().unwrap_or_default()),
    );
    each(
        out,
        "controller_runtime_reconcile_panics_total",
        Kind::Counter,
        "Number of reconciles that panicked.",
        &|_, one| number(one.panics),
    );
    each(
        out,
        "controller_runtime_terminal_reconcile_errors_total",
        Kind::Counter,
        "Number of reconciles that failed and are not tried again.",
        &|_, one| number(one.terminal),
    );
    out.family("controller_runtime_reconcile_time_seconds", Kind::Histogram, "How long reconciles took.");
    for (controller, one) in &counted.controllers {
        out.histogram("controller_runtime_reconcile_time_seconds", &[("controller", controller)], &one.took);
    }
    out.family("controller_runtime_reconcile_total", Kind::Counter, "Number of reconciles, by result.");
    for (controller, one) in &counted.controllers {
        for (result, count) in &one.results {
            let labels = [("controller", controller.as_str()), ("result", result)];
            out.sample("controller_runtime_reconcile_total", &labels, number(*count));
        }
    }
}

fn queues(out: &mut Exposition, counted: &Counted, now: Timestamp) {
    let each =
        |out: &mut Exposition, name: &str, kind, help: &str, value: &dyn Fn(&str, &Controller) -> f64| {
            out.family(name, kind, help);
            for (controller, one) in &counted.controllers {
                let labels = [("controller", controller.as_str()), ("name", controller.as_str())];
                out.sample(name, &labels, value(controller, one));
            }
        };
    each(
        out,
        "workqueue_adds_total",
        Kind::Counter,
        "Number of objects that were put into the queue.",
        &|_, one| number(one.adds),
    );
    each(
        out,
        "workqueue_retries_total",
        Kind::Counter,
        "Number of objects that are tried again.",
        &|_, one| number(one.retries),
    );
    each(
        out,
        "workqueue_unfinished_work_seconds",
        Kind::Gauge,
        "How long the reconciles under way have taken together.",
        &|name, _| counted.unfinished(name, now).sum(),
    );
    each(
        out,
        "workqueue_longest_running_processor_seconds",
        Kind::Gauge,
        "How long the longest of them has taken.",
        &|name, _| counted.unfinished(name, now).fold(0.0, f64::max),
    );
    out.family("workqueue_depth", Kind::Gauge, "Number of objects that wait for a worker.");
    for (controller, one) in &counted.controllers {
        let labels = [("controller", controller.as_str()), ("name", controller), ("priority", "")];
        out.sample("workqueue_depth", &labels, number(one.waiting as u64));
    }
    for (name, help, pick) in [
        (
            "workqueue_queue_duration_seconds",
            "How long objects waited for a worker.",
            Controller::queued as fn(&Controller) -> &Histogram,
        ),
        ("workqueue_work_duration_seconds", "How long workers took for an object.", Controller::worked),
    ] {
        out.family(name, Kind::Histogram, help);
        for (controller, one) in &counted.controllers {
            let labels = [("controller", controller.as_str()), ("name", controller.as_str())];
            out.histogram(name, &labels, pick(one));
        }
    }
}

impl Controller {
    fn queued(&self) -> &Histogram {
        &self.queued
    }

    fn worked(&self) -> &Histogram {
        &self.worked
    }
}

/// The metrics that only opdev has.
fn own(out: &mut Exposition, counted: &Counted) {
    out.family("opdev_reconcile_causes_total", Kind::Counter, "Number of causes of reconciles, by sort.");
    for ((controller, cause), count) in &counted.causes {
        out.sample(
            "opdev_reconcile_causes_total",
            &[("controller", controller), ("cause", cause)],
            number(*count),
        );
    }
    out.family(
        "opdev_release_total",
        Kind::Counter,
        "Number of changes of releases, by what was done and how it ended.",
    );
    for ((controller, action, outcome), count) in &counted.releases {
        let labels = [("controller", controller.as_str()), ("action", *action), ("outcome", *outcome)];
        out.sample("opdev_release_total", &labels, number(*count));
    }
    out.family("opdev_loops_total", Kind::Counter, "Number of loops that were found, by sort.");
    for ((controller, kind), count) in &counted.loops {
        out.sample("opdev_loops_total", &[("controller", controller), ("kind", kind)], number(*count));
    }
}

/// The metrics of controller-runtime's own servers. There are no webhooks here.
fn servers(out: &mut Exposition, (read, failed): (u64, u64)) {
    for (name, help, count) in [
        (
            "certwatcher_read_certificate_errors_total",
            "Number of certificates that could not be read.",
            failed,
        ),
        ("certwatcher_read_certificate_total", "Number of times that a certificate was read.", read),
        ("controller_runtime_webhook_panics_total", "Number of webhook calls that panicked.", 0),
    ] {
        out.family(name, Kind::Counter, help);
        out.sample(name, &[], number(count));
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(metrics: &Metrics, series: &str) -> Option<f64> {
        let text = metrics.text(Timestamp::now());
        text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
    }

    #[test]
    fn calls_and_waiting_objects_are_counted() {
        let metrics = Metrics::for_tests();
        let site = Gvk::new("my.domain", "v1", "Site");
        metrics.serves(&site, 3);
        let depth = "workqueue_depth{controller=\"site-controller\",name=\"site-controller\",priority=\"\"}";
        assert_eq!(value(&metrics, depth), Some(0.0));
        metrics.waits(&site, 7);
        metrics.waits(&Gvk::new("my.domain", "v1", "Other"), 1);
        assert_eq!(value(&metrics, depth), Some(7.0));
        metrics.called("GET", Some(200));
        metrics.called("GET", Some(200));
        metrics.called("PATCH", None);
        let of = |code: &str, method: &str| {
            format!("rest_client_requests_total{{code=\"{code}\",host=\"10.0.0.1:443\",method=\"{method}\"}}")
        };
        assert_eq!(value(&metrics, &of("200", "GET")), Some(2.0));
        assert_eq!(value(&metrics, &of("<error>", "PATCH")), Some(1.0));
        let workers = "controller_runtime_max_concurrent_reconciles{controller=\"site-controller\"}";
        assert_eq!(value(&metrics, workers), Some(3.0));
    }

    #[test]
    fn kinds_of_one_name_in_two_groups_are_counted_apart() {
        let metrics = Metrics::for_tests();
        let [one, other, alone] = [("a.example", "Site"), ("b.example", "Site"), ("a.example", "Cache")]
            .map(|(group, kind)| Gvk::new(group, "v1", kind));
        for (gvk, workers) in [(&one, 1), (&alone, 2), (&other, 3)] {
            metrics.serves(gvk, workers);
        }
        metrics.waits(&one, 4);
        metrics.waits(&other, 5);
        let of = |family: &str, controller: &str| {
            let more = if family == "workqueue_depth" {
                format!(",name=\"{controller}\",priority=\"\"")
            } else {
                String::new()
            };
            value(&metrics, &format!("{family}{{controller=\"{controller}\"{more}}}"))
        };
        let workers = "controller_runtime_max_concurrent_reconciles";
        let names = ["site.a.example-controller", "site.b.example-controller", "cache-controller"];
        assert_eq!(names.map(|name| of(workers, name)), [Some(1.0), Some(3.0), Some(2.0)]);
        assert_eq!(of("workqueue_depth", names[0]), Some(4.0));
        assert_eq!(of("workqueue_depth", names[1]), Some(5.0));
        assert_eq!(of(workers, "site-controller"), None);
    }

    #[test]
    fn a_reconcile_that_runs_is_active_and_unfinished() {
        let metrics = Metrics::for_tests();
        metrics.serves(&Gvk::new("my.domain", "v1", "Site"), 3);
        let object = opdev_object::meta::ObjectRef {
            gvk: Gvk::new("my.domain", "v1", "Site"),
            namespace: Some("default".to_owned()),
            name: "a".to_owned(),
            uid: None,
        };
        let at = Timestamp::now() - std::time::Duration::from_secs(5);
        metrics.hear(&Event::ReconcileStarted(ReconcileStarted { id: 1, at, object, causes: Vec::new() }));
        let active = "controller_runtime_active_workers{controller=\"site-controller\"}";
        assert_eq!(value(&metrics, active), Some(1.0));
        let unfinished =
            "workqueue_unfinished_work_seconds{controller=\"site-controller\",name=\"site-controller\"}";
        assert!(value(&metrics, unfinished).is_some_and(|seconds| seconds >= 5.0));
    }
}

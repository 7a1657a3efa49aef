//! Resolves the address of a webhook. A URL is used as it is. A service is resolved to a port of this
//! machine, or to an endpoint that is not a simulated pod, or to nothing. Only reads objects and opens no
//! connection.

use super::reach::{Reach, permitted};
use opdev_apimachinery::contract::View;
use opdev_apimachinery::resource::{ClientConfig, Target, is_kubectls};
use opdev_object::meta;
use serde_json::Value;
use std::collections::BTreeMap;
use std::iter::repeat;
use std::net::IpAddr;
use std::sync::Arc;

/// The annotation of a Service that names the port on 127.0.0.1 of what serves it.
const LOCAL_PORT: &str = "opdev.dev/local-port";
/// The port where controller-runtime's webhook server listens by default.
const USUAL_PORT: u16 = 9443;

/// How the plane reaches webhooks that are configured by a service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Webhooks {
    /// The port on 127.0.0.1 of what serves a service, by `namespace/name`. An annotation
    /// `opdev.dev/local-port` on the Service says the same.
    pub ports: BTreeMap<String, u16>,
    /// A webhook whose service has only simulated pods counts as one that does not answer, as on a real
    /// cluster; otherwise it is skipped with a warning.
    pub strict: bool,
    /// Decides about calls to other machines; without one all are made.
    pub reach: Option<Reach>,
    /// PEM of the plane's own authority: believed where a configuration names none, and of local servers.
    pub authority: Arc<str>,
}

/// A place to call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    /// As errors show it, without a query.
    pub(super) url: String,
    /// Host and port to connect to.
    pub(super) dial: String,
    /// The name that its certificate has to be for.
    pub(super) server_name: String,
    /// The `Host` of requests.
    pub host: String,
    pub path: String,
    /// A certificate of the plane's own authority for `localhost` will do too.
    pub(super) local: bool,
    /// The result of a call where nothing listens there.
    pub(super) otherwise: Option<CallFailure>,
    /// True if only kubectl wrote the objects that lead there, from the configuration on.
    pub(super) by_kubectl: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CallFailure {
    /// The words that follow `failed calling webhook "…": `.
    Failed(String),
    /// Behind this service there are only simulated pods.
    Simulated(String),
}

/// A place, or the reason there is none: the text after `Post "…": `, with the URL for it.
pub(super) type Resolved = Result<Endpoint, (String, CallFailure)>;

/// Where a configuration points.
pub(super) fn find(view: &(impl View + ?Sized), settings: &Webhooks, config: &ClientConfig) -> Resolved {
    let place = match &config.target {
        Target::Url(url) => by_url(url)?,
        Target::Service { namespace, name, port, path } => {
            let service = Service { namespace, name, port: *port, path };
            service.find(view, settings)?
        }
    };
    permitted(settings.reach.as_ref(), place, config.by_kubectl)
}

fn by_url(url: &str) -> Resolved {
    let failed = |why: &str| Err((url.to_owned(), CallFailure::Failed(why.to_owned())));
    let Some(rest) = url.strip_prefix("https://") else {
        return failed("only https is spoken with webhooks");
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
    let bare = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    let (name, port) = match bare {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port),
        _ => (host, "443"),
    };
    let server_name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
    if server_name.is_empty() {
        return failed("no Host in request URL");
    }
    let path = cleaned(path);
    Ok(Endpoint {
        url: format!("https://{host}{path}"),
        dial: format!("{name}:{port}"),
        local: is_local(&server_name),
        server_name,
        host: host.to_owned(),
        path,
        otherwise: None,
        by_kubectl: true,
    })
}

/// A path without empty steps, as the real server calls it.
fn cleaned(path: &str) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => _ = steps.pop(),
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

pub(super) fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

struct Service<'a> {
    namespace: &'a str,
    name: &'a str,
    port: u16,
    path: &'a str,
}

/// The endpoints of a service.
#[derive(Debug, Default)]
struct Endpoints {
    real: Option<String>,
    simulated: bool,
    by_kubectl: bool,
}

impl Service<'_> {
    fn url(&self) -> String {
        format!("https://{}.{}.svc:{}{}", self.name, self.namespace, self.port, cleaned(self.path))
    }

    fn find(&self, view: &(impl View + ?Sized), settings: &Webhooks) -> Resolved {
        let failed = |why: String| Err((self.url(), CallFailure::Failed(why)));
        let Some(object) = view.get("services", Some(self.namespace), self.name) else {
            return failed(format!("service {:?} not found", self.name));
        };
        if let Some(port) = self.mapped(settings, &object) {
            return Ok(self.at(format!("127.0.0.1:{port}"), None));
        }
        let spec = &object["spec"];
        if spec["type"] == "ExternalName" {
            let host = spec["externalName"].as_str().unwrap_or_default();
            let place = self.at(format!("{host}:{}", self.port), None);
            return Ok(Endpoint { by_kubectl: is_kubectls(&object), ..place });
        }
        let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(port) = ports.iter().find(|port| port["port"] == self.port) else {
            return failed(format!("no service port {} found for service {:?}", self.port, self.name));
        };
        let address = spec["clusterIP"].as_str().unwrap_or_default();
        if address == "None" {
            return failed("cannot route to service with ClusterIP \"None\"".to_owned());
        }
        let endpoints = self.endpoints(view, port);
        if let Some(real) = endpoints.real {
            let by_kubectl = endpoints.by_kubectl && is_kubectls(&object);
            return Ok(Endpoint { by_kubectl, ..self.at(real, None) });
        }
        let otherwise = match endpoints.simulated && !settings.strict {
            true => CallFailure::Simulated(format!("{}/{}", self.namespace, self.name)),
            false => {
                CallFailure::Failed(format!("dial tcp {address}:{}: connect: connection refused", self.port))
            }
        };
        // An operator that runs beside the cluster listens where its pod would.
        let local = self.target_port(view, &object, port);
        Ok(self.at(format!("127.0.0.1:{local}"), Some(otherwise)))
    }

    fn at(&self, dial: String, otherwise: Option<CallFailure>) -> Endpoint {
        let server_name = format!("{}.{}.svc", self.name, self.namespace);
        Endpoint {
            url: self.url(),
            host: format!("{server_name}:{}", self.port),
            server_name,
            path: cleaned(self.path),
            local: true,
            dial,
            otherwise,
            by_kubectl: true,
        }
    }

    fn mapped(&self, settings: &Webhooks, object: &Value) -> Option<u16> {
        let told = settings.ports.get(&format!("{}/{}", self.namespace, self.name)).copied();
        told.or_else(|| meta::annotation(object, LOCAL_PORT)?.parse().ok())
    }

    /// The first ready address that is no simulated pod's.
    fn endpoints(&self, view: &(impl View + ?Sized), port: &Value) -> Endpoints {
        let mut found = Endpoints::default();
        let name = port["name"].as_str().unwrap_or_default();
        let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
        let mut look = |address: &Value, target: &Value, port: &Value, object: &Value| {
            let Some(address) = address.as_str() else { return };
            if target["kind"] == "Pod" && !is_local(address) {
                found.simulated = true;
            } else if found.real.is_none() {
                let bracketed =
                    if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
                found.real = Some(format!("{bracketed}:{port}"));
                found.by_kubectl = is_kubectls(object);
            }
        };
        let named = |port: &&Value| port["name"].as_str().unwrap_or_default() == name;
        for slice in view.list("discovery.k8s.io/endpointslices", Some(self.namespace)) {
            if meta::label(&slice, "kubernetes.io/service-name") != Some(self.name) {
                continue;
            }
            let ports = list(&slice["ports"]);
            let Some(port) = ports.iter().find(named) else { continue };
            for endpoint in list(&slice["endpoints"]) {
                let ready = endpoint["conditions"]["ready"] != false;
                for address in list(&endpoint["addresses"]).iter().filter(|_| ready) {
                    look(address, &endpoint["targetRef"], &port["port"], &slice);
                }
            }
        }
        let older = view.get("endpoints", Some(self.namespace), self.name);
        let subsets = older.iter().flat_map(|older| list(&older["subsets"]).into_iter().zip(repeat(older)));
        for (subset, older) in subsets {
            let ports = list(&subset["ports"]);
            let Some(port) = ports.iter().find(named) else { continue };
            for address in list(&subset["addresses"]) {
                look(&address["ip"], &address["targetRef"], &port["port"], older);
            }
        }
        found
    }

    /// The port that the service's pods would listen on.
    fn target_port(&self, view: &(impl View + ?Sized), object: &Value, port: &Value) -> u16 {
        let number = |value: &Value| value.as_u64().and_then(|port| u16::try_from(port).ok());
        let target = &port["targetPort"];
        let Some(name) = target.as_str() else {
            return number(target).filter(|port| *port != 443).unwrap_or(USUAL_PORT);
        };
        let Some(selector) = object["spec"]["selector"].as_object() else { return USUAL_PORT };
        let selected =
            |pod: &Value| selector.iter().all(|(key, value)| meta::label(pod, key) == value.as_str());
        let pods = view.list("pods", Some(self.namespace));
        let containers =
            pods.iter().filter(|pod| selected(pod)).flat_map(|pod| pod["spec"]["containers"].as_array());
        let ports = containers.flatten().flat_map(|container| container["ports"].as_array()).flatten();
        let mut found =
            ports.filter(|port| port["name"] == name).filter_map(|port| number(&port["containerPort"]));
        found.next().unwrap_or(USUAL_PORT)
    }
}

//! EndpointSlices and Endpoints: which ready pods are behind a Service.
//! Never touches those that somebody else manages.

use super::fields::{
    self, controller_reference, deleting, flag, int, list, map, map_copy, name, put, same, stamp, text, uid,
};
use super::pods;
use super::selector::Selector;
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Lookup, PodField};
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Makes EndpointSlices.
pub(crate) struct EndpointSlices;

/// Makes the older Endpoints.
pub(crate) struct Endpoints;

const SLICES: &str = "discovery.k8s.io/endpointslices";
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// Most endpoints in one slice.
const PER_SLICE: usize = 100;

/// Services that select a pod before or after a change, or the one a changed object belongs to.
fn service_keys(view: &dyn View, change: &Change, own: &str) -> Vec<Key> {
    let Some(object) = change.object() else { return Vec::new() };
    match change.resource.as_str() {
        "services" => change.key().into_iter().collect(),
        "pods" => {
            let mut states =
                [&change.before, &change.after].map(|pod| pod.as_ref()?.attributes().labels().as_object());
            if states[0] == states[1] {
                states[0] = None;
            }
            let selecting = |labels| {
                let among = Lookup::Selecting(labels);
                let selects = |service: &Attributes| service.service_selects(Some(labels));
                view.select_keys("services", object.namespace(), &among, &selects)
            };
            let mut keys = Vec::new();
            for key in states.into_iter().flatten().flat_map(selecting) {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
            // The pods are read last: most are behind no service.
            if let (Some(before), Some(after)) = (&change.before, &change.after)
                && !keys.is_empty()
                && !changes_endpoints(before, after)
            {
                keys.clear();
            }
            keys
        }
        resource if resource == own => {
            let service =
                object.attributes().labels()[SERVICE_NAME].as_str().unwrap_or_else(|| object.name());
            vec![Key::new("services", object.namespace(), service)]
        }
        _ => Vec::new(),
    }
}

/// Returns true if a change of a pod may show in an endpoint: most changes, such as a condition or a count of
/// restarts, do not. Kubernetes' own controllers leave such changes out, too; this compares more fields than
/// they do, all that endpoints are made of.
fn changes_endpoints(before: &Value, after: &Value) -> bool {
    let ready = |pod: &Value| {
        let conditions = list(pod, "/status/conditions").iter();
        let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
        ready.next().map(|condition| condition["status"].clone())
    };
    let fields = [
        "/metadata/labels",
        "/metadata/deletionTimestamp",
        "/metadata/uid",
        "/spec",
        "/status/podIP",
        "/status/podIPs",
        "/status/phase",
    ];
    fields.iter().any(|field| before.pointer(field) != after.pointer(field)) || ready(before) != ready(after)
}

fn selector(service: &Value) -> Option<Selector> {
    let labels = map(service, "/spec/selector").filter(|labels| !labels.is_empty())?;
    (text(service, "/spec/type") != "ExternalName").then(|| Selector::of_map(labels))
}

/// Pods behind a service that have an address and have not ended.
fn backends(view: &dyn View, service: &Value, selector: &Selector) -> Vec<Arc<Value>> {
    view.select("pods", meta::namespace(service), &selector.lookup(), &|pod| {
        selector.selects(pod) && !pod.pod(PodField::Address).is_empty() && !pod.pod_finished()
    })
}

/// The ports of a service as they are on one pod; ports it does not have are left out.
fn ports(service: &Value, pod: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for port in list(service, "/spec/ports") {
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        let target = port.get("targetPort").or_else(|| port.get("port"));
        let number = match target {
            Some(Value::String(wanted)) => list(pod, "/spec/containers")
                .iter()
                .flat_map(|container| list(container, "/ports"))
                .find(|p| {
                    text(p, "/name") == wanted
                        && matches!(text(p, "/protocol"), "" | "TCP") == (protocol == "TCP")
                })
                .and_then(|port| int(port, "/containerPort")),
            Some(number) => number.as_i64(),
            None => None,
        };
        let Some(number) = number else { continue };
        let mut entry = json!({"name": text(port, "/name"), "port": number, "protocol": protocol});
        if !text(port, "/appProtocol").is_empty() {
            put(&mut entry, "/appProtocol", text(port, "/appProtocol").into());
        }
        found.push(entry);
    }
    found
}

fn headless(service: &Value) -> bool {
    text(service, "/spec/clusterIP") == "None"
}

fn target(pod: &Value) -> Value {
    json!({"kind": "Pod", "namespace": meta::namespace(pod), "name": name(pod), "uid": uid(pod)})
}

fn endpoint(service: &Value, pod: &Value) -> Value {
    let terminating = deleting(pod);
    let serving = pods::ready(pod);
    let ready = flag(service, "/spec/publishNotReadyAddresses") || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": [text(pod, "/status/podIP")],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": target(pod),
    });
    if !text(pod, "/spec/nodeName").is_empty() {
        put(&mut endpoint, "/nodeName", text(pod, "/spec/nodeName").into());
    }
    let hostname = text(pod, "/spec/hostname");
    if !hostname.is_empty() && text(pod, "/spec/subdomain") == name(service) {
        put(&mut endpoint, "/hostname", hostname.into());
    }
    endpoint
}

impl Controller for EndpointSlices {
    fn name(&self) -> &'static str {
        "endpoint-slice-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:endpointslice-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        service_keys(view, change, SLICES)
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(service) = key.read(view).filter(|service| !deleting(service)) else { return Sync::done() };
        let own = Lookup::Labelled(vec![(SERVICE_NAME, &key.name)]);
        let existing = view.select(SLICES, key.namespace.as_deref(), &own, &|slice| {
            slice.labels()[SERVICE_NAME] == key.name
                && slice.labels()[MANAGED_BY] == MANAGER
                && !slice.deleting()
        });
        let Some(selector) = selector(&service) else { return Sync::done() };
        let mut wanted = wanted_slices(view, &service, &selector);
        let mut writes = Vec::new();
        // Slices that are right already stay; of the others as many are reused as are wanted.
        let mut spare = Vec::new();
        for slice in existing {
            let holds = |(ports, endpoints): &(Value, Vec<Value>)| {
                same(slice.get("ports").unwrap_or(&json!([])), ports)
                    && same(slice.get("endpoints").unwrap_or(&json!([])), &json!(endpoints))
            };
            match wanted.iter().position(holds) {
                Some(at) if labels_right(&slice, &service) => {
                    wanted.remove(at);
                }
                _ => spare.push(slice),
            }
        }
        for (ports, endpoints) in wanted {
            writes.push(match spare.pop() {
                Some(slice) => Write::Update {
                    resource: SLICES.into(),
                    object: filled(Value::clone(&slice), &service, ports, endpoints, now),
                },
                None => Write::Create {
                    resource: SLICES.into(),
                    object: filled(new_slice(&service), &service, ports, endpoints, now),
                },
            });
        }
        writes.extend(spare.iter().map(|slice| remove(SLICES, slice)));
        Sync { writes, ..Sync::default() }
    }
}

fn remove(resource: &str, object: &Value) -> Write {
    Write::Delete {
        resource: resource.to_owned(),
        namespace: meta::namespace(object).map(str::to_owned),
        name: name(object).to_owned(),
        uid: meta::uid(object).map(str::to_owned),
        propagation: None,
        grace: None,
    }
}

/// Ports and endpoints of each slice; pods with other numbers for the same port get a slice of their own.
fn wanted_slices(view: &dyn View, service: &Value, selector: &Selector) -> Vec<(Value, Vec<Value>)> {
    let mut groups: BTreeMap<String, (Value, Vec<Value>)> = BTreeMap::new();
    for pod in backends(view, service, selector) {
        let ports = Value::Array(ports(service, &pod));
        let group = groups.entry(ports.to_string()).or_insert_with(|| (ports, Vec::new()));
        group.1.push(endpoint(service, &pod));
    }
    let mut slices = Vec::new();
    for (ports, endpoints) in groups.into_values() {
        for chunk in endpoints.chunks(PER_SLICE) {
            slices.push((ports.clone(), chunk.to_vec()));
        }
    }
    if slices.is_empty() {
        slices.push((json!([]), Vec::new()));
    }
    slices
}

fn wanted_labels(service: &Value) -> Map<String, Value> {
    let mut labels = map_copy(service, "/metadata/labels");
    labels.insert(SERVICE_NAME.into(), name(service).into());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if headless(service) {
        labels.insert(HEADLESS.into(), "".into());
    }
    labels
}

fn labels_right(slice: &Value, service: &Value) -> bool {
    map(slice, "/metadata/labels") == Some(&wanted_labels(service))
}

fn new_slice(service: &Value) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "generateName": format!("{}-", name(service)),
            "namespace": meta::namespace(service),
            "ownerReferences": [controller_reference(service)],
        },
    })
}

fn filled(mut slice: Value, service: &Value, ports: Value, endpoints: Vec<Value>, now: Timestamp) -> Value {
    put(&mut slice, "/metadata/labels", wanted_labels(service).into());
    put(&mut slice, &format!("/metadata/annotations/{}", fields::step(TRIGGER)), stamp(now).into());
    put(&mut slice, "/ports", ports);
    put(&mut slice, "/endpoints", endpoints.into());
    slice
}

impl Controller for Endpoints {
    fn name(&self) -> &'static str {
        "endpoint-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:endpoint-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        service_keys(view, change, "endpoints")
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let service = key.read(view).filter(|service| !deleting(service));
        let existing = view.get("endpoints", key.namespace.as_deref(), &key.name);
        let Some(service) = service else {
            let ours =
                existing.filter(|found| meta::label(found, "endpoints.kubernetes.io/managed-by").is_some());
            return Sync {
                writes: ours.iter().map(|found| remove("endpoints", found)).collect(),
                ..Sync::default()
            };
        };
        let Some(selector) = selector(&service) else { return Sync::done() };
        let mut labels = map_copy(&service, "/metadata/labels");
        labels.insert("endpoints.kubernetes.io/managed-by".into(), "endpoint-controller".into());
        if headless(&service) {
            labels.insert(HEADLESS.into(), "".into());
        }
        let subsets = Value::Array(subsets(view, &service, &selector));
        if let Some(found) = &existing
            && same(found.get("subsets").unwrap_or(&json!([])), &subsets)
            && map(found, "/metadata/labels") == Some(&labels)
        {
            return Sync::done();
        }
        let mut object = existing.as_ref().map_or_else(
            || {
                json!({"apiVersion": "v1", "kind": "Endpoints",
                    "metadata": {"name": key.name, "namespace": key.namespace}})
            },
            |found| Value::clone(found),
        );
        put(&mut object, "/metadata/labels", labels.into());
        put(&mut object, &format!("/metadata/annotations/{}", fields::step(TRIGGER)), stamp(now).into());
        put(&mut object, "/subsets", subsets);
        let resource = "endpoints".to_owned();
        let write = if existing.is_some() {
            Write::Update { resource, object }
        } else {
            Write::Create { resource, object }
        };
        Sync { writes: vec![write], ..Sync::default() }
    }
}

/// Addresses that share their ports.
struct Subset {
    ports: Vec<Value>,
    ready: Vec<Value>,
    waiting: Vec<Value>,
}

fn subsets(view: &dyn View, service: &Value, selector: &Selector) -> Vec<Value> {
    let mut groups: BTreeMap<String, Subset> = BTreeMap::new();
    for pod in backends(view, service, selector) {
        if deleting(&pod) {
            continue;
        }
        let ports = ports(service, &pod);
        let group = groups.entry(Value::Array(ports.clone()).to_string()).or_insert_with(|| Subset {
            ports,
            ready: Vec::new(),
            waiting: Vec::new(),
        });
        let address = address(service, &pod);
        if pods::ready(&pod) || flag(service, "/spec/publishNotReadyAddresses") {
            group.ready.push(address);
        } else {
            group.waiting.push(address);
        }
    }
    groups.into_values().map(Subset::into_value).collect()
}

fn address(service: &Value, pod: &Value) -> Value {
    let mut address = json!({"ip": text(pod, "/status/podIP"), "targetRef": target(pod)});
    if !text(pod, "/spec/nodeName").is_empty() {
        put(&mut address, "/nodeName", text(pod, "/spec/nodeName").into());
    }
    let hostname = text(pod, "/spec/hostname");
    if !hostname.is_empty() && text(pod, "/spec/subdomain") == name(service) {
        put(&mut address, "/hostname", hostname.into());
    }
    address
}

impl Subset {
    fn into_value(mut self) -> Value {
        for port in self.ports.iter_mut().filter_map(Value::as_object_mut) {
            if port.get("name").and_then(Value::as_str) == Some("") {
                port.remove("name");
            }
        }
        for addresses in [&mut self.ready, &mut self.waiting] {
            addresses.sort_by(|a, b| text(a, "/ip").cmp(text(b, "/ip")));
        }
        let parts = [("addresses", self.ready), ("notReadyAddresses", self.waiting), ("ports", self.ports)];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        parts.map(|(field, values)| (field.to_owned(), Value::Array(values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stand_in_order() {
        let addresses = |ips: [&str; 3]| ips.map(|ip| json!({"ip": ip})).to_vec();
        let subset = Subset {
            ports: vec![json!({"name": "", "port": 80})],
            ready: addresses(["10.244.0.4", "10.244.0.2", "10.244.0.3"]),
            waiting: Vec::new(),
        };
        let sorted = addresses(["10.244.0.2", "10.244.0.3", "10.244.0.4"]);
        assert_eq!(subset.into_value(), json!({"addresses": sorted, "ports": [{"port": 80}]}));
    }
}

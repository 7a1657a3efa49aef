//! The simulated kubelet: moves each pod on its node to the next stage, with statuses and Events as a real
//! one. Never runs anything. What a pod's life is stands in `stage` and `assets/stages`.

use super::addresses::Addresses;
use super::conditions::{self, NewCondition};
use super::fields::{self, count, deleting, flag, list, name, put, reference, stamp, text, uid, with_status};
use super::node::NODE_ADDRESS;
use super::pods;
use super::references::{self, Missing};
use super::stage::{self, Stage};
use crate::contract::{Actor, Change, Controller, Hold, Key, Note, NoteKind, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Lookup, PodField};
use opdev_apimachinery::qos;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct Kubelet {
    pub(crate) node: String,
    /// None means the built-in ones.
    pub stages: Option<Arc<[Stage]>>,
    /// Pods wait for what they name.
    pub strict: bool,
    pub addresses: Addresses,
}

impl Controller for Kubelet {
    fn name(&self) -> &'static str {
        "kubelet"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:node:opdev", field_manager: "kubelet" }
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        if self.strict && matches!(change.resource.as_str(), "configmaps" | "secrets" | "serviceaccounts") {
            return self.waiting(view, change);
        }
        match &change.after {
            Some(pod) if change.resource == "pods" && pod.attributes().pod(PodField::Node) == self.node => {
                change.key().into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(pod) = key.read(view) else { return Sync::done() };
        if text(&pod, "/spec/nodeName") != self.node {
            return Sync::done();
        }
        // A pod that was seen already waits if it cannot be started.
        if self.strict
            && pods::phase(&pod) == "Pending"
            && pod.pointer("/status/startTime").is_some()
            && !deleting(&pod)
            && let Some(missing) = references::missing(view, &pod)
        {
            return Sync { writes: self.hold_back(view, &pod, &missing), ..Sync::default() };
        }
        if pods::phase(&pod) == "Running" && !deleting(&pod) && changed_containers(&pod).next().is_some() {
            return Sync { writes: self.next(view, &pod, &restarted(), now), ..Sync::default() };
        }
        if pods::phase(&pod) == "Running"
            && !deleting(&pod)
            && new_ephemeral_containers(&pod).next().is_some()
        {
            return Sync { writes: self.next(view, &pod, &joined(), now), ..Sync::default() };
        }
        let left = time_left(&pod, now).filter(|_| !deleting(&pod) && !pods::finished(&pod));
        if left == Some(0) {
            return Sync { writes: self.next(view, &pod, &out_of_time(), now), ..Sync::default() };
        }
        let again = left.map(Duration::from_secs);
        let Some(stage) = stage::due(self.stages.as_deref().unwrap_or_else(|| stage::built_in()), &pod)
        else {
            return Sync { requeue_after: again, ..Sync::default() };
        };
        let writes = self.next(view, &pod, &stage.next, now);
        let mut sync = Sync { writes, requeue_after: again, ..Sync::default() };
        if !sync.writes.is_empty() && !stage.delay().is_zero() {
            sync.hold = Some(Hold { what: stage.name.clone(), delay: stage.delay() });
        }
        sync
    }
}

impl Kubelet {
    /// The pods that may wait for a ConfigMap, a Secret or a ServiceAccount which has come.
    fn waiting(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        let Some(object) = &change.after else { return Vec::new() };
        view.select_keys("pods", object.namespace(), &Lookup::All, &|pod| {
            matches!(pod.pod(PodField::Phase), "" | "Pending") && pod.pod(PodField::Node) == self.node
        })
    }

    /// Writes why a pod cannot be started, in its status and, once, in an Event.
    fn hold_back(&self, view: &dyn View, pod: &Value, missing: &Missing) -> Vec<Write> {
        let mut regarding = reference(pod);
        let mut writes = Vec::new();
        let (reason, message) = match missing {
            Missing::Volume(volume, why) => {
                ("FailedMount", format!("MountVolume.SetUp failed for volume {volume:?} : {why}"))
            }
            Missing::Container(kind, container, why) => {
                let mut status = fields::status(pod);
                for list in ["containerStatuses", "initContainerStatuses"] {
                    let all = status.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
                    for state in all.filter(|state| name_of(state) == container) {
                        state["state"] =
                            json!({"waiting": {"reason": "CreateContainerConfigError", "message": why}});
                    }
                }
                if status != fields::status(pod) {
                    let object = with_status(pod, status);
                    writes.push(Write::UpdateStatus { resource: "pods".into(), object });
                }
                put(&mut regarding, "/fieldPath", field_path(kind, container).into());
                ("Failed", format!("Error: {why}"))
            }
        };
        let told = view.list("events", meta::namespace(pod)).iter().any(|event| {
            text(event, "/involvedObject/uid") == uid(pod) && text(event, "/message") == message
        });
        if !told {
            writes.push(Write::Record(Note {
                regarding,
                kind: NoteKind::Warning,
                reason: reason.to_owned(),
                message,
                component: Some("kubelet"),
                host: Some(self.node.clone()),
            }));
        }
        writes
    }

    fn next(&self, view: &dyn View, pod: &Value, next: &Value, now: Timestamp) -> Vec<Write> {
        let mut writes = Vec::new();
        let mut changes = false;
        if next.get("status").is_some() {
            let status = self.status(view, pod, next, now);
            if status != fields::status(pod) {
                changes = true;
                let object = with_status(pod, status);
                writes.push(Write::UpdateStatus { resource: "pods".into(), object });
            }
        }
        let delete = flag(next, "/delete");
        if changes || delete || next.get("status").is_none() && next.get("finalizers").is_some() {
            writes.extend(list(next, "/events").iter().flat_map(|event| self.events(pod, event)));
        }
        if flag(next, "/finalizers/empty") && !meta::finalizers(pod).is_empty() {
            writes.push(Write::Patch {
                resource: "pods".into(),
                namespace: meta::namespace(pod).map(str::to_owned),
                name: name(pod).to_owned(),
                patch: json!({"metadata": {"finalizers": null}}),
            });
        }
        if delete {
            writes.push(pods::remove(pod, Some(0)));
        }
        writes
    }

    fn events(&self, pod: &Value, event: &Value) -> Vec<Write> {
        let kind = if text(event, "/type") == "Warning" { NoteKind::Warning } else { NoteKind::Normal };
        let record = |path: Option<String>, container: &Value| {
            let mut regarding = reference(pod);
            if let Some(path) = path {
                put(&mut regarding, "/fieldPath", path.into());
            }
            Write::Record(Note {
                regarding,
                kind,
                reason: text(event, "/reason").to_owned(),
                message: fill(text(event, "/message"), pod, container),
                component: Some("kubelet"),
                host: Some(self.node.clone()),
            })
        };
        let (main, init) = (list(pod, "/spec/containers").iter(), init_container_in_turn(pod).into_iter());
        let runs = |kind: &str, container: &Value| {
            status_of(list(pod, &format!("/status/{kind}")), container).is_some_and(is_running)
        };
        let (kind, containers): (_, Vec<&Value>) = match text(event, "/of") {
            "containers" => ("containers", main.collect()),
            "changedContainers" => ("containers", changed_containers(pod).collect()),
            "newEphemeralContainers" => ("ephemeralContainers", new_ephemeral_containers(pod).collect()),
            "runningContainers" => ("containers", main.filter(|c| runs("containerStatuses", c)).collect()),
            "initContainers" => ("initContainers", list(pod, "/spec/initContainers").iter().collect()),
            "initContainer" => ("initContainers", init.collect()),
            "startingInitContainer" => {
                ("initContainers", init.filter(|c| !runs("initContainerStatuses", c)).collect())
            }
            _ => return vec![record(None, &Value::Null)],
        };
        let path = |container| field_path(kind, name_of(container));
        containers.into_iter().map(|container| record(Some(path(container)), container)).collect()
    }

    fn status(&self, view: &dyn View, pod: &Value, next: &Value, now: Timestamp) -> Map<String, Value> {
        let mut status = fields::status(pod);
        for field in ["phase", "reason", "message"] {
            if let Some(value) = next.pointer(&format!("/status/{field}")) {
                status.insert(field.into(), value.clone());
            }
        }
        if meta::generation(pod) > 0 {
            status.insert("observedGeneration".into(), meta::generation(pod).into());
        }
        if flag(next, "/status/startTime") && !status.contains_key("startTime") {
            status.insert("startTime".into(), stamp(now).into());
        }
        let host = status.entry("hostIP").or_insert_with(|| NODE_ADDRESS.into()).clone();
        status.entry("hostIPs").or_insert_with(|| json!([{"ip": host}]));
        status.entry("qosClass").or_insert_with(|| qos::class(pod).into());
        if flag(next, "/status/podIP") && !status.contains_key("podIP") {
            let address = match flag(pod, "/spec/hostNetwork") {
                true => NODE_ADDRESS.to_owned(),
                false => self.addresses.give(view, uid(pod)),
            };
            status.insert("podIPs".into(), json!([{"ip": address}]));
            status.insert("podIP".into(), address.into());
        }
        for (kind, field) in [
            ("initContainers", "initContainerStatuses"),
            ("containers", "containerStatuses"),
            ("ephemeralContainers", "ephemeralContainerStatuses"),
        ] {
            if let Some(wanted) = stage::containers(next, kind) {
                let statuses = container_statuses(pod, kind, field, wanted, now);
                if !statuses.is_empty() {
                    status.insert(field.into(), statuses.into());
                }
            }
        }
        for condition in stage::conditions(next) {
            set_condition(&mut status, pod, condition, now);
        }
        status
    }
}

/// A container as Events name it: the list of the spec that it is in, and its name.
fn field_path(kind: &str, container: &str) -> String {
    format!("spec.{kind}{{{container}}}")
}

fn name_of(container: &Value) -> &str {
    text(container, "/name")
}

/// The words about a container, by its name.
fn status_of<'a>(statuses: &'a [Value], container: &Value) -> Option<&'a Value> {
    statuses.iter().find(|status| name_of(status) == name_of(container))
}

fn is_running(status: &Value) -> bool {
    status.pointer("/state/running").is_some()
}

/// The containers that run with another image than the pod names by now: of a pod's containers, only the
/// image may change.
fn changed_containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let statuses = list(pod, "/status/containerStatuses");
    list(pod, "/spec/containers").iter().filter(|container| {
        status_of(statuses, container)
            .is_some_and(|status| is_running(status) && text(status, "/image") != text(container, "/image"))
    })
}

/// The containers that `kubectl debug` has added, and that have not begun.
fn new_ephemeral_containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let statuses = list(pod, "/status/ephemeralContainerStatuses");
    let containers = list(pod, "/spec/ephemeralContainers").iter();
    containers.filter(|container| status_of(statuses, container).is_none())
}

/// Seconds that a pod may go on for, where it says how many.
fn time_left(pod: &Value, now: Timestamp) -> Option<u64> {
    let most = fields::int(pod, "/spec/activeDeadlineSeconds")?;
    let since = fields::time(pod, "/status/startTime")?;
    Some(u64::try_from(most - fields::seconds_between(since, now)).unwrap_or(0))
}

/// The end of a pod whose time is over.
fn out_of_time() -> Value {
    const REASON: &str = "DeadlineExceeded";
    const MESSAGE: &str = "Pod was active on the node longer than the specified deadline";
    let failed = |kind: &str| json!({"type": kind, "status": "False", "reason": "PodFailed"});
    json!({
        "events": [{"of": "pod", "reason": REASON, "message": MESSAGE}],
        "status": {
            "phase": "Failed", "reason": REASON, "message": MESSAGE,
            "conditions": [failed("Ready"), failed("ContainersReady")],
            "containers": {"terminated": {"exitCode": 137, "reason": "Error"}, "ready": false, "started": false},
        },
    })
}

/// The outcome for a pod whose containers have changed: those begin anew, whatever the pod's restart policy
/// says.
fn restarted() -> Value {
    let says = |kind: &str| {
        json!({"type": kind, "status": "False", "reason": "ContainersNotReady",
            "message": "containers with unready status: [{changed}]"})
    };
    let event = |reason: &str, message: &str| json!({"of": "changedContainers", "reason": reason, "message": message});
    json!({
        "events": [
            event("Killing", "Container {container} definition changed, will be restarted"),
            event("Pulled", "Container image \"{image}\" already present on machine and can be accessed by the pod"),
            event("Created", "Container created"),
            event("Started", "Container started"),
        ],
        "status": {
            "conditions": [says("Ready"), says("ContainersReady")],
            "containers": {"changed": true, "restarted": {"exitCode": 143, "reason": "Error"}, "ready": false},
        },
    })
}

/// The outcome for a pod to which ephemeral containers were added: they begin, and say nothing of readiness.
/// An `attach` to one is answered as to any other: that nothing runs here.
fn joined() -> Value {
    let event = |reason: &str, message: &str| json!({"of": "newEphemeralContainers", "reason": reason, "message": message});
    json!({
        "events": [
            event("Pulled", "Container image \"{image}\" already present on machine and can be accessed by the pod"),
            event("Created", "Container created"),
            event("Started", "Container started"),
        ],
        "status": {"ephemeralContainers": {"running": {}, "ready": false, "started": false}},
    })
}

/// The commands of a pod, as its spec has them.
fn commands(pod: &Value) -> String {
    let words = |container: &Value| {
        let words = [list(container, "/command"), list(container, "/args")].concat();
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        let command = words.join(" ");
        let short: String = command.chars().take(120).collect();
        if short.len() < command.len() { format!("{short}…") } else { short }
    };
    let all: Vec<String> = list(pod, "/spec/containers")
        .iter()
        .map(|container| match words(container) {
            command if command.is_empty() => format!("{} (its image's own command)", name_of(container)),
            command => format!("{} (`{command}`)", name_of(container)),
        })
        .collect();
    all.join(", ")
}

/// A sidecar is an init container that is never to end.
fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

/// Returns true if the next container may begin: this one has ended well, or is a sidecar that runs.
fn init_done(container: &Value, status: Option<&Value>) -> bool {
    status.is_some_and(|status| match is_sidecar(container) {
        true => flag(status, "/started"),
        false => status.pointer("/state/terminated/exitCode") == Some(&json!(0)),
    })
}

/// The init containers that are not done by these statuses.
fn init_open<'p>(pod: &'p Value, statuses: &[Value]) -> impl Iterator<Item = &'p Value> {
    let containers = list(pod, "/spec/initContainers").iter();
    containers.filter(|container| !init_done(container, status_of(statuses, container)))
}

/// Init containers run one after the other: the first one that is not done.
fn init_container_in_turn(pod: &Value) -> Option<&Value> {
    init_open(pod, list(pod, "/status/initContainerStatuses")).next()
}

/// The status of the init container in turn after a step that does not set one.
fn init_step(status: Option<&Value>) -> Value {
    if status.is_some_and(is_running) {
        return json!({"terminated": {"exitCode": 0, "reason": "Completed"}, "ready": true});
    }
    json!({"ready": false})
}

/// Fills the placeholders of a message.
fn fill(message: &str, pod: &Value, container: &Value) -> String {
    let all = list(pod, "/spec/containers").iter().map(name_of).collect::<Vec<_>>().join(" ");
    message
        .replace("{containers}", &all)
        .replace("{changed}", &changed_containers(pod).map(name_of).collect::<Vec<_>>().join(" "))
        .replace("{commands}", &if message.contains("{commands}") { commands(pod) } else { String::new() })
        .replace("{container}", name_of(container))
        .replace("{image}", text(container, "/image"))
        .replace("{pod}", name(pod))
        .replace("{namespace}", meta::namespace(pod).unwrap_or_default())
        .replace("{uid}", uid(pod))
}

fn set_condition(status: &mut Map<String, Value>, pod: &Value, wanted: &Value, now: Timestamp) {
    let kind = text(wanted, "/type");
    let mut value = text(wanted, "/status").to_owned();
    let mut reason = text(wanted, "/reason").to_owned();
    let mut message = fill(text(wanted, "/message"), pod, &Value::Null);
    if value == "auto" {
        (value, reason, message) = automatic(status, pod, kind);
    }
    let says = NewCondition { kind, status: &value, reason: &reason, message: &message };
    conditions::set(status, says, now);
}

/// Initialized depends on the statuses of init containers, Ready on readiness gates.
fn automatic(status: &Map<String, Value>, pod: &Value, kind: &str) -> (String, String, String) {
    let yes = || ("True".to_owned(), String::new(), String::new());
    if kind == "Initialized" {
        let statuses = status.get("initContainerStatuses").and_then(Value::as_array);
        let open: Vec<_> = init_open(pod, statuses.map_or(&[], Vec::as_slice)).map(name_of).collect();
        if open.is_empty() {
            return yes();
        }
        let message = format!("containers with incomplete status: [{}]", open.join(" "));
        return ("False".into(), "ContainersNotInitialized".into(), message);
    }
    let open: Vec<_> = list(pod, "/spec/readinessGates")
        .iter()
        .map(|gate| text(gate, "/conditionType"))
        .filter(|gate| !conditions::is(status, gate, "True"))
        .map(|gate| match conditions::find(status, gate) {
            Some(_) => format!("the status of pod readiness gate \"{gate}\" is not \"True\", but False"),
            None => format!("corresponding condition of pod readiness gate \"{gate}\" does not exist."),
        })
        .collect();
    if open.is_empty() {
        return yes();
    }
    ("False".into(), "ReadinessGatesNotReady".into(), open.join(", "))
}

fn container_statuses(
    pod: &Value,
    kind: &str,
    field: &str,
    wanted: &Map<String, Value>,
    now: Timestamp,
) -> Vec<Value> {
    let existing = list(pod, &format!("/status/{field}"));
    let turn = wanted.get("inTurn").map(|_| init_container_in_turn(pod).map(name_of));
    list(pod, &format!("/spec/{kind}"))
        .iter()
        .map(|container| {
            let before = status_of(existing, container);
            let status =
                |wanted| container_status(pod, container, before, wanted, is_sidecar(container), now);
            let is_changed = || changed_containers(pod).any(|changed| name_of(changed) == name_of(container));
            match (turn, before) {
                (None, Some(before)) if wanted.contains_key("changed") && !is_changed() => before.clone(),
                (None, _) => status(wanted),
                (Some(turn), Some(before)) if turn != Some(name_of(container)) => before.clone(),
                _ if wanted.contains_key("waiting") || wanted.contains_key("terminated") => status(wanted),
                _ => status(init_step(before).as_object().unwrap_or(wanted)),
            }
        })
        .collect()
}

fn container_status(
    pod: &Value,
    container: &Value,
    before: Option<&Value>,
    wanted: &Map<String, Value>,
    sidecar: bool,
    now: Timestamp,
) -> Value {
    let mut restarts = before.map_or(0, |before| count(before, "/restartCount"));
    let mut last = before.and_then(|before| before.get("lastState")).cloned().unwrap_or_else(|| json!({}));
    let started_at =
        before.map(|before| text(before, "/state/running/startedAt")).filter(|at| !at.is_empty());
    if let Some(Value::Object(ended)) = wanted.get("restarted") {
        restarts += 1;
        last = json!({"terminated": terminated(ended, started_at, now, &container_id(pod, container, restarts - 1))});
    }
    let id = container_id(pod, container, restarts);
    let ends = wanted.get("terminated").and_then(Value::as_object);
    let (state, mut ready, started) = match ends {
        Some(ended) if !sidecar => {
            let ready = wanted.get("ready").and_then(Value::as_bool).unwrap_or(false);
            (json!({"terminated": terminated(ended, started_at, now, &id)}), ready, false)
        }
        _ if sidecar && ends.is_some() => (running(started_at, now), true, true),
        _ => match wanted.get("waiting") {
            Some(waiting) => {
                let mut waiting = waiting.clone();
                if text(&waiting, "/reason") == "auto" {
                    let reason = match list(pod, "/spec/initContainers") {
                        [] => "ContainerCreating",
                        _ => "PodInitializing",
                    };
                    put(&mut waiting, "/reason", reason.into());
                }
                if let Some(message) = waiting.get("message").and_then(Value::as_str) {
                    let message = fill(message, pod, container);
                    put(&mut waiting, "/message", message.into());
                }
                (json!({"waiting": waiting}), false, false)
            }
            None => (running(started_at.filter(|_| !wanted.contains_key("restarted")), now), false, true),
        },
    };
    if state.get("running").is_some() {
        ready = sidecar || wanted.get("ready").and_then(Value::as_bool).unwrap_or(true);
    }
    let waits_first = state.get("waiting").is_some() && restarts == 0;
    json!({
        "name": name_of(container),
        "image": text(container, "/image"),
        "imageID": if waits_first { String::new() } else { image_id(container) },
        "ready": ready,
        "started": started,
        "restartCount": restarts,
        "state": state,
        "lastState": last,
        "containerID": if waits_first { Value::Null } else { id.into() },
    })
    .as_object()
    .map(|fields| fields.iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect())
    .map_or(Value::Null, Value::Object)
}

fn running(started_at: Option<&str>, now: Timestamp) -> Value {
    json!({"running": {"startedAt": started_at.map_or_else(|| stamp(now), str::to_owned)}})
}

fn terminated(wanted: &Map<String, Value>, started_at: Option<&str>, now: Timestamp, id: &str) -> Value {
    json!({
        "exitCode": wanted.get("exitCode").and_then(Value::as_i64).unwrap_or(0),
        "reason": wanted.get("reason").and_then(Value::as_str).unwrap_or("Completed"),
        "startedAt": started_at.map_or_else(|| stamp(now), str::to_owned),
        "finishedAt": stamp(now),
        "containerID": id,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn container_id(pod: &Value, container: &Value, restarts: i64) -> String {
    let source = format!("{}/{}/{restarts}", uid(pod), name_of(container));
    format!("opdev://{}", hex(&Sha256::digest(source.as_bytes())))
}

fn image_id(container: &Value) -> String {
    let image = text(container, "/image");
    let repository = image.split('@').next().unwrap_or(image);
    let repository = match repository.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => before,
        _ => repository,
    };
    format!("{repository}@sha256:{}", hex(&Sha256::digest(image.as_bytes())))
}

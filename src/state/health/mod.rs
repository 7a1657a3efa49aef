//! The health of an object, as it says itself: a word, ready counts, and whether that is good. Pure reading
//! of the object, with the words and counts kubectl prints. The words of a pod are in `health/pod.rs`; what a
//! custom resource makes of its children is in `tree`.

mod pod;
pub mod signs;

use opdev_object::meta;
use serde_json::Value;
use std::collections::BTreeSet;

/// How an object is, from good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// It has nothing to be ready with.
    #[default]
    Plain,
    /// It has done its work.
    Done,
    /// It is as it should be.
    Good,
    /// It is on its way.
    Busy,
    /// It needs a look.
    Bad,
}

/// The health of an object as its own fields tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Good or bad.
    pub level: Level,
    /// One or two words, such as `Running` or `ClusterIP`; empty where ready counts say it all.
    pub word: String,
    /// Ready and wanted.
    pub ready: Option<(i64, i64)>,
    /// Why it is bad or busy, where it says so.
    pub detail: Option<String>,
}

impl Health {
    fn new(level: Level, word: impl Into<String>) -> Self {
        Health { level, word: word.into(), ready: None, detail: None }
    }

    /// `3/3`, or nothing.
    pub fn counts(&self) -> String {
        self.ready.map_or_else(String::new, |(ready, wanted)| format!("{ready}/{wanted}"))
    }
}

/// A whole number at a pointer, 0 where there is none.
fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

/// A text at a pointer, empty where there is none.
fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}

/// A condition by type: its status, reason and message.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let found = conditions.iter().find(|c| text(c, "/type") == kind)?;
    Some((text(found, "/status"), text(found, "/reason"), text(found, "/message")))
}

fn is_true<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    condition(object, kind)
        .filter(|(status, ..)| *status == "True")
        .map(|(_, reason, message)| (reason, message))
}

fn is_false<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    condition(object, kind)
        .filter(|(status, ..)| *status == "False")
        .map(|(_, reason, message)| (reason, message))
}

/// Reason and message as one text.
fn because((reason, message): (&str, &str)) -> Option<String> {
    match (reason, message) {
        ("", "") => None,
        (one, "") | ("", one) => Some(one.to_owned()),
        (reason, message) => Some(format!("{reason}: {message}")),
    }
}

/// How an object is.
pub fn of(object: &Value) -> Health {
    let group = meta::Gvk::of(object).map(|gvk| gvk.group).unwrap_or_default();
    let health = match (group.as_str(), text(object, "/kind")) {
        ("", "Pod") => return pod::of(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") | ("", "ReplicationController") => replica_set(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set(object),
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => cron_job(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Service") => service(object),
        ("", "Namespace") => Health::new(Level::Good, text(object, "/status/phase")),
        ("", "Secret") => secret(object),
        ("", "ConfigMap") => Health::new(Level::Plain, keys(object)),
        ("networking.k8s.io", "Ingress") => Health::new(Level::Plain, text(object, "/spec/rules/0/host")),
        ("autoscaling", "HorizontalPodAutoscaler") => autoscaler(object),
        _ => generic(object),
    };
    going(object, health)
}

/// An object with a deletion timestamp says so first.
fn going(object: &Value, mut health: Health) -> Health {
    if meta::deletion_timestamp(object).is_some() {
        health.level = Level::Busy;
        health.word = "Terminating".to_owned();
        let waits = meta::finalizers(object);
        health.detail = (!waits.is_empty()).then(|| format!("waits for finalizers: {}", waits.join(", ")));
    }
    health
}

/// How an object is as far as its metadata tells: a release record by its labels, the number of keys by who
/// manages them.
pub fn of_metadata(object: &Value) -> Health {
    let word = match object.get("kind").and_then(Value::as_str) {
        Some("Secret") if is_release(object) => meta::label(object, "status").unwrap_or("release").to_owned(),
        Some("Secret" | "ConfigMap") => managed_keys(object).map(counted).unwrap_or_default(),
        _ => String::new(),
    };
    going(object, Health::new(Level::Plain, word))
}

/// Returns true if the controller has not yet looked at the newest spec.
fn unseen(object: &Value) -> bool {
    object.pointer("/status/observedGeneration").and_then(Value::as_i64).unwrap_or(0)
        < meta::generation(object)
}

fn wanted(object: &Value) -> i64 {
    object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

fn replicas(object: &Value, busy: bool, word: &str) -> Health {
    let (ready, wanted) = (number(object, "/status/readyReplicas"), wanted(object));
    let mut health =
        if busy || ready != wanted { Health::new(Level::Busy, word) } else { Health::new(Level::Good, "") };
    health.ready = Some((ready, wanted));
    health
}

fn deployment(object: &Value) -> Health {
    let updated = number(object, "/status/updatedReplicas");
    let total = number(object, "/status/replicas");
    let wanted = wanted(object);
    let rolling = updated < wanted || total > updated;
    let mut health = replicas(object, unseen(object) || rolling, if rolling { "rolling out" } else { "" });
    if object.pointer("/spec/paused").and_then(Value::as_bool) == Some(true) {
        health.word = "paused".to_owned();
    }
    let stuck = is_false(object, "Progressing").or_else(|| is_true(object, "ReplicaFailure"));
    if let Some(why) = stuck {
        health.level = Level::Bad;
        health.word = why.0.to_owned();
        health.detail = because(why);
    }
    health
}

fn replica_set(object: &Value) -> Health {
    let mut health = replicas(object, false, "");
    if let Some(why) = is_true(object, "ReplicaFailure") {
        health.level = Level::Bad;
        health.word = why.0.to_owned();
        health.detail = because(why);
    }
    health
}

fn stateful_set(object: &Value) -> Health {
    let (current, update) = (text(object, "/status/currentRevision"), text(object, "/status/updateRevision"));
    let rolling = !update.is_empty() && current != update;
    let on_delete = text(object, "/spec/updateStrategy/type") == "OnDelete";
    let partition = number(object, "/spec/updateStrategy/rollingUpdate/partition") > 0;
    let busy = rolling && !on_delete && !partition;
    replicas(object, unseen(object) || busy, if busy { "rolling out" } else { "" })
}

fn daemon_set(object: &Value) -> Health {
    let wanted = number(object, "/status/desiredNumberScheduled");
    let ready = number(object, "/status/numberReady");
    let rolling = number(object, "/status/updatedNumberScheduled") < wanted
        && text(object, "/spec/updateStrategy/type") != "OnDelete";
    let level = if unseen(object) || rolling || ready < wanted { Level::Busy } else { Level::Good };
    Health { ready: Some((ready, wanted)), ..Health::new(level, if rolling { "rolling out" } else { "" }) }
}

fn job(object: &Value) -> Health {
    let wanted = object.pointer("/spec/completions").and_then(Value::as_i64);
    let wanted = wanted.unwrap_or_else(|| number(object, "/spec/parallelism").max(1));
    let mut health = if let Some(why) = is_true(object, "Failed") {
        Health { detail: because(why), ..Health::new(Level::Bad, "Failed") }
    } else if is_true(object, "Complete").is_some() {
        Health::new(Level::Done, "Complete")
    } else if is_true(object, "Suspended").is_some() {
        Health::new(Level::Plain, "Suspended")
    } else if let Some(why) = is_true(object, "FailureTarget") {
        Health { detail: because(why), ..Health::new(Level::Bad, "FailureTarget") }
    } else {
        Health::new(Level::Busy, "Running")
    };
    health.ready = Some((number(object, "/status/succeeded"), wanted));
    health
}

fn cron_job(object: &Value) -> Health {
    let suspended = object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true);
    Health::new(Level::Plain, if suspended { "suspended" } else { text(object, "/spec/schedule") })
}

fn claim(object: &Value) -> Health {
    match text(object, "/status/phase") {
        "Bound" => Health::new(Level::Good, "Bound"),
        "Lost" => Health::new(Level::Bad, "Lost"),
        "" => Health::new(Level::Busy, "Pending"),
        phase => Health::new(Level::Busy, phase),
    }
}

fn service(object: &Value) -> Health {
    let kind = match text(object, "/spec/type") {
        "" => "ClusterIP",
        kind => kind,
    };
    let addresses = object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    if kind == "LoadBalancer" && addresses.is_none_or(Vec::is_empty) {
        return Health::new(Level::Busy, "LoadBalancer pending");
    }
    Health::new(Level::Plain, kind)
}

fn autoscaler(object: &Value) -> Health {
    let counts = (number(object, "/status/currentReplicas"), number(object, "/status/desiredReplicas"));
    let level = if is_false(object, "ScalingActive").is_some() { Level::Bad } else { Level::Plain };
    Health { ready: Some(counts), ..Health::new(level, "") }
}

fn keys(object: &Value) -> String {
    let count = |field: &str| object.get(field).and_then(Value::as_object).map_or(0, serde_json::Map::len);
    counted(count("data") + count("binaryData"))
}

fn counted(keys: usize) -> String {
    if keys == 1 { "1 key".to_owned() } else { format!("{keys} keys") }
}

/// How many keys have a manager, which is all of them; nothing where nobody manages anything.
fn managed_keys(object: &Value) -> Option<usize> {
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let mut keys: BTreeSet<(&str, &str)> = BTreeSet::new();
    for manager in managers {
        for field in ["f:data", "f:binaryData"] {
            let fields = manager.pointer(&format!("/fieldsV1/{field}")).and_then(Value::as_object);
            let names = fields.into_iter().flat_map(|fields| fields.keys());
            keys.extend(names.filter(|name| name.starts_with("f:")).map(|name| (field, name.as_str())));
        }
    }
    (!managers.is_empty()).then_some(keys.len())
}

/// Returns true if a Secret is Helm's record of a release.
fn is_release(object: &Value) -> bool {
    meta::label(object, "owner") == Some("helm")
        && meta::name(object).is_some_and(|name| name.starts_with("sh.helm.release.v1."))
}

/// A release record says how it stands; its name says which revision it is.
fn secret(object: &Value) -> Health {
    if matches!(text(object, "/type"), "helm.sh/release.v1" | "operatorframework.io/index.v1") {
        return Health::new(Level::Plain, meta::label(object, "status").unwrap_or("release"));
    }
    Health::new(Level::Plain, keys(object))
}

/// Objects of other kinds, custom resources among them, by the conditions in use: Helm operators' and the
/// usual ones.
fn generic(object: &Value) -> Health {
    for bad in ["ReleaseFailed", "Irreconcilable", "Stalled", "Failed", "Failure"] {
        if let Some(why) = is_true(object, bad) {
            return Health { detail: because(why), ..Health::new(Level::Bad, bad) };
        }
    }
    for good in ["Deployed", "Ready", "Available", "Succeeded", "Established"] {
        match condition(object, good) {
            Some(("True", ..)) => {
                let stale = object.pointer("/status/observedGeneration").is_some() && unseen(object);
                return Health::new(if stale { Level::Busy } else { Level::Good }, good);
            }
            Some((_, reason, message)) => {
                let word = if reason.is_empty() { format!("not {good}") } else { reason.to_owned() };
                return Health { detail: because((reason, message)), ..Health::new(Level::Busy, word) };
            }
            None => {}
        }
    }
    match text(object, "/status/phase") {
        "" => Health::default(),
        phase => Health::new(Level::Plain, phase),
    }
}

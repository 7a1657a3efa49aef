//! Objects as two runs can be compared by them: what differs between any two runs of the same operator is
//! left out. Pure.

use jiff::Timestamp;
use opdev_event::mask;
use opdev_object::meta;
use regex::Regex;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::str::FromStr as _;
use std::sync::LazyLock;

/// The annotation of objects by which old clients elected a leader.
pub const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";

/// The fields of an object that count, by their paths.
pub type Fields = BTreeMap<String, String>;

/// Objects by their names in words, such as `Service default/web`.
pub type Snapshot = BTreeMap<String, Fields>;

/// Stands for a value that any two runs may have different.
const ANY: &str = "*";

/// The start of a value that nobody may see; what follows tells two of them apart.
pub const SECRET: &str = "a secret value ";

/// All objects that count. Those with random names are told apart by a number, in the order of their fields.
pub fn snapshot<'a>(objects: impl Iterator<Item = &'a Value>) -> Snapshot {
    let mut found: BTreeMap<String, Vec<Fields>> = BTreeMap::new();
    for object in objects.filter(|object| counts(object)) {
        found.entry(id(object)).or_default().push(fields(object));
    }
    let mut all = Snapshot::new();
    for (id, mut same) in found {
        same.sort();
        for (at, fields) in same.into_iter().enumerate() {
            let id = if at == 0 { id.clone() } else { format!("{id}#{}", at + 1) };
            all.insert(id, fields);
        }
    }
    all
}

/// Returns true if an object is compared. What the controllers of a cluster derive from others, what every
/// cluster has, and what an operator writes into as into a journal is not.
pub fn counts(object: &Value) -> bool {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let (kind, group) = (text("kind"), meta::group_version(text("apiVersion")));
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let own = match (group, kind) {
        ("" | "events.k8s.io", "Event")
        | ("", "Endpoints" | "Node" | "PersistentVolume" | "Namespace")
        | ("discovery.k8s.io", "EndpointSlice")
        | ("apps", "ReplicaSet" | "ControllerRevision")
        | ("coordination.k8s.io", "Lease" | "LeaseCandidate")
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("apiregistration.k8s.io", "APIService") => false,
        ("", "ConfigMap") => {
            let leader = meta::annotation(object, LEADER).is_some();
            !leader && meta::name(object) != Some("kube-root-ca.crt")
        }
        ("", "ServiceAccount") => meta::name(object) != Some("default"),
        ("", "Secret") => {
            let of = object["type"].as_str().unwrap_or_default();
            of != "helm.sh/release.v1" && of != "kubernetes.io/service-account-token"
        }
        _ => true,
    };
    own && meta::label(object, "kubernetes.io/bootstrapping").is_none()
        && !meta::namespace(object).is_some_and(|namespace| namespace.starts_with("kube-"))
}

/// The name of an object in words. Of a random name the part before it counts.
pub fn id(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = steady_name(Some(object), meta::name(object).unwrap_or_default());
    match meta::namespace(object) {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// Letters of the random part of a name, as Kubernetes and its clients draw them.
const RANDOM: &str = "bcdfghjklmnpqrstvwxz2456789";
/// How many of them there are.
const RANDOM_LETTERS: usize = 5;

/// A name without its random part, which is told by `generateName` or by its letters: operators draw such
/// names, too.
pub fn steady_name(object: Option<&Value>, name: &str) -> String {
    if let Some(prefix) = object.and_then(|object| object["metadata"]["generateName"].as_str()) {
        // The hash of a pod template differs where a value in it does.
        let hash = object.and_then(|object| meta::label(object, "pod-template-hash"));
        let prefix = hash.and_then(|hash| prefix.strip_suffix(&format!("{hash}-"))).unwrap_or(prefix);
        return format!("{prefix}{ANY}");
    }
    match name.len().checked_sub(RANDOM_LETTERS).filter(|at| *at > 0 && name.is_char_boundary(*at)) {
        Some(at) if name[at..].chars().all(|letter| RANDOM.contains(letter)) => {
            format!("{}{ANY}", &name[..at])
        }
        _ => name.to_owned(),
    }
}

/// Returns true if an object belongs to a hook of a chart, which every upgrade makes anew.
pub fn is_hook(object: &Value) -> bool {
    meta::annotation(object, "helm.sh/hook").is_some()
}

fn fields(object: &Value) -> Fields {
    let mut found = Fields::new();
    let secret = object["kind"] == "Secret";
    flatten("", object, secret, &mut found);
    found
}

/// Parts that no two runs have in common, or that say how something came about rather than what is.
fn left_out(path: &str, key: &str) -> bool {
    match path {
        "" => false,
        ".metadata" => {
            matches!(
                key,
                "uid"
                    | "resourceVersion"
                    | "generation"
                    | "creationTimestamp"
                    | "managedFields"
                    | "selfLink"
                    | "name"
            ) || key == "generateName"
        }
        ".metadata.annotations" => {
            key.starts_with("deployment.kubernetes.io/")
                || key == "kubectl.kubernetes.io/last-applied-configuration"
        }
        _ if path.ends_with(".labels") || path.ends_with(".matchLabels") => {
            matches!(key, "pod-template-hash" | "controller-revision-hash")
                || key == "controller-uid"
                || key == "batch.kubernetes.io/controller-uid"
        }
        _ if path.starts_with(".metadata.ownerReferences") => key == "uid",
        _ if path.starts_with(".status") => {
            matches!(
                key,
                "observedGeneration"
                    | "collisionCount"
                    | "currentRevision"
                    | "updateRevision"
                    | "reason"
                    | "message"
            ) || is_address(key)
        }
        _ => is_address(key),
    }
}

fn is_address(key: &str) -> bool {
    matches!(
        key,
        "podIP"
            | "podIPs"
            | "hostIP"
            | "hostIPs"
            | "clusterIP"
            | "clusterIPs"
            | "nodePort"
            | "healthCheckNodePort"
            | "volumeName"
            | "containerID"
    )
}

fn flatten(path: &str, value: &Value, secret: bool, found: &mut Fields) {
    match value {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, value) in entries.iter().filter(|(key, _)| !left_out(path, key)) {
                let secret = secret && (!path.is_empty() || matches!(key.as_str(), "data" | "stringData"));
                let key = without_uids(key);
                let part = if key.contains(['.', '/']) { format!("[{key}]") } else { format!(".{key}") };
                flatten(&format!("{path}{part}"), value, secret && !path.starts_with(".metadata"), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let key = ["name", "type", "mountPath", "port", "containerPort", "key", "uid"]
                .into_iter()
                .find(|key| is_key(items, key));
            for (at, item) in items.iter().enumerate() {
                let at = match key {
                    Some("uid") | None => at.to_string(),
                    Some(key) => format!("{key}={}", plain(&item[key])),
                };
                flatten(&format!("{path}[{at}]"), item, secret, found);
            }
        }
        value => {
            let secret = secret || mask::is_secret_path(path);
            let new = if secret { hidden(value) } else { shown(path, value) };
            match found.get_mut(path) {
                None => drop(found.insert(path.to_owned(), new)),
                // Two keys differ only in a uid.
                Some(known) => {
                    let mut both: Vec<&str> = known.split(", ").chain([new.as_str()]).collect();
                    both.sort_unstable();
                    *known = both.join(", ");
                }
            }
        }
    }
}

/// Returns true if items are told apart by a field: then their order says nothing.
fn is_key(items: &[Value], key: &str) -> bool {
    let mut seen = Vec::new();
    items.iter().all(|item| {
        let value = item.get(key).filter(|value| value.is_string() || value.is_number());
        value.is_some_and(|value| {
            let new = !seen.contains(&value);
            seen.push(value);
            new
        })
    })
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn hidden(value: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    format!("{SECRET}{:016x}", hasher.finish())
}

/// A value in words; a time is any time.
fn shown(path: &str, value: &Value) -> String {
    match value {
        Value::String(text) if is_time(text) => ANY.to_owned(),
        _ if path == ".metadata.deletionTimestamp" || is_version(path) => ANY.to_owned(),
        value => without_uids(&plain(value)).into_owned(),
    }
}

/// A text in which each uid is any: operators write those of other objects into names, labels and
/// annotations.
fn without_uids(text: &str) -> Cow<'_, str> {
    static UID: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}").ok());
    UID.as_ref().map_or(Cow::Borrowed(text), |uid| uid.replace_all(text, ANY))
}

/// Returns true if the last key of a path names the resourceVersion or the uid of another object, as
/// annotations of operators do.
fn is_version(path: &str) -> bool {
    let key = path.trim_end_matches(']').rsplit(['.', '[', '/', '=']).next().unwrap_or_default();
    let letters: String = key.chars().filter(char::is_ascii_alphabetic).collect();
    let letters = letters.to_ascii_lowercase();
    letters.ends_with("resourceversion") || letters == "uid"
}

/// Returns true if a text is a time, as Kubernetes or Go writes it.
pub fn is_time(text: &str) -> bool {
    text.len() >= 19
        && text.as_bytes()[0].is_ascii_digit()
        && (Timestamp::from_str(text).is_ok()
            || text
                .get(..19)
                .is_some_and(|head| Timestamp::from_str(&format!("{}Z", head.replacen(' ', "T", 1))).is_ok()))
}

/// Objects that are made for an owner that is already gone. A cache hears of two kinds in any order, so that
/// any operator may make such an object, and the garbage collector takes it away: that is no coming and
/// going of the operator's. An object that stays is seen at the end of the step.
#[derive(Default)]
pub struct Orphans {
    /// The uids of all that has ended in a run.
    ended: HashSet<String>,
    /// The uids of what was made too late.
    born: HashSet<String>,
}

impl Orphans {
    /// Takes in that an object was made or has gone; true if it was made for owners that were gone before.
    pub fn see(&mut self, object: &Value, made: bool) -> bool {
        let uid = meta::uid(object).unwrap_or_default();
        if made {
            let owners = meta::owner_references(object);
            let is_late = |uid: &String| self.ended.contains(uid) || self.born.contains(uid);
            let late = !owners.is_empty() && owners.iter().all(|owner| is_late(&owner.uid));
            if late {
                self.born.insert(uid.to_owned());
            }
            return late;
        }
        self.ended.insert(uid.to_owned());
        self.born.remove(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_between_any_two_runs_is_left_out() {
        let service = |uid: &str, ip: &str, first: &str| {
            let ports = if first == "a" {
                json!([{"name": "a"}, {"name": "b"}])
            } else {
                json!([{"name": "b"}, {"name": "a"}])
            };
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "namespace": "x", "uid": uid, "resourceVersion": uid,
                    "annotations": {"at": format!("2026-11-28T09:0{uid}:00Z"), "example.com/n": "1"}},
                "spec": {"clusterIP": ip, "ports": ports},
                "status": {"conditions": [{"type": "Ready", "status": "True", "reason": ip, "message": uid}]}})
        };
        let (one, other) = (service("1", "10.0.0.1", "a"), service("2", "10.0.0.2", "b"));
        assert_eq!(snapshot([&one].into_iter()), snapshot([&other].into_iter()));
        let fields = &snapshot([&one].into_iter())["Service x/web"];
        assert_eq!(fields[".status.conditions[type=Ready].status"], "True");
        assert_eq!(fields[".metadata.annotations[example.com/n]"], "1");
    }

    #[test]
    fn objects_with_random_names_are_compared_as_a_set() {
        let pod = |name: &str, node: &str| {
            json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "generateName": "web-", "namespace": "x"}, "spec": {"nodeName": node}})
        };
        let (one, two) = (pod("web-a", "n1"), pod("web-b", "n2"));
        let (three, four) = (pod("web-c", "n2"), pod("web-d", "n1"));
        assert_eq!(snapshot([&one, &two].into_iter()), snapshot([&three, &four].into_iter()));
        assert_eq!(
            snapshot([&one, &two].into_iter()).into_keys().collect::<Vec<_>>(),
            ["Pod x/web-*", "Pod x/web-*#2"]
        );
    }

    #[test]
    fn names_that_an_operator_draws_itself_are_known_by_their_letters() {
        assert_eq!(steady_name(None, "set-pod5mv9m"), "set-pod*");
        assert_eq!(steady_name(None, "set-pod-1"), "set-pod-1");
        assert_eq!(steady_name(None, "kafka"), "kafka");
    }

    #[test]
    fn uids_of_other_objects_and_hashes_of_templates_are_any() {
        let uid = "e8d0dfd2-bc71-465d-b0d4-b0075bf1845e";
        assert_eq!(without_uids(&format!("a/{uid}.b-{uid}")), "a/*.b-*");
        assert_eq!(
            without_uids("e8d0dfd2-bc71-465d-b0d4-b0075bf1845g"),
            "e8d0dfd2-bc71-465d-b0d4-b0075bf1845g"
        );
        let pod = |hash: &str| {
            json!({"kind": "Pod", "metadata": {"name": format!("web-{hash}-abcde"),
                "generateName": format!("web-{hash}-"), "labels": {"pod-template-hash": hash, uid: "x"}}})
        };
        let id = |object: &Value| steady_name(Some(object), meta::name(object).unwrap());
        assert_eq!(id(&pod("5f5d")), "web-*");
        assert_eq!(id(&pod("5f5d")), id(&pod("7c9b")));
        let pod = pod("5f5d");
        assert!(snapshot([&pod].into_iter())["Pod web-*"].contains_key(".metadata.labels.*"));
    }

    #[test]
    fn journals_and_derived_objects_do_not_count_and_secrets_are_not_shown() {
        let release = json!({"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1"});
        let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice"});
        assert!(!counts(&release) && !counts(&slice));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "s", "labels": {"a": "b"}},
            "data": {"password": "aHVudGVyMg=="}});
        let fields = &snapshot([&secret].into_iter())["Secret s"];
        assert!(fields[".data.password"].starts_with(SECRET), "{fields:?}");
        assert!(!format!("{fields:?}").contains("aHVudGVyMg"), "{fields:?}");
        assert_eq!(fields[".metadata.labels.a"], "b");
    }

    #[test]
    fn the_version_of_another_object_is_any() {
        let version = |at: &str| format!(".metadata.annotations{at}");
        for path in
            ["[limits-cm-resource-version]", "[example.com/configResourceVersion]", ".resource_version"]
        {
            assert_eq!(shown(&version(path), &json!("286")), ANY, "{path}");
        }
        for path in [".version", "[example.com/resource-versions]", "[resourceVersion.example.com/image]"] {
            assert_eq!(shown(&version(path), &json!("286")), "286", "{path}");
        }
    }

    #[test]
    fn times_are_known_by_their_form() {
        assert!(["2026-11-28T09:01:02Z", "2026-11-28 09:01:02.123456 +0000 UTC"].into_iter().all(is_time));
        assert!(
            !["2026", "10Gi", "registry.k8s.io/pause:3.9", "1.2.3.4.5.6.7.8.9.10"].into_iter().any(is_time)
        );
    }

    fn owned(uid: &str, owners: &[&str]) -> Value {
        let owner = |uid: &&str| json!({"apiVersion": "g/v1", "kind": "Db", "name": "db", "uid": uid});
        let owners: Vec<Value> = owners.iter().map(owner).collect();
        json!({"metadata": {"name": uid, "uid": uid, "ownerReferences": owners}})
    }

    #[test]
    fn only_what_all_owners_have_left_before_it_was_made_is_late() {
        let mut orphans = Orphans::default();
        assert!(!orphans.see(&owned("old", &[]), true));
        assert!(!orphans.see(&owned("child", &["old"]), true), "its owner is there");
        assert!(!orphans.see(&owned("old", &[]), false));
        assert!(!orphans.see(&owned("child", &["old"]), false), "it was there with its owner");
        assert!(orphans.see(&owned("late", &["old"]), true));
        assert!(!orphans.see(&owned("shared", &["old", "new"]), true), "one owner is there");
        assert!(!orphans.see(&owned("free", &[]), true), "nobody owns it");
        assert!(orphans.see(&owned("late", &["old"]), false));
        assert!(!orphans.see(&owned("late", &["old"]), false), "each counts once");
    }
}

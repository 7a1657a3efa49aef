//! The configuration that pods of a workload take when they start, by the workload's template.

use jiff::Timestamp;
use opdev_event::evidence::ConfigFact;
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use opdev_object::path::Path;
use serde_json::Value;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Words in names of containers, arguments and annotations of what reads configuration anew.
const RELOADS: [&str; 5] = ["reload", "watch", "refresh", "sidecar", "config-sync"];

/// How pods take configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takes {
    /// In files that the kubelet renews; the process may read them again.
    Files,
    /// In files by subPath, which nobody renews.
    SubPath,
    /// Once, at their start: variables.
    Once,
}

/// One use of a ConfigMap or Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Use {
    kind: &'static str,
    name: String,
    /// Its keys; none for all.
    keys: Vec<String>,
    takes: Takes,
}

/// The configuration that a workload takes, and when the workload was changed.
#[derive(Clone, Debug, Default)]
pub struct Template {
    /// Pods that it asks for; those of a DaemonSet are not counted.
    pub wanted: i64,
    pub generation: i64,
    /// When it was made, or its newest generation was seen first.
    pub changed: Timestamp,
    uses: Vec<Use>,
    /// True if something in it reads configuration anew, or rolls the pods from outside.
    reloads: bool,
}

impl Template {
    /// Reads a workload.
    pub(crate) fn of(object: &Value, at: Timestamp, before: Option<&Template>) -> Template {
        let (spec, generation) = (&object["spec"], meta::generation(object));
        let template = &spec["template"];
        let kept = spec["updateStrategy"]["type"] == "OnDelete";
        let annotated =
            [object, template].iter().any(|object| has_reloader(&object["metadata"]["annotations"]));
        let changed =
            before.filter(|before| before.generation == generation).map_or(at, |before| before.changed);
        let mut uses = Vec::new();
        for container in
            ["containers", "initContainers"].iter().flat_map(|list| items(&template["spec"][*list]))
        {
            of_environment(container, &mut uses);
        }
        of_volumes(&template["spec"], &mut uses);
        Template {
            wanted: spec["replicas"].as_i64().unwrap_or(1),
            generation,
            changed,
            uses,
            reloads: kept || annotated || items(&template["spec"]["containers"]).any(reloads),
        }
    }

    /// How the pods take the field of an object that has changed.
    pub fn takes(&self, config: &ObjectKey, path: &str) -> Option<Takes> {
        let of = |one: &&Use| one.kind == config.kind && one.name == config.name;
        let key = |one: &&Use| one.keys.is_empty() || one.keys.iter().any(|key| is_path(path, key));
        let found = self.uses.iter().filter(of).filter(key).map(|one| one.takes).max()?;
        // A process may read the files of a Secret again: mostly they are certificates.
        let alone = found >= Takes::SubPath || config.kind == "ConfigMap";
        (config.group.is_empty() && alone && !self.reloads && self.wanted > 0).then_some(found)
    }
}

/// True if a path is a key of the data of a ConfigMap or Secret.
fn is_path(path: &str, key: &str) -> bool {
    ["data", "binaryData", "stringData"]
        .iter()
        .any(|field| path == Path::root().field(field).field(key).to_string())
}

/// True if a path lies in the data of a ConfigMap or Secret.
pub(crate) fn is_data(path: &str) -> bool {
    [".data", ".binaryData", ".stringData"].iter().any(|field| {
        path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    })
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn has_reloader(annotations: &Value) -> bool {
    annotations.as_object().into_iter().flatten().any(|(name, _)| name.contains("reload"))
}

/// True if a container may read its configuration anew.
fn reloads(container: &Value) -> bool {
    let has = |value: &Value| {
        let text = value.as_str().unwrap_or_default().to_lowercase();
        RELOADS.iter().any(|word| text.contains(word))
    };
    has(&container["name"])
        || has(&container["image"])
        || ["command", "args"].iter().any(|list| items(&container[*list]).any(has))
}

fn of_environment(container: &Value, uses: &mut Vec<Use>) {
    for one in items(&container["envFrom"]) {
        for (field, kind) in [("configMapRef", "ConfigMap"), ("secretRef", "Secret")] {
            let name = text(&one[field]["name"]);
            uses.extend(name.map(|name| Use { kind, name, keys: Vec::new(), takes: Takes::Once }));
        }
    }
    for one in items(&container["env"]) {
        for (field, kind) in [("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")] {
            let from = &one["valueFrom"][field];
            let (Some(name), Some(key)) = (text(&from["name"]), text(&from["key"])) else { continue };
            uses.push(Use { kind, name, keys: vec![key], takes: Takes::Once });
        }
    }
}

fn of_volumes(pod: &Value, uses: &mut Vec<Use>) {
    for volume in items(&pod["volumes"]) {
        let sources = [("configMap", "name", "ConfigMap"), ("secret", "secretName", "Secret")];
        for (field, name, kind) in sources {
            let Some(name) = text(&volume[field][name]) else { continue };
            let mounts = items(&pod["containers"]).flat_map(|container| items(&container["volumeMounts"]));
            for mount in mounts.filter(|mount| mount["name"] == volume["name"]) {
                let Some(file) = text(&mount["subPath"]) else {
                    let (name, keys) = (name.clone(), Vec::new());
                    uses.push(Use { kind, name, keys, takes: Takes::Files });
                    continue;
                };
                let named = items(&volume[field]["items"]).find(|item| item["path"] == file.as_str());
                let key = named.and_then(|item| text(&item["key"])).unwrap_or(file);
                uses.push(Use { kind, name: name.clone(), keys: vec![key], takes: Takes::SubPath });
            }
        }
    }
}

/// How a reconcile came to know of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangedBy {
    /// It has made it.
    Program,
    /// It was woken by it.
    Heard,
    /// It has read the object again, and found another value than the reconcile before.
    Found,
}

/// ConfigMaps and Secrets that are remembered for each custom resource.
const READ: usize = 4;

/// The content of ConfigMaps and Secrets that reconciles have read by name, as hashes of keys and values.
#[derive(Clone, Debug, Default)]
pub struct ReadConfigs(HashMap<ObjectKey, Vec<(u64, u64)>>);

impl ReadConfigs {
    /// Takes in what a reconcile has read, and returns the values that the one before had read otherwise.
    pub(crate) fn take(&mut self, configs: &[ConfigFact]) -> Vec<(ObjectRef, Vec<String>)> {
        let mut changed = Vec::new();
        for config in configs {
            let now: Vec<(u64, u64)> =
                config.values.iter().map(|(path, value)| (hash(path), *value)).collect();
            let key = config.object.key();
            if self.0.len() >= READ && !self.0.contains_key(&key) {
                continue;
            }
            let Some(before) = self.0.insert(key, now) else { continue };
            let differs = |(path, value): &&(String, u64)| {
                let path = hash(path);
                before.iter().any(|(known, old)| *known == path && old != value)
            };
            let paths: Vec<String> =
                config.values.iter().filter(differs).map(|(path, _)| path.clone()).collect();
            if !paths.is_empty() {
                changed.push((config.object.clone(), paths));
            }
        }
        changed
    }
}

fn hash(path: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Takes, Template};
    use jiff::Timestamp;
    use opdev_object::meta::ObjectKey;
    use serde_json::{Value, json};

    fn takes(kind: &str, path: &str, pod: &Value) -> Option<Takes> {
        let object = json!({"metadata": {"generation": 1}, "spec": {"template": {"spec": pod}}});
        let config = ObjectKey {
            group: String::new(),
            kind: kind.to_owned(),
            namespace: Some("default".to_owned()),
            name: "settings".to_owned(),
        };
        Template::of(&object, Timestamp::UNIX_EPOCH, None).takes(&config, path)
    }

    #[test]
    fn pods_take_variables_and_single_files_once_and_whole_volumes_as_files() {
        let one = |name: &str| json!({"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": name, "key": "a.b"}}});
        let env = |name: &str| json!({"containers": [{"name": "web", "env": [one(name)]}]});
        assert_eq!(takes("ConfigMap", ".data[a.b]", &env("settings")), Some(Takes::Once));
        assert_eq!(takes("ConfigMap", ".data.other", &env("settings")), None, "another key");
        assert_eq!(takes("ConfigMap", ".data[a.b]", &env("others")), None, "another ConfigMap");
        assert_eq!(takes("Secret", ".data[a.b]", &env("settings")), None, "another kind");
        let from = json!({"containers": [{"name": "web", "envFrom": [{"secretRef": {"name": "settings"}}]}]});
        assert_eq!(takes("Secret", ".data.x", &from), Some(Takes::Once));
        let volume = |mount: Value, name: &str| {
            json!({"volumes": [{"name": "config", "configMap": {"name": "settings"}}],
                "containers": [{"name": name, "volumeMounts": [mount]}]})
        };
        let sub = json!({"name": "config", "subPath": "app.conf"});
        assert_eq!(takes("ConfigMap", ".data[app.conf]", &volume(sub.clone(), "web")), Some(Takes::SubPath));
        assert_eq!(takes("ConfigMap", ".data.other", &volume(sub.clone(), "web")), None);
        assert_eq!(takes("ConfigMap", ".data[app.conf]", &volume(sub, "config-reloader")), None);
        let whole = json!({"name": "config"});
        assert_eq!(takes("ConfigMap", ".data.other", &volume(whole, "web")), Some(Takes::Files));
    }

    #[test]
    fn a_workload_that_is_rolled_from_outside_takes_nothing() {
        let container = json!({"name": "web", "envFrom": [{"configMapRef": {"name": "settings"}}]});
        let template = json!({"spec": {"containers": [container]}});
        let config = ObjectKey {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: None,
            name: "settings".to_owned(),
        };
        let of = |metadata: Value, spec: Value| {
            let object = json!({"metadata": metadata, "spec": spec});
            Template::of(&object, Timestamp::UNIX_EPOCH, None).takes(&config, ".data.x")
        };
        assert_eq!(of(json!({}), json!({"template": template})), Some(Takes::Once));
        let reloader = json!({"annotations": {"reloader.stakater.com/auto": "true"}});
        assert_eq!(of(reloader, json!({"template": template})), None);
        assert_eq!(of(json!({}), json!({"template": template, "replicas": 0})), None);
        let kept = json!({"template": template, "updateStrategy": {"type": "OnDelete"}});
        assert_eq!(of(json!({}), kept), None);
    }
}

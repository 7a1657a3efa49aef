//! Objects that a pod needs before a kubelet starts it: the ConfigMaps and Secrets that its volumes and
//! containers name, and its ServiceAccount, with the kubelet's words where one is not there. Never writes
//! anything;
//! `kubelet` asks where pods are to be that strict.

use super::fields::{flag, list, text};
use crate::contract::View;
use opdev_object::meta;
use serde_json::Value;

/// The reason why a pod cannot start.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A volume cannot be filled: name and why.
    Volume(String, String),
    /// A container cannot be made: the list of the spec that it is in, its name, and why.
    Container(&'static str, String, String),
}

/// A ConfigMap or a Secret, as a reference names it.
struct Source<'a> {
    resource: &'static str,
    /// As messages name it when the whole object is missing.
    word: &'static str,
    /// As messages name it when a key is.
    kind: &'static str,
    name: &'a str,
    optional: bool,
}

const MAPS: [&str; 3] = ["configmaps", "configmap", "ConfigMap"];
const SECRETS: [&str; 3] = ["secrets", "secret", "Secret"];

impl<'a> Source<'a> {
    fn named_by([resource, word, kind]: [&'static str; 3], reference: &'a Value, name: &str) -> Option<Self> {
        let name = reference.get(name)?.as_str()?;
        Some(Source { resource, word, kind, name, optional: flag(reference, "/optional") })
    }

    /// Why it cannot be read, where it has to be; with a key, why that one cannot.
    fn wrong(&self, view: &dyn View, namespace: &str, key: Option<&str>) -> Option<String> {
        if self.optional {
            return None;
        }
        let Some(object) = view.get(self.resource, Some(namespace), self.name) else {
            return Some(format!("{} {:?} not found", self.word, self.name));
        };
        let key = key?;
        let has = |field: &str| object.get(field).is_some_and(|data| data.get(key).is_some());
        let found = has("data") || (self.resource == "configmaps" && has("binaryData"));
        (!found).then(|| format!("couldn't find key {key} in {} {namespace}/{}", self.kind, self.name))
    }
}

/// The first thing that a pod needs and that is not there: volumes come before containers.
pub(super) fn missing(view: &dyn View, pod: &Value) -> Option<Missing> {
    let namespace = meta::namespace(pod).unwrap_or_default();
    for volume in list(pod, "/spec/volumes") {
        let projected = list(volume, "/projected/sources").iter();
        let sources = [
            volume.get("configMap").and_then(|map| Source::named_by(MAPS, map, "name")),
            volume.get("secret").and_then(|secret| Source::named_by(SECRETS, secret, "secretName")),
        ];
        let inner = projected.flat_map(|source| {
            [
                source.get("configMap").and_then(|map| Source::named_by(MAPS, map, "name")),
                source.get("secret").and_then(|secret| Source::named_by(SECRETS, secret, "name")),
            ]
        });
        let mut sources = sources.into_iter().chain(inner).flatten();
        if let Some(why) = sources.find_map(|source| source.wrong(view, namespace, None)) {
            return Some(Missing::Volume(text(volume, "/name").to_owned(), why));
        }
    }
    if let Some(why) = without_account(view, namespace, pod) {
        return Some(Missing::Volume("kube-api-access".to_owned(), why));
    }
    for kind in ["initContainers", "containers"] {
        for container in list(pod, &format!("/spec/{kind}")) {
            if let Some(why) = unset(view, namespace, container) {
                return Some(Missing::Container(kind, text(container, "/name").to_owned(), why));
            }
        }
    }
    None
}

/// Why the token that every pod has mounted cannot be made: its ServiceAccount is not there.
fn without_account(view: &dyn View, namespace: &str, pod: &Value) -> Option<String> {
    let account = match text(pod, "/spec/serviceAccountName") {
        "" => "default",
        name => name,
    };
    // A controller makes this one in every namespace.
    if account == "default" {
        return None;
    }
    let is_mounted = pod.pointer("/spec/automountServiceAccountToken") != Some(&Value::Bool(false));
    let is_there = || view.get("serviceaccounts", Some(namespace), account).is_some();
    (is_mounted && !is_there())
        .then(|| format!("failed to fetch token: serviceaccounts {account:?} not found"))
}

/// Why the environment of a container cannot be made.
fn unset(view: &dyn View, namespace: &str, container: &Value) -> Option<String> {
    for from in list(container, "/envFrom") {
        let sources = [
            from.get("configMapRef").and_then(|map| Source::named_by(MAPS, map, "name")),
            from.get("secretRef").and_then(|secret| Source::named_by(SECRETS, secret, "name")),
        ];
        let wrong = sources.iter().flatten().find_map(|source| source.wrong(view, namespace, None));
        if wrong.is_some() {
            return wrong;
        }
    }
    for variable in list(container, "/env") {
        for (place, names) in [("/valueFrom/configMapKeyRef", MAPS), ("/valueFrom/secretKeyRef", SECRETS)] {
            let Some(reference) = variable.pointer(place) else { continue };
            let key = reference.get("key").and_then(Value::as_str);
            let source = Source::named_by(names, reference, "name");
            let wrong = source.and_then(|source| source.wrong(view, namespace, key));
            if wrong.is_some() {
                return wrong;
            }
        }
    }
    None
}

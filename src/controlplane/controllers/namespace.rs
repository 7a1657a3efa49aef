//! Ends namespaces: deletes everything in them, pods first, then whatever kind it is of, and lets them go.
//! Never guesses kinds; it asks what is served. `Definitions` is the same for definitions that are going.

use super::conditions::{self, NewCondition};
use super::fields::{self, deleting, list, uid, with_status};
use crate::contract::{Actor, Change, Controller, Key, Propagation, Refusal, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module.
pub(crate) struct Namespaces;

const RESOURCE: &str = "namespaces";

impl Controller for Namespaces {
    fn name(&self) -> &'static str {
        "namespace-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:namespace-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        if change.resource == RESOURCE {
            return change.key().into_iter().collect();
        }
        let Some(namespace) = change.object().and_then(|object| object.namespace()) else {
            return Vec::new();
        };
        match view.get(RESOURCE, None, namespace) {
            Some(found) if deleting(&found) => vec![Key::of_object(RESOURCE, &found)],
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(namespace) = key.read(view) else { return Sync::done() };
        if !deleting(&namespace) || list(&namespace, "/spec/finalizers").is_empty() {
            return Sync::done();
        }
        let mut content = content(view, &key.name);
        // Pods go before what they need to end in good order.
        if content.iter().any(|(resource, _)| resource == "pods") {
            content.retain(|(resource, _)| resource == "pods");
        }
        let mut writes: Vec<_> = content
            .iter()
            .filter(|(_, object)| !deleting(object))
            .map(|(resource, object)| delete(resource, object))
            .collect();
        if content.is_empty() {
            writes.push(Write::Finalize { name: key.name.clone() });
        } else if writes.is_empty() {
            let status = status(&namespace, &content, now);
            if status != fields::status(&namespace) {
                let object = with_status(&namespace, status);
                writes.push(Write::UpdateStatus { resource: RESOURCE.into(), object });
            }
        }
        Sync { writes, ..Sync::default() }
    }

    fn refused(
        &self,
        view: &dyn View,
        key: &Key,
        write: &Write,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Write> {
        let Some(namespace) = key.read(view).filter(|_| matches!(write, Write::Delete { .. })) else {
            return Vec::new();
        };
        // Objects that are going already wait for their finalizers; this is about the rest.
        let mut going = content(view, &key.name);
        going.retain(|(_, object)| deleting(object));
        let mut status = status(&namespace, &going, now);
        let message = format!("Failed to delete all resource types, 1 remaining: {}", refusal.message);
        let (kind, reason) = ("NamespaceDeletionContentFailure", "ContentDeletionFailed");
        conditions::set(&mut status, NewCondition { kind, status: "True", reason, message: &message }, now);
        if status == fields::status(&namespace) {
            return Vec::new();
        }
        vec![Write::UpdateStatus { resource: RESOURCE.into(), object: with_status(&namespace, status) }]
    }
}

/// Tries again to delete the custom resources of a definition that is going, where a conversion failed. The
/// first attempt is the registry's own.
pub(crate) struct Definitions;

const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";

impl Controller for Definitions {
    fn name(&self) -> &'static str {
        "crd-finalizer"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:apiserver", field_manager: "kube-apiserver" }
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        if change.resource == DEFINITIONS { change.key().into_iter().collect() } else { Vec::new() }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(definition) = key.read(view).filter(|definition| stuck(definition)) else {
            return Sync::done();
        };
        let name = fields::name(&definition).to_owned();
        Sync { writes: vec![Write::ClearDefinition { name }], ..Sync::default() }
    }
}

/// Returns true if the deletion of a definition's custom resources has failed.
fn stuck(definition: &Value) -> bool {
    let status = fields::status(definition);
    let said = conditions::find(&status, "Terminating");
    deleting(definition) && said.is_some_and(|said| said["reason"] == "InstanceDeletionFailed")
}

/// Everything in a namespace, each with its resource; an object served by two groups comes once.
fn content(view: &dyn View, namespace: &str) -> Vec<(String, Arc<Value>)> {
    let mut content: Vec<(String, Arc<Value>)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for info in view.resources() {
        if !info.namespaced || !info.deletable {
            continue;
        }
        for object in view.list(&info.resource, Some(namespace)) {
            if seen.insert(uid(&object).to_owned()) {
                content.push((info.resource.clone(), object));
            }
        }
    }
    // Owners before what they own, so that nobody puts back what is being deleted.
    content.sort_by_key(|(_, object)| meta::owner_references(object).len().min(1));
    content
}

fn delete(resource: &str, object: &Value) -> Write {
    Write::Delete {
        resource: resource.to_owned(),
        namespace: meta::namespace(object).map(str::to_owned),
        name: fields::name(object).to_owned(),
        uid: meta::uid(object).map(str::to_owned),
        propagation: Some(Propagation::Background),
        grace: None,
    }
}

fn status(namespace: &Value, content: &[(String, Arc<Value>)], now: Timestamp) -> Map<String, Value> {
    let mut status = fields::status(namespace);
    status.insert("phase".into(), "Terminating".into());
    let mut remaining: BTreeMap<&str, usize> = BTreeMap::new();
    let mut finalizers: BTreeMap<&str, usize> = BTreeMap::new();
    for (resource, object) in content {
        *remaining.entry(resource).or_insert(0) += 1;
        for finalizer in meta::finalizers(object) {
            *finalizers.entry(finalizer).or_insert(0) += 1;
        }
    }
    let mut say = |kind, value, reason, message: &str| {
        conditions::set(&mut status, NewCondition { kind, status: value, reason, message }, now);
    };
    let discovered = "All resources successfully discovered";
    say("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", discovered);
    let parsed = "All legacy kube types successfully parsed";
    say("NamespaceDeletionGroupVersionParsingFailure", "False", "ParsedGroupVersions", parsed);
    let deleted = "All content successfully deleted, may be waiting on finalization";
    say("NamespaceDeletionContentFailure", "False", "ContentDeleted", deleted);
    let instances = |resource: &str, number: &usize| {
        let dotted = resource
            .split_once('/')
            .map_or_else(|| format!("{resource}."), |(group, plural)| format!("{plural}.{group}"));
        format!("{dotted} has {number} resource instances")
    };
    let said: Vec<_> = remaining.iter().map(|(resource, number)| instances(resource, number)).collect();
    if said.is_empty() {
        let message = "All content successfully removed";
        say("NamespaceContentRemaining", "False", "ContentRemoved", message);
    } else {
        let message = format!("Some resources are remaining: {}", said.join(", "));
        say("NamespaceContentRemaining", "True", "SomeResourcesRemain", &message);
    }
    if finalizers.is_empty() {
        let message = "All content-preserving finalizers finished";
        say("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message);
    } else {
        let said: Vec<_> = finalizers
            .iter()
            .map(|(name, number)| format!("{name} in {number} resource instances"))
            .collect();
        let message = format!("Some content in the namespace has finalizers remaining: {}", said.join(", "));
        say("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", &message);
    }
    status
}

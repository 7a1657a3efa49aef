//! The aggregated discovery document: all groups, versions and resources in one answer.

use super::order::Group;
use opdev_apimachinery::resource::Resource;
use serde_json::{Map, Value, json};

/// The media type of the answer.
pub(crate) fn content_type(version: &str) -> &'static str {
    if version == "v2" {
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    } else {
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    }
}

/// The document for `/api` (the core group) or `/apis` (all others).
pub(crate) fn document(groups: &[Group], core: bool, version: &str) -> Value {
    let items: Vec<Value> =
        groups.iter().filter(|group| group.name.is_empty() == core).map(group_value).collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": format!("apidiscovery.k8s.io/{version}"),
        "metadata": {},
        "items": items,
    })
}

fn group_value(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|(version, resources)| {
            let resources: Vec<Value> = resources.iter().map(|resource| resource_value(resource)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        })
        .collect();
    let mut metadata = Map::new();
    metadata.insert("creationTimestamp".into(), Value::Null);
    if !group.name.is_empty() {
        metadata.insert("name".into(), group.name.clone().into());
    }
    json!({"metadata": metadata, "versions": versions})
}

fn resource_value(resource: &Resource) -> Value {
    let mut entry = Map::new();
    entry.insert("resource".into(), resource.plural.clone().into());
    entry.insert("responseKind".into(), kind(&resource.group, &resource.version, &resource.kind));
    entry.insert("scope".into(), if resource.namespaced { "Namespaced" } else { "Cluster" }.into());
    entry.insert("singularResource".into(), resource.singular.clone().into());
    entry.insert("verbs".into(), resource.verbs.clone().into());
    if !resource.short_names.is_empty() {
        entry.insert("shortNames".into(), resource.short_names.clone().into());
    }
    if !resource.categories.is_empty() {
        entry.insert("categories".into(), resource.categories.clone().into());
    }
    if !resource.subresources.is_empty() {
        let below: Vec<Value> = resource
            .subresources
            .iter()
            .map(|sub| {
                let group = sub.group.as_deref().unwrap_or(&resource.group);
                let version = sub.version.as_deref().unwrap_or(&resource.version);
                json!({
                    "subresource": sub.name,
                    "responseKind": kind(group, version, &sub.kind),
                    "verbs": sub.verbs,
                })
            })
            .collect();
        entry.insert("subresources".into(), below.into());
    }
    Value::Object(entry)
}

fn kind(group: &str, version: &str, kind: &str) -> Value {
    json!({"group": group, "version": version, "kind": kind})
}

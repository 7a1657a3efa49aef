//! The plain discovery documents: `/api`, `/apis`, a group, a group's version.

use super::order::Group;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_apimachinery::resource::{Resource, Subresource};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The document at a path, for a client that has reached `host`; `None` where there is no such group or
/// version.
pub(crate) fn document(groups: &[Group], path: &str, host: &str) -> Option<Value> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api"] => Some(versions(groups, host)),
        ["api", version] => resources(groups, "", version),
        ["apis"] => Some(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups.iter().filter(|group| !group.name.is_empty()).map(entry).collect::<Vec<_>>(),
        })),
        ["apis", name] => {
            let mut group = entry(find(groups, name)?);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            Some(group)
        }
        ["apis", name, version] => resources(groups, name, version),
        _ => None,
    }
}

fn find<'a>(groups: &'a [Group], name: &str) -> Option<&'a Group> {
    groups.iter().find(|group| group.name == name)
}

fn versions(groups: &[Group], host: &str) -> Value {
    let versions: Vec<&str> = find(groups, "")
        .map(|group| group.versions.iter().map(|(version, _)| version.as_str()).collect())
        .unwrap_or_default();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

fn entry(group: &Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": format!("{}/{version}", group.name), "version": version}))
        .collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(groups: &[Group], name: &str, version: &str) -> Option<Value> {
    let group = find(groups, name)?;
    let (_, list) = group.versions.iter().find(|(at, _)| at == version)?;
    let mut resources = Vec::new();
    for resource in list {
        resources.push(main(resource));
        resources.extend(resource.subresources.iter().map(|sub| below(resource, sub)));
    }
    let group_version = if name.is_empty() { version.to_owned() } else { format!("{name}/{version}") };
    let mut document =
        json!({"kind": "APIResourceList", "groupVersion": group_version, "resources": resources});
    if !name.is_empty() {
        document["apiVersion"] = "v1".into();
    }
    Some(document)
}

fn main(resource: &Resource) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), resource.plural.clone().into());
    entry.insert("singularName".into(), resource.singular.clone().into());
    entry.insert("namespaced".into(), resource.namespaced.into());
    entry.insert("kind".into(), resource.kind.clone().into());
    entry.insert("verbs".into(), resource.verbs.clone().into());
    if !resource.short_names.is_empty() {
        entry.insert("shortNames".into(), resource.short_names.clone().into());
    }
    if !resource.categories.is_empty() {
        entry.insert("categories".into(), resource.categories.clone().into());
    }
    // Reviews and the like are not stored, and nobody stores how the parts of the server are.
    if resource.has_verb("get") && !resource.rules.unstored {
        entry.insert("storageVersionHash".into(), storage_version_hash(resource).into());
    }
    Value::Object(entry)
}

/// Tells whether objects are stored at another version than before.
fn storage_version_hash(resource: &Resource) -> String {
    // Events are stored as those of the core group.
    let (group, version) =
        resource.storage_api_version.split_once('/').unwrap_or(("", &resource.storage_api_version));
    let digest = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
    STANDARD.encode(&digest[..8])
}

fn below(resource: &Resource, sub: &Subresource) -> Value {
    let mut entry = Map::new();
    entry.insert("name".into(), format!("{}/{}", resource.plural, sub.name).into());
    entry.insert("singularName".into(), "".into());
    entry.insert("namespaced".into(), resource.namespaced.into());
    if let Some(group) = sub.group.as_ref().filter(|group| !group.is_empty()) {
        entry.insert("group".into(), group.clone().into());
    }
    if let Some(version) = &sub.version {
        entry.insert("version".into(), version.clone().into());
    }
    entry.insert("kind".into(), sub.kind.clone().into());
    entry.insert("verbs".into(), sub.verbs.clone().into());
    Value::Object(entry)
}

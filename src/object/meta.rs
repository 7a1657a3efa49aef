//! Names of things: group-version-kind, object references and accessors for `metadata`.
//! Never looks into `spec` or `status`.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Group, version and kind of an object type; the core group is the empty string.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Gvk {
    /// API group, `""` for the core group.
    pub group: String,
    /// API version, such as `v1alpha1`.
    pub version: String,
    /// Kind in CamelCase.
    pub kind: String,
}

impl Gvk {
    /// Builds one from its three parts.
    pub fn new(group: impl Into<String>, version: impl Into<String>, kind: impl Into<String>) -> Self {
        Gvk { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// Splits `apiVersion` at the slash; without one the group is the core group.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        match api_version.split_once('/') {
            Some((group, version)) => Gvk::new(group, version, kind),
            None => Gvk::new("", api_version, kind),
        }
    }

    /// Reads `apiVersion` and `kind` of an object; `None` where either is missing or empty.
    pub fn of(object: &Value) -> Option<Self> {
        let api_version = object.get("apiVersion")?.as_str().filter(|s| !s.is_empty())?;
        let kind = object.get("kind")?.as_str().filter(|s| !s.is_empty())?;
        Some(Gvk::from_api_version(api_version, kind))
    }

    /// `group/version`, or just the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns true for Kubernetes Events, of the old group and the new one.
    pub fn is_event(&self) -> bool {
        self.kind == "Event" && matches!(self.group.as_str(), "" | "events.k8s.io")
    }

    /// Returns true for ConfigMaps and Secrets.
    pub fn is_config(&self) -> bool {
        self.group.is_empty() && matches!(self.kind.as_str(), "ConfigMap" | "Secret")
    }

    /// Group and kind, without the version.
    pub fn group_kind(&self) -> GroupKind<'_> {
        GroupKind { group: &self.group, kind: &self.kind }
    }

    /// `Kind.group`, or just the kind for the core group: the form of `operator-sdk/primary-resource-type`.
    pub fn kind_group(&self) -> String {
        self.group_kind().to_string()
    }
}

/// Group and kind of an object type, whichever version it is read at: custom resources of two versions are of
/// one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind<'a> {
    /// API group, `""` for the core group.
    pub group: &'a str,
    /// Kind in CamelCase.
    pub kind: &'a str,
}

impl fmt::Display for GroupKind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            "" => f.write_str(self.kind),
            group => write!(f, "{}.{group}", self.kind),
        }
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version(), self.kind)
    }
}

/// The identity of an object for as long as it lives, whichever version it is read at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectKey {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `None` for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// Group and kind of the object.
    pub fn group_kind(&self) -> GroupKind<'_> {
        GroupKind { group: &self.group, kind: &self.kind }
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(ns) => write!(f, "{} {}/{}", self.kind, ns, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// A reference to one object at one version, with its uid where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Group, version, kind.
    #[serde(flatten)]
    pub gvk: Gvk,
    /// Namespace; `None` for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// `metadata.uid`, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl ObjectRef {
    /// Reads the reference off an object; `None` without apiVersion, kind or name.
    pub fn of(object: &Value) -> Option<Self> {
        Some(ObjectRef {
            gvk: Gvk::of(object)?,
            namespace: namespace(object).map(str::to_owned),
            name: name(object)?.to_owned(),
            uid: uid(object).map(str::to_owned),
        })
    }

    /// The identity without version and uid.
    pub fn key(&self) -> ObjectKey {
        ObjectKey {
            group: self.gvk.group.clone(),
            kind: self.gvk.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key().fmt(f)
    }
}

/// A field of `metadata`. Unlike a JSON pointer it allocates nothing: every write looks at several.
pub fn field<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(name)
}

fn text<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    field(object, name)?.as_str().filter(|s| !s.is_empty())
}

/// Puts a value below a path of field names, and makes the maps on the way. What comes from afar may be no
/// map where one is expected: it stays as it is, and the answer is false. (`object["a"]["b"] = …` would
/// panic.)
pub fn put(object: &mut Value, path: &[&str], value: impl Into<Value>) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let mut at = object;
    for name in above {
        if at.is_null() {
            *at = Value::Object(serde_json::Map::new());
        }
        let Some(map) = at.as_object_mut() else { return false };
        at = map.entry(*name).or_insert(Value::Null);
    }
    if at.is_null() {
        *at = Value::Object(serde_json::Map::new());
    }
    let Some(map) = at.as_object_mut() else { return false };
    map.insert((*last).to_owned(), value.into());
    true
}

/// A version as Go prints it: the core group is an empty text before the slash.
pub fn group_version(api_version: &str) -> String {
    if api_version.contains('/') { api_version.to_owned() } else { format!("/{api_version}") }
}

/// `metadata.name`, unless empty.
pub fn name(object: &Value) -> Option<&str> {
    text(object, "name")
}

/// `metadata.namespace`, unless empty.
pub fn namespace(object: &Value) -> Option<&str> {
    text(object, "namespace")
}

/// `metadata.uid`, unless empty.
pub fn uid(object: &Value) -> Option<&str> {
    text(object, "uid")
}

/// `metadata.resourceVersion`, unless empty.
pub fn resource_version(object: &Value) -> Option<&str> {
    text(object, "resourceVersion")
}

/// `metadata.generation`, 0 where it is missing.
pub fn generation(object: &Value) -> i64 {
    field(object, "generation").and_then(Value::as_i64).unwrap_or(0)
}

/// `metadata.deletionTimestamp`, unless empty.
pub fn deletion_timestamp(object: &Value) -> Option<&str> {
    text(object, "deletionTimestamp")
}

/// Returns true if an object is being deleted and has no finalizer left. Whoever took the last one off is
/// answered with this version, and the object is gone.
pub fn is_let_go(object: &Value) -> bool {
    deletion_timestamp(object).is_some() && finalizers(object).is_empty()
}

/// One label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

/// One annotation's value.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

/// `metadata.finalizers` as a list of names.
pub fn finalizers(object: &Value) -> Vec<&str> {
    field(object, "finalizers")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// apiVersion of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// True if this owner is the managing controller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub controller: bool,
    /// True if foreground deletion of the owner waits for this object.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub block_owner_deletion: bool,
}

/// `metadata.ownerReferences`; malformed entries are left out.
pub fn owner_references(object: &Value) -> Vec<OwnerReference> {
    field(object, "ownerReferences")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(|v| OwnerReference::deserialize(v).ok()).collect())
        .unwrap_or_default()
}

/// The managing controller among the owners.
pub fn controller(object: &Value) -> Option<OwnerReference> {
    owner_references(object).into_iter().find(|owner| owner.controller)
}

//! The attributes of a stored object that can be read without parsing it: identity, labels, owners, and the
//! few fields by which controllers and selectors find objects of its kind. Like `GetAttrs` of the real
//! server, with the owners added. Which fields those are, the `Strategy` of the kind says. Never reads the
//! store.

use opdev_object::meta::{self, OwnerReference};
use opdev_object::selector::LabelSelector;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[derive(Clone, Debug)]
pub struct Attributes {
    uid: Box<str>,
    api_version: Arc<str>,
    labels: Option<Arc<Value>>,
    owners: Option<Arc<Vec<OwnerReference>>>,
    finalizers: Option<Arc<Vec<String>>>,
    deleting: bool,
    fields: Box<str>,
}

/// A field of pods that is known without reading them; the pods' strategy writes them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodField {
    /// `spec.nodeName`
    Node,
    /// `status.phase`
    Phase,
    /// `status.podIP`
    Address,
    /// `resources.requests.cpu` of each container, separated by commas.
    Cpu,
    /// `resources.requests.memory` of each container, separated by commas.
    Memory,
    /// Something where the pod keeps others away: by required anti-affinity, or by ports of its node.
    Wary,
}

/// A field of services that is known without reading them; the services' strategy writes them in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceField {
    /// `spec.clusterIP`
    Address,
    /// `nodePort` of each port and `spec.healthCheckNodePort`, each followed by a comma.
    NodePorts,
    /// `spec.selector` as `label=value`, each followed by a comma; empty for a service of type
    /// `ExternalName`.
    Selector,
}

/// A field of a record that is known without reading it; the strategy of Events writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordField {
    /// When it was written last, in seconds since 1970: the latest of the times that the API server stamps.
    Written,
}

/// The type of Secrets that hold the token of an account. It is known without reading them, as of no other.
pub const ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// The objects of a resource that are looked for, as far as they are found without looking at each.
#[derive(Clone, Debug)]
pub enum Lookup<'a> {
    /// All of them.
    All,
    /// Objects with a controller of this uid.
    ControlledBy(&'a str),
    /// Objects with a controller of this uid, and those without a controller.
    ClaimableBy(&'a str),
    /// Objects with all of these labels.
    Labelled(Vec<(&'a str, &'a str)>),
    /// The services that may select a pod with these labels.
    Selecting(&'a Map<String, Value>),
}

impl<'a> Lookup<'a> {
    /// A lookup whose results include all that a selector selects.
    pub fn selected_by(selector: &'a LabelSelector) -> Self {
        let labels: Vec<_> = selector.required().collect();
        if labels.is_empty() { Lookup::All } else { Lookup::Labelled(labels) }
    }
}

/// By what the objects of a table are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexed {
    /// By name only.
    Not,
    /// By label.
    Labels,
    /// By controller and by label.
    OwnersAndLabels,
    /// By the labels that their selector asks for.
    Selectors,
}

/// Behind each field. No field that is kept here can contain it.
pub const END: char = '\0';

/// How the objects of a kind are found without reading them, beside what is known of all objects.
#[derive(Clone, Copy, Debug)]
pub struct Indexing {
    /// By what they are found.
    pub by: Indexed,
    /// The fields that are known of an object, each with [`END`] behind it; `None` where there are none.
    pub fields: Option<fn(&Value) -> String>,
    /// Reads what all this is made of off the text of an object: [`partial`].
    pub partial: fn(&[u8]) -> serde_json::Result<Value>,
    /// True if rules hardly ever read an object again: of such objects no trees are kept, which leaves room
    /// for others.
    pub is_record: bool,
}

impl Indexing {
    /// Rules for most kinds: objects are found by name only.
    pub const COMMON: Indexing =
        Indexing { by: Indexed::Not, fields: None, partial: partial::<Unread, Unread>, is_record: false };

    /// Objects are found by label.
    pub const LABELS: Indexing = Indexing { by: Indexed::Labels, ..Indexing::COMMON };

    /// Objects are found by controller and by label.
    pub const OWNERS_AND_LABELS: Indexing = Indexing { by: Indexed::OwnersAndLabels, ..Indexing::COMMON };
}

/// Says how the objects of a table are found.
pub type IndexingOf = fn(&str) -> &'static Indexing;

impl Attributes {
    /// The attributes of an object that is in no store.
    pub fn alone(indexing: &Indexing, object: &Value) -> Self {
        Attributes::shared(indexing, object, &Shared::default())
    }

    /// Attributes of one object among many: a value that equals that of another object is kept once for both.
    pub(crate) fn shared(indexing: &Indexing, object: &Value, shared: &Shared) -> Self {
        Attributes::after(indexing, object, shared, None)
    }

    /// Attributes of an object that was changed: most changes leave nearly all of them as they were.
    pub fn after(indexing: &Indexing, object: &Value, shared: &Shared, before: Option<&Attributes>) -> Self {
        let labels =
            meta::field(object, "labels").filter(|labels| labels.as_object().is_some_and(|l| !l.is_empty()));
        let labels = labels.map(|labels| match before.and_then(|before| before.labels.as_ref()) {
            Some(same) if **same == *labels => same.clone(),
            _ => shared.labels.keep(Arc::new(labels.clone())),
        });
        let owners = meta::owner_references(object);
        let finalizers: Vec<String> = meta::finalizers(object).into_iter().map(str::to_owned).collect();
        let api_version = object["apiVersion"].as_str().unwrap_or_default();
        Attributes {
            uid: meta::uid(object).unwrap_or_default().into(),
            api_version: match before {
                Some(same) if *same.api_version == *api_version => same.api_version.clone(),
                _ => shared.texts.keep(api_version.into()),
            },
            labels,
            owners: (!owners.is_empty()).then(|| shared.owners.keep(Arc::new(owners))),
            finalizers: (!finalizers.is_empty()).then(|| shared.finalizers.keep(Arc::new(finalizers))),
            deleting: meta::deletion_timestamp(object).is_some(),
            fields: indexing.fields.map_or_else(Box::default, |fields| fields(object).into()),
        }
    }

    /// Attributes read off the text of an object: only the fields that are needed become a tree. `None` where
    /// the text is no JSON.
    pub fn of_text(indexing: &Indexing, text: &[u8], shared: &Shared) -> Option<Self> {
        // There may be something else under the same names.
        let object = (indexing.partial)(text).or_else(|_| serde_json::from_slice(text)).ok()?;
        Some(Attributes::shared(indexing, &object, shared))
    }

    /// `metadata.uid`, empty where there is none.
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// `apiVersion`, empty where there is none.
    pub fn api_version(&self) -> &str {
        &self.api_version
    }

    /// `metadata.labels`; null where there are none.
    pub fn labels(&self) -> &Value {
        self.labels.as_deref().unwrap_or(&Value::Null)
    }

    /// `metadata.ownerReferences`.
    pub fn owners(&self) -> &[OwnerReference] {
        self.owners.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The managing controller among the owners.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owners().iter().find(|owner| owner.controller)
    }

    /// `metadata.finalizers`.
    pub fn finalizers(&self) -> &[String] {
        self.finalizers.as_deref().map_or(&[], Vec::as_slice)
    }

    /// Returns true if `metadata.deletionTimestamp` is set.
    pub fn deleting(&self) -> bool {
        self.deleting
    }

    /// A field of a pod, empty where it is missing.
    pub fn pod(&self, field: PodField) -> &str {
        self.fields.split(END).nth(field as usize).unwrap_or_default()
    }

    /// A field of a record, empty where it is missing.
    pub fn record(&self, field: RecordField) -> &str {
        self.fields.split(END).nth(field as usize).unwrap_or_default()
    }

    /// True of a Secret that holds the token of an account.
    pub fn is_account_token(&self) -> bool {
        self.fields.strip_suffix(END) == Some(ACCOUNT_TOKEN)
    }

    /// A field of a service, empty where it is missing.
    pub fn service(&self, field: ServiceField) -> &str {
        self.fields.split(END).nth(field as usize).unwrap_or_default()
    }

    /// The labels that a service's selector asks for. A service without a selector has none.
    pub fn service_selector(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.service(ServiceField::Selector).split_terminator(',');
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }

    /// Returns true if it is a service whose selector selects these labels of a pod. A service without a
    /// selector selects nothing.
    pub fn service_selects(&self, labels: Option<&Map<String, Value>>) -> bool {
        let holds = |(label, value): (&str, &str)| {
            labels.and_then(|labels| labels.get(label)).is_some_and(|has| has == value)
        };
        !self.service(ServiceField::Selector).is_empty() && self.service_selector().all(holds)
    }

    /// Returns true if it is a pod that has ended, well or not.
    pub fn pod_finished(&self) -> bool {
        matches!(self.pod(PodField::Phase), "Succeeded" | "Failed")
    }
}

/// The fields of an object that attributes are made of.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Partial<Metadata, Spec, Status> {
    api_version: Option<Value>,
    metadata: Option<Metadata>,
    spec: Option<Spec>,
    status: Option<Status>,
}

/// Reads off the text of an object what the attributes of all objects are made of, and these parts of its
/// spec and status.
pub fn partial<Spec, Status>(text: &[u8]) -> serde_json::Result<Value>
where
    Spec: Serialize + DeserializeOwned,
    Status: Serialize + DeserializeOwned,
{
    serde_json::from_slice::<Partial<PartialMetadata, Spec, Status>>(text).and_then(serde_json::to_value)
}

/// Reads the parts of a record, whose metadata says when it was written.
pub fn partial_record(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice::<Partial<RecordMetadata, Unread, Unread>>(text).and_then(serde_json::to_value)
}

/// Also reads the type, which a Secret names beside its metadata.
pub fn partial_typed(text: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice::<Typed>(text).and_then(serde_json::to_value)
}

/// A part of an object that is not read.
pub struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Unread)
    }
}

impl Serialize for Unread {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_unit()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PartialMetadata {
    uid: Option<Value>,
    labels: Option<Value>,
    owner_references: Option<Value>,
    finalizers: Option<Value>,
    deletion_timestamp: Option<Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Typed {
    api_version: Option<Value>,
    metadata: Option<PartialMetadata>,
    r#type: Option<Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordMetadata {
    uid: Option<Value>,
    labels: Option<Value>,
    owner_references: Option<Value>,
    finalizers: Option<Value>,
    deletion_timestamp: Option<Value>,
    creation_timestamp: Option<Value>,
    managed_fields: Option<Vec<PartialManager>>,
}

#[derive(Serialize, Deserialize)]
struct PartialManager {
    time: Option<Value>,
}

/// Values that many objects share.
#[derive(Debug, Default)]
pub struct Shared {
    texts: Pool<str>,
    labels: Pool<Value>,
    owners: Pool<Vec<OwnerReference>>,
    finalizers: Pool<Vec<String>>,
}

impl Shared {
    /// A text that many objects have, kept once.
    pub fn text(&self, text: &Arc<str>) -> Arc<str> {
        self.texts.keep(text.clone())
    }
}

/// Values that are kept once, as long as somebody has them.
#[derive(Debug)]
struct Pool<T: ?Sized>(Mutex<(HashSet<Arc<T>>, usize)>);

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Self {
        Pool(Mutex::new((HashSet::new(), 0)))
    }
}

impl<T: Eq + Hash + ?Sized> Pool<T> {
    /// The value itself, or the equal one that is there already.
    fn keep(&self, value: Arc<T>) -> Arc<T> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, limit) = &mut *pool;
        if let Some(found) = known.get(&value) {
            return found.clone();
        }
        if known.len() >= *limit {
            // Values without another user are dropped. The next sweep comes when there are twice as many, so
            // that sweeping stays a constant share of the work.
            known.retain(|found| Arc::strong_count(found) > 1);
            known.shrink_to_fit();
            *limit = (known.len() * 2).max(64);
        }
        known.insert(value.clone());
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(node: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "uid": "1", "labels": {"app": "x"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "2", "controller": true}]},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": "10m"}}},
                {"name": "none"}, {"resources": {"requests": {"cpu": 2, "memory": "1Gi"}}}]},
            "status": {"phase": "Failed", "podIP": "10.0.0.1"}})
    }

    #[test]
    fn equal_labels_and_owners_are_kept_once_and_no_longer_than_somebody_has_them() {
        let shared = Shared::default();
        let (a, b) = (
            Attributes::shared(&Indexing::OWNERS_AND_LABELS, &pod("n"), &shared),
            Attributes::shared(&Indexing::OWNERS_AND_LABELS, &pod("m"), &shared),
        );
        assert!(std::ptr::eq(a.labels(), b.labels()));
        assert!(std::ptr::eq(a.owners(), b.owners()));
        let count = || shared.labels.0.lock().unwrap().0.len();
        drop((a, b));
        for n in 0..1000 {
            let object = json!({"metadata": {"labels": {"n": n.to_string()}}});
            drop(Attributes::shared(&Indexing::COMMON, &object, &shared));
            assert!(count() <= 64);
        }
    }
}

//! An object of a list or a watch. Its metadata is read at once, for that says what it belongs to; the rest
//! of its text is read when somebody asks for it. Most objects of a large cluster belong to nothing that
//! opdev looks after, and are never asked for. Read from the server's text directly: kube's own
//! `DynamicObject` reads the metadata into a type of theirs, from which the tree would have to be made again.

use kube::api::{ApiResource, ObjectMeta};
use opdev_client::Resource;
use opdev_object::meta;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// See the module. It dereferences to the whole object, which is made at the first look; `identity` is there
/// already.
#[derive(Clone, Debug)]
pub struct WatchedObject(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// `None` where it is the whole object.
    identity: Option<Value>,
    /// The bytes that the server sent; `None` where the tree is there.
    text: Option<Box<RawValue>>,
    tree: OnceLock<Arc<Value>>,
}

impl WatchedObject {
    /// An object as the server sent it; items of lists do not say what they are.
    fn sent(sent: Sent, resource: &Resource) -> WatchedObject {
        let identity = Some(resource.complete(sent.identity));
        WatchedObject(Arc::new(Parts { identity, text: Some(sent.text), tree: OnceLock::new() }))
    }

    /// Its version, kind and metadata, without `managedFields`; where the whole object was there at once,
    /// that.
    pub fn identity(&self) -> &Value {
        self.0.identity.as_ref().unwrap_or_else(|| self.tree())
    }

    /// The whole object.
    pub fn tree(&self) -> &Arc<Value> {
        self.0.tree.get_or_init(|| {
            // Its metadata was read from the same text.
            let text = self.0.text.as_ref().map_or("null", |text| text.get());
            let mut tree: Value = serde_json::from_str(text).unwrap_or_else(|error| {
                tracing::error!(%error, "an object that was watched cannot be read");
                Value::Null
            });
            if let (Some(fields), Some(identity)) = (tree.as_object_mut(), &self.0.identity) {
                for field in ["apiVersion", "kind"] {
                    if !fields.contains_key(field) {
                        fields.insert(field.to_owned(), identity[field].clone());
                    }
                }
            }
            Arc::new(tree)
        })
    }
}

impl Deref for WatchedObject {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.tree()
    }
}

impl From<Arc<Value>> for WatchedObject {
    fn from(tree: Arc<Value>) -> WatchedObject {
        WatchedObject(Arc::new(Parts { identity: None, text: None, tree: OnceLock::from(tree) }))
    }
}

/// An object of a kind that is asked for when the answer is read: what kube's watcher hands on.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    identity: Value,
    text: Box<RawValue>,
    /// The one field that a watcher reads: the resource version.
    metadata: ObjectMeta,
}

impl Sent {
    /// Its metadata, without `managedFields`, and what the text says of its kind.
    pub(super) fn identity(&self) -> &Value {
        &self.identity
    }

    /// The object, as one of a kind.
    pub(super) fn of(self, resource: &Resource) -> WatchedObject {
        WatchedObject::sent(self, resource)
    }
}

impl<'de> Deserialize<'de> for Sent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = deserializer.deserialize_newtype_struct(RAW_VALUE, Text)?;
        let mut reader = serde_json::Deserializer::from_str(text.get());
        let identity = Picked(IDENTITY).deserialize(&mut reader).map_err(D::Error::custom)?;
        let version = meta::resource_version(&identity).map(str::to_owned);
        let metadata = ObjectMeta { resource_version: version, ..ObjectMeta::default() };
        Ok(Sent { identity, text, metadata })
    }
}

/// The name by which serde_json knows that a value is wanted as text. By another name it would be read as a
/// tree first.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Reads the text of a value. A server may send the object of a change before it says what has happened: then
/// serde has read it already, and its text is made anew.
struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Box<RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Deserialize::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let value = Value::deserialize(deserializer)?;
        to_raw_value(&value).map_err(D::Error::custom)
    }
}

/// The fields of an object that are read.
#[derive(Clone, Copy)]
enum Fields {
    /// These; of `metadata` all but `managedFields`.
    Only(&'static [&'static str]),
    /// All but this one.
    AllBut(&'static str),
}

const IDENTITY: Fields = Fields::Only(&["apiVersion", "kind", "metadata"]);

impl Fields {
    fn has(self, field: &str) -> bool {
        match self {
            Fields::Only(fields) => fields.contains(&field),
            Fields::AllBut(other) => field != other,
        }
    }
}

/// Reads an object with some of its fields; the text of the others is passed over.
struct Picked(Fields);

impl<'de> DeserializeSeed<'de> for Picked {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Picked {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(field) = map.next_key::<Cow<'_, str>>()? {
            if !self.0.has(&field) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = match (self.0, &*field) {
                (Fields::Only(_), "metadata") => {
                    map.next_value_seed(Picked(Fields::AllBut("managedFields")))?
                }
                _ => map.next_value()?,
            };
            fields.insert(field.into_owned(), value);
        }
        Ok(Value::Object(fields))
    }
}

impl kube::Resource for Sent {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(described: &ApiResource) -> Cow<'_, str> {
        described.kind.as_str().into()
    }

    fn group(described: &ApiResource) -> Cow<'_, str> {
        described.group.as_str().into()
    }

    fn version(described: &ApiResource) -> Cow<'_, str> {
        described.version.as_str().into()
    }

    fn api_version(described: &ApiResource) -> Cow<'_, str> {
        described.api_version.as_str().into()
    }

    fn plural(described: &ApiResource) -> Cow<'_, str> {
        described.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::api::WatchEvent;
    use opdev_object::meta::{Gvk, ObjectRef};
    use serde_json::json;

    fn pod() -> Value {
        json!({"metadata": {"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "7", "labels": {"x\"": "y"},
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]}, "spec": {"nodeName": "{\"}"}})
    }

    fn resource() -> Resource {
        Resource {
            gvk: Gvk::new("", "v1", "Pod"),
            plural: "pods".to_owned(),
            namespaced: true,
            verbs: Vec::new(),
            has_status: true,
        }
    }

    #[test]
    fn the_rest_of_an_object_is_read_when_it_is_asked_for() {
        let sent: Sent = serde_json::from_value(pod()).expect("an object");
        assert_eq!(kube::Resource::meta(&sent).resource_version.as_deref(), Some("7"));
        let object = sent.of(&resource());
        assert!(object.0.tree.get().is_none());
        assert_eq!(
            ObjectRef::of(object.identity()).unwrap().to_string(),
            ObjectRef::of(&object).unwrap().to_string()
        );
        let mut whole = pod();
        whole["apiVersion"] = "v1".into();
        whole["kind"] = "Pod".into();
        assert_eq!(**object.tree(), whole);
        whole.as_object_mut().unwrap().remove("spec");
        whole["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(*object.identity(), whole);
    }

    #[test]
    fn lists_and_watches_of_a_server_are_read() {
        let pod = pod().to_string();
        for line in [
            format!(r#"{{"type":"MODIFIED","object": {pod}}}"#),
            format!(r#"{{"object":{pod},"type":"MODIFIED"}}"#),
        ] {
            let event: WatchEvent<Sent> = serde_json::from_str(&line).expect("a change");
            assert!(matches!(event, WatchEvent::Modified(sent) if sent.text.get() == pod));
        }
        let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [self::pod()]});
        let list: kube::core::ObjectList<Sent> = serde_json::from_str(&list.to_string()).expect("a list");
        assert_eq!(list.items[0].identity["metadata"]["name"], "a");
    }
}

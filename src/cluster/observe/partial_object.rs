//! The part that is read of every object that a list or a watch brings: its identity, and its owners. The
//! rest of the text is passed over; a tree is made of those objects only that somebody needs (`pick`).

use opdev_object::meta::Gvk;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// An object by its metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PartialObject {
    pub(super) metadata: Metadata,
}

/// The part of `metadata` that is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) name: String,
    pub(super) namespace: Option<String>,
    pub(super) uid: Option<String>,
    pub(super) resource_version: Option<String>,
    owner_references: Option<Vec<Owner>>,
    labels: Option<Labels>,
    annotations: Option<Annotations>,
}

/// An owner reference.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Owner {
    api_version: String,
    kind: String,
    pub uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Labels {
    owner: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Annotations {
    /// `Kind.group` of the object that it depends on.
    #[serde(rename = "operator-sdk/primary-resource-type")]
    primary: Option<String>,
}

impl PartialObject {
    /// Group and kind of each thing it names as what it belongs to.
    pub(super) fn belongs_to(&self) -> impl Iterator<Item = (&str, &str)> {
        let owners = self.metadata.owner_references.iter().flatten().map(|owner| {
            (owner.api_version.rsplit_once('/').map_or("", |(group, _)| group), owner.kind.as_str())
        });
        let primary = self.metadata.annotations.as_ref().and_then(|known| known.primary.as_deref());
        owners.chain(primary.map(|text| {
            let (kind, group) = text.split_once('.').unwrap_or((text, ""));
            (group, kind)
        }))
    }

    /// The uids of its owners.
    pub(super) fn owners(&self) -> impl Iterator<Item = &str> {
        self.metadata.owner_references.iter().flatten().map(|owner| owner.uid.as_str())
    }

    /// Returns true if it is Helm's record of a release.
    pub(super) fn is_record(&self, gvk: &Gvk) -> bool {
        gvk.kind == "Secret"
            && self.metadata.labels.as_ref().and_then(|labels| labels.owner.as_deref()) == Some("helm")
    }
}

/// A page of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Page {
    pub(super) metadata: PageMetadata,
    #[serde(deserialize_with = "or_none")]
    pub(super) items: Vec<PartialObject>,
}

/// Where a list stands.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PageMetadata {
    pub(super) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
}

fn or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PartialObject>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A line of a watch.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) event: String,
    #[serde(default)]
    pub(super) object: PartialObject,
}

/// The objects of a page, or of a line of a watch, whose places are wanted, as trees; the others are passed
/// over.
///
/// # Errors
/// Where the text is not JSON.
pub(super) fn pick(
    text: &str,
    field: &'static str,
    wanted: &[bool],
) -> serde_json::Result<Vec<Option<Value>>> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Picked { field, wanted })
}

struct Picked<'w> {
    /// The field that holds the objects, or the one object.
    field: &'static str,
    wanted: &'w [bool],
}

impl<'de> Visitor<'de> for Picked<'_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(field) = map.next_key::<String>()? {
            if field == self.field {
                found = map.next_value_seed(Items(self.wanted))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

struct Items<'w>(&'w [bool]);

impl<'de> DeserializeSeed<'de> for Items<'_> {
    type Value = Vec<Option<Value>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<Option<Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::with_capacity(self.0.len());
        for wanted in self.0 {
            let item = match wanted {
                true => items.next_element::<Value>()?,
                false => items.next_element::<IgnoredAny>()?.map(|_| Value::Null),
            };
            found.push(item.filter(|item| !item.is_null()));
        }
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// The object of a line of a watch, as a tree.
///
/// # Errors
/// Where the line is not JSON.
pub(super) fn object_of(line: &str) -> serde_json::Result<Value> {
    #[derive(Deserialize)]
    struct Whole {
        object: Value,
    }
    serde_json::from_str(line).map(|Whole { object }| object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_partial_object_says_who_it_is_and_what_it_belongs_to() {
        let object = json!({"apiVersion": "v1", "data": {"a": [1, {"b": "\"}"}]}, "kind": "Secret", "metadata": {
            "annotations": {"operator-sdk/primary-resource-type": "Memcached.cache.my.domain", "x": "y"},
            "labels": {"owner": "helm"}, "managedFields": [{"fieldsV1": {"f:a": {}}}], "name": "a", "namespace": "n",
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "1"}],
            "resourceVersion": "7", "uid": "2"}});
        let line = json!({"type": "ADDED", "object": object}).to_string();
        let read: Line = serde_json::from_str(&line).unwrap();
        let metadata = &read.object.metadata;
        assert_eq!(
            (read.event.as_str(), metadata.name.as_str(), metadata.namespace.as_deref()),
            ("ADDED", "a", Some("n"))
        );
        assert_eq!((metadata.uid.as_deref(), metadata.resource_version.as_deref()), (Some("2"), Some("7")));
        let belongs: Vec<_> = read.object.belongs_to().collect();
        assert_eq!(belongs, [("apps", "Deployment"), ("cache.my.domain", "Memcached")]);
        assert_eq!(read.object.owners().collect::<Vec<_>>(), ["1"]);
        assert!(read.object.is_record(&Gvk::new("", "v1", "Secret")));
        assert_eq!(object_of(&line).unwrap(), object);
    }

    #[test]
    fn of_a_page_the_wanted_objects_become_trees() {
        let page = json!({"kind": "PodList", "metadata": {"resourceVersion": "9", "continue": "c"}, "items": [
            {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}, "spec": [1]}, {"metadata": {"name": "c"}}]});
        let text = page.to_string();
        let read: Page = serde_json::from_str(&text).unwrap();
        assert_eq!(read.items.iter().map(|item| item.metadata.name.as_str()).collect::<String>(), "abc");
        assert_eq!(
            (read.metadata.resource_version.as_deref(), read.metadata.next.as_deref()),
            (Some("9"), Some("c"))
        );
        let found = pick(&text, "items", &[false, true, false]).unwrap();
        assert_eq!(found, [None, Some(page["items"][1].clone()), None]);
        assert!(serde_json::from_str::<Page>("{\"items\":null}").unwrap().items.is_empty());
    }
}

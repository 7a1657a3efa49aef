//! An object on its way through a build, with the names that it has had, by which others still call it.

use crate::error::ObjectError;
use crate::read::text;
use crate::scopes;
use opdev_object::meta::{self, Gvk};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The namespace of objects that are in none.
const OF_THE_CLUSTER: &str = "_non_namespaceable_";

/// The identity of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// True if the kind is certainly in no namespace. Never so for a former id.
    pub(crate) of_the_cluster: bool,
}

impl Id {
    /// The namespace it counts as being in.
    pub(crate) fn effective_namespace(&self) -> &str {
        match self.namespace.as_str() {
            _ if self.of_the_cluster => OF_THE_CLUSTER,
            "" => "default",
            namespace => namespace,
        }
    }

    /// Returns true if both call the same object.
    pub(crate) fn is_same(&self, other: &Id) -> bool {
        self.name == other.name
            && self.gvk == other.gvk
            && self.effective_namespace() == other.effective_namespace()
    }

    pub(crate) fn show(&self) -> String {
        let place = match self.namespace.as_str() {
            "" | OF_THE_CLUSTER => String::new(),
            namespace => format!("{namespace}/"),
        };
        format!("{} {place}{}", self.gvk.kind_group(), self.name)
    }
}

/// The behavior of a generated object towards one of the same name that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    #[default]
    Create,
    Replace,
    Merge,
}

/// An object and what is remembered of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) object: Value,
    /// Former names: namespace, name, kind.
    pub(crate) former: Vec<(String, String, String)>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) suffixes: Vec<String>,
    pub(crate) needs_hash: bool,
    pub(crate) behavior: Behavior,
    /// Fields that were written without a value.
    pub(crate) empty: Vec<Vec<String>>,
    /// The file that it stands in, or of the generator.
    pub(crate) file: PathBuf,
    /// Keys of a generated object and the files that they come from.
    pub(crate) sources: BTreeMap<String, PathBuf>,
    /// The vars that stand for a value of it.
    pub(crate) vars: Vec<String>,
}

impl Resource {
    /// Group and version as kustomize splits them, and the kind.
    pub(crate) fn gvk(&self) -> Gvk {
        gvk(&self.object)
    }

    pub(crate) fn name(&self) -> String {
        of_metadata(&self.object, "name")
    }

    pub(crate) fn namespace(&self) -> String {
        of_metadata(&self.object, "namespace")
    }

    pub(crate) fn kind(&self) -> &str {
        self.object["kind"].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> Id {
        let gvk = self.gvk();
        let of_the_cluster = scopes::is_of_the_cluster(&gvk);
        Id { gvk, name: self.name(), namespace: self.namespace(), of_the_cluster }
    }

    /// The ids it had before, the oldest first.
    pub(crate) fn former_ids(&self) -> Vec<Id> {
        let Gvk { group, version, .. } = self.gvk();
        let id = |(namespace, name, kind): &(String, String, String)| Id {
            gvk: Gvk::new(&group, &version, kind),
            name: name.clone(),
            namespace: namespace.clone(),
            of_the_cluster: false,
        };
        self.former.iter().map(id).collect()
    }

    pub(crate) fn original_id(&self) -> Id {
        self.former_ids().into_iter().next().unwrap_or_else(|| self.id())
    }

    /// All ids, the present one last.
    pub(crate) fn all_ids(&self) -> Vec<Id> {
        let mut ids = self.former_ids();
        ids.push(self.id());
        ids
    }

    /// Remembers the present id, for the name is about to change.
    pub(crate) fn remember_id(&mut self) {
        let id = self.id();
        self.former.push((id.effective_namespace().to_owned(), id.name, id.gvk.kind));
    }

    pub(crate) fn set_metadata(&mut self, field: &str, value: &str) {
        set_metadata(&mut self.object, field, value);
    }

    /// Returns true if it is nothing any more, so that it is left out.
    pub(crate) fn is_nothing(&self) -> bool {
        match &self.object {
            Value::Null => true,
            Value::Object(map) => map.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
        }
    }

    /// Returns true if the prefixes and suffixes that both have got end alike.
    pub(crate) fn has_affixes_of(&self, other: &Resource, none_fits: bool) -> bool {
        let fits = |one: &[String], two: &[String]| {
            (none_fits && (one.is_empty() || two.is_empty())) || end_alike(one, two)
        };
        fits(&self.prefixes, &other.prefixes) && fits(&self.suffixes, &other.suffixes)
    }
}

fn end_alike(one: &[String], two: &[String]) -> bool {
    let (short, long) = if one.len() > two.len() { (two, one) } else { (one, two) };
    if short.is_empty() { long.is_empty() } else { long.ends_with(short) }
}

/// Group, version and kind of an object; what is missing is empty.
pub(crate) fn gvk(object: &Value) -> Gvk {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Gvk::from_api_version(text("apiVersion"), text("kind"))
}

fn of_metadata(object: &Value, field: &str) -> String {
    match &object["metadata"][field] {
        Value::Null => String::new(),
        value => text(value),
    }
}

/// Sets a field of `metadata`; an empty value removes it.
pub(crate) fn set_metadata(object: &mut Value, field: &str, value: &str) {
    let Some(map) = object.as_object_mut() else { return };
    let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    if value.is_empty() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), Value::from(value));
    }
}

/// Makes the values of labels or annotations text; a map that is empty goes away.
pub(crate) fn texts_only(object: &mut Value, field: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(found) = metadata.get(field) else { return };
    let texts: Map<String, Value> = found
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), Value::String(text(value))))
        .collect();
    if texts.is_empty() {
        metadata.remove(field);
    } else {
        metadata.insert(field.to_owned(), Value::Object(texts));
    }
}

/// The labels or annotations of an object.
pub(crate) fn map_of<'a>(object: &'a Value, field: &str) -> Option<&'a Map<String, Value>> {
    meta::field(object, field).and_then(Value::as_object)
}

/// Adds an object whose id nobody has yet.
pub(crate) fn append(resources: &mut Vec<Resource>, resource: Resource) -> Result<(), ObjectError> {
    let id = resource.id();
    if let Some(there) = resources.iter().find(|one| one.id().is_same(&id)) {
        let file = Some(there.file.clone()).filter(|file| !file.as_os_str().is_empty());
        return Err(ObjectError::Twice { object: id.show(), file });
    }
    resources.push(resource);
    Ok(())
}

/// The indices of the objects that have, or had, an id.
pub(crate) fn by_any_id(resources: &[Resource], matches: impl Fn(&Id) -> bool) -> Vec<usize> {
    let has = |resource: &Resource| !resource.is_nothing() && resource.all_ids().iter().any(&matches);
    resources.iter().enumerate().filter(|(_, one)| has(one)).map(|(at, _)| at).collect()
}

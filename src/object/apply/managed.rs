//! `metadata.managedFields`: read, written, sorted and capped as the server does.

use super::compact;
use super::error::ManagedFieldsError;
use crate::fieldset::FieldSet;
use crate::meta;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Most managers of operation Update that are kept apart.
const MAX_UPDATE_MANAGERS: usize = 10;
/// The manager that the oldest of them become.
const ANCIENT: &str = "ancient-changes";

/// The manager that a set belongs to. An Apply manager is the same at every version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ManagerId {
    pub(super) name: String,
    pub(super) applied: bool,
    /// Empty for Apply managers.
    pub(super) api_version: String,
    pub(super) subresource: String,
}

impl ManagerId {
    pub(super) fn new(name: &str, applied: bool, api_version: &str, subresource: &str) -> Self {
        ManagerId {
            name: name.to_owned(),
            applied,
            api_version: if applied { String::new() } else { api_version.to_owned() },
            subresource: subresource.to_owned(),
        }
    }

    /// As conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut text = crate::go::quote::quote(&self.name);
        if !self.subresource.is_empty() {
            text.push_str(&format!(" with subresource {}", crate::go::quote::quote(&self.subresource)));
        }
        if !self.applied {
            text.push_str(&format!(" using {}", self.api_version));
        }
        text
    }
}

/// The fields that a manager owns, with the version and the time of its write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Owned {
    pub(super) set: FieldSet,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
    /// Said so in this very write: such an entry comes after others of the same second.
    pub(super) fresh: bool,
}

impl Owned {
    /// The time as text; empty where there is none.
    fn seconds(&self) -> &str {
        self.time.as_deref().unwrap_or_default()
    }
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers(pub(super) Entries);

/// The fields of each of a few managers, in their order. A tree of them would have nodes of 2 KiB, of which
/// each write would make two to throw them away.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entries(Vec<(ManagerId, Owned)>);

impl Entries {
    fn find(&self, id: &ManagerId) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.cmp(id))
    }

    pub(super) fn get(&self, id: &ManagerId) -> Option<&Owned> {
        self.find(id).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, id: &ManagerId) -> Option<&mut Owned> {
        self.find(id).ok().map(|at| &mut self.0[at].1)
    }

    pub(super) fn insert(&mut self, id: ManagerId, owned: Owned) -> Option<Owned> {
        match self.find(&id) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, owned)),
            Err(at) => {
                self.0.insert(at, (id, owned));
                None
            }
        }
    }

    pub(super) fn remove(&mut self, id: &ManagerId) -> Option<Owned> {
        self.find(id).ok().map(|at| self.0.remove(at).1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&ManagerId, &Owned)> {
        self.0.iter().map(|(id, owned)| (id, owned))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&ManagerId, &mut Owned)> {
        self.0.iter_mut().map(|(id, owned)| (&*id, owned))
    }

    /// Leaves out those who own nothing.
    pub(super) fn drop_empty(&mut self) {
        self.0.retain(|(_, owned)| !owned.set.is_empty());
    }
}

impl Managers {
    /// Reads the entries of an object; none where it has none.
    pub(super) fn read(object: &Value) -> Result<Managers, ManagedFieldsError> {
        let entries = meta::field(object, "managedFields").and_then(Value::as_array);
        let mut managers = Entries::default();
        for (i, entry) in entries.into_iter().flatten().enumerate() {
            let text = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
            let applied = match text("operation") {
                "Apply" => true,
                "Update" => false,
                _ => return Err(ManagedFieldsError::Operation),
            };
            if text("apiVersion").is_empty() {
                return Err(ManagedFieldsError::NoApiVersion);
            }
            match text("fieldsType") {
                "FieldsV1" => {}
                "" => return Err(ManagedFieldsError::NoFieldsType { entry: i }),
                other => return Err(ManagedFieldsError::FieldsType { entry: i, found: other.to_owned() }),
            }
            let set = match entry.get("fieldsV1") {
                None | Some(Value::Null) => FieldSet::new(),
                Some(fields) => compact::read_set(fields).map_err(ManagedFieldsError::Fields)?,
            };
            let id = ManagerId::new(text("manager"), applied, text("apiVersion"), text("subresource"));
            let time = entry.get("time").and_then(Value::as_str).map(str::to_owned);
            managers
                .insert(id, Owned { set, api_version: text("apiVersion").to_owned(), time, fresh: false });
        }
        Ok(Managers(managers))
    }

    /// Writes the entries into an object, or takes the field away where there are none.
    pub(super) fn write(&self, object: &mut Value) {
        if self.0.is_empty() {
            return remove(object);
        }
        let mut all: Vec<(&ManagerId, &Owned)> = self.0.iter().collect();
        all.sort_by(|(a, mine), (b, theirs)| {
            (!a.applied, mine.seconds(), mine.fresh, &a.name, &mine.api_version, &a.subresource).cmp(&(
                !b.applied,
                theirs.seconds(),
                theirs.fresh,
                &b.name,
                &theirs.api_version,
                &b.subresource,
            ))
        });
        let entries: Vec<Value> = all
            .into_iter()
            .map(|(id, owned)| {
                let operation = if id.applied { "Apply" } else { "Update" };
                let mut entry = Map::new();
                let mut put = |name: &str, value: Value| _ = entry.insert(name.to_owned(), value);
                put("apiVersion", Value::from(owned.api_version.as_str()));
                put("fieldsType", Value::from("FieldsV1"));
                put("fieldsV1", compact::of_set(&owned.set));
                put("manager", Value::from(id.name.as_str()));
                put("operation", Value::from(operation));
                if !id.subresource.is_empty() {
                    put("subresource", Value::from(id.subresource.as_str()));
                }
                if let Some(time) = &owned.time {
                    put("time", Value::from(time.as_str()));
                }
                Value::Object(entry)
            })
            .collect();
        if let Some(map) = object.as_object_mut() {
            let metadata = map.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
            if metadata.is_object() {
                metadata["managedFields"] = Value::Array(entries);
            }
        }
    }

    /// Merges the oldest Update managers into one bucket until few enough are left.
    pub(super) fn cap(&mut self) {
        if self.0.iter().count() <= MAX_UPDATE_MANAGERS {
            return;
        }
        let mut updaters: Vec<ManagerId> =
            self.0.iter().map(|(id, _)| id).filter(|id| !id.applied).cloned().collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATE_MANAGERS {
            return;
        }
        let time = |id: &ManagerId| self.0.get(id).and_then(|owned| owned.time.clone()).unwrap_or_default();
        updaters.sort_by_key(|id| (time(id), id.clone()));
        let mut first: BTreeMap<String, ManagerId> = BTreeMap::new();
        for id in updaters {
            if count <= MAX_UPDATE_MANAGERS {
                break;
            }
            let bucket = ManagerId::new(ANCIENT, false, &id.api_version, "");
            let Some(oldest) = first.get(&id.api_version) else {
                first.insert(id.api_version.clone(), id);
                continue;
            };
            if self.0.get(&bucket).is_none()
                && let Some(owned) = self.0.remove(oldest)
            {
                self.0.insert(bucket.clone(), owned);
            }
            if id == bucket {
                continue;
            }
            if let Some(owned) = self.0.remove(&id)
                && let Some(kept) = self.0.get_mut(&bucket)
            {
                kept.set = kept.set.union(&owned.set);
                kept.time = owned.time;
                count -= 1;
            }
        }
    }
}

/// Takes `metadata.managedFields` away.
pub(super) fn remove(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// The object without `metadata.managedFields`.
pub(super) fn without(object: &Value) -> Cow<'_, Value> {
    if meta::field(object, "managedFields").is_none() {
        return Cow::Borrowed(object);
    }
    // The managed fields are often most of an object: they are not copied to be thrown away.
    let bare = |map: &Map<String, Value>| {
        let kept = map.iter().filter(|(name, _)| *name != "managedFields");
        Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let fields = object.as_object().into_iter().flatten().map(|(name, value)| match value {
        Value::Object(metadata) if name == "metadata" => (name.clone(), bare(metadata)),
        other => (name.clone(), other.clone()),
    });
    Cow::Owned(Value::Object(fields.collect()))
}

/// Returns true if a written object asks to forget all managers: `[]` or `[{}]`.
pub(super) fn is_reset(object: &Value) -> bool {
    match meta::field(object, "managedFields").and_then(Value::as_array).map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(Map::is_empty),
        _ => false,
    }
}

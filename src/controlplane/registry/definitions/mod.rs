//! CustomResourceDefinitions: what is refused, which names are accepted, what they serve, how they go.
//! Custom resources themselves go through the same create, update and delete as everything else.
//! Read `check` for what is refused, `serve` for what becomes of a definition and `clear` for its end.

mod check;
mod clear;
mod serve;

pub(crate) use check::{validate, validate_update};
pub(super) use serve::unserved;

use super::{DeleteOptions, Registry};
use jiff::Timestamp;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_storage::{Expected, Key, Stored};
use serde_json::{Value, json};

/// The resource of definitions.
pub(crate) const ID: &str = "apiextensions.k8s.io/customresourcedefinitions";
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Marks a definition that is going: its resources have to go first. It is no new generation and has no
/// grace, and what is asked of its dependents does not count.
pub(crate) fn terminate(object: &mut Value, now: Timestamp) {
    let meta = metadata::map_mut(object);
    meta.insert("deletionTimestamp".to_owned(), Value::from(metadata::seconds(now)));
    let list = meta.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut()
        && !list.iter().any(|name| name == CLEANUP)
    {
        list.push(Value::from(CLEANUP));
    }
    let text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(object, "Terminating", "True", "InstanceDeletionPending", text, now);
}

/// Refuses to delete another definition than the one that is meant, in words of its own.
pub(super) fn preconditions(
    resource: &Resource,
    key: &Key,
    options: &DeleteOptions,
    current: &Stored,
) -> Result<(), Status> {
    let (uid, version) = (current.attributes().uid(), current.revision.to_string());
    let wanted =
        [("UID", &options.uid, uid), ("ResourceVersion", &options.resource_version, version.as_str())];
    for (what, wanted, own) in wanted {
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != own) {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {own}"
            );
            return Err(Status::conflict(&resource.group, &resource.plural, &key.name, &why));
        }
    }
    Ok(())
}

/// Sets a condition; the time only changes with the status.
fn set_condition(object: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) {
    let state = defaults::sub(object, "status");
    defaults::put(state, "conditions", json!([]));
    let Some(list) = state["conditions"].as_array_mut() else { return };
    let same = list.iter().find(|c| c["type"] == kind && c["status"] == status);
    let since = same.map_or_else(|| json!(metadata::seconds(now)), |c| c["lastTransitionTime"].clone());
    let condition = json!({"type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since});
    match list.iter_mut().find(|c| c["type"] == kind) {
        Some(found) => *found = condition,
        None => list.push(condition),
    }
}

/// Returns true if a definition's end still waits for its resources.
fn holds_resources(object: &Value) -> bool {
    opdev_object::meta::finalizers(object).contains(&CLEANUP)
}

fn condition_is_true(object: &Value, kind: &str) -> bool {
    let list = object["status"]["conditions"].as_array();
    list.is_some_and(|list| list.iter().any(|c| c["type"] == kind && c["status"] == "True"))
}

impl Registry {
    /// Writes the status of a definition: accepted names, conditions, stored versions.
    pub(super) fn accept_names(&self, object: &mut Value, current: Option<&Value>) {
        let now = self.now();
        if let Some(current) = current {
            object["status"] = current["status"].clone();
        }
        let conflict = self.name_conflict(object);
        let names = object["spec"]["names"].clone();
        let status = defaults::sub(object, "status");
        if conflict.is_none() {
            status["acceptedNames"] = names;
        } else {
            defaults::put(status, "acceptedNames", json!({"plural": "", "kind": ""}));
        }
        let versions = object["spec"]["versions"].as_array().cloned().unwrap_or_default();
        let storage = versions.iter().find(|v| v["storage"] == true).map(|v| v["name"].clone());
        let status = defaults::sub(object, "status");
        defaults::put(status, "storedVersions", json!([]));
        if let (Some(list), Some(storage)) = (status["storedVersions"].as_array_mut(), storage)
            && !list.contains(&storage)
        {
            list.push(storage);
        }
        match conflict {
            Some((reason, message)) => {
                set_condition(object, "NamesAccepted", "False", reason, &message, now);
                if !condition_is_true(object, "Established") {
                    let text = "not all names are accepted";
                    set_condition(object, "Established", "False", "NotAccepted", text, now);
                }
            }
            None => {
                set_condition(object, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
                let text = "the initial names have been accepted";
                set_condition(object, "Established", "True", "InitialNamesAccepted", text, now);
            }
        }
    }

    /// A name that somebody else in the group has, and why that is refused.
    fn name_conflict(&self, object: &Value) -> Option<(&'static str, String)> {
        let spec = &object["spec"];
        let (own, group) = (metadata::text(object, "name"), &spec["group"]);
        let others: Vec<_> = self
            .store
            .list(ID, None)
            .items
            .into_iter()
            .filter(|o| metadata::text(&o.value(), "name") != own && o.value()["spec"]["group"] == *group)
            .collect();
        let taken = |value: &Value, fields: &[&str]| {
            others.iter().any(|other| {
                let names = &other.value()["status"]["acceptedNames"];
                fields.iter().any(|field| match &names[*field] {
                    Value::Array(list) => list.contains(value),
                    single => single == value,
                })
            })
        };
        let names = &spec["names"];
        const RESOURCES: [&str; 3] = ["plural", "singular", "shortNames"];
        const KINDS: [&str; 2] = ["kind", "listKind"];
        let short = names["shortNames"].as_array().into_iter().flatten();
        let short = short.map(|name| (name, &RESOURCES[..], "ShortNamesConflict"));
        let mut checks = vec![
            (&names["plural"], &RESOURCES[..], "PluralConflict"),
            (&names["singular"], &RESOURCES[..], "SingularConflict"),
        ];
        checks.extend(short);
        checks.push((&names["kind"], &KINDS[..], "KindConflict"));
        checks.push((&names["listKind"], &KINDS[..], "ListKindConflict"));
        // Upstream overwrites the reason with each further conflict.
        let last = checks.into_iter().rev().find(|(name, fields, _)| taken(name, fields));
        last.map(|(name, _, reason)| (reason, format!("{name} is already in use")))
    }

    /// After a definition was written: serve it, or go on with its end.
    pub(super) fn definition_written(&self, object: &Value) {
        let name = metadata::text(object, "name");
        self.definition_announced(object);
        self.register_group(object["spec"]["group"].as_str().unwrap_or_default());
        if object["metadata"].get("deletionTimestamp").is_some() && holds_resources(object) {
            // Where that fails the definition says why, and a controller tries again.
            let _ = self.clear_definition(name);
        }
    }

    /// Serves what an established definition says.
    pub(super) fn definition_announced(&self, object: &Value) {
        if condition_is_true(object, "Established") {
            self.catalog.set_custom(metadata::text(object, "name"), serve::resources(object));
        }
    }

    /// After a definition was announced and not stored: serve what the store has.
    pub(super) fn definition_not_written(&self, key: &Key) {
        match self.store.get(ID, key) {
            Some(stored) => self.definition_written(&stored.value()),
            None => self.catalog.set_custom(&key.name, Vec::new()),
        }
    }

    /// After a definition is gone: serve it no more, and let others have its names.
    pub(super) fn definition_removed(&self, object: &Value) {
        self.catalog.set_custom(metadata::text(object, "name"), Vec::new());
        self.register_group(object["spec"]["group"].as_str().unwrap_or_default());
        for other in self.store.list(ID, None).items {
            let same_group = other.value()["spec"]["group"] == object["spec"]["group"];
            if !same_group || condition_is_true(&other.value(), "NamesAccepted") {
                continue;
            }
            let mut next = Value::clone(&other.value());
            self.accept_names(&mut next, Some(&other.value()));
            if next != *other.value() {
                let key = Key::new("", metadata::text(&other.value(), "name"));
                if let Ok(stored) = self.store.put(ID, &key, Expected::Revision(other.revision), next) {
                    self.definition_written(&stored.value());
                }
            }
        }
    }

    /// Lets a definition go whose resources are gone.
    pub(super) fn finish_definition(&self, name: &str) {
        let key = Key::new("", name);
        while let Some(current) = self.store.get(ID, &key) {
            let table = serve::table(&current.value());
            let going = current.attributes().deleting();
            if !going || !holds_resources(&current.value()) || self.store.count(&table) > 0 {
                return;
            }
            let mut object = Value::clone(&current.value());
            if let Some(list) = object["metadata"]["finalizers"].as_array_mut() {
                list.retain(|name| name != CLEANUP);
            }
            let (reason, text) = if condition_is_true(&object, "Established") {
                ("InstanceDeletionCompleted", "removed all instances")
            } else {
                ("NeverEstablished", "resource was never established")
            };
            set_condition(&mut object, "Terminating", "False", reason, text, self.now());
            let left = object["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
            let done = if !left {
                self.store.remove(ID, &key, current.revision, None).map(|gone| {
                    self.definition_removed(&gone.value());
                })
            } else {
                self.store.put(ID, &key, Expected::Revision(current.revision), object).map(|_| ())
            };
            if done.is_ok() {
                return;
            }
        }
    }
}

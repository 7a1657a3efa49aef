//! Deleting an object: preconditions, what happens to dependents, finalizers, grace; at once, or marked and left to
//! whoever holds it.

use super::context::Context;
use super::options::{DeleteOptions, Deleted};
use super::update::finished;
use super::{Registry, convert, definitions};
use crate::contract::Propagation;
use crate::error::Status;
use crate::resource::{Resource, metadata};
use crate::storage::{Expected, Key, Refused, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

impl Registry {
    /// Deletes an object.
    pub fn delete(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
    ) -> Result<Deleted, Status> {
        loop {
            let Some(current) = self.store.get(&resource.table, key) else {
                return Err(Status::not_found(&resource.group, &resource.plural, &key.name));
            };
            preconditions(resource, key, options, &current.value())?;
            if resource.id() == "namespaces" {
                admit_namespace_delete(key, &current.value())?;
            }
            self.admit_delete(ctx, resource, key, options, &current)?;
            match self.try_delete(ctx, resource, key, options, &current) {
                Err(Refused::Missing) => {
                    return Err(Status::not_found(&resource.group, &resource.plural, &key.name));
                }
                Err(Refused::Changed | Refused::Exists) => {}
                Ok(deleted) => return Ok(deleted),
            }
        }
    }

    fn try_delete(
        &self,
        ctx: &Context,
        resource: &Resource,
        key: &Key,
        options: &DeleteOptions,
        current: &Arc<Stored>,
    ) -> Result<Deleted, Refused> {
        let mut object = Value::clone(&current.value());
        let marked = current.attributes().deleting();
        if resource.id() == definitions::ID && !marked {
            definitions::terminate(&mut object, self.now());
        } else {
            dependents(resource, options, &mut object);
            let grace = grace(resource, options, &object);
            let before = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
            if !marked || grace < before.unwrap_or(0) {
                mark(&mut object, self.now(), grace, marked);
            } else if before.is_none() {
                metadata::of(&mut object).insert("deletionGracePeriodSeconds".to_owned(), Value::from(0));
            }
        }
        if resource.id() == "namespaces" {
            object["status"]["phase"] = Value::from("Terminating");
        }
        if finished(resource, &object) {
            let object = match resource.id() {
                // Pods go in two steps, even where nothing keeps them: marked, then gone.
                "pods" => self.delete_pod(ctx, resource, key, current, marked)?,
                _ if ctx.dry_run => current.clone(),
                // What is answered, and what watchers see, is the object as it was.
                _ => self.remove(resource, key, current.revision, Some(Value::clone(&current.value())))?,
            };
            return Ok(Deleted { object, gone: true });
        }
        if ctx.dry_run {
            return Ok(Deleted { object: Stored::unsaved(object), gone: false });
        }
        if object == *current.value() {
            return Ok(Deleted { object: current.clone(), gone: false });
        }
        let object = self.store.put(&resource.table, key, Expected::Revision(current.revision), object)?;
        self.written(resource, &object.value());
        Ok(Deleted { object, gone: false })
    }

    /// Marks a pod that nothing keeps, unless it is marked already, and removes it.
    fn delete_pod(
        &self,
        ctx: &Context,
        resource: &Resource,
        key: &Key,
        current: &Arc<Stored>,
        marked: bool,
    ) -> Result<Arc<Stored>, Refused> {
        let over = marked && current.value()["metadata"]["deletionGracePeriodSeconds"] == 0;
        let mut going = Value::clone(&current.value());
        mark(&mut going, self.now(), 0, marked);
        if ctx.dry_run {
            return Ok(Stored::unsaved(going));
        }
        if over {
            return self.remove(resource, key, current.revision, Some(going));
        }
        let stored = self.store.put(&resource.table, key, Expected::Revision(current.revision), going)?;
        self.written(resource, &stored.value());
        self.remove(resource, key, stored.revision, Some(Value::clone(&stored.value())))
    }

    /// Takes an object out of the store and tells whoever has to know.
    pub(super) fn remove(
        &self,
        resource: &Resource,
        key: &Key,
        revision: u64,
        last: Option<Value>,
    ) -> Result<Arc<Stored>, Refused> {
        let removed = self.store.remove(&resource.table, key, revision, last)?;
        self.removed(resource, &removed.value());
        Ok(removed)
    }

    /// The object as the resource serves it, as a tree that is not kept.
    pub fn served(&self, resource: &Resource, stored: &Stored) -> Arc<Value> {
        convert::served(resource, &stored.glance())
    }
}

fn preconditions(
    resource: &Resource,
    key: &Key,
    options: &DeleteOptions,
    current: &Value,
) -> Result<(), Status> {
    let uid = metadata::text(current, "uid");
    if resource.id() == definitions::ID {
        return definitions::preconditions(resource, key, options, current);
    }
    // Upstream names the kind here where it names the plural elsewhere.
    let conflict = |why: String| Status::conflict(&resource.group, &resource.kind, &key.name, &why);
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != uid) {
        return Err(conflict(format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). \
             The object might have been deleted and then recreated"
        )));
    }
    let version = metadata::text(current, "resourceVersion");
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

fn admit_namespace_delete(key: &Key, current: &Value) -> Result<(), Status> {
    if ["default", "kube-system", "kube-public"].contains(&&*key.name) {
        return Err(Status::forbidden("", "namespaces", &key.name, "this namespace may not be deleted"));
    }
    let waits = current["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    if current["metadata"].get("deletionTimestamp").is_some() && waits {
        let why = "The system is ensuring all content is removed from this namespace.  Upon completion, this \
                   namespace will automatically be purged by the system.";
        return Err(Status::conflict("", "namespaces", &key.name, why));
    }
    Ok(())
}

/// Writes what happens to dependents into the finalizers.
fn dependents(resource: &Resource, options: &DeleteOptions, object: &mut Value) {
    let has = |name: &str| opdev_object::meta::finalizers(object).contains(&name);
    let said = options.propagation.or(options
        .orphan_dependents
        .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }));
    let (orphan, foreground) = match said {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if has("orphan") => (true, false),
        None if has("foregroundDeletion") => (false, true),
        None => (resource.habits.orphans_by_default, false),
    };
    let mut list: Vec<String> = opdev_object::meta::finalizers(object)
        .into_iter()
        .filter(|name| !["orphan", "foregroundDeletion"].contains(name))
        .map(str::to_owned)
        .collect();
    if orphan {
        list.push("orphan".to_owned());
    }
    if foreground {
        list.push("foregroundDeletion".to_owned());
    }
    let meta = metadata::of(object);
    if list.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), json!(list));
    }
}

/// Seconds until the object is gone: only pods that run somewhere have any.
pub(super) fn grace(resource: &Resource, options: &DeleteOptions, object: &Value) -> i64 {
    if resource.id() != "pods" {
        return 0;
    }
    let own = object["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let seconds = options.grace.unwrap_or(own);
    let seconds = if seconds < 0 { 1 } else { seconds };
    let unscheduled = object["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    let over = matches!(object["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    if unscheduled || over { 0 } else { seconds }
}

fn mark(object: &mut Value, now: jiff::Timestamp, grace: i64, marked: bool) {
    let generation = opdev_object::meta::generation(object);
    let meta = metadata::of(object);
    let at = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
    meta.insert("deletionTimestamp".to_owned(), Value::from(metadata::seconds(at)));
    meta.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
    if generation > 0 && !marked {
        meta.insert("generation".to_owned(), Value::from(generation + 1));
    }
}

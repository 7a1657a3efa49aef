//! Deleting an object: preconditions, what happens to dependents, finalizers, grace; at once, or marked and left to
//! whoever holds it.

use super::context::Context;
use super::options::{DeleteOptions, Deleted};
use super::strategy::strategy_of;
use super::update::finished;
use super::{Registry, convert};
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
            (strategy_of(resource).admit_delete)(key, &current.value())?;
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
        let strategy = strategy_of(resource);
        if let Some(mark) = strategy.mark_deleted.filter(|_| !marked) {
            mark(&mut object, self.now());
        } else {
            dependents(resource, options, &mut object);
            let grace = (strategy.grace_period)(options, &object);
            let before = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
            if !marked || grace < before.unwrap_or(0) {
                mark(&mut object, self.now(), grace, marked);
            } else if before.is_none() {
                metadata::map_mut(&mut object)
                    .insert("deletionGracePeriodSeconds".to_owned(), Value::from(0));
            }
        }
        (strategy.set_deleted_status)(&mut object);
        if finished(resource, &object) {
            let object = if strategy.marked_before_removal {
                self.mark_and_remove(ctx, resource, key, current, marked)?
            } else if ctx.dry_run {
                current.clone()
            } else {
                // What is answered, and what watchers see, is the object as it was.
                self.remove(resource, key, current.revision, Some(Value::clone(&current.value())))?
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
        (strategy.after_write)(self, &object.value());
        Ok(Deleted { object, gone: false })
    }

    /// Marks an object that nothing keeps, unless it is marked already, and removes it.
    fn mark_and_remove(
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
        (strategy_of(resource).after_write)(self, &stored.value());
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
    if let Some(check) = strategy_of(resource).check_preconditions {
        return check(resource, key, options, current);
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
        None => (resource.rules.orphans_by_default, false),
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
    let meta = metadata::map_mut(object);
    if list.is_empty() {
        meta.remove("finalizers");
    } else {
        meta.insert("finalizers".to_owned(), json!(list));
    }
}

fn mark(object: &mut Value, now: jiff::Timestamp, grace: i64, marked: bool) {
    let generation = opdev_object::meta::generation(object);
    let meta = metadata::map_mut(object);
    let at = now.checked_add(jiff::SignedDuration::from_secs(grace)).unwrap_or(now);
    meta.insert("deletionTimestamp".to_owned(), Value::from(metadata::seconds(at)));
    meta.insert("deletionGracePeriodSeconds".to_owned(), Value::from(grace));
    if generation > 0 && !marked {
        meta.insert("generation".to_owned(), Value::from(generation + 1));
    }
}

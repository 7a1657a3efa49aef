//! Deleting an object: preconditions, what happens to dependents, finalizers, grace; at once, or marked and
//! left to whoever holds it.

use super::context::Context;
use super::options::{DeleteOptions, Deleted};
use super::strategy::strategy_of;
use super::update::finished;
use super::{Registry, convert};
use opdev_apimachinery::contract::Propagation;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_storage::{Expected, Key, Refused, Stored};
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
            if !options.as_kept {
                // An object that cannot be read at the requested version cannot be deleted either.
                self.convertible(resource, std::slice::from_ref(&current))?;
            }
            preconditions(resource, key, options, &current)?;
            if let Some(admit) = strategy_of(resource).admit_delete {
                admit(key, &current.value())?;
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
        if unheld(resource, options, current) {
            // Watchers see the object as it was.
            let object = match ctx.dry_run {
                true => current.clone(),
                false => self.remove(resource, key, current.revision, None)?,
            };
            return Ok(Deleted { object, gone: true });
        }
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
                // The answer and the watchers see the object as it was.
                self.remove(resource, key, current.revision, None)?
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
        self.remove(resource, key, stored.revision, None)
    }

    /// Removes an object from the store, and runs what has to follow.
    pub fn remove(
        &self,
        resource: &Resource,
        key: &Key,
        revision: u64,
        last: Option<Value>,
    ) -> Result<Arc<Stored>, Refused> {
        let removed = self.store.remove(&resource.table, key, revision, last)?;
        self.removed(resource, &removed);
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
    current: &Stored,
) -> Result<(), Status> {
    let (uid, version) = (current.attributes().uid(), current.revision.to_string());
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
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != version) {
        return Err(conflict(format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record \
             ({version}). The object might have been modified"
        )));
    }
    Ok(())
}

/// Returns true if nothing keeps an object that is deleted, so that it goes without being read.
fn unheld(resource: &Resource, options: &DeleteOptions, current: &Stored) -> bool {
    let (strategy, known) = (strategy_of(resource), current.attributes());
    strategy.admit_delete.is_none()
        && strategy.mark_deleted.is_none()
        && !strategy.marked_before_removal
        && !known.deleting()
        && known.finalizers().is_empty()
        && propagation(resource, options, &|_| false) == (false, false)
}

/// Two answers: dependents are let go, and they go first; `has` says which finalizers the object has.
fn propagation(resource: &Resource, options: &DeleteOptions, has: &dyn Fn(&str) -> bool) -> (bool, bool) {
    let said = options.propagation.or(options
        .orphan_dependents
        .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }));
    match said {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if has("orphan") => (true, false),
        None if has("foregroundDeletion") => (false, true),
        None => (resource.rules.orphans_by_default, false),
    }
}

/// Writes what happens to dependents into the finalizers.
fn dependents(resource: &Resource, options: &DeleteOptions, object: &mut Value) {
    let has = |name: &str| opdev_object::meta::finalizers(object).contains(&name);
    let (orphan, foreground) = propagation(resource, options, &has);
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

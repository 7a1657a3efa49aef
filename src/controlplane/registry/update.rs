//! Changing an object: optimistic locking, what stays as it was, validation, writes that change nothing, and
//! the removal of an object whose last finalizer goes.

use super::admit::AdmissionSubject;
use super::context::Context;
use super::strategy::strategy_of;
use super::{Registry, convert, fields, prepare, validate, warnings};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_storage::{Expected, Key, Refused, Stored};
use serde_json::Value;
use std::sync::Arc;

/// How often a change is tried again when somebody else wrote in between.
const ATTEMPTS: usize = 10;

/// The parts of a change.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The resource.
    pub resource: &'a Resource,
    /// The object.
    pub key: &'a Key,
    /// The part of it that is written.
    pub part: Part,
    /// The way the new object is made.
    pub way: UpdateMethod,
}

/// The way the new object of a change is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpdateMethod {
    /// Somebody sent the whole of it.
    Replace,
    /// A patch of the current one.
    Patch,
    /// Server-side apply, which has written the managed fields already.
    Apply,
}

/// Makes the new object, accepted as the resource's kind, of the current one.
pub type Make<'a> = dyn FnMut(&mut Context, &Value) -> Result<Value, Status> + 'a;

impl Registry {
    /// Changes an object. `make` is called again when somebody else wrote in between.
    pub fn update(
        &self,
        ctx: &mut Context,
        change: Change<'_>,
        make: &mut Make<'_>,
    ) -> Result<Arc<Stored>, Status> {
        let Change { resource, key, .. } = change;
        for _ in 0..ATTEMPTS {
            let Some(current) = self.store.get(&resource.table, key) else {
                return Err(Status::not_found(&resource.group, &resource.plural, &key.name));
            };
            match self.try_update(ctx, change, &current, make)? {
                Some(done) => return Ok(done),
                None => continue,
            }
        }
        Err(Status::modified(&resource.group, &resource.plural, &key.name))
    }

    /// One attempt; `None` where somebody else was faster.
    fn try_update(
        &self,
        ctx: &mut Context,
        change: Change<'_>,
        current: &Arc<Stored>,
        make: &mut Make<'_>,
    ) -> Result<Option<Arc<Stored>>, Status> {
        let Change { resource, key, part, way } = change;
        // It is about to make way for the new one: its tree is not kept.
        let before = current.glance();
        let at_version = self.one_at(resource, current)?;
        let same = Arc::ptr_eq(&at_version, current);
        let served = convert::served(resource, &if same { before.clone() } else { at_version.value() });
        let mut object = make(ctx, &served)?;
        self.check_identity(ctx, change, &mut object, &served)?;
        // Owners of fields are settled before webhooks or the server change what the request says.
        if way != UpdateMethod::Apply && part != Part::Scale {
            fields::updated(self, ctx, resource, Some(&served), &mut object, part);
        }
        let subject = AdmissionSubject::update(resource, part, key);
        self.call_mutating_for_update(ctx, &subject, part, &mut object, &served)?;
        check_version(change, &object, &served)?;
        let strategy = strategy_of(resource);
        (strategy.check_escalation)(self, ctx, resource, &key.namespace, &object, Some(&served))?;
        let moved = metadata::uid_change(&object, &served);
        metadata::keep(&mut object, &served);
        prepare::prepare_update(resource, part, &mut object, &served);
        if part == Part::Status {
            (strategy.set_transition_time)(&mut object, Some(&served), self.now());
        }
        let mut allocating = self.lock_allocation(resource);
        let (mut causes, amid) = metadata::validate_update(resource, &object, &served, moved.as_ref());
        causes.extend(self.validate_update(change, &mut object, &served, (&causes, amid))?);
        if !causes.is_empty() {
            if ctx.emptied_labels {
                validate::print_emptied_labels(&mut causes);
            }
            let causes = validate::settle(resource, causes);
            return Err(Status::invalid(&resource.group, &resource.kind, &key.name, causes));
        }
        if matches!(part, Part::Main | Part::Scale) {
            warnings::warn(ctx, resource, &object, Some(&served));
        }
        if part == Part::Status {
            warnings::warn_of_status(ctx, resource, &object);
        }
        self.check_plugins(ctx, (resource, part), &object, Some(&served))?;
        if self.calls_admission(ctx, resource) {
            drop(allocating);
            self.call_validating_for_update(ctx, &subject, part, &object, &served)?;
            allocating = self.lock_allocation(resource);
            // Somebody else may have got the same address meanwhile.
            if allocating.is_some() && !self.still_allocatable(resource, &object, Some(&served)) {
                return Ok(None);
            }
        }
        let over = finished(resource, &object);
        if !over {
            (strategy.complete)(&mut object);
        }
        let grows = strategy.update_uses_quota && matches!(part, Part::Main | Part::Resize);
        let _quotas = if grows { self.within_quotas(resource, &object, Some(&served))? } else { None };
        let object = self.stored_form(resource, object)?;
        if fields::same(&object, &before) && !over {
            return Ok(Some(current.clone()));
        }
        if over {
            return self.finish(ctx, resource, key, current, object).map(Some);
        }
        if ctx.dry_run {
            return Ok(Some(Stored::unsaved(object)));
        }
        (strategy.before_write)(self, &object);
        let put = self.store.put(&resource.table, key, Expected::Revision(current.revision), object);
        if put.is_err() {
            (strategy.after_failed_write)(self, key);
        }
        match put {
            Ok(stored) => {
                (strategy.after_write)(self, &stored.value());
                Ok(Some(stored))
            }
            Err(Refused::Missing) => Err(Status::not_found(&resource.group, &resource.plural, &key.name)),
            // An update with a resourceVersion finds out in the next attempt that it is outdated.
            Err(Refused::Exists | Refused::Changed) => Ok(None),
        }
    }

    fn check_identity(
        &self,
        ctx: &Context,
        change: Change<'_>,
        object: &mut Value,
        current: &Value,
    ) -> Result<(), Status> {
        let Change { resource, key, way, .. } = change;
        let name = metadata::text(object, "name");
        if !name.is_empty() && name != &*key.name {
            return Err(Status::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                key.name
            )));
        }
        metadata::set_namespace(resource, object, &key.namespace)?;
        let (uid, own) = (metadata::text(object, "uid"), metadata::text(current, "uid"));
        if way == UpdateMethod::Replace && !uid.is_empty() && uid != own {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: UID in precondition: {uid}, UID in object meta: {own}",
                storage_key(resource, key, ctx.dry_run)
            );
            return Err(Status::conflict(&resource.group, &resource.plural, &key.name, &why));
        }
        Ok(())
    }

    fn validate_update(
        &self,
        change: Change<'_>,
        object: &mut Value,
        current: &Value,
        (before, mut amid): (&[Cause], Vec<Cause>),
    ) -> Result<Vec<Cause>, Status> {
        let Change { resource, part, .. } = change;
        if resource.custom.is_some() {
            let blocked = validate::blocks(before);
            return Ok(validate::by_schema((resource, part), object, Some(current), blocked));
        }
        let strategy = strategy_of(resource);
        if part == Part::Status {
            (strategy.validate_status)(object, current, &mut amid);
        }
        if !matches!(part, Part::Main | Part::Scale) {
            return Ok(amid);
        }
        if let Some(allocation) = &strategy.allocation {
            // As on a create, what cannot be allocated is reported before anything else is looked at.
            (allocation.keep)(object, current)?;
            (allocation.allocate)(self, object, Some(current))?;
        }
        let mut causes = validate::update(resource, object, current, amid);
        (strategy.validate_in_registry)(self, object, Some(current), &mut causes);
        Ok(causes)
    }

    /// Removes an object that was only waiting for its finalizers. The answer is what the request made of it;
    /// watchers see the object as it was.
    fn finish(
        &self,
        ctx: &Context,
        resource: &Resource,
        key: &Key,
        current: &Arc<Stored>,
        object: Value,
    ) -> Result<Arc<Stored>, Status> {
        if !ctx.dry_run {
            self.remove(resource, key, current.revision, None)
                .map_err(|_| Status::modified(&resource.group, &resource.plural, &key.name))?;
        }
        Ok(Stored::unsaved(object))
    }
}

/// Refuses an update without a version, of a kind that needs one.
pub fn unversioned(resource: &Resource, name: &str) -> Status {
    let detail = "must be specified for an update";
    let cause = Cause::invalid("metadata.resourceVersion", &Value::from(0), detail);
    // Here the real server names the resource, not the kind.
    Status::invalid(&resource.group, &resource.plural, name, vec![cause])
}

/// The version that a request names is the one that is there.
fn check_version(change: Change<'_>, object: &Value, current: &Value) -> Result<(), Status> {
    let Change { resource, key, way, .. } = change;
    let version = metadata::text(object, "resourceVersion");
    if version.is_empty() || version == "0" {
        if resource.rules.unconditional_update {
            return Ok(());
        }
        return Err(unversioned(resource, &key.name));
    }
    if let (Err(_), UpdateMethod::Patch | UpdateMethod::Apply) = (version.parse::<u64>(), way) {
        let why = format!("strconv.ParseUint: parsing {version:?}: invalid syntax");
        return Err(Status::new(500, "", why));
    }
    if version.parse::<u64>().is_err() {
        let cause = Cause::invalid(
            "metadata.resourceVersion",
            &Value::from(version),
            &format!("strconv.ParseUint: parsing {version:?}: invalid syntax"),
        );
        return Err(Status::invalid(&resource.group, &resource.kind, &key.name, vec![cause]));
    }
    if version != metadata::text(current, "resourceVersion") {
        return Err(Status::modified(&resource.group, &resource.plural, &key.name));
    }
    Ok(())
}

/// Returns true if nothing keeps a deleted object any more.
pub(super) fn finished(resource: &Resource, object: &Value) -> bool {
    let meta = &object["metadata"];
    let empty = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let grace = meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    meta.get("deletionTimestamp").is_some()
        && empty(&meta["finalizers"])
        && grace == 0
        && !(strategy_of(resource).is_kept)(object)
}

/// Where etcd would have the object. A dry run does not get as far as the common prefix.
fn storage_key(resource: &Resource, key: &Key, dry_run: bool) -> String {
    let plural = resource.plural.as_str();
    let table = match resource.custom {
        Some(_) => format!("{}/{plural}", resource.group),
        None => strategy_of(resource).etcd_prefix.unwrap_or(plural).to_owned(),
    };
    let namespace = if key.namespace.is_empty() { String::new() } else { format!("{}/", key.namespace) };
    let registry = if dry_run { "" } else { "/registry" };
    format!("{registry}/{table}/{namespace}{}", key.name)
}

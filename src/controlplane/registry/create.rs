//! Creating an object: admission of its namespace, names, uids, defaults that are allocated, validation.

use super::admit::AdmissionSubject;
use super::context::Context;
use super::strategy::strategy_of;
use super::{Registry, definitions, fields, prepare, validate, warnings};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::quota::{self, Consumer};
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_storage::{Expected, Key, Stored};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};

const BEING_DELETED: &str = "object is being deleted: ";
/// How often a generated name is tried.
const ATTEMPTS: usize = 8;

/// The parts of a creation.
struct Creation {
    /// The resourceVersion it came with.
    versioned: Option<String>,
}

impl Registry {
    /// Creates an object that was accepted as the resource's kind.
    pub fn create(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Stored>, Status> {
        self.create_with(ctx, resource, namespace, object, true)
    }

    /// Creates an object whose managed fields server-side apply has already written.
    pub fn create_applied(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        namespace: &str,
        object: Value,
    ) -> Result<Arc<Stored>, Status> {
        self.create_with(ctx, resource, namespace, object, false)
    }

    fn create_with(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        namespace: &str,
        mut object: Value,
        track: bool,
    ) -> Result<Arc<Stored>, Status> {
        let asked = metadata::text(&object, "name").to_owned();
        self.admit_namespace(resource, namespace, &asked)?;
        self.admit_definition(resource)?;
        metadata::set_namespace(resource, &mut object, namespace)?;
        let versioned = Some(metadata::text(&object, "resourceVersion").to_owned());
        let versioned = versioned.filter(|version| track && !version.is_empty());
        metadata::remove_server_fields(&mut object);
        // Owners of fields are settled before webhooks or the server add anything of their own.
        if track {
            fields::updated(self, ctx, resource, None, &mut object, Part::Main);
        }
        let subject = AdmissionSubject::create(resource, namespace, &asked);
        self.fill_limits(resource, namespace, &mut object);
        (strategy_of(resource).admit_create)(self, resource, &mut object)?;
        self.call_mutating(ctx, &subject, &mut object, None)?;
        metadata::set_namespace(resource, &mut object, namespace)?;
        self.check_limits(resource, namespace, &object)?;
        (strategy_of(resource).check_escalation)(self, ctx, resource, namespace, &object, None)?;
        metadata::stamp(&mut object, self.now());
        let asked = metadata::text(&object, "name").to_owned();
        let base = metadata::text(&object, "generateName").to_owned();
        let generated = asked.is_empty() && !base.is_empty();
        for attempt in 0..ATTEMPTS {
            let mut candidate = if generated { object.clone() } else { std::mem::take(&mut object) };
            if generated {
                metadata::map_mut(&mut candidate)
                    .insert("name".to_owned(), Value::from(metadata::generate_name(&base)));
            }
            let creation = Creation { versioned: versioned.clone() };
            match self.create_named(ctx, resource, candidate, creation) {
                // A name that the request gives is not tried again, but its conflict is reported as that of a
                // generated name.
                Err(status) if status.is_already_exists() && !base.is_empty() => {
                    if !generated || attempt + 1 == ATTEMPTS {
                        let name = status.details.get("name").and_then(Value::as_str).unwrap_or_default();
                        let mut told =
                            Status::generated_name_conflict(&resource.group, &resource.plural, name);
                        if status.message.starts_with(BEING_DELETED) {
                            told.message = format!("{BEING_DELETED}{}", told.message);
                        }
                        return Err(told);
                    }
                }
                other => return other,
            }
        }
        Err(Status::generated_name_conflict(&resource.group, &resource.plural, &base))
    }

    fn create_named(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        mut object: Value,
        creation: Creation,
    ) -> Result<Arc<Stored>, Status> {
        let strategy = strategy_of(resource);
        prepare::prepare_create(resource, &mut object);
        (strategy.set_transition_time)(&mut object, None, self.now());
        (strategy.set_requester)(&mut object, &ctx.user);
        if ctx.shares_labels {
            let labels = object["spec"]["template"]["metadata"]["labels"].clone();
            metadata::map_mut(&mut object).insert("labels".to_owned(), labels);
        }
        let name = metadata::text(&object, "name").to_owned();
        let before = self.reserved(resource).then(|| object.clone());
        let mut allocating = self.lock_allocation(resource);
        // A failed allocation is reported before anything else is looked at.
        if let Some(allocation) = &strategy.allocation {
            (allocation.check_new)(&object, ctx.dry_run)?;
            (allocation.allocate)(self, &mut object, None)?;
        }
        let mut causes = metadata::validate(resource, &object);
        let found = self.validate_create(resource, &mut object, validate::blocks(&causes));
        if strategy.metadata_last && !found.is_empty() {
            causes.clear();
        }
        causes.extend(found);
        if !causes.is_empty() {
            if ctx.emptied_labels {
                validate::print_emptied_labels(&mut causes);
            }
            let causes = validate::settle(resource, causes);
            return Err(Status::invalid(&resource.group, &resource.kind, &name, causes));
        }
        warnings::warn(ctx, resource, &object, None);
        self.check_plugins(ctx, (resource, Part::Main), &object, None)?;
        if self.calls_admission(ctx, resource) {
            drop(allocating);
            let subject = AdmissionSubject::create(resource, metadata::text(&object, "namespace"), &name);
            self.call_validating(ctx, &subject, Some(&object), None)?;
            allocating = self.lock_allocation(resource);
            // Somebody else may have got the same address meanwhile.
            if let Some(before) = before.filter(|_| !self.still_allocatable(resource, &object, None)) {
                drop(allocating);
                return self.create_named(ctx, resource, before, creation);
            }
        }
        (strategy.complete)(&mut object);
        let key = Key::new(metadata::text(&object, "namespace"), &name);
        let object = self.stored_form(resource, object)?;
        // Held to the end, and so only once nobody has to be asked any more.
        let _quotas = self.within_quotas(resource, &object, None)?;
        if ctx.dry_run {
            if self.store.get(&resource.table, &key).is_some() {
                return Err(self.name_taken(resource, &key));
            }
            let mut object = object;
            if let Some(version) = creation.versioned {
                metadata::map_mut(&mut object).insert("resourceVersion".to_owned(), Value::from(version));
            }
            return Ok(Stored::unsaved(object));
        }
        // A version that is no number counts as none.
        if creation.versioned.is_some_and(|version| version.parse().is_ok_and(|number: u64| number != 0)) {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        (strategy.before_write)(self, &object);
        match self.store.put(&resource.table, &key, Expected::Absent, object) {
            Ok(stored) => {
                (strategy.after_write)(self, &stored.value());
                Ok(stored)
            }
            Err(_) => {
                (strategy.after_failed_write)(self, &key);
                Err(self.name_taken(resource, &key))
            }
        }
    }

    /// Gives a pod's containers what the namespace's LimitRanges have for those that name nothing.
    fn fill_limits(&self, resource: &Resource, namespace: &str, object: &mut Value) {
        let Some(limits) = &strategy_of(resource).limit_range else { return };
        for range in self.store.list("limitranges", Some(namespace)).items {
            (limits.fill)(object, &range.value());
        }
    }

    /// Refuses what is outside of the bounds of the namespace's LimitRanges.
    fn check_limits(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<(), Status> {
        let Some(limits) = &strategy_of(resource).limit_range else { return Ok(()) };
        for range in self.store.list("limitranges", Some(namespace)).items {
            let wrong = (limits.violations)(object, &range.value());
            let why = match wrong.as_slice() {
                [] => continue,
                [one] => one.clone(),
                all => format!("[{}]", all.join(", ")),
            };
            let name = metadata::text(object, "name");
            return Err(Status::forbidden(&resource.group, &resource.plural, name, &why));
        }
        Ok(())
    }

    /// Refuses what would be more than a quota of the namespace allows. Until the guard is dropped, nobody
    /// else uses any.
    pub(super) fn within_quotas(
        &self,
        resource: &Resource,
        object: &Value,
        current: Option<&Value>,
    ) -> Result<Option<MutexGuard<'_, ()>>, Status> {
        let namespace = metadata::text(object, "namespace");
        if !resource.namespaced || self.store.list("resourcequotas", Some(namespace)).items.is_empty() {
            return Ok(None);
        }
        let guard = self.quotas.lock().unwrap_or_else(PoisonError::into_inner);
        let consumer = Consumer { resource: resource.id(), evaluator: &strategy_of(resource).quota };
        for found in &self.store.list("resourcequotas", Some(namespace)).items {
            let limits = found.value();
            let mut totals: BTreeMap<&str, i128> = quota::hard(&limits)
                .filter(|(name, _)| consumer.uses(name))
                .map(|(name, _)| (name, 0))
                .collect();
            if totals.is_empty() || !consumer.covers(&limits, object) {
                continue;
            }
            let uid = metadata::text(object, "uid");
            for other in &self.store.list(&resource.table, Some(namespace)).items {
                if other.attributes().uid() == uid {
                    continue;
                }
                // One look for all that the quota limits.
                let other = other.glance();
                if consumer.covers(&limits, &other) {
                    totals.iter_mut().for_each(|(name, total)| *total += consumer.used(name, &other));
                }
            }
            let total = |name: &str| totals.get(name).copied().unwrap_or_default();
            if let Some(why) = consumer.refusal(&limits, object, current, total) {
                let name = metadata::text(object, "name");
                return Err(Status::forbidden(&resource.group, &resource.plural, name, &why));
            }
        }
        Ok(Some(guard))
    }

    /// The 409 of a name that is taken, if only by an object that is going away.
    fn name_taken(&self, resource: &Resource, key: &Key) -> Status {
        let mut status = Status::already_exists(&resource.group, &resource.plural, &key.name);
        let current = self.store.get(&resource.table, key);
        if current.is_some_and(|current| current.attributes().deleting()) {
            status.message = format!("{BEING_DELETED}{}", status.message);
        }
        status
    }

    fn validate_create(&self, resource: &Resource, object: &mut Value, blocked: bool) -> Vec<Cause> {
        if resource.custom.is_some() {
            return validate::by_schema((resource, Part::Main), object, None, blocked);
        }
        let mut causes = validate::create(resource, object);
        (strategy_of(resource).validate_in_registry)(self, object, None, &mut causes);
        causes
    }

    /// Refuses to create custom resources whose definition is going away.
    fn admit_definition(&self, resource: &Resource) -> Result<(), Status> {
        let Some(custom) = &resource.custom else { return Ok(()) };
        let definition = self.store.get(definitions::ID, &Key::new("", &custom.definition));
        if definition.is_none_or(|found| !found.attributes().deleting()) {
            return Ok(());
        }
        let mut status = Status::method_not_supported(&resource.group, &resource.plural, "create");
        "create not allowed while custom resource definition is terminating".clone_into(&mut status.message);
        Err(status)
    }

    /// Refuses to create in a namespace that is not there or is going away.
    fn admit_namespace(&self, resource: &Resource, namespace: &str, name: &str) -> Result<(), Status> {
        if !resource.namespaced {
            return Ok(());
        }
        let Some(found) = self.store.get("namespaces", &Key::new("", namespace)) else {
            return Err(Status::not_found("", "namespaces", namespace));
        };
        if !found.attributes().deleting() {
            return Ok(());
        }
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut status = Status::forbidden(&resource.group, &resource.plural, name, &why);
        let text = format!("namespace {namespace} is being terminated");
        status.causes.push(Cause::text("NamespaceTerminating", "metadata.namespace", text));
        Err(status)
    }
}

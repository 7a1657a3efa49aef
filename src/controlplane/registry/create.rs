//! Creating an object: admission of its namespace, names, uids, defaults that are allocated, validation.

use super::context::Context;
use super::strategy::Part;
use super::{Registry, Resource, allocate, convert, definitions, fields, metadata, strategy, validate};
use crate::error::{Cause, Status};
use crate::storage::{Expected, Key, Stored};
use serde_json::Value;
use std::sync::Arc;

/// How often a generated name is tried.
const ATTEMPTS: usize = 8;

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
    pub(crate) fn create_applied(
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
        if !metadata::text(&object, "resourceVersion").is_empty() {
            return Err(Status::new(500, "", "resourceVersion should not be set on objects to be created"));
        }
        if resource.custom.is_none() && resource.plural.ends_with("webhookconfigurations") {
            ctx.warn("admission webhooks are not called by the embedded control plane yet");
        }
        metadata::stamp(&mut object, self.now());
        let base = metadata::text(&object, "generateName").to_owned();
        let generated = asked.is_empty() && !base.is_empty();
        for attempt in 0..ATTEMPTS {
            let mut candidate = object.clone();
            if generated {
                metadata::of(&mut candidate)
                    .insert("name".to_owned(), Value::from(metadata::generate_name(&base)));
            }
            match self.create_named(ctx, resource, candidate, track) {
                Err(status) if status.is_already_exists() && generated => {
                    if attempt + 1 == ATTEMPTS {
                        let name = status.details.get("name").and_then(Value::as_str).unwrap_or_default();
                        return Err(Status::generated_name_conflict(&resource.group, &resource.plural, name));
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
        track: bool,
    ) -> Result<Arc<Stored>, Status> {
        strategy::prepare_create(resource, &mut object);
        let name = metadata::text(&object, "name").to_owned();
        let _services = self.lock_services(resource);
        let mut causes = metadata::validate(resource, &object);
        causes.extend(self.validate_create(ctx, resource, &mut object));
        if !causes.is_empty() {
            return Err(Status::invalid(&resource.group, &resource.kind, &name, causes));
        }
        let key = Key::new(metadata::text(&object, "namespace"), &name);
        if track {
            fields::updated(ctx, resource, None, &mut object, Part::Main, self.now());
        }
        let object = convert::stored(resource, object);
        if ctx.dry_run {
            if self.store.get(&resource.table, &key).is_some() {
                return Err(Status::already_exists(&resource.group, &resource.plural, &name));
            }
            return Ok(Stored::unsaved(object));
        }
        match self.store.put(&resource.table, &key, Expected::Absent, object) {
            Ok(stored) => {
                self.written(resource, &stored.value);
                Ok(stored)
            }
            Err(_) => Err(Status::already_exists(&resource.group, &resource.plural, &name)),
        }
    }

    fn validate_create(&self, ctx: &mut Context, resource: &Resource, object: &mut Value) -> Vec<Cause> {
        if resource.custom.is_some() {
            return validate::by_schema(resource, object, None);
        }
        let mut causes = validate::create(resource, object);
        match resource.id().as_str() {
            "services" => causes.extend(self.allocate_service(object)),
            definitions::ID => {
                causes.extend(definitions::validate(object));
                if causes.is_empty() {
                    definitions::warn(ctx, object);
                    self.accept_names(object, None);
                }
            }
            _ => {}
        }
        causes
    }

    /// Gives a service its addresses and ports. The caller holds the lock of services.
    pub(super) fn allocate_service(&self, object: &mut Value) -> Vec<Cause> {
        let services: Vec<Arc<Value>> =
            self.store.list("services", None).items.iter().map(|s| s.value.clone()).collect();
        let taken = allocate::Taken::of(&services, metadata::text(object, "uid"));
        allocate::service(object, taken)
    }

    /// Refuses to create custom resources whose definition is going away.
    fn admit_definition(&self, resource: &Resource) -> Result<(), Status> {
        let Some(custom) = &resource.custom else { return Ok(()) };
        let definition = self.store.get(definitions::ID, &Key::new("", &custom.definition));
        if definition.is_none_or(|found| found.value["metadata"].get("deletionTimestamp").is_none()) {
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
        if found.value["metadata"].get("deletionTimestamp").is_none() {
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

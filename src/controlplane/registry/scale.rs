//! The scale subresource: an `autoscaling/v1` Scale read off an object, and its replicas written back.

mod owners;
pub mod read;

use super::admit::AdmissionSubject;
use super::context::Context;
use super::update::{Change, UpdateMethod};
use super::{Registry, fields};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_storage::{Key, Stored};
use serde_json::Value;
use std::sync::Arc;

pub use read::read;

/// Names from the top of an object down to its replicas.
fn path(resource: &Resource) -> Vec<&str> {
    let path = resource.custom.as_ref().and_then(|c| c.scale.as_ref());
    let path = path.map_or(".spec.replicas", |paths| paths.spec_replicas.as_str());
    path.split('.').filter(|name| !name.is_empty()).collect()
}

fn write(resource: &Resource, object: &mut Value, replicas: i64) {
    let mut names = path(resource);
    let Some(last) = names.pop() else { return };
    let parent = names.into_iter().fold(object, |value, name| defaults::sub(value, name));
    if parent.is_object() {
        parent[last] = Value::from(replicas);
    }
}

/// Completes what a request may leave out of a Scale.
fn named(scale: &mut Value, key: &Key) {
    scale["kind"] = Value::from("Scale");
    scale["apiVersion"] = Value::from("autoscaling/v1");
    let meta = metadata::map_mut(scale);
    meta.insert("name".to_owned(), Value::from(&*key.name));
    if !key.namespace.is_empty() {
        meta.insert("namespace".to_owned(), Value::from(&*key.namespace));
    }
    defaults::put(defaults::sub(scale, "status"), "replicas", 0);
    defaults::sub(scale, "spec");
}

impl Registry {
    /// Writes the Scale that `make` makes of the current one; answers with the object.
    pub fn update_scale(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        make: &mut dyn FnMut(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Stored>, Status> {
        let change = Change { resource, key, part: Part::Scale, way: UpdateMethod::Replace };
        let subject = AdmissionSubject::update(resource, Part::Scale, key);
        self.update(ctx, change, &mut |ctx, current| {
            let before = read(resource, current)?;
            let mut scale = make(&before)?;
            if self.calls_admission(ctx, resource) {
                named(&mut scale, key);
                self.call_mutating(ctx, &subject, &mut scale, Some(&before))?;
            }
            let mut object = scaled(resource, key, current, &scale)?;
            let number = |scale: &Value| scale["spec"]["replicas"].as_i64().unwrap_or(0);
            let (numbers, path) = ((number(&before), number(&scale)), path(resource));
            let entries = owners::of_written(current, numbers, &ctx.manager, &path, resource.api_version());
            fields::set_entries(&mut object, entries);
            // An empty resourceVersion in a Scale means any, for every kind.
            let version = metadata::text(&scale, "resourceVersion").to_owned();
            if !version.is_empty() {
                metadata::map_mut(&mut object).insert("resourceVersion".to_owned(), Value::from(version));
            }
            for field in ["name", "uid"] {
                let value = metadata::text(&scale, field).to_owned();
                if !value.is_empty() {
                    metadata::map_mut(&mut object).insert(field.to_owned(), Value::from(value));
                }
            }
            Ok(object)
        })
    }

    /// Applies a Scale; answers with the object.
    pub fn apply_scale(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        applied: &Value,
        force: bool,
    ) -> Result<Arc<Stored>, Status> {
        let change = Change { resource, key, part: Part::Scale, way: UpdateMethod::Apply };
        let subject = AdmissionSubject::update(resource, Part::Scale, key);
        let now = self.now();
        self.update(ctx, change, &mut |ctx, current| {
            let mut live = read(resource, current)?;
            let path = path(resource);
            let owners = owners::of_scale(current, &path);
            if owners.is_empty() && resource.custom.is_some() {
                return Err(unconvertible("create manager for existing fields: failed to convert live", "/"));
            }
            live["metadata"]["managedFields"] = Value::from(owners);
            let mut merged = fields::apply_scale(ctx, &live, applied, force, now)?;
            self.call_mutating(ctx, &subject, &mut merged, Some(&live))?;
            if resource.custom.is_some() && merged["spec"] != live["spec"] {
                let meta = |field: &str| metadata::text(applied, field);
                let place = format!("{}/{}", meta("namespace"), meta("name"));
                return Err(unconvertible("convert new", &place));
            }
            let mut object = scaled(resource, key, current, &merged)?;
            let entries = owners::of_object(current, &merged, &path, resource.api_version());
            fields::set_entries(&mut object, entries);
            Ok(object)
        })
    }
}

/// The object with the replicas of a Scale. A custom resource's number is for its own schema to judge.
fn scaled(resource: &Resource, key: &Key, current: &Value, scale: &Value) -> Result<Value, Status> {
    let replicas = &scale["spec"]["replicas"];
    let number = replicas.as_i64().unwrap_or(0);
    let negative = number < 0 && resource.custom.is_none();
    if negative || !(replicas.is_null() || replicas.is_i64()) {
        let cause = Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", &key.name, vec![cause]));
    }
    let mut object = current.clone();
    write(resource, &mut object, number);
    Ok(object)
}

/// The 500 of the real server (1.36), which cannot apply a changed Scale to a custom resource: it takes the
/// Scale for one.
fn unconvertible(what: &str, place: &str) -> Status {
    let why = format!(
        "failed to {what} object ({place}; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an \
         invalid group/version: autoscaling/v1"
    );
    Status::new(500, "", why)
}

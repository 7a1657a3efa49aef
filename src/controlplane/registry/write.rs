//! Writes of controllers, carried out under the same rules as requests over HTTP.

use super::Registry;
use super::accept::accept;
use super::context::{Context, FieldValidation};
use super::update::{Change, UpdateMethod};
use crate::options::DeleteOptions;
use opdev_apimachinery::contract::Write;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::defaults;
use opdev_storage::{Key, Stored};
use serde_json::{Value, json};
use std::sync::Arc;

impl Registry {
    /// Carries out a controller's write. What is returned is the object afterwards; for a delete its last
    /// state.
    pub fn write(&self, user: &User, manager: &str, write: &Write) -> Result<Arc<Value>, Status> {
        let mut ctx = Context::new(user, manager);
        ctx.validation = FieldValidation::Ignore;
        let ctx = &mut ctx;
        let stored = match write {
            Write::Create { resource, object } => {
                let resource = self.resource(resource)?;
                let object = accept(ctx, &resource, object.clone()).map_err(|e| e.bad_request(&resource))?;
                let namespace = metadata::text(&object, "namespace").to_owned();
                self.create(ctx, &resource, &namespace, object)
            }
            Write::Update { resource, object } => self.replace(ctx, resource, Part::Main, object),
            Write::UpdateStatus { resource, object } => self.replace(ctx, resource, Part::Status, object),
            Write::Patch { resource, namespace, name, patch } => {
                let resource = self.resource(resource)?;
                let key = key(&resource, namespace.as_deref(), name);
                let change =
                    Change { resource: &resource, key: &key, part: Part::Main, way: UpdateMethod::Replace };
                self.update(ctx, change, &mut |ctx, current| {
                    let mut object = current.clone();
                    opdev_object::patch::merge_patch(&mut object, patch);
                    accept(ctx, &resource, object).map_err(|e| e.bad_request(&resource))
                })
            }
            Write::Delete { resource, namespace, name, uid, propagation, grace } => {
                let resource = self.preferred(&self.resource(resource)?);
                let key = key(&resource, namespace.as_deref(), name);
                let options = DeleteOptions {
                    uid: uid.clone(),
                    propagation: *propagation,
                    grace: *grace,
                    ..DeleteOptions::default()
                };
                self.delete(ctx, &resource, &key, &options).map(|deleted| deleted.object)
            }
            Write::Bind { namespace, name, uid, node } => {
                let resource = self.resource("pods")?;
                let binding = json!({"metadata": {"uid": uid}, "target": {"kind": "Node", "name": node}});
                self.bind(ctx, &resource, &Key::new(namespace, name), &binding)
            }
            Write::Scale { resource, namespace, name, replicas } => {
                let resource = self.resource(resource)?;
                let key = key(&resource, namespace.as_deref(), name);
                self.update_scale(ctx, &resource, &key, &mut |current| {
                    let mut scale = current.clone();
                    defaults::sub(&mut scale, "spec")["replicas"] = Value::from(*replicas);
                    Ok(scale)
                })
            }
            Write::Finalize { name } => {
                let resource = self.resource("namespaces")?;
                let key = Key::new("", name);
                let change = Change {
                    resource: &resource,
                    key: &key,
                    part: Part::Finalize,
                    way: UpdateMethod::Replace,
                };
                self.update(ctx, change, &mut |_, current| {
                    let mut object = current.clone();
                    if let Some(spec) = object["spec"].as_object_mut() {
                        spec.remove("finalizers");
                    }
                    Ok(object)
                })
            }
            Write::ClearDefinition { name } => {
                self.clear_definition(name)?;
                return Ok(Arc::default());
            }
            Write::Record(note) => {
                return Err(Status::internal(&format!(
                    "{}: a note is for the runner to record",
                    note.reason
                )));
            }
        }?;
        Ok(stored.value())
    }

    /// A resource at its storage version by its name: `apps/deployments`.
    pub fn resource(&self, id: &str) -> Result<Arc<Resource>, Status> {
        let served = self.catalog.served();
        served
            .by_id(id)
            .cloned()
            .ok_or_else(|| Status::new(404, "NotFound", "the server could not find the requested resource"))
    }

    fn replace(
        &self,
        ctx: &mut Context,
        resource: &str,
        part: Part,
        object: &Value,
    ) -> Result<Arc<Stored>, Status> {
        let resource = self.resource(resource)?;
        let key = key(&resource, object["metadata"]["namespace"].as_str(), metadata::text(object, "name"));
        let change = Change { resource: &resource, key: &key, part, way: UpdateMethod::Replace };
        self.update(ctx, change, &mut |ctx, _| {
            accept(ctx, &resource, object.clone()).map_err(|e| e.bad_request(&resource))
        })
    }
}

fn key(resource: &Resource, namespace: Option<&str>, name: &str) -> Key {
    Key::new(if resource.namespaced { namespace.unwrap_or_default() } else { "" }, name)
}

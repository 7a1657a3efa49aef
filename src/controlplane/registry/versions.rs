//! Custom resources at the versions of their definition: what was stored at one is read and written at
//! another, by its name alone or by a webhook. Built-in kinds are the business of `convert`.

use super::{Registry, convert, definitions};
use opdev_admission::renamed;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::{Custom, Resource, compare_versions};
use opdev_object::apply::{VersionError, Versions, compact};
use opdev_object::schema::{self, SchemaRef};
use opdev_storage::{Key, Stored};
use serde_json::Value;
use std::sync::Arc;

/// The failure of a conversion. The real server gives it no reason.
fn failed(why: String) -> Status {
    Status::new(500, "", why)
}

/// Returns true if a stored object says that it is at the resource's version; the object is not read.
pub fn is_version_of(resource: &Resource, stored: &Stored) -> bool {
    resource.is_named(stored.attributes().api_version())
}

/// Returns true if a stored object is as the resource serves it: at its version, and written since the
/// definition was last changed, so that it has all defaults of the schema and nothing else than the schema
/// knows. Asked for every object of every list: allocates nothing.
pub fn shows(resource: &Resource, stored: &Stored) -> bool {
    resource.custom.as_ref().is_none_or(|custom| custom.since < stored.revision)
        && is_version_of(resource, stored)
}

impl Registry {
    /// Stored objects as the resource serves them. May wait for a webhook: then only on a thread that may
    /// block.
    ///
    /// # Errors
    /// What a conversion webhook could not do.
    pub fn at(&self, resource: &Resource, mut items: Vec<Arc<Stored>>) -> Result<Vec<Arc<Stored>>, Status> {
        let Some(custom) = &resource.custom else { return Ok(items) };
        if items.iter().all(|item| shows(resource, item)) {
            return Ok(items);
        }
        let wanted = resource.api_version();
        let mark = format!("{}/{wanted}", custom.mark);
        let mut missing: Vec<usize> = Vec::new();
        for (index, item) in items.iter_mut().enumerate() {
            if shows(resource, item) {
                continue;
            }
            match item.form(&mark) {
                Some(known) if known.is_null() => {}
                Some(known) => *item = known,
                None => missing.push(index),
            }
        }
        // Objects at another version are converted, all of them at once.
        let (same, other): (Vec<usize>, Vec<usize>) =
            missing.into_iter().partition(|index| is_version_of(resource, &items[*index]));
        let old: Vec<Arc<Value>> = other.iter().map(|index| items[*index].glance()).collect();
        let old: Vec<&Value> = old.iter().map(AsRef::as_ref).collect();
        let mut new = if old.is_empty() { Vec::new() } else { self.fitting(resource, &old, wanted)? };
        new.extend(same.iter().map(|index| {
            let mut value = Value::clone(&items[*index].glance());
            fit(&mut value, resource.schema());
            value
        }));
        for (index, value) in other.into_iter().chain(same).zip(new) {
            let item = &mut items[index];
            if value == *item.glance() {
                item.keep_form(&mark, Stored::unsaved(Value::Null));
                continue;
            }
            let form = item.with_value(value);
            item.keep_form(&mark, form.clone());
            *item = form;
        }
        Ok(items)
    }

    /// One stored object as the resource serves it.
    pub fn one_at(&self, resource: &Resource, stored: &Arc<Stored>) -> Result<Arc<Stored>, Status> {
        if resource.custom.is_none() || shows(resource, stored) {
            return Ok(stored.clone());
        }
        let mut found = self.at(resource, vec![stored.clone()])?;
        Ok(found.pop().unwrap_or_else(|| stored.clone()))
    }

    /// Refuses objects that cannot be converted to the resource's version. The webhook is asked each time:
    /// a form that was kept does not say that it still answers.
    ///
    /// # Errors
    /// The failure of a conversion webhook.
    pub(super) fn convertible(&self, resource: &Resource, items: &[Arc<Stored>]) -> Result<(), Status> {
        if !resource.converts() {
            return Ok(());
        }
        let other = items.iter().filter(|item| !is_version_of(resource, item));
        let other: Vec<Arc<Value>> = other.map(|item| item.glance()).collect();
        let other: Vec<&Value> = other.iter().map(AsRef::as_ref).collect();
        if other.is_empty() {
            return Ok(());
        }
        self.turned(resource, &other, resource.api_version()).map(|_| ())
    }

    /// The version of a custom resource that clients prefer: the real controllers delete at it.
    pub(super) fn preferred(&self, resource: &Arc<Resource>) -> Arc<Resource> {
        let Some(custom) = resource.custom.as_ref().filter(|_| resource.converts()) else {
            return resource.clone();
        };
        let served = self.catalog.served();
        let own = served
            .resources()
            .iter()
            .filter(|other| other.custom.as_ref().is_some_and(|other| other.definition == custom.definition));
        let first = own.max_by(|a, b| compare_versions(&a.version, &b.version));
        first.cloned().unwrap_or_else(|| resource.clone())
    }

    /// An object as it is kept.
    pub(super) fn stored_form(&self, resource: &Resource, mut object: Value) -> Result<Value, Status> {
        if resource.custom.is_some() {
            opdev_apis::decode::whole_numbers(&mut object);
        }
        if resource.custom.is_none() || resource.is_stored_version() {
            return Ok(convert::stored(resource, object));
        }
        let mut fitting = self.fitting(resource, &[&object], &resource.storage_api_version)?;
        fitting.pop().ok_or_else(|| failed("the conversion gave no object".to_owned()))
    }

    /// An object of one version of a resource at another.
    pub fn between(&self, from: &Resource, to: &Resource, object: Value) -> Result<Value, Status> {
        if from.custom.is_some() {
            let mut fitting = self.fitting(to, &[&object], to.api_version())?;
            return fitting.pop().ok_or_else(|| failed("the conversion gave no object".to_owned()));
        }
        let kept = Arc::new(convert::stored(from, object));
        Ok(Value::clone(&convert::served(to, &kept)))
    }

    /// Custom resources at another version of their definition, as the converter makes them: nothing is
    /// stored or checked against a schema. Waits for a webhook: only on a thread that may block.
    ///
    /// # Errors
    /// What the converter could not do, or that there is no such resource.
    pub fn converted(&self, id: &str, objects: &[Value], wanted: &str) -> Result<Vec<Value>, Status> {
        let resource = self.resource(id)?;
        let objects: Vec<&Value> = objects.iter().collect();
        self.turned(&resource, &objects, wanted)
    }

    /// The versions of a custom resource, for what its managers own at them.
    pub(super) fn siblings<'a>(&'a self, resource: &'a Resource) -> Option<Siblings<'a>> {
        let custom = resource.custom.as_ref()?;
        Some(Siblings { registry: self, resource, custom })
    }

    /// Custom resources at another version, fitted to the schema there as objects from clients are.
    fn fitting(&self, resource: &Resource, objects: &[&Value], wanted: &str) -> Result<Vec<Value>, Status> {
        let mut turned = self.turned(resource, objects, wanted)?;
        let target = self.siblings(resource).and_then(|siblings| siblings.find(wanted));
        if let Some(target) = target {
            for object in &mut turned {
                fit(object, target.schema());
            }
        }
        Ok(turned)
    }

    /// Custom resources at another version, as the conversion makes them.
    fn turned(&self, resource: &Resource, objects: &[&Value], wanted: &str) -> Result<Vec<Value>, Status> {
        match resource.conversion() {
            Some(conversion) => {
                let objects: Vec<_> = objects.iter().map(|object| compact::expanded(object)).collect();
                let objects: Vec<&Value> = objects.iter().map(AsRef::as_ref).collect();
                let converted = self.asking().convert(conversion, &objects, wanted);
                converted.map_err(|error| failed(error.to_string()))
            }
            None => Ok(objects.iter().map(|object| renamed(object, wanted)).collect()),
        }
    }
}

/// Fits a custom resource to a schema, as an object from a client is: unknown fields are removed, defaults
/// are set.
fn fit(object: &mut Value, schema: &SchemaRef) {
    schema::prune(object, schema);
    schema::default(object, schema);
}

/// All versions of a custom resource's definition, whether they are served or not.
#[derive(Debug)]
pub(super) struct Siblings<'a> {
    registry: &'a Registry,
    resource: &'a Resource,
    custom: &'a Custom,
}

impl Siblings<'_> {
    fn find(&self, api_version: &str) -> Option<Arc<Resource>> {
        let (group, version) = api_version.split_once('/')?;
        let served = self.registry.catalog.served();
        if let Some(found) = served.find(group, version, &self.resource.plural) {
            return Some(found.clone());
        }
        let key = Key::new("", &self.custom.definition);
        let definition = self.registry.store.get(definitions::ID, &key)?;
        definitions::unserved(&definition.value(), group, version).map(Arc::new)
    }
}

impl Versions for Siblings<'_> {
    fn schema(&self, api_version: &str) -> Option<SchemaRef> {
        self.find(api_version).map(|found| found.schema().clone())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, VersionError> {
        let turned = self.registry.turned(self.resource, &[object], api_version);
        let mut turned = turned.map_err(|status| VersionError::Conversion { message: status.message })?;
        let none = || VersionError::Conversion { message: "the conversion gave no object".to_owned() };
        turned.pop().ok_or_else(none)
    }
}

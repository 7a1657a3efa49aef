//! Custom resources at the versions of their definition: what was stored at one is read and written at another, by
//! its name alone or by a webhook. Built-in kinds are the business of `convert`.

use super::{Registry, Resource, convert};
use crate::admission::{Conversion, renamed};
use crate::error::Status;
use crate::storage::Stored;
use opdev_object::schema;
use serde_json::Value;
use std::sync::Arc;

/// The failure of a conversion. The real server gives it no reason.
fn failed(why: String) -> Status {
    Status::new(500, "", why)
}

impl Resource {
    /// Whether an object says that it is at the resource's version. Asked for every object of every list: allocates
    /// nothing.
    pub(crate) fn is_at(&self, object: &Value) -> bool {
        let said = object["apiVersion"].as_str().unwrap_or_default();
        said.split_once('/').unwrap_or(("", said)) == (self.group.as_str(), self.version.as_str())
    }

    /// Whether a webhook converts between its versions, so that even reading may have to wait.
    pub(crate) fn converts(&self) -> bool {
        self.conversion().is_some()
    }

    fn conversion(&self) -> Option<&Conversion> {
        self.custom.as_ref()?.conversion.as_deref()
    }
}

impl Registry {
    /// Stored objects as the resource serves them. May wait for a webhook: then only on a thread that may block.
    ///
    /// # Errors
    /// What a conversion webhook could not do.
    pub(crate) fn at(
        &self,
        resource: &Resource,
        mut items: Vec<Arc<Stored>>,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        if resource.custom.is_none() || items.iter().all(|item| resource.is_at(&item.value)) {
            return Ok(items);
        }
        let wanted = resource.api_version();
        let mark = match resource.conversion() {
            Some(conversion) => format!("{}/{wanted}", conversion.mark),
            None => wanted.to_owned(),
        };
        let mut missing: Vec<usize> = Vec::new();
        for (index, item) in items.iter_mut().enumerate() {
            if resource.is_at(&item.value) {
                continue;
            }
            match item.form(&mark) {
                Some(known) => *item = known,
                None => missing.push(index),
            }
        }
        if missing.is_empty() {
            return Ok(items);
        }
        let old: Vec<&Value> = missing.iter().map(|index| &*items[*index].value).collect();
        let new = self.turned(resource, &old, wanted)?;
        for (index, value) in missing.into_iter().zip(new) {
            let form = items[index].with_value(value);
            items[index].keep_form(&mark, form.clone());
            items[index] = form;
        }
        Ok(items)
    }

    /// One stored object as the resource serves it.
    pub(crate) fn one_at(&self, resource: &Resource, stored: &Arc<Stored>) -> Result<Arc<Stored>, Status> {
        if resource.custom.is_none() || resource.is_at(&stored.value) {
            return Ok(stored.clone());
        }
        let mut found = self.at(resource, vec![stored.clone()])?;
        Ok(found.pop().unwrap_or_else(|| stored.clone()))
    }

    /// An object as it is kept.
    pub(super) fn stored_form(&self, resource: &Resource, object: Value) -> Result<Value, Status> {
        if resource.conversion().is_none() || resource.is_stored_version() {
            return Ok(convert::stored(resource, object));
        }
        let mut turned = self.turned(resource, &[&object], &resource.storage_api_version)?;
        turned.pop().ok_or_else(|| failed("the conversion gave no object".to_owned()))
    }

    /// An object of one version of a resource at another.
    pub(super) fn between(&self, from: &Resource, to: &Resource, object: Value) -> Result<Value, Status> {
        if from.custom.is_some() {
            let mut turned = self.turned(to, &[&object], to.api_version())?;
            return turned.pop().ok_or_else(|| failed("the conversion gave no object".to_owned()));
        }
        let kept = Arc::new(convert::stored(from, object));
        Ok(Value::clone(&convert::served(to, &kept)))
    }

    /// Custom resources at another version.
    fn turned(&self, resource: &Resource, objects: &[&Value], wanted: &str) -> Result<Vec<Value>, Status> {
        let Some(conversion) = resource.conversion() else {
            return Ok(objects.iter().map(|object| renamed(object, wanted)).collect());
        };
        let mut turned = self.asking().convert(conversion, objects, wanted).map_err(failed)?;
        let served = self.catalog.served();
        let (group, version) = wanted.split_once('/').unwrap_or(("", wanted));
        // What a webhook makes is held to the schema of the version, as what clients send is.
        if let Some(target) = served.find(group, version, &resource.plural) {
            for object in &mut turned {
                schema::prune(object, target.schema());
                schema::default(object, target.schema());
            }
        }
        Ok(turned)
    }
}

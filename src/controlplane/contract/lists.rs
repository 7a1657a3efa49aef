//! A view of plain lists, for tests.

use super::{ResourceInfo, View};
use crate::attributes::{Attributes, Lookup};
use serde_json::{Value, json};
use std::sync::Arc;

/// Reads of objects that no index is kept of: every object is looked at each time.
pub(crate) trait Lists {
    /// As [`View::list`].
    fn objects(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// As [`View::resources`].
    fn served(&self) -> Vec<ResourceInfo> {
        Vec::new()
    }
}

impl<T: Lists> View for T {
    fn get(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Arc<Value>> {
        self.objects(resource, namespace).into_iter().find(|object| object["metadata"]["name"] == name)
    }

    fn list(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.objects(resource, namespace)
    }

    fn select(
        &self,
        resource: &str,
        namespace: Option<&str>,
        _: &Lookup<'_>,
        wanted: &dyn Fn(&Attributes) -> bool,
    ) -> Vec<Arc<Value>> {
        let wanted = |object: &Arc<Value>| wanted(&Attributes::of(resource, object));
        self.list(resource, namespace).into_iter().filter(wanted).collect()
    }

    fn each(
        &self,
        resource: &str,
        namespace: Option<&str>,
        _: &Lookup<'_>,
        look: &mut dyn FnMut(&Attributes),
    ) {
        self.list(resource, namespace).iter().for_each(|object| look(&Attributes::of(resource, object)));
    }

    fn attributes(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Attributes> {
        self.get(resource, namespace, name).map(|object| Attributes::of(resource, &object))
    }

    fn resources(&self) -> Vec<ResourceInfo> {
        self.served()
    }

    fn scale(&self, _: &str, object: &Value) -> Option<Value> {
        let replicas = object.pointer("/spec/replicas")?;
        let is = object.pointer("/status/replicas").cloned().unwrap_or_default();
        Some(json!({"spec": {"replicas": replicas}, "status": {"replicas": is, "selector": "app=any"}}))
    }
}

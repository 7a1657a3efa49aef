//! A view of plain lists, for tests.

use opdev_apimachinery::attributes::Indexing;
use opdev_apimachinery::contract::ResourceInfo;
use serde_json::Value;
use std::sync::Arc;

/// Reads of objects that no index is kept of: every object is looked at each time.
pub(crate) trait Lists {
    /// As `View::list`.
    fn objects(&self, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>>;

    /// The facts about the objects of a resource that are known without reading them.
    fn indexing(&self, _resource: &str) -> &'static Indexing {
        &Indexing::COMMON
    }

    /// As `View::resources`.
    fn served(&self) -> Vec<ResourceInfo> {
        Vec::new()
    }
}

/// Makes a view of what lists its objects.
macro_rules! view_of_lists {
    ($lists:ty) => {
        const _: () = {
            use opdev_apimachinery::attributes::{Attributes, Lookup};
            use opdev_apimachinery::contract::{ResourceInfo, View};
            use serde_json::{Value, json};
            use std::sync::Arc;

            impl View for $lists {
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
                    let wanted = |object: &Arc<Value>| wanted(&Attributes::alone(self.indexing(resource), object));
                    self.list(resource, namespace).into_iter().filter(wanted).collect()
                }

                fn each(
                    &self,
                    resource: &str,
                    namespace: Option<&str>,
                    _: &Lookup<'_>,
                    look: &mut dyn FnMut(&Attributes),
                ) {
                    self.list(resource, namespace)
                        .iter()
                        .for_each(|object| look(&Attributes::alone(self.indexing(resource), object)));
                }

                fn attributes(&self, resource: &str, namespace: Option<&str>, name: &str) -> Option<Attributes> {
                    self.get(resource, namespace, name).map(|object| Attributes::alone(self.indexing(resource), &object))
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
        };
    };
}
pub(crate) use view_of_lists;

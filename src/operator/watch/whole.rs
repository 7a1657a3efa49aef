//! An object of a list or a watch as it was sent: one tree. kube's own `DynamicObject` reads the metadata into a type of
//! theirs, from which the tree would have to be made again; that is half of what a change of a large object costs.

use kube::api::{ApiResource, ObjectMeta};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Whole {
    /// The object.
    pub(super) value: Value,
    /// What a watcher wants to know: the resource version, and nothing else.
    metadata: ObjectMeta,
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let version = opdev_object::meta::resource_version(&value).map(str::to_owned);
        let metadata = ObjectMeta { resource_version: version, ..ObjectMeta::default() };
        Ok(Whole { value, metadata })
    }
}

impl kube::Resource for Whole {
    type DynamicType = ApiResource;
    type Scope = kube::core::DynamicResourceScope;

    fn kind(described: &ApiResource) -> Cow<'_, str> {
        described.kind.as_str().into()
    }

    fn group(described: &ApiResource) -> Cow<'_, str> {
        described.group.as_str().into()
    }

    fn version(described: &ApiResource) -> Cow<'_, str> {
        described.version.as_str().into()
    }

    fn api_version(described: &ApiResource) -> Cow<'_, str> {
        described.api_version.as_str().into()
    }

    fn plural(described: &ApiResource) -> Cow<'_, str> {
        described.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

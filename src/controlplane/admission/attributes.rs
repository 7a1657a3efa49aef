//! Facts that admission knows of a request, and questions that it can ask about the cluster around it.

use crate::authorization;
use crate::contract::View;
use crate::error::Status;
use crate::identity::User;
use crate::resource::Resource;
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::sync::Arc;

/// The kind of a write request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub(super) fn name(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// The attributes of a request, as an AdmissionReview has them, without the objects.
#[derive(Debug)]
pub(crate) struct Attributes<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
    /// The kind of the object that is asked about: that of the resource, or of the subresource.
    pub(crate) kind: Gvk,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) options: Value,
    pub(crate) dry_run: bool,
    pub(crate) user: &'a User,
}

/// The view of the cluster that a call of a webhook needs.
pub(crate) trait Cluster: View {
    /// The other versions that the resource's objects are served at.
    fn equivalents(&self, resource: &Resource) -> Vec<Arc<Resource>>;
    /// An object of one version at another.
    fn converted(&self, from: &Resource, to: &Resource, object: Value) -> Result<Value, Status>;
    /// A changed object with defaults, without what its kind does not have; `strict` is whether that is
    /// refused.
    fn completed(&self, resource: &Resource, object: Value, strict: bool) -> Result<Value, Status>;
    /// The resource that serves a kind.
    fn of_kind(&self, kind: &Gvk) -> Option<Arc<Resource>>;
    /// The objects of a resource at its version: in a namespace, or all; of a name, or all.
    fn objects(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
    ) -> Result<Vec<Value>, Status>;
    /// The decision whether somebody may do something.
    fn may(&self, user: &User, wanted: &authorization::Attributes) -> authorization::Decision;
}

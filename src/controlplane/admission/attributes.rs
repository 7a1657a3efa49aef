//! Facts that admission knows of a request, and questions that it can ask about the cluster around it.

use crate::authorization;
use opdev_apimachinery::contract::View;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::resource::Resource;
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::sync::Arc;

/// The kind of a write request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

impl Operation {
    pub fn name(self) -> &'static str {
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
pub struct Attributes<'a> {
    pub operation: Operation,
    pub resource: &'a Resource,
    pub subresource: &'a str,
    /// The kind of the object that is asked about: that of the resource, or of the subresource.
    pub kind: Gvk,
    pub namespace: &'a str,
    pub name: &'a str,
    pub options: Value,
    pub dry_run: bool,
    pub user: &'a User,
}

/// The view of the cluster that a call of a webhook needs.
pub trait Cluster: View {
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

//! The input of one reconcile.

use crate::client::{Api, Resource};
use crate::operator::cache::caches::Hub;
use crate::operator::release::memory::Memory;
use crate::operator::release::render::cache::Renders;
use crate::operator::release::settings::Settings;
use crate::sources::Watch;
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A custom resource as it was read.
pub(crate) struct ReadObject {
    pub(crate) resource: Arc<Resource>,
    pub(crate) object: Value,
}

/// What a worker needs for one pass.
pub(crate) struct Job {
    pub(crate) object: ObjectRef,
    pub(crate) watch: Arc<Watch>,
    pub(crate) api: Api,
    pub(crate) settings: Arc<Settings>,
    pub(crate) cancel: CancellationToken,
    pub(crate) renders: Arc<Renders>,
    pub(crate) memory: Memory,
    /// The caches, of which programs read.
    pub(crate) hub: Arc<Hub>,
    /// The kinds of a program's children that are watched.
    pub(crate) kinds: Vec<Gvk>,
    /// All that asked for the pass were own writes.
    pub(crate) own_only: bool,
}

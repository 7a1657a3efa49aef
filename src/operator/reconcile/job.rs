//! The input of one reconcile.

use opdev_cache::caches::Hub;
use opdev_client::{Api, Resource};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_release::memory::Memory;
use opdev_release::render::cache::Renders;
use opdev_release::settings::Settings;
use opdev_sources::Watch;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A custom resource as it was read.
pub(crate) struct ReadObject {
    pub(crate) resource: Arc<Resource>,
    pub(crate) object: Value,
}

/// Everything that a worker needs for one reconcile.
pub struct Job {
    pub object: ObjectRef,
    pub watch: Arc<Watch>,
    pub api: Api,
    pub settings: Arc<Settings>,
    pub cancel: CancellationToken,
    pub renders: Arc<Renders>,
    pub memory: Memory,
    /// The caches, of which programs read.
    pub hub: Arc<Hub>,
    /// The kinds of a program's children that are watched.
    pub kinds: Vec<Gvk>,
    /// All that asked for the reconcile were own writes.
    pub own_only: bool,
}

//! One reconcile of a program: what it works with, what it has seen and done, and what is kept until the next
//! one.

use super::memory::Memory;
use crate::custom_resource::Parent;
use opdev_cache::caches::Hub;
use opdev_client::Api;
use opdev_event::{Level, ReleaseChange};
use opdev_object::meta::Gvk;
use opdev_release::engine::Clock;
use opdev_release::memory::Memory as ReleaseMemory;
use opdev_release::objects::apply::Effects;
use opdev_release::objects::inject::Owner;
use opdev_release::render::cache::Renders;
use opdev_release::settings::Settings;
use opdev_script::contract::Read;
use opdev_sources::{TypeReconciler, Watch};
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Says that a program, or what it has made, needs a last reconcile before its custom resource may go.
pub(crate) const FINALIZER: &str = "opdev.dev/finalize";

/// A reconcile under way.
pub(super) struct ScriptReconcile {
    pub(crate) parent: Parent,
    pub(crate) watch: Arc<Watch>,
    pub(super) typed: Arc<TypeReconciler>,
    pub(super) api: Api,
    pub(super) hub: Arc<Hub>,
    pub(super) settings: Arc<Settings>,
    pub(super) cancel: CancellationToken,
    pub(super) renders: Arc<Renders>,
    /// Kinds of children, the program's own words and what it was seen to write.
    pub(super) kinds: Vec<Gvk>,
    pub(super) owner: Owner,
    /// The field manager of children and status.
    pub(super) manager: String,
    pub(super) memory: ReleaseMemory,
    pub(super) own: Memory,
    /// All that asked for this reconcile were own writes.
    pub(super) own_only: bool,
    pub(super) status_before: Value,
    pub(super) clock: Clock,
    pub(super) done: Done,
}

/// The reads and writes of a reconcile so far.
#[derive(Default)]
pub(super) struct Done {
    pub(super) effects: Effects,
    pub(super) buried: Vec<Arc<Value>>,
    pub(super) reads: Vec<Read>,
    pub(super) dependents: Vec<Gvk>,
    pub(super) notices: Vec<(String, Option<String>)>,
    pub(super) changes: Vec<ReleaseChange>,
    pub(super) logs: Vec<(Level, String)>,
    pub(super) secrets: Vec<String>,
    pub(super) manifests: Vec<String>,
    /// Releases that the status is to tell of: a condition, and `deployedRelease`.
    pub(super) told_releases: Vec<(Value, Value)>,
    /// The chart engine repaired, installed or upgraded something.
    pub(super) releases: bool,
    /// The status was written.
    pub(super) status: bool,
}

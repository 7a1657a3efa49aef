//! What a worker needs for one pass, and what is kept of an object until the next one.

use super::history::records::Kept;
use super::recorder::Emitted;
use super::render::cache::Renders;
use crate::client::{Api, Resource};
use crate::operator::cache::caches::Hub;
use crate::operator::reconcile::program::memory as of_program;
use crate::operator::release::settings::Settings;
use crate::sources::Watch;
use opdev_object::meta::{Gvk, ObjectRef};
use serde_json::Value;
use std::collections::HashSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A custom resource as it was read.
pub(crate) struct ReadObject {
    pub(crate) resource: Arc<Resource>,
    pub(crate) object: Value,
}

/// What a worker needs for one pass.
pub(in crate::operator) struct Job {
    pub(in crate::operator) object: ObjectRef,
    pub(in crate::operator) watch: Arc<Watch>,
    pub(in crate::operator) api: Api,
    pub(in crate::operator) settings: Arc<Settings>,
    pub(in crate::operator) cancel: CancellationToken,
    pub(in crate::operator) renders: Arc<Renders>,
    pub(in crate::operator) memory: Memory,
    /// The caches, of which programs read.
    pub(in crate::operator) hub: Arc<Hub>,
    /// The kinds of a program's children that are watched.
    pub(in crate::operator) kinds: Vec<Gvk>,
    /// All that asked for the pass were own writes.
    pub(in crate::operator) own_only: bool,
}

/// What is kept of an object from pass to pass. Everything in it can be lost without harm.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The spec that the deployed release was made of.
    pub(crate) spec: Option<Value>,
    /// The set of sources that last changed the watch, when the deployed release was made.
    pub(crate) sources: u64,
    /// What random template functions start from.
    pub(crate) seed: Option<[u8; 32]>,
    /// The revision that was deployed at the end of the pass before.
    pub(crate) revision: Option<i64>,
    /// How many passes in a row rendered something new from the same input.
    pub(crate) surplus: u32,
    /// The set of sources whose chart was last looked at for what differs from render to render.
    pub(crate) compared: Option<u64>,
    /// Records that no object of the cluster holds.
    pub(crate) records: Kept,
    pub(crate) emitted: Emitted,
    pub(crate) said: HashSet<String>,
    /// What the pass before knew to be secret.
    pub(crate) secrets: Vec<String>,
    /// What a program's passes keep.
    pub(crate) program: Option<Box<of_program::Memory>>,
}

impl Memory {
    /// What the pass before knew to be secret.
    pub(in crate::operator) fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// What a trial run starts from: what a real pass would, without what was said and recorded.
    pub(in crate::operator) fn for_trial(&self) -> Memory {
        Memory {
            spec: self.spec.clone(),
            sources: self.sources,
            seed: self.seed,
            revision: self.revision,
            surplus: self.surplus,
            secrets: self.secrets.clone(),
            records: Kept::clone(&self.records),
            ..Memory::default()
        }
    }

    /// Whether own writes lead to no pass for now.
    pub(in crate::operator) fn is_paused(&self) -> bool {
        self.program.as_ref().is_some_and(|program| program.is_paused())
    }
}

//! State that a worker needs for one reconcile, and state of an object until the next one.

use super::history::records::Kept;
use super::recorder::Emitted;
use serde_json::Value;
use std::collections::HashSet;

/// Memory of an object from reconcile to reconcile. Everything in it can be lost without harm.
#[derive(Debug, Default)]
pub struct Memory {
    /// The spec that the deployed release was made of.
    pub(crate) spec: Option<Value>,
    /// The set of sources that last changed the watch, when the deployed release was made.
    pub(crate) sources: u64,
    /// The seed of random template functions.
    pub(crate) seed: Option<[u8; 32]>,
    /// The revision that was deployed at the end of the reconcile before.
    pub(crate) revision: Option<i64>,
    /// How many reconciles in a row rendered something new from the same input.
    pub(crate) surplus: u32,
    /// The set of sources whose chart was last looked at for what differs from render to render.
    pub(crate) compared: Option<u64>,
    /// Records that no object of the cluster holds.
    pub records: Kept,
    pub emitted: Emitted,
    pub said: HashSet<String>,
    /// Secret texts that the reconcile before knew.
    pub secrets: Vec<String>,
    /// The memory of a script's reconciler beside its releases.
    pub program: Option<Box<dyn ProgramMemory>>,
}

/// The script reconciler's memory of an object. The release engine carries it and does not look into it.
pub trait ProgramMemory: std::fmt::Debug + Send + Sync {
    /// Returns true if own writes lead to no reconcile for now.
    fn is_paused(&self) -> bool;

    /// Gives it back to the reconciler that made it.
    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

impl Memory {
    /// Secret texts that the reconcile before knew.
    pub fn secrets(&self) -> &[String] {
        &self.secrets
    }

    /// The memory that a trial run starts with: that of a real reconcile, without messages and records.
    pub fn for_trial(&self) -> Memory {
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

    /// Returns true if own writes lead to no reconcile for now.
    pub fn is_paused(&self) -> bool {
        self.program.as_ref().is_some_and(|program| program.is_paused())
    }
}

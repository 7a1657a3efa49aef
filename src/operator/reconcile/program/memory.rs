//! The memory of an object from reconcile to reconcile of its program.

use super::guard::Guard;
use opdev_object::meta::{Gvk, ObjectKey};
use opdev_release::memory::{Memory as ReleaseMemory, ProgramMemory};
use opdev_script::contract::Read;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Memory of an object from reconcile to reconcile. Everything in it can be lost without harm.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// A hash of the children that were wanted last.
    pub(super) answer: Option<u64>,
    /// Writes that changed nothing: what was wanted, as a hash, and the version that was there.
    pub(super) settled: HashMap<ObjectKey, (u64, String)>,
    /// A status that was written and what became of it.
    pub(super) status: Option<(Value, Value)>,
    /// Objects that were patched, with their kinds.
    pub(super) patched: BTreeMap<ObjectKey, Gvk>,
    /// The chart engine's memory of each release, by namespace and name.
    pub(super) releases: BTreeMap<(String, String), ReleaseMemory>,
    /// True if it has releases; `None` where nobody has looked.
    pub(super) has_releases: Option<bool>,
    /// True if some of them have their records in ConfigMaps; `None` where nobody has looked.
    pub(super) config_maps: Option<bool>,
    /// The content that was read by reconciles that failed, and by the last one that did not.
    pub(super) reads: Vec<Read>,
    pub(super) guard: Guard,
}

impl Memory {
    /// Takes what an earlier reconcile of the script has left; the default where there is none.
    pub(super) fn take(memory: &mut ReleaseMemory) -> Memory {
        let carried = memory.program.take().and_then(|carried| carried.into_any().downcast::<Memory>().ok());
        carried.map(|own| *own).unwrap_or_default()
    }
}

impl ProgramMemory for Memory {
    fn is_paused(&self) -> bool {
        self.guard.is_paused()
    }

    fn into_any(self: Box<Self>) -> Box<dyn std::any::Any> {
        self
    }
}

//! The impact of saved types and reconcilers on the objects in the cluster: the newest of each kind, and
//! changes that need the user's answer.

use opdev_event::{
    Held, HeldChange, Released, ShadowDecision, ShadowRun, SourcesChanged, TypeChanged, Verdict,
};
use opdev_object::meta::Gvk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The newest changes of types and reconcilers.
#[derive(Clone, Debug, Default)]
pub struct Impact {
    /// Changes that wait for the user's word, oldest first.
    pub held: Arc<Vec<Arc<Held>>>,
    /// Changes that the user has discarded while the files still ask for them: files and cluster differ.
    pub discarded: Arc<Vec<Arc<Held>>>,
    /// CRDs that changed with the newest sources.
    pub fresh: Arc<Vec<Arc<TypeChanged>>>,
    types: Arc<BTreeMap<(String, String), Arc<TypeChanged>>>,
    shadows: Arc<BTreeMap<(String, String), Arc<ShadowRun>>>,
}

fn key(kind: &Gvk) -> (String, String) {
    (kind.group.clone(), kind.kind.clone())
}

impl Impact {
    /// The newest change of a kind's type.
    pub fn type_of(&self, kind: &Gvk) -> Option<&Arc<TypeChanged>> {
        self.types.get(&key(kind))
    }

    /// The newest shadow run of a kind's reconciler.
    pub fn shadow_of(&self, kind: &Gvk) -> Option<&Arc<ShadowRun>> {
        self.shadows.get(&key(kind))
    }

    /// The held changes of a kind.
    pub fn held_of<'a>(&'a self, kind: &'a Gvk) -> impl Iterator<Item = &'a Arc<Held>> {
        self.held.iter().filter(|held| key(&held.kind) == key(kind))
    }

    /// The newest shadow run, where its reconciler was refused.
    pub fn refused(&self) -> Option<&Arc<ShadowRun>> {
        self.shadows.values().max_by_key(|run| run.at).filter(|run| run.decision == ShadowDecision::Refused)
    }

    /// Forgets a discarded change of this kind, which something newer settles.
    fn settle(&mut self, change: HeldChange, kind: &Gvk) {
        if !self.discarded.is_empty() {
            Arc::make_mut(&mut self.discarded)
                .retain(|old| old.change != change || key(&old.kind) != key(kind));
        }
    }

    pub(super) fn type_changed(&mut self, changed: Arc<TypeChanged>) {
        self.settle(HeldChange::Type, &changed.kind);
        Arc::make_mut(&mut self.fresh).push(Arc::clone(&changed));
        Arc::make_mut(&mut self.types).insert(key(&changed.kind), changed);
    }

    pub(super) fn shadow_run(&mut self, run: Arc<ShadowRun>) {
        self.settle(HeldChange::Reconciler, &run.kind);
        Arc::make_mut(&mut self.shadows).insert(key(&run.kind), run);
    }

    /// A newer change takes the place of an older one that has not been answered.
    pub(super) fn hold(&mut self, held: Arc<Held>) {
        self.settle(held.change, &held.kind);
        let all = Arc::make_mut(&mut self.held);
        all.retain(|known| known.change != held.change || key(&known.kind) != key(&held.kind));
        all.push(held);
    }

    pub(super) fn release(&mut self, released: &Released) {
        let all = Arc::make_mut(&mut self.held);
        let Some(at) = all.iter().position(|held| held.id == released.id) else { return };
        let held = all.remove(at);
        match released.verdict {
            Verdict::Discarded => Arc::make_mut(&mut self.discarded).push(held),
            Verdict::Applied | Verdict::Undone => {}
        }
    }

    pub(super) fn sources_changed(&mut self, sources: &SourcesChanged) {
        if !self.discarded.is_empty() {
            // A file that still asks for what was discarded is held again.
            let saved = |held: &Held| held.files.iter().any(|file| sources.files.contains(file));
            Arc::make_mut(&mut self.discarded).retain(|held| !saved(held));
        }
        Arc::make_mut(&mut self.fresh).retain(|changed| changed.sources == sources.sources);
    }
}

//! The contract between the controllers and the runner: a controller reads a [`View`] and returns a [`Sync`],
//! a list of writes. Never carries a write out and never names a single controller. Read `view` (what a
//! controller sees) and `write` (what it asks for) first.

pub mod exec;
#[cfg(test)]
pub(crate) mod lists;
pub mod view;
pub mod write;

use jiff::Timestamp;
pub use view::{Change, Key, Observed, Readable, ResourceInfo, View};
pub use write::{Hold, Note, NoteKind, Propagation, Refusal, Sync, Write};

/// The user that a controller's writes are attributed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// User name, such as `system:serviceaccount:kube-system:replicaset-controller`.
    pub user: &'static str,
    /// Field manager recorded in `metadata.managedFields`.
    pub field_manager: &'static str,
}

impl Actor {
    /// A controller of the controller manager.
    pub(crate) const fn kube_controller_manager(user: &'static str) -> Self {
        Actor { user, field_manager: "kube-controller-manager" }
    }
}

/// One controller. Implementations hold no state: everything they know is in the view.
pub trait Controller: Send + std::marker::Sync {
    /// Name as upstream spells it, also the event source: `deployment-controller`.
    fn name(&self) -> &'static str;

    /// On whose behalf the writes happen.
    fn actor(&self) -> Actor;

    /// Keys to look at from the start, before any change.
    fn seeds(&self) -> Vec<Key> {
        Vec::new()
    }

    /// The keys that a change of some object concerns.
    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key>;

    /// The writes that bring the key's object to its desired state. Empty when nothing differs.
    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync;

    /// The writes after one of its writes was refused: a condition, an Event.
    fn refused(
        &self,
        view: &dyn View,
        key: &Key,
        write: &Write,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Vec<Write> {
        let _ = (view, key, write, refusal, now);
        Vec::new()
    }
}

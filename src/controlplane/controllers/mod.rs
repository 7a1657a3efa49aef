//! The controllers of the control plane: pure `sync(view, key, now) -> writes`, nothing else.
//! Never touch the store by themselves; the runner reads for them and carries out what they ask.
//! Read `view` (what they see) and `write` (what they ask for) first, then any one controller.

pub mod view;
pub mod write;

use jiff::Timestamp;
pub use view::{Change, Key, ResourceInfo, View};
pub use write::{Note, NoteKind, Propagation, Sync, Write};

/// Who a controller's writes are attributed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor {
    /// User name, such as `system:serviceaccount:kube-system:replicaset-controller`.
    pub user: &'static str,
    /// Field manager recorded in `metadata.managedFields`.
    pub field_manager: &'static str,
}

/// One controller. Implementations hold no state: everything they know is in the view.
pub trait Controller: Send + std::marker::Sync {
    /// Name as upstream spells it, also the event source: `deployment-controller`.
    fn name(&self) -> &'static str;

    /// On whose behalf the writes happen.
    fn actor(&self) -> Actor;

    /// Which keys a change of some object concerns.
    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key>;

    /// What has to be written so that the key's object is as it should be. Empty when nothing differs.
    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync;
}

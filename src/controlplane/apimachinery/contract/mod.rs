//! A controller reads a [`View`] and returns a [`Sync`], a list of writes. Never carries a write out, never
//! names a controller. Read `view` (what a controller sees) and `write` (what it asks for) first.

pub mod exec;
mod view;
mod write;

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
    pub const fn kube_controller_manager(user: &'static str) -> Self {
        Actor { user, field_manager: "kube-controller-manager" }
    }
}

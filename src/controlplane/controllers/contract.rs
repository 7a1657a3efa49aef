//! The contract between the controllers and who runs them: a controller reads a [`View`] and returns a
//! [`Sync`], a list of writes. Never carries a write out and never names a single controller. Read
//! `opdev_apimachinery::contract` for what a controller sees (`view`) and what it asks for (`write`).

use jiff::Timestamp;
pub use opdev_apimachinery::contract::{
    Actor, Change, Hold, Key, Note, NoteKind, Observed, Propagation, Readable, Refusal, ResourceInfo, Sync,
    View, Write,
};

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

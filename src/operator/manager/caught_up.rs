//! Whoever wants to know that the operator is at rest has to know first that it has seen what there is: a watch may be behind.

use super::Manager;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Somebody who waits until the streams have shown these objects, and all that passes have written.
pub(super) struct CatchUp {
    pub(super) objects: Vec<Arc<Value>>,
    pub(super) reply: oneshot::Sender<()>,
}

impl Manager {
    /// Answers those for whom the streams have shown enough by now.
    pub(super) fn answer_caught_up(&mut self) {
        let kinds = &self.kinds;
        for done in self.catching_up.extract_if(.., |waits| kinds.have_shown(&waits.objects)) {
            // Whoever asked may have gone away meanwhile.
            let _ = done.reply.send(());
        }
    }
}

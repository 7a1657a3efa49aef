//! Whoever wants to know that the operator is at rest has to know first that it has seen what there is: a
//! watch may be behind.

use super::kinds::Kinds;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Callers who wait until the streams have shown the objects they name.
#[derive(Debug, Default)]
pub(super) struct CatchUps(Vec<CatchUp>);

#[derive(Debug)]
struct CatchUp {
    objects: Vec<Arc<Value>>,
    reply: oneshot::Sender<()>,
}

impl CatchUps {
    /// Somebody waits until the streams have shown these objects as they are here, or newer, and all that
    /// reconciles have written.
    pub(super) fn add(&mut self, objects: Vec<Arc<Value>>, reply: oneshot::Sender<()>) {
        self.0.push(CatchUp { objects, reply });
    }

    /// Answers those for whom the streams have shown enough by now.
    pub(super) fn answer(&mut self, kinds: &Kinds) {
        for done in self.0.extract_if(.., |waits| kinds.have_shown(&waits.objects)) {
            // Whoever asked may have gone away meanwhile.
            let _ = done.reply.send(());
        }
    }
}

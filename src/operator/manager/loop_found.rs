//! The problem: a reconciler whose own writes lead to its next reconcile never comes to an end, but so does,
//! for a while, a healthy one that waits for pods. The difference shows only over several reconciles.
//!
//! A loop that `opdev_findings::hot_loop` has found is told here, and its object paused.

use super::Manager;
use opdev_event::{Event, Level, LoopKind, PauseScope};
use opdev_findings::hot_loop::Found;
use std::sync::Arc;

impl Manager {
    /// Tells a loop, and pauses its object where the settings say so.
    pub(super) async fn tell_loop(&mut self, Found { mut found, stop }: Found) {
        let words = found.to_string();
        if stop && self.settings.pause_loops {
            let scope = PauseScope::Object { object: found.object.clone() };
            found.paused = self.pause(scope, Some(words.clone())).await.is_ok();
        }
        let hint = match found.kind {
            _ if found.paused => {
                "it is paused: end one of the two sides, or save the reconciler, then resume it"
            }
            LoopKind::Fight | LoopKind::Hot => "let only one of them own the field",
            LoopKind::Upgrade => {
                "the Operator SDK's operator would go on for ever, and run the upgrade hooks each time"
            }
            LoopKind::Repair => {
                "look for a webhook or a controller that changes the object, or for a second template that makes it"
            }
        };
        let object = Some(found.object.clone());
        self.events.emit(Event::LoopFound(Arc::new(found))).await;
        self.notice(Level::Warn, words, Some(hint.to_owned()), object).await;
    }
}

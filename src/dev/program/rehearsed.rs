//! What a rehearsal asks of programs that an inner loop does not.

use super::serving::Serving;
use super::{Handles, Programs};
use crate::process::Generate;

impl Programs {
    /// Copy methods become part of the build only: nothing is written into the project.
    pub(in crate::dev) fn writing_nothing(mut self) -> Programs {
        for plan in self.plans.iter_mut().filter(|plan| plan.generate == Generate::Write) {
            plan.generate = Generate::Overlay;
        }
        self
    }
}

impl Handles {
    /// Whether one of them serves webhooks.
    pub(in crate::dev) fn serve_webhooks(&self) -> bool {
        let serves = |serving: &Serving| !serving.said.borrow().webhooks.is_empty();
        self.0.iter().any(|handle| handle.serving.as_ref().is_some_and(serves))
    }
}

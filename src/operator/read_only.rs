//! Whether anything may be written. Shared by everything that writes, so that the user's word reaches all of them at
//! once. Asks nobody; who lifts it has asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Holds until it is lifted. Clones share one answer.
#[derive(Clone, Debug, Default)]
pub struct ReadOnly(Arc<AtomicBool>);

impl ReadOnly {
    /// One that holds, or does not.
    pub fn new(holds: bool) -> ReadOnly {
        ReadOnly(Arc::new(AtomicBool::new(holds)))
    }

    /// Whether nothing may be written.
    pub fn holds(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Allows writing from now on.
    pub fn lift(&self) {
        self.0.store(false, Ordering::Release);
    }
}

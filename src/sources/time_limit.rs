//! Until when renders of sources may go on. Who waits for them hands it in, for nothing in here reads a
//! clock.

use std::fmt;
use std::panic::RefUnwindSafe;
use std::sync::Arc;

/// Why a render breaks off whose time is up.
pub const TOO_LONG: &str = "the template takes too long";

type Ask = dyn Fn() -> Option<&'static str> + Send + Sync + RefUnwindSafe;

/// Says why a render is to break off, if it is; the default is that it never has to.
#[derive(Clone, Default)]
pub struct TimeLimit(Option<Arc<Ask>>);

impl TimeLimit {
    /// A limit that is reached when `ask` gives a reason.
    pub fn new(ask: impl Fn() -> Option<&'static str> + Send + Sync + RefUnwindSafe + 'static) -> TimeLimit {
        TimeLimit(Some(Arc::new(ask)))
    }

    /// Why to break off, if so.
    pub fn reached(&self) -> Option<&'static str> {
        self.0.as_ref().and_then(|ask| ask())
    }
}

impl fmt::Debug for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TimeLimit({:?})", self.reached())
    }
}

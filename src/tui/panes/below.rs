//! The pane that is in sight where the reconciles, the detail pane and the operator log share a place.

use super::pane::Pane;

/// The pane that was looked at last, of those that share a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// The detail pane, rather than the reconciles.
    detail: bool,
    /// The operator log, where it has no pane of its own.
    log: bool,
}

impl Below {
    /// The pane below the lists, where only one of them has room.
    pub fn pane(self) -> Pane {
        match self {
            Below { log: true, .. } => Pane::Log,
            Below { detail: true, .. } => Pane::Detail,
            Below { .. } => Pane::Reconciles,
        }
    }

    /// Returns true if the operator log is.
    pub fn is_log(self) -> bool {
        self.log
    }

    /// A pane has the focus now.
    pub fn show(&mut self, pane: Pane) {
        match pane {
            Pane::Reconciles => *self = Below { detail: false, log: false },
            Pane::Detail => *self = Below { detail: true, log: false },
            Pane::Log => self.log = true,
            Pane::Resources | Pane::Owned => {}
        }
    }
}

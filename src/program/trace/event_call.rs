//! The call of a program that sends an Event, as far as it is needed to find it again.

use jiff::Timestamp;

/// The call that sends an Event.
#[derive(Clone, Debug)]
pub(super) struct EventCall {
    pub(super) at: Timestamp,
    pub(super) path: String,
}

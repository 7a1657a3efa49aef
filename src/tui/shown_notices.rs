//! Notices to the user beside the panes, and those that were dismissed. Their looks are in `toast`.

use jiff::Timestamp;
use opdev_event::Diagnostic;

/// The messages of the moment.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The text next to the footer until the next key.
    pub(super) message: Option<String>,
    /// A panic somewhere else in the process.
    pub(super) panicked: Option<String>,
    /// Messages up to this time were dismissed.
    pub(super) dismissed: Option<Timestamp>,
    /// Problems of the files that are known and out of the way.
    pub(super) hidden: Option<Vec<Diagnostic>>,
}

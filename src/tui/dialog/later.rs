//! The last lines of a dialog that came up by itself.

use opdev_panes::text::Row;
use opdev_panes::theme::Role;

/// See the module. Keys that were typed before it came up answer nothing.
pub(super) fn answer_later() -> Vec<Row> {
    vec![
        Row::default(),
        Row::new(Role::Key, " H")
            .and(Role::Dim, " answer  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " later; any other key closes this and does what it always does "),
    ]
}

//! Pages that take the place of all panes.

pub mod background;
pub mod finding;

use crate::text::Row;
use crate::theme::Role;

/// The last lines of a dialog that came up by itself. Keys that were typed before it came up answer nothing.
pub fn answer_later() -> Vec<Row> {
    vec![
        Row::default(),
        Row::new(Role::Key, " H")
            .and(Role::Dim, " answer  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " later; any other key closes this and does what it always does "),
    ]
}

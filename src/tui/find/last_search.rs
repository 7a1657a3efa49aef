//! Memory for the next search: text typed into the lists, and the state they were gathered from.

use super::candidates::Remembered;

/// What is remembered.
#[derive(Default)]
pub(crate) struct Finder {
    /// What was typed into the jump last, and the row.
    pub(crate) last_jump: (String, usize),
    pub(crate) jump_index: Option<Remembered>,
    /// What was typed into the palette, the newest last.
    pub(crate) commands: Vec<String>,
}

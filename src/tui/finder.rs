//! What is remembered for the next search: what was typed into the lists to choose from, and what they were gathered from.

use super::candidates::Remembered;

/// What is remembered.
#[derive(Default)]
pub(super) struct Finder {
    /// What was typed into the jump last, and the row.
    pub(super) last_jump: (String, usize),
    pub(super) jump_index: Option<Remembered>,
    /// What was typed into the palette, the newest last.
    pub(super) commands: Vec<String>,
}

//! Memory for the next search: text typed into the lists, and the state they were gathered from.

use opdev_panes::lists::candidates::Remembered;

/// The searches that are remembered.
#[derive(Default)]
pub(crate) struct Finder {
    /// The text that was typed into the jump last, and the row.
    pub(crate) last_jump: (String, usize),
    pub(crate) jump_index: Option<Remembered>,
    /// Texts that were typed into the palette, the newest last.
    pub(crate) commands: Vec<String>,
}

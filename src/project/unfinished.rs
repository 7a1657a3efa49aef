//! Finds an `opdev init` or `opdev create api` that was ended in the middle of its writes here.

use std::path::Path;

/// The note, in the project's folder.
pub const NOTE: &str = ".opdev-unfinished.json";

/// Returns true if a command was ended in the middle of its writes here.
pub fn is_there(root: &Path) -> bool {
    root.join(NOTE).symlink_metadata().is_ok()
}

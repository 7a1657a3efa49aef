//! Files that came with a project, for whoever needs no reason where there is nothing to read.

use crate::read;
use std::path::Path;

/// A file's bytes; nothing where [`super::read::bytes`] gives none.
pub fn small_file(path: &Path) -> Option<Vec<u8>> {
    read::bytes(path).ok()
}

/// A file as text; nothing where it is no UTF-8.
pub fn small_text(path: &Path) -> Option<String> {
    read::text(path).ok()
}

/// Why a file has no such text, in words.
pub fn unreadable(file: &str) -> String {
    format!(
        "{file} cannot be read: it is missing, forbidden, larger than {} MiB, no plain file, or no UTF-8",
        read::SMALL >> 20
    )
}

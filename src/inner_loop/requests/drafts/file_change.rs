//! A change of a file of the project.

use anyhow::{Result, bail};
use opdev_os::private_folder::write_in_project;
use opdev_os::read;
use std::path::{Path, PathBuf};

/// A file that is written once the user says so.
#[derive(Clone, Debug)]
pub(crate) struct FileChange {
    pub(crate) path: PathBuf,
    /// As the user knows it.
    pub(crate) file: String,
    /// `None` where there was none.
    pub(crate) before: Option<String>,
    pub(crate) after: String,
}

impl FileChange {
    /// Writes the file whole or not at all.
    ///
    /// # Errors
    /// Where it has changed since, or cannot be written.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        if read::text(&self.path).ok() != self.before {
            bail!("{} has changed meanwhile; look at the change once more", self.file);
        }
        let inside = self.path.strip_prefix(root).unwrap_or(&self.path);
        write_in_project(root, inside, self.after.as_bytes())
    }
}

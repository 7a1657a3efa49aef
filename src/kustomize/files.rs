//! Where files come from, and which of them a kustomization may read.

use crate::error::FileError;
use std::io;
use std::path::{Path, PathBuf};

/// The names that a kustomization's file may have; exactly one of them stands in a folder.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The files that a build may read.
pub trait Files {
    /// The place without links, `.` and `..`; `None` where there is nothing.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// Returns true if a real place is a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// The bytes of a file at a real place.
    ///
    /// # Errors
    /// Why the file cannot be read, as a user should see it.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// Returns true if an entry names something that would have to be fetched: a URL, or a repository.
pub fn is_far(path: &str) -> bool {
    let starts = ["git@", "git::", "github.com/", "github.com:", "gitlab.com/", "bitbucket.org/"];
    path.contains("://") || path.contains("?ref=") || starts.iter().any(|start| path.starts_with(start))
}

/// A file that a kustomization in the folder `root` names. As kustomize does it, nothing outside of the
/// folder is read.
pub(crate) fn load(files: &dyn Files, root: &Path, path: &str) -> Result<(PathBuf, Vec<u8>), FileError> {
    let path_of = || path.to_owned();
    if is_far(path) {
        return Err(FileError::Remote { path: path_of() });
    }
    let Some(real) = files.real(&root.join(path)) else { return Err(FileError::NoFile { path: path_of() }) };
    if files.is_folder(&real) {
        return Err(FileError::IsAFolder { path: path_of() });
    }
    if !real.starts_with(root) {
        return Err(FileError::Outside { path: path_of() });
    }
    let unreadable = |error: io::Error| FileError::Unreadable { path: path_of(), reason: error.to_string() };
    let bytes = files.read(&real).map_err(unreadable)?;
    Ok((real, bytes))
}

/// A file that a kustomization names, as text.
pub(crate) fn load_text(files: &dyn Files, root: &Path, path: &str) -> Result<(PathBuf, String), FileError> {
    let (real, bytes) = load(files, root, path)?;
    let text = String::from_utf8(bytes).map_err(|_| FileError::NotText { path: path.to_owned() })?;
    Ok((real, text))
}

//! Where files come from, and which of them a kustomization may read.

use std::path::{Path, PathBuf};

/// The names that a kustomization's file may have; exactly one of them stands in a folder.
pub const NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The files that a build may read.
pub trait Files {
    /// The place without links, `.` and `..`; `None` where there is nothing.
    fn real(&self, path: &Path) -> Option<PathBuf>;
    /// Whether a real place is a folder.
    fn is_folder(&self, path: &Path) -> bool;
    /// The bytes of a file at a real place, or why it cannot be read.
    fn read(&self, path: &Path) -> Result<Vec<u8>, String>;
}

/// Whether an entry names something that would have to be fetched: a URL, or a repository.
pub fn is_far(path: &str) -> bool {
    let starts = ["git@", "git::", "github.com/", "github.com:", "gitlab.com/", "bitbucket.org/"];
    path.contains("://") || path.contains("?ref=") || starts.iter().any(|start| path.starts_with(start))
}

/// A file that a kustomization in the folder `root` names. As kustomize does it, nothing outside of the folder is read.
pub(crate) fn load(files: &dyn Files, root: &Path, path: &str) -> Result<(PathBuf, Vec<u8>), String> {
    if is_far(path) {
        return Err(format!("{path} would have to be fetched, which opdev does not do"));
    }
    let Some(real) = files.real(&root.join(path)) else { return Err(format!("there is no file {path}")) };
    if files.is_folder(&real) {
        return Err(format!("{path} is a folder; a file is needed here"));
    }
    if !real.starts_with(root) {
        return Err(format!(
            "{path} is not below the folder of this kustomization, and kustomize reads no file outside of it"
        ));
    }
    let bytes = files.read(&real).map_err(|why| format!("{path} cannot be read: {why}"))?;
    Ok((real, bytes))
}

/// The same as text.
pub(crate) fn load_text(files: &dyn Files, root: &Path, path: &str) -> Result<(PathBuf, String), String> {
    let (real, bytes) = load(files, root, path)?;
    let text = String::from_utf8(bytes).map_err(|_| format!("{path} is no text (it is not UTF-8)"))?;
    Ok((real, text))
}

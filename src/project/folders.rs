//! Folders of a project: the manifests below them, and those that are not the user's own. Judges no content.

use opdev_os::read;
use opdev_os::yaml_files::is_manifest;
use std::path::{Path, PathBuf};

/// The YAML files of a folder, then those of the folders in it, so many levels down.
pub fn yaml_files_below(path: &Path, levels: usize) -> Vec<PathBuf> {
    yaml_files_of(&mut read::Walk::from(path), path, levels)
}

/// The YAML files below a path, as a part of a longer walk.
pub fn yaml_files_of(walk: &mut read::Walk, path: &Path, levels: usize) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = walk.paths(path);
    let mut files: Vec<PathBuf> = entries.iter().filter(|path| is_manifest(path)).cloned().collect();
    if levels > 0 {
        let folders = entries.iter().filter(|path| path.is_dir() && !path.is_symlink());
        files.extend(folders.flat_map(|folder| yaml_files_of(walk, folder, levels - 1)));
    }
    files
}

/// Folders that are not the user's own: packages and hidden files.
pub fn is_foreign(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.starts_with('.') || matches!(&*name, "node_modules" | "vendor" | "target" | "testdata")
}

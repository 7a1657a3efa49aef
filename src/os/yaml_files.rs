//! The manifests of a folder.

use crate::read;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// A file, or the YAML files of a folder in name order.
pub fn yaml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = read::entries(path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| is_manifest(path)).collect())
}

/// Returns true if a file may have objects, by its name.
pub fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
        && path.file_stem().is_some_and(|stem| stem != "kustomization")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_applied_in_name_order_without_kustomization() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "kustomization.yaml", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = yaml_files(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
    }
}

//! The folder in which an embedded control plane keeps its objects: one process at a time, readable by its owner only,
//! out of git. Never looks into the store itself.

use super::lock::Lock;
use anyhow::{Context as _, Result, bail};
use opdev_controlplane::storage::discard;
use std::path::{Path, PathBuf};

/// The folder's name in a project's state folder.
pub const NAME: &str = "data";

/// A folder that nobody else uses for as long as this lives.
#[derive(Debug)]
pub struct DataFolder {
    /// The folder.
    pub path: PathBuf,
    _lock: Lock,
}

impl DataFolder {
    /// Takes a folder, which is made where it is missing; `what` is who takes it, for whoever comes second. With
    /// `fresh` what it holds is deleted.
    ///
    /// # Errors
    /// Where somebody else uses it, or it cannot be written.
    pub fn take(path: &Path, what: &str, fresh: bool) -> Result<Self> {
        let path = std::path::absolute(path)?;
        let cannot = || format!("{} cannot be written", path.display());
        if !path.exists() {
            std::fs::create_dir_all(&path).with_context(cannot)?;
            // Keys and Secrets are in it, and no commit wants them.
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt as _;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700))
                    .with_context(cannot)?;
            }
            std::fs::write(path.join(".gitignore"), "*\n").with_context(cannot)?;
        }
        let lock = match Lock::take(&path.join("lock"), what)? {
            Ok(lock) => lock,
            Err(holder) => bail!(
                "the control plane of {holder} keeps its objects in {}\n  to do: name another folder with --data-dir, or \
                 stop the other one",
                path.display()
            ),
        };
        if fresh {
            discard(&path).with_context(|| format!("the objects in {} cannot be deleted", path.display()))?;
        }
        Ok(DataFolder { path, _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_out_of_git_and_fresh_where_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let first = DataFolder::take(&path, "opdev serve", false).unwrap();
        assert_eq!(std::fs::read_to_string(path.join(".gitignore")).unwrap(), "*\n");
        std::fs::write(path.join("store.redb"), "objects").unwrap();
        let refused = DataFolder::take(&path, "opdev run", true).unwrap_err().to_string();
        assert!(refused.contains("opdev serve (process ") && refused.contains("--data-dir"), "{refused}");
        drop(first);
        drop(DataFolder::take(&path, "opdev run", false).unwrap());
        assert!(path.join("store.redb").exists());
        drop(DataFolder::take(&path, "opdev run", true).unwrap());
        assert!(!path.join("store.redb").exists());
    }
}

//! The folder in which an embedded control plane keeps its objects: one process at a time, readable by its
//! owner only, out of git. Keys and tokens of one that somebody else has made are forgotten. Never looks into
//! the store itself.

use super::owner::Owner;
use anyhow::{Context as _, Result, bail};
use opdev_controlplane::storage::{discard, forget_keys};
use opdev_os::lock::Lock;
use opdev_os::private_folder::{PrivateFolder, STATE};
use std::path::{Path, PathBuf};

/// The folder's name in a project's state folder.
pub const NAME: &str = "data";

/// A folder that nobody else uses for as long as this lives.
#[derive(Debug)]
pub struct DataFolder {
    /// The folder.
    pub path: PathBuf,
    /// True if keys and tokens were forgotten, because the folder was not this user's.
    pub renewed: bool,
    _lock: Lock,
}

impl DataFolder {
    /// Takes a folder; `what` is who takes it, for whoever comes second. With `fresh` what it holds is
    /// deleted. Where it has no mark of `owner`, the keys and tokens in it are forgotten, and the mark is
    /// left.
    ///
    /// # Errors
    /// Where another process uses it, or it cannot be written.
    pub fn take(folder: &PrivateFolder, what: &str, fresh: bool, owner: &Owner) -> Result<Self> {
        // Keys and Secrets are in it, and no commit wants them.
        if folder.read(".gitignore")?.is_none() {
            folder.write(".gitignore", b"*\n")?;
        }
        let path = std::path::absolute(folder.path())?;
        let lock = match Lock::take(folder, "lock", what)? {
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
        let mut renewed = false;
        if !owner.has_marked(folder) {
            // Before the mark: a crash in between must not make them pass for the user's.
            renewed = forget_keys(&path).with_context(|| {
                format!(
                    "{} was not made by you on this machine, and the keys in it cannot be removed\n  to do: start with \
                     --fresh, or remove the folder",
                    path.display()
                )
            })?;
            owner.leave_mark(folder);
        }
        Ok(DataFolder { path, renewed, _lock: lock })
    }
}

/// The kubeconfig of the embedded control plane of an opdev that runs in this project; none where that one
/// works on another cluster. A file that an earlier opdev or an `opdev serve` has left there is not its own.
pub fn running(root: &Path) -> Result<Option<PathBuf>> {
    let Some(state) = PrivateFolder::open(&root.join(STATE))? else { return Ok(None) };
    let Some(holder) = Lock::holder(&state, "lock")? else { return Ok(None) };
    let name = "kubeconfig";
    let shared = Lock::holder_of(&state, name)?.filter(|writer| writer.pid == holder.pid);
    let names = [Some(format!("{name}-{}", holder.pid)), shared.map(|_| name.to_owned())];
    Ok(names.into_iter().flatten().map(|name| state.path().join(name)).find(|path| path.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_out_of_git_and_fresh_where_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let owner = Owner::at(&folder.path().join("user"));
        let take = |what, fresh| DataFolder::take(&PrivateFolder::make(&path).unwrap(), what, fresh, &owner);
        let first = take("opdev serve", false).unwrap();
        assert_eq!(std::fs::read_to_string(path.join(".gitignore")).unwrap(), "*\n");
        std::fs::write(path.join("store.redb"), "objects").unwrap();
        let refused = take("opdev run", true).unwrap_err().to_string();
        assert!(refused.contains("opdev serve (process ") && refused.contains("--data-dir"), "{refused}");
        drop(first);
        drop(take("opdev run", false).unwrap());
        assert!(path.join("store.redb").exists());
        drop(take("opdev run", true).unwrap());
        assert!(!path.join("store.redb").exists());
    }
}

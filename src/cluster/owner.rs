//! Proves that a folder with an embedded control plane's objects was written by this user on this machine. A
//! project that was cloned or unpacked may come with such a folder, and whoever made it knows the keys and
//! tokens in it. A secret in the user's own state folder marks the folders that are the user's; keys of any
//! other one are made anew.

use anyhow::{Result, bail};
use opdev_os::private_folder::PrivateFolder;
use opdev_os::user_config;
use sha2::{Digest as _, Sha256};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file with the secret, in the user's state folder.
const SECRET: &str = "owner-secret";
/// The file with the mark, in the marked folder.
const MARK: &str = "owner";

/// This user on this machine.
#[derive(Clone, Debug, Default)]
pub struct Owner {
    folder: Option<PathBuf>,
}

impl Owner {
    /// The user as the environment names it.
    pub fn of_user() -> Owner {
        Owner { folder: user_config::state_folder() }
    }

    /// An owner whose secret is in this folder.
    pub fn at(folder: &Path) -> Owner {
        Owner { folder: Some(folder.to_owned()) }
    }

    /// Returns true if the folder has this user's mark.
    pub(crate) fn has_marked(&self, folder: &PrivateFolder) -> bool {
        let (Ok(Some(found)), Ok(mark)) = (folder.read(MARK), self.mark(folder.path())) else { return false };
        found == mark.as_bytes()
    }

    /// Marks a folder as this user's. Without a place for the secret it stays unmarked, and its keys are made
    /// anew at every start.
    pub(crate) fn leave_mark(&self, folder: &PrivateFolder) {
        let marked = self.mark(folder.path()).and_then(|mark| folder.write(MARK, mark.as_bytes()));
        if let Err(error) = marked {
            tracing::warn!("keys and tokens in {} will be made anew: {error:#}", folder.path().display());
        }
    }

    /// Bound to the folder's path: a mark that somebody saw proves nothing elsewhere.
    fn mark(&self, path: &Path) -> Result<String> {
        let Some(state) = &self.folder else {
            bail!("neither XDG_STATE_HOME nor HOME is set to an absolute path")
        };
        let secret = secret(state)?;
        let inner = Sha256::new().chain_update(&secret).chain_update(path.as_os_str().as_bytes()).finalize();
        let mark = Sha256::new().chain_update(&secret).chain_update(inner).finalize();
        Ok(mark.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

fn secret(state: &Path) -> Result<Vec<u8>> {
    if let Some(above) = state.parent() {
        std::fs::create_dir_all(above)?;
    }
    let folder = PrivateFolder::make(state)?;
    if let Some(secret) = folder.read(SECRET)?.filter(|secret| secret.len() == 32) {
        return Ok(secret);
    }
    let mut secret = vec![0u8; 32];
    getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no random numbers: {error}"))?;
    folder.write(SECRET, &secret)?;
    // Two that begin at once use the one that is there in the end.
    Ok(folder.read(SECRET)?.unwrap_or(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_proves_one_user_and_one_folder() {
        let home = tempfile::tempdir().unwrap();
        let (me, other) = (Owner::at(&home.path().join("me")), Owner::at(&home.path().join("other")));
        let folder = PrivateFolder::make(&home.path().join("data")).unwrap();
        assert!(!me.has_marked(&folder));
        me.leave_mark(&folder);
        assert!(
            me.has_marked(&folder) && !other.has_marked(&folder) && !Owner::default().has_marked(&folder)
        );
        let copy = PrivateFolder::make(&home.path().join("copy")).unwrap();
        copy.write(MARK, &folder.read(MARK).unwrap().unwrap()).unwrap();
        assert!(!me.has_marked(&copy));
        Owner::default().leave_mark(&folder);
        assert!(me.has_marked(&folder));
    }
}

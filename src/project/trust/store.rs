//! `$XDG_STATE_HOME/opdev/trusted`: which project was trusted with what. Outside of every project, readable
//! and writable by the user only. Holds hashes that bind each permission to the project's folder, and the
//! words for `opdev trust --list`; only the hashes count.

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use opdev_event::Permission;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::user_config;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file's name.
const FILE: &str = "trusted";

/// Where trust is remembered.
#[derive(Clone, Debug)]
pub struct Store {
    /// `None` where the environment names no place.
    folder: Option<PathBuf>,
}

/// A project that was trusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustedProject {
    /// Its folder.
    pub project: PathBuf,
    /// Since when.
    pub since: Timestamp,
    /// The permissions.
    pub trusted: Vec<TrustedPermission>,
}

/// A permission that was given for good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedPermission {
    /// The SHA-256 of the project's folder and the permission, which decides.
    pub hash: String,
    /// The permission in words, as the user saw them.
    pub what: String,
}

/// The hash that binds a permission to a project: another folder, or another value of the setting, has
/// another hash.
pub(super) fn hash(root: &Path, permission: &Permission) -> String {
    let mut hasher = Sha256::new();
    let root = root.as_os_str().as_bytes();
    hasher.update((root.len() as u64).to_be_bytes());
    hasher.update(root);
    // Plain data with text only: it cannot fail, and where it did, nothing would match.
    hasher.update(serde_json::to_vec(permission).unwrap_or_default());
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Store {
    /// The user's own, as the environment names it: `$XDG_STATE_HOME/opdev`, else `~/.local/state/opdev`.
    pub fn of_user() -> Store {
        Store { folder: user_config::state_folder() }
    }

    /// A store in this folder.
    pub fn at(folder: &Path) -> Store {
        Store { folder: Some(folder.to_owned()) }
    }

    /// A store that knows nothing and remembers nothing.
    pub fn none() -> Store {
        Store { folder: None }
    }

    /// Every project that was trusted, in the order of the folders.
    ///
    /// # Errors
    /// Where the file is not this user's alone, or cannot be read.
    pub fn all(&self) -> Result<Vec<TrustedProject>> {
        let Some(path) = &self.folder else { return Ok(Vec::new()) };
        let Some(folder) = PrivateFolder::open(path)? else { return Ok(Vec::new()) };
        read(&folder)
    }

    /// The hashes that are remembered for a project.
    pub(super) fn hashes(&self, root: &Path) -> Result<BTreeSet<String>> {
        let known = self.all()?.into_iter().find(|known| known.project == root);
        Ok(known.into_iter().flat_map(|known| known.trusted).map(|one| one.hash).collect())
    }

    /// Remembers that a project is trusted with exactly this, in place of what was remembered before.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn trust(&self, root: &Path, permissions: &[Permission]) -> Result<()> {
        let trusted = permissions
            .iter()
            .map(|one| TrustedPermission { hash: hash(root, one), what: one.to_string() })
            .collect();
        let new = TrustedProject { project: root.to_owned(), since: Timestamp::now(), trusted };
        self.change(|known| {
            known.retain(|one| one.project != root);
            known.push(new);
            known.sort_by(|a, b| a.project.cmp(&b.project));
        })
    }

    /// Forgets a project; false where it was not known.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn revoke(&self, root: &Path) -> Result<bool> {
        if !self.all()?.iter().any(|known| known.project == root) {
            return Ok(false);
        }
        self.change(|known| known.retain(|one| one.project != root))?;
        Ok(true)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TrustedProject>)) -> Result<()> {
        let Some(path) = &self.folder else {
            bail!(
                "there is no place to remember it: neither XDG_STATE_HOME nor HOME is set to an absolute path\n  to do: set \
                 one of them"
            );
        };
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)
                .with_context(|| format!("{} cannot be created", above.display()))?;
        }
        let folder = PrivateFolder::make(path)?;
        let _lock = lock(&folder)?;
        let mut known = read(&folder)?;
        change(&mut known);
        let mut text = serde_json::to_vec_pretty(&known)?;
        text.push(b'\n');
        folder.write(FILE, &text)
    }
}

fn read(folder: &PrivateFolder) -> Result<Vec<TrustedProject>> {
    let Some(bytes) = folder.read(FILE)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).with_context(|| {
        format!(
            "{} is not as opdev writes it\n  to do: remove it, and trust your projects again",
            folder.path().join(FILE).display()
        )
    })
}

/// Two that trust at once must not lose each other's word. Held until it is dropped.
fn lock(folder: &PrivateFolder) -> Result<File> {
    let file = folder.open_file("trusted.lock")?;
    match file.lock() {
        Ok(()) => Ok(file),
        // A file system without locks: renaming keeps the file whole at least.
        Err(error) if error.kind() == std::io::ErrorKind::Unsupported => Ok(file),
        Err(error) => Err(error).with_context(|| format!("{} cannot be locked", folder.path().display())),
    }
}

//! Where opdev keeps its own files of a project: in the project, or in the user's folder where the project
//! cannot be written.

use crate::private_folder::{PrivateFolder, STATE};
use crate::{sha256, user_config};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::path::{Path, PathBuf};

/// `.opdev` in the project. Where that cannot be made or written (a read-only mount, a folder of another
/// user), a folder of this project below `$XDG_STATE_HOME/opdev/projects`, else below
/// `~/.local/state/opdev/projects`.
pub fn state_path(root: &Path) -> PathBuf {
    path_where(root, may_write, user_config::state_folder)
}

/// Returns false for a folder that this user cannot write. One that is not there is no such folder.
fn may_write(folder: &Path) -> bool {
    let may = accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
    !matches!(may, Err(Errno::ACCESS | Errno::ROFS))
}

/// A path below the project's folder as it is shown: relative to the project where it lies in it.
pub fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn path_where(root: &Path, may_write: impl Fn(&Path) -> bool, own: impl Fn() -> Option<PathBuf>) -> PathBuf {
    let inside = root.join(STATE);
    // The folder of another user, who ran opdev here, is of no use either.
    if may_write(root) || inside.symlink_metadata().is_ok() && may_write(&inside) {
        return inside;
    }
    let Some(own) = own() else { return inside };
    let full = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let digest = sha256::digits(full.as_os_str().as_encoded_bytes());
    let short = digest.get(..12).unwrap_or(&digest);
    let folder = own.join("projects").join(short).join(full.file_name().unwrap_or_default());
    // Where this fails, the error of whoever makes the folder itself says so, with its path.
    let _ = PrivateFolder::named(&folder);
    folder.join(STATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_that_may_be_written_keeps_its_own() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(state_path(folder.path()), folder.path().join(".opdev"));
        assert_eq!(shown(folder.path(), &folder.path().join(".opdev/drafts/a")), ".opdev/drafts/a");
    }

    #[test]
    fn a_read_only_project_has_a_folder_of_its_own_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two, own] = ["a/shop", "b/shop", "own"].map(|name| folder.path().join(name));
        for root in [&one, &two] {
            std::fs::create_dir_all(root).unwrap();
        }
        let of = |root: &Path| path_where(root, |path| path.ends_with(".opdev"), || Some(own.clone()));
        let first = of(&one);
        assert!(first.starts_with(own.join("projects")) && first.ends_with("shop/.opdev"), "{first:?}");
        assert!(first.parent().unwrap().is_dir());
        assert_eq!(of(&one), first, "the next command finds what this one has written");
        assert_ne!(of(&two), first, "another project of the same name");
        assert_eq!(shown(&one, &first), first.display().to_string());
        std::fs::create_dir(one.join(".opdev")).unwrap();
        assert_eq!(of(&one), one.join(".opdev"), "one that is there is taken");
        let of_another = path_where(&one, |_| false, || Some(own.clone()));
        assert_eq!(of_another, first, "one that cannot be written is left alone");
        assert_eq!(path_where(&two, |_| false, || None), two.join(".opdev"), "nobody has a home");
    }
}

//! Tells whether git tracks a folder or anything in it, from the index alone: running git in a repository of
//! somebody else's would run what its configuration names.

use crate::read;
use std::path::Path;

/// Returns true if the index of the repository that `root` lies in has a file below `folder`, a path relative
/// to
/// `root`, or the folder itself as a submodule. Case does not count: on some file systems `.OPDEV` is
/// `.opdev`. An index that cannot be read tracks nothing.
pub(crate) fn tracks(root: &Path, folder: &str) -> bool {
    let Some(top) = root.ancestors().find(|above| above.join(".git").symlink_metadata().is_ok()) else {
        return false;
    };
    let Some(git) = git_folder(top) else { return false };
    let inside = root.strip_prefix(top).unwrap_or(Path::new("")).join(folder).display().to_string();
    // With a split index most entries stand in files of their own beside it, in the same format. Which of
    // them counts stands in an extension; each that is there is looked at.
    let mut files = vec![git.join("index")];
    let shared = read::paths(&git).into_iter().filter(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sharedindex."))
    });
    files.extend(shared);
    files
        .iter()
        .filter_map(|path| read::bytes_up_to(path, read::LARGE).ok())
        .any(|index| [20, 32].into_iter().any(|hash| has(&index, inside.as_bytes(), hash).unwrap_or(false)))
}

/// `.git` itself, or what it names in a work tree or a submodule.
fn git_folder(top: &Path) -> Option<std::path::PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = read::text(git).ok()?;
    Some(top.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Versions 2 to 4 of the format, with object names of `hash` bytes; `None` where it is none of them.
fn has(index: &[u8], folder: &[u8], hash: usize) -> Option<bool> {
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    if index.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, count) = (number(4)?, number(8)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let (mut at, mut path) = (12, Vec::new());
    for _ in 0..count {
        let begin = at;
        at += 40 + hash;
        let flags = u16::from_be_bytes(index.get(at..at + 2)?.try_into().ok()?);
        at += if flags & 0x4000 == 0 { 2 } else { 4 };
        if version == 4 {
            let (drop, next) = varint(index, at)?;
            path.truncate(path.len().checked_sub(drop)?);
            at = next;
        } else {
            path.clear();
        }
        let length = index.get(at..)?.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&index[at..at + length]);
        at += length + 1;
        if version < 4 {
            // Padded with zero bytes to a multiple of eight, at least one.
            at = begin + (at - begin).div_ceil(8) * 8;
        }
        // A submodule is an entry without anything below it, and so is a folder of a sparse index, which ends
        // in `/`.
        let begins = path.get(..folder.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(folder));
        if begins && matches!(path.get(folder.len()), None | Some(b'/')) {
            return Some(true);
        }
    }
    Some(false)
}

/// A number in the encoding of offsets in pack files.
fn varint(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? | usize::from(byte & 0x7f);
    }
    Some((value, at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn tracked_is_what_git_says() {
        for version in ["2", "3", "4"] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            let git = |args: &[&str]| {
                let done = Command::new("git").args(args).current_dir(root).output().unwrap();
                assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            };
            git(&["init", "-q"]);
            fs::create_dir_all(root.join("sub/.opdev")).unwrap();
            for file in ["a", ".opdev.yaml", ".opdevrc", "sub/.opdev/kubeconfig", "sub/.opdev/b", "z"] {
                fs::write(root.join(file), file).unwrap();
            }
            git(&["add", "-A"]);
            git(&["update-index", "--index-version", version]);
            assert!(tracks(&root.join("sub"), ".opdev") && tracks(root, "sub/.opdev"), "version {version}");
            assert!(!tracks(root, ".opdev"), "version {version}");
            git(&["rm", "-rq", "--cached", "sub/.opdev"]);
            assert!(!tracks(&root.join("sub"), ".opdev"), "version {version}");
            fs::create_dir(root.join(".OpDev")).unwrap();
            fs::write(root.join(".OpDev/a"), "a").unwrap();
            git(&["add", ".OpDev/a"]);
            assert!(tracks(root, ".opdev"), "version {version}");
        }
        assert!(!tracks(tempfile::tempdir().unwrap().path(), ".opdev"));
        // Reading it would never end.
        let endless = tempfile::tempdir().unwrap();
        fs::create_dir(endless.path().join(".git")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", endless.path().join(".git/index")).unwrap();
        assert!(!tracks(endless.path(), ".opdev"));
    }

    fn git(root: &Path, args: &[&str]) {
        let words = ["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"];
        let done = Command::new("git").args(words).args(args).current_dir(root).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    #[test]
    fn a_submodule_is_tracked() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, root) = (folder.path().join("theirs"), folder.path().join("project"));
        for repository in [&theirs, &root] {
            fs::create_dir(repository).unwrap();
            git(repository, &["init", "-q"]);
            fs::write(repository.join("a"), "a").unwrap();
            git(repository, &["add", "a"]);
            git(repository, &["commit", "-qm", "a"]);
        }
        git(&root, &["submodule", "--quiet", "add", "../theirs", "sub/.opdev"]);
        assert!(tracks(&root.join("sub"), ".opdev") && tracks(&root, "sub/.opdev"));
        assert!(!tracks(&root, ".opdev"));
    }

    #[test]
    fn a_split_index_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        git(root, &["init", "-q"]);
        fs::create_dir(root.join(".opdev")).unwrap();
        for file in ["a", ".opdev/kubeconfig"] {
            fs::write(root.join(file), file).unwrap();
        }
        git(root, &["add", "-A"]);
        git(root, &["update-index", "--split-index"]);
        assert!(tracks(root, ".opdev"));
    }

    #[test]
    fn no_bytes_trip_it() {
        let mut index = b"DIRC\x00\x00\x00\x04\x00\x00\x00\x09".to_vec();
        for byte in 0..=255u8 {
            index.extend(std::iter::repeat_n(byte, 70));
            let _ = has(&index, b".opdev", 20);
            let _ = has(&index, b".opdev", 32);
        }
    }
}

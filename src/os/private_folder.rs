//! Files below a folder that is this user's alone: `.opdev` of a project, and the user's own state. Every
//! folder on the way is opened by the handle of the one above it and no link is followed, so a link that
//! somebody planted leads nowhere. New content comes to be under a random name and takes its place whole.
//! `write_in_project` is for files beside the user's own sources. No other code of this program opens files
//! in a project to write them (tests/it/architecture.rs).

use super::git_index;
use anyhow::{Context as _, Result, anyhow, bail};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A folder of this user's, held open. Clones share the handle.
#[derive(Clone, Debug)]
pub struct PrivateFolder {
    handle: Arc<OwnedFd>,
    path: PathBuf,
}

/// The rights of other users in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    MayNotWrite,
    MayWrite,
}

/// The folder in a project in which opdev keeps its own files.
pub const STATE: &str = ".opdev";

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);
const OWNER_FOLDER: Mode = Mode::RWXU;
const NOFOLLOW: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

impl PrivateFolder {
    /// Opens `path`, and makes it where it is missing. The folders above it are taken as they are; `path`
    /// itself must be no link, must belong to this user, and nobody else may write to it.
    ///
    /// # Errors
    /// A message that says what is wrong with it and what to do.
    pub fn make(path: &Path) -> Result<PrivateFolder> {
        let (parent, name) = apart(path)?;
        Self::open_in(parent.as_fd(), &name, path.to_owned(), (true, Others::MayNotWrite))?
            .with_context(|| format!("{} cannot be created", path.display()))
    }

    /// Opens `path` as `make` does; `None` where it is missing.
    ///
    /// # Errors
    /// A message that says what is wrong with it and what to do.
    pub fn open(path: &Path) -> Result<Option<PrivateFolder>> {
        match apart(path) {
            Ok((parent, name)) => {
                Self::open_in(parent.as_fd(), &name, path.to_owned(), (false, Others::MayNotWrite))
            }
            Err(_) => Ok(None),
        }
    }

    /// Opens a folder inside, and makes it where it is missing. Who may write to it does not matter where
    /// nobody else gets into this one.
    ///
    /// # Errors
    /// As `make`.
    pub fn folder(&self, name: &str) -> Result<PrivateFolder> {
        let path = self.path.join(name);
        Self::open_in(self.handle.as_fd(), OsStr::new(name), path.clone(), (true, Others::MayWrite))?
            .with_context(|| format!("{} cannot be created", path.display()))
    }

    /// Opens a folder that the user named on the command line, and makes it where it is missing, with those
    /// above it. Others may write to it if the user wants that; it must be no link and no other user's.
    ///
    /// # Errors
    /// As `make`.
    pub fn named(path: &Path) -> Result<PrivateFolder> {
        if let Some(above) = path.parent() {
            std::fs::create_dir_all(above)
                .with_context(|| format!("{} cannot be created", above.display()))?;
        }
        let (parent, name) = apart(path)?;
        Self::open_in(parent.as_fd(), &name, path.to_owned(), (true, Others::MayWrite))?
            .with_context(|| format!("{} cannot be created", path.display()))
    }

    /// The folder of a file that the user named on the command line, taken as it is, and the file's name in
    /// it. A `.opdev` is made where it is missing, and examined as `make` does.
    ///
    /// # Errors
    /// Where the folder cannot be opened.
    pub fn of_file(path: &Path) -> Result<(PrivateFolder, String)> {
        let name = path.file_name().and_then(OsStr::to_str);
        let name = name.with_context(|| format!("{} names no file", path.display()))?.to_owned();
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if folder.file_name().is_some_and(|name| name == STATE) {
            return Ok((Self::state(folder)?, name));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = sys::open(folder, flags, Mode::empty())
            .with_context(|| format!("{} cannot be opened", folder.display()))?;
        Ok((PrivateFolder { handle: Arc::new(handle), path: folder.to_owned() }, name))
    }

    /// Opens the folder in which opdev keeps its own files in a project, and makes it where it is missing,
    /// with the `.gitignore` that keeps it out of commits.
    ///
    /// # Errors
    /// As `make`, and where git tracks what is in it.
    pub fn state(path: &Path) -> Result<PrivateFolder> {
        if path.parent().is_some_and(|root| git_index::tracks(root, STATE)) {
            bail!(
                "git tracks files in {}: they came with the repository, and opdev would take them for its own\n  to do: \
                 look at what they are, then `git rm -r --cached {STATE}` and remove the folder",
                path.display()
            );
        }
        let folder = Self::make(path)?;
        if folder.read(".gitignore")?.is_none() {
            folder.write(".gitignore", b"*\n")?;
        }
        Ok(folder)
    }

    fn open_in(
        parent: BorrowedFd<'_>,
        name: &OsStr,
        path: PathBuf,
        (make, others): (bool, Others),
    ) -> Result<Option<PrivateFolder>> {
        if make {
            match sys::mkdirat(parent, name, OWNER_FOLDER) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{} cannot be created", path.display()));
                }
            }
        }
        let handle = match sys::openat(parent, name, FOLDER, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => bail!(
                "{} is a link or a file, and opdev follows no link there: whoever made it could have opdev write \
                 elsewhere\n  to do: look at what it is, remove it, and start opdev again",
                path.display()
            ),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be opened", path.display())),
        };
        let about = sys::fstat(&handle).with_context(|| format!("{} cannot be examined", path.display()))?;
        is_ours(&about, &path, others)?;
        Ok(Some(PrivateFolder { handle: Arc::new(handle), path }))
    }

    /// Where it was found, for messages and for other programs. Writing by this path would follow links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The content of a file; `None` where there is none.
    ///
    /// # Errors
    /// Where it is a link or no file, or cannot be read.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(mut file) = self.existing(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("{} cannot be read", self.at(name)))?;
        Ok(Some(bytes))
    }

    /// Writes a file that only its owner may read, whole or not at all.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_whole(self.handle.as_fd(), OsStr::new(name), bytes, OWNER_ONLY)
            .with_context(|| format!("{} cannot be written", self.at(name)))
    }

    /// Makes a file anew and opens it for writing. Whatever had the name, a link too, is removed first.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn create(&self, name: &str) -> Result<File> {
        let cannot = || format!("{} cannot be written", self.at(name));
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | NOFOLLOW;
        match sys::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error).with_context(cannot),
        }
        Ok(File::from(sys::openat(&self.handle, name, flags, OWNER_ONLY).with_context(cannot)?))
    }

    /// Opens a file for reading and writing, and makes it where it is missing. It must be a file of this
    /// user's with no other name.
    ///
    /// # Errors
    /// Where it is a link, somebody else's, or cannot be written.
    pub fn open_file(&self, name: &str) -> Result<File> {
        for _ in 0..8 {
            if let Some(file) = self.existing(name, OFlags::RDWR)? {
                return Ok(file);
            }
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | NOFOLLOW;
            match sys::openat(&self.handle, name, flags, OWNER_ONLY) {
                Ok(file) => return Ok(File::from(file)),
                // Somebody else was faster.
                Err(Errno::EXIST) => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("{} cannot be written", self.at(name)));
                }
            }
        }
        bail!("{} comes and goes while opdev opens it", self.at(name))
    }

    /// Opens a file to append to, as `open_file` does.
    ///
    /// # Errors
    /// As `open_file`.
    pub fn append(&self, name: &str) -> Result<File> {
        let mut file = self.open_file(name)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
            .with_context(|| format!("{} cannot be written", self.at(name)))?;
        Ok(file)
    }

    fn existing(&self, name: &str, how: OFlags) -> Result<Option<File>> {
        let file = match sys::openat(&self.handle, name, how | NOFOLLOW, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::MLINK) => bail!(
                "{} is a link, and opdev follows no link there: whoever made it could have opdev write elsewhere\n  to do: \
                 look at where it leads, remove it, and start opdev again",
                self.at(name)
            ),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be opened", self.at(name))),
        };
        let about = sys::fstat(&file).with_context(|| format!("{} cannot be examined", self.at(name)))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            bail!("{} is no file\n  to do: remove it, and start opdev again", self.at(name));
        }
        if about.st_nlink > 1 {
            bail!(
                "{} has a second name elsewhere (a hard link), so writing to it would change that file\n  to do: remove \
                 it, and start opdev again",
                self.at(name)
            );
        }
        if !is_own(&about) {
            bail!("{} belongs to somebody else\n  to do: remove it, and start opdev again", self.at(name));
        }
        Ok(Some(File::from(file)))
    }

    /// Gives a file another name, in place of what had that name.
    ///
    /// # Errors
    /// Where it cannot be renamed.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        sys::renameat(&self.handle, from, &self.handle, to)
            .with_context(|| format!("{} cannot be renamed to {to}", self.at(from)))
    }

    /// Removes a file, or the link that has its name.
    ///
    /// # Errors
    /// Where it cannot be removed; one that is not there is no error.
    pub fn remove(&self, name: &str) -> Result<()> {
        match sys::unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be removed", self.at(name))),
        }
    }

    /// The names of what is in it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn names(&self) -> Result<Vec<OsString>> {
        let cannot = || format!("{} cannot be read", self.path.display());
        let entries = sys::Dir::read_from(&self.handle).with_context(cannot)?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.with_context(cannot)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn at(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

/// Writes a file of the project beside the user's own sources, such as a CRD in `config/crd`, whole or not at
/// all. Folders that are missing are made. No link is followed below `root`: neither for a folder nor for the
/// file.
///
/// # Errors
/// Where a link is in the way, the path leads out of the project, or it cannot be written.
pub fn write_in_project(root: &Path, relative: &Path, bytes: &[u8]) -> Result<()> {
    let shown = || relative.display().to_string();
    let leads_out = || anyhow!("{} leads out of the project {}", shown(), root.display());
    let mut names: Vec<&OsStr> = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                names.pop().ok_or_else(leads_out)?;
            }
            Component::RootDir | Component::Prefix(_) => return Err(leads_out()),
        }
    }
    let Some((file, folders)) = names.split_last() else { bail!("{} names no file", shown()) };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = sys::open(root, flags, Mode::empty())
        .with_context(|| format!("{} cannot be opened", root.display()))?;
    let mut walked = PathBuf::new();
    for name in folders {
        walked.push(name);
        match sys::mkdirat(&folder, *name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be created", walked.display()));
            }
        }
        folder = match sys::openat(&folder, *name, FOLDER, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => bail!(
                "{} is a link or a file, and opdev writes through no link\n  to do: put a folder in its place, or name \
                 another folder",
                walked.display()
            ),
            Err(error) => {
                return Err(error).with_context(|| format!("{} cannot be opened", walked.display()));
            }
        };
    }
    let mut mode = Mode::from_raw_mode(0o666);
    match sys::statat(&folder, *file, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) => match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => mode = Mode::from_raw_mode(about.st_mode) & Mode::from_raw_mode(0o777),
            _ => bail!(
                "{} is a link or no file, and opdev writes through no link\n  to do: look at where it leads, and remove it",
                shown()
            ),
        },
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error).with_context(|| format!("{} cannot be examined", shown())),
    }
    write_whole(folder.as_fd(), file, bytes, mode).with_context(|| format!("{} cannot be written", shown()))
}

/// Makes a folder that the user named, with those above it.
///
/// # Errors
/// Where it cannot be made.
pub fn make_folders(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("the folder {} cannot be created", path.display()))
}

/// Writes a file that the user named, whole or not at all, with the mode of the one it replaces. Folders that
/// are missing are made; a link in its place is replaced, not followed.
///
/// # Errors
/// Where it cannot be written.
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folders(folder)?;
    let (folder, name) = apart(path)?;
    let mode = match sys::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile => {
            Mode::from_raw_mode(about.st_mode) & Mode::from_raw_mode(0o777)
        }
        _ => Mode::from_raw_mode(0o666),
    };
    write_whole(folder.as_fd(), &name, bytes, mode)
        .with_context(|| format!("{} cannot be written", path.display()))
}

/// Writes beside under a random name, and renames: a rename follows no link.
fn write_whole(folder: BorrowedFd<'_>, name: &OsStr, bytes: &[u8], mode: Mode) -> std::io::Result<()> {
    let (part, file) = make_part(folder, name, mode)?;
    let write = || -> std::io::Result<()> {
        let mut file = File::from(file);
        file.write_all(bytes)?;
        file.flush()?;
        drop(file);
        Ok(sys::renameat(folder, &part, folder, name)?)
    };
    write().inspect_err(|_| {
        let _ = sys::unlinkat(folder, &part, AtFlags::empty());
    })
}

fn make_part(folder: BorrowedFd<'_>, name: &OsStr, mode: Mode) -> std::io::Result<(OsString, OwnedFd)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | NOFOLLOW;
    loop {
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut part = OsString::from(".");
        part.push(name);
        part.push(format!(".{:016x}", u64::from_le_bytes(random)));
        match sys::openat(folder, &part, flags, mode) {
            Ok(file) => return Ok((part, file)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_own(about: &Stat) -> bool {
    about.st_uid == rustix::process::geteuid().as_raw()
}

fn is_ours(about: &Stat, path: &Path, others: Others) -> Result<()> {
    if !is_own(about) {
        bail!(
            "{} belongs to another user (uid {}), who could read and change what opdev keeps there\n  to do: remove it, or \
             take it over with `sudo chown -R $(id -u) {}`",
            path.display(),
            about.st_uid,
            path.display()
        );
    }
    if others == Others::MayNotWrite && Mode::from_raw_mode(about.st_mode).intersects(Mode::WGRP | Mode::WOTH)
    {
        bail!(
            "other users may write to {}, so what opdev finds there may be theirs\n  to do: look at what is in it, then \
             `chmod 700 {}`, or remove it",
            path.display(),
            path.display()
        );
    }
    Ok(())
}

/// A path as the folder that it is in, opened, and its name there.
fn apart(path: &Path) -> Result<(OwnedFd, OsString)> {
    let name = path.file_name().with_context(|| format!("{} names no folder", path.display()))?;
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = sys::open(parent, flags, Mode::empty())
        .with_context(|| format!("{} cannot be opened", parent.display()))?;
    Ok((handle, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn victim() -> (tempfile::TempDir, PathBuf) {
        let outside = tempfile::tempdir().unwrap();
        let file = outside.path().join("authorized_keys");
        fs::write(&file, "mine\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        (outside, file)
    }

    fn untouched(file: &Path) {
        assert_eq!(fs::read_to_string(file).unwrap(), "mine\n");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn a_planted_link_leads_nowhere_whoever_writes() {
        let (_outside, file) = victim();
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateFolder::make(&folder.path().join("state")).unwrap();
        let plant = || {
            let _ = fs::remove_file(private.path().join("name"));
            symlink(&file, private.path().join("name")).unwrap();
        };
        plant();
        assert!(private.open_file("name").unwrap_err().to_string().contains("is a link"));
        assert!(private.append("name").is_err());
        assert!(private.read("name").is_err());
        private.write("name", b"ours").unwrap();
        assert_eq!(private.read("name").unwrap().unwrap(), b"ours");
        plant();
        private.create("name").unwrap().write_all(b"ours").unwrap();
        assert!(!private.path().join("name").is_symlink());
        plant();
        private.write("other", b"ours").unwrap();
        private.rename("other", "name").unwrap();
        plant();
        private.remove("name").unwrap();
        untouched(&file);
    }

    #[test]
    fn a_second_name_of_a_file_elsewhere_is_not_written_to() {
        let (outside, file) = victim();
        let private = PrivateFolder::make(&outside.path().join("state")).unwrap();
        fs::hard_link(&file, private.path().join("name")).unwrap();
        assert!(private.open_file("name").unwrap_err().to_string().contains("hard link"));
        private.write("name", b"ours").unwrap();
        untouched(&file);
    }

    #[test]
    fn a_folder_that_is_a_link_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, folder.path().join("state")).unwrap();
        let refused = PrivateFolder::make(&folder.path().join("state")).unwrap_err().to_string();
        assert!(refused.contains("is a link") && refused.contains("to do:"), "{refused}");
        let private = PrivateFolder::make(&folder.path().join("own")).unwrap();
        symlink(&elsewhere, private.path().join("data")).unwrap();
        assert!(private.folder("data").is_err());
        for mode in [0o770, 0o707] {
            fs::set_permissions(private.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = PrivateFolder::make(private.path()).unwrap_err().to_string();
            assert!(refused.contains("other users may write"), "{refused}");
        }
        fs::set_permissions(private.path(), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(PrivateFolder::open(private.path()).unwrap().is_some());
        assert!(PrivateFolder::open(&folder.path().join("none")).unwrap().is_none());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }

    #[test]
    fn what_is_new_is_its_owners_only() {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateFolder::make(&folder.path().join("state")).unwrap();
        private.write("a", b"1").unwrap();
        private.open_file("b").unwrap();
        private.create("c").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(private.path()), 0o700);
        for name in ["a", "b", "c"] {
            assert_eq!(mode(&private.path().join(name)), 0o600);
        }
        assert_eq!(private.names().unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn files_of_the_project_are_written_through_no_link() {
        let (_outside, file) = victim();
        let project = tempfile::tempdir().unwrap();
        let root = project.path();
        write_in_project(root, Path::new("config/crd/a.yaml"), b"one").unwrap();
        fs::set_permissions(root.join("config/crd/a.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
        write_in_project(root, Path::new("./config/crd/a.yaml"), b"two").unwrap();
        assert_eq!(fs::read_to_string(root.join("config/crd/a.yaml")).unwrap(), "two");
        let mode = fs::metadata(root.join("config/crd/a.yaml")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        symlink(&file, root.join("config/crd/b.yaml")).unwrap();
        symlink(file.parent().unwrap(), root.join("rbac")).unwrap();
        for path in ["config/crd/b.yaml", "rbac/authorized_keys", "../authorized_keys", "/tmp/x", "."] {
            assert!(write_in_project(root, Path::new(path), b"theirs").is_err(), "{path}");
        }
        untouched(&file);
        assert_eq!(fs::read_dir(root.join("config/crd")).unwrap().count(), 2);
    }
}

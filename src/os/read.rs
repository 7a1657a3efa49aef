//! Reads files and folders that came with a project, before anybody has trusted it. A file is a regular file
//! and not too large, a walk has so many entries, and nothing is waited for. Judges no content and writes
//! nothing.

use rustix::fs::{Mode, OFlags};
use std::fs::{DirEntry, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a file that somebody has written by hand.
pub const SMALL: u64 = 8 << 20;
/// Bytes of an archive of a chart: what Helm takes unpacked.
pub const ARCHIVE: u64 = 100 << 20;
/// Bytes of a program, or of a journal.
pub const LARGE: u64 = 1 << 30;

/// Entries of all folders that one walk sees.
const MOST_ENTRIES: usize = 100_000;
/// Entries of one folder that are read.
const MOST_OF_FOLDER: usize = 20_000;

/// The process has been asked to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends all walks, now and from now on: the process has been asked to end.
pub fn end_walks() {
    ENDING.store(true, Ordering::Relaxed);
}

/// The bytes of a file that somebody has written.
///
/// # Errors
/// Where it is missing or forbidden, no regular file, or larger than [`SMALL`].
pub fn bytes(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    bytes_up_to(path, SMALL)
}

/// The text of a file that somebody has written.
///
/// # Errors
/// Those of [`bytes()`], and a content that is no UTF-8.
pub fn text(path: impl AsRef<Path>) -> io::Result<String> {
    text_up_to(path, SMALL)
}

/// The text of a file of at most so many bytes.
///
/// # Errors
/// Those of [`bytes_up_to`], and a content that is no UTF-8.
pub fn text_up_to(path: impl AsRef<Path>, most: u64) -> io::Result<String> {
    String::from_utf8(bytes_up_to(path, most)?).map_err(|_| io::Error::other("it is no UTF-8"))
}

/// The bytes of a file of at most so many.
///
/// # Errors
/// Where it is missing or forbidden, no regular file, or larger.
pub fn bytes_up_to(path: impl AsRef<Path>, most: u64) -> io::Result<Vec<u8>> {
    let (file, about) = open(path.as_ref())?;
    if about.len() > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
    // Files of the kernel say that they are empty, whatever they hold, and a file may grow while it is read.
    let read = file.take(most + 1).read_to_end(&mut bytes)?;
    if read as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// Opens a regular file.
///
/// # Errors
/// Where it is missing or forbidden, or something else.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    // A pipe would be opened only once somebody writes to it. What a device does when it is opened nobody
    // knows.
    regular(&std::fs::metadata(path)?)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    // Another file may have taken its place meanwhile.
    let about = file.metadata()?;
    regular(&about)?;
    Ok((file, about))
}

fn regular(about: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = about.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    };
    Err(io::Error::other(format!("it is {what}, not a regular file")))
}

fn too_large(most: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MiB", most >> 20))
}

/// The entries of a folder, in the order of names.
///
/// # Errors
/// Where it cannot be read.
pub fn entries(folder: impl AsRef<Path>) -> io::Result<Vec<DirEntry>> {
    let folder = folder.as_ref();
    let mut found: Vec<DirEntry> = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        if found.len() == MOST_OF_FOLDER {
            tracing::warn!("only {MOST_OF_FOLDER} entries of {} are read", folder.display());
            break;
        }
        found.extend(entry);
    }
    found.sort_by_key(DirEntry::file_name);
    Ok(found)
}

/// The paths of what a folder holds, in the order of names; nothing where it cannot be read.
pub fn paths(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    entries(folder).into_iter().flatten().map(|entry| entry.path()).collect()
}

/// One walk through folders, with the number of entries that it may still see.
#[derive(Debug)]
pub struct Walk {
    left: usize,
    from: PathBuf,
    /// When it ends at the latest.
    until: Option<Instant>,
}

impl Walk {
    /// A walk that begins in a folder.
    pub fn from(folder: &Path) -> Walk {
        Walk { left: MOST_ENTRIES, from: folder.to_owned(), until: None }
    }

    /// This walk, ended after so long: folders may lie far away.
    #[must_use]
    pub fn within(self, time: Duration) -> Walk {
        Walk { until: Some(Instant::now() + time), ..self }
    }

    /// The entries of a folder, in the order of names. Nothing where it cannot be read, where the walk has
    /// seen too much, and once the process has been asked to end.
    pub fn entries(&mut self, folder: &Path) -> Vec<DirEntry> {
        if self.is_cut() || ENDING.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut found = entries(folder).unwrap_or_default();
        if found.len() >= self.left {
            tracing::warn!("only {MOST_ENTRIES} entries below {} are looked at", self.from.display());
            found.truncate(self.left);
        }
        self.left -= found.len();
        found
    }

    /// The paths of the entries of a folder.
    pub fn paths(&mut self, folder: &Path) -> Vec<PathBuf> {
        self.entries(folder).into_iter().map(|entry| entry.path()).collect()
    }

    /// True if it was cut short.
    pub fn is_cut(&self) -> bool {
        self.left == 0 || self.until.is_some_and(|until| Instant::now() >= until)
    }
}

/// Why nobody looks for files of a project in a folder; `None` where it is as good as any. Links are followed
/// first.
pub fn no_place_for_files(root: &Path, folder: &Path) -> Option<String> {
    let real = folder.canonicalize().ok()?;
    let root = root.canonicalize().ok()?;
    let leads = || {
        let same = real == folder;
        if same { String::new() } else { format!("leads to {}, which ", real.display()) }
    };
    if real != root && root.starts_with(&real) {
        return Some(format!("{}holds the project itself", leads()));
    }
    is_of_kernel(&root, &real).then(|| format!("{}belongs to the kernel", leads()))
}

/// True if a folder, with all links followed, is one whose files the kernel makes up. A project may lie in
/// `/dev/shm`.
pub fn is_of_kernel(root: &Path, real: &Path) -> bool {
    let mut systems = ["/proc", "/sys", "/dev"].map(Path::new).into_iter();
    systems.any(|system| !root.starts_with(system) && is_on(system, real))
}

/// True if a path lies in a file system that is mounted elsewhere too, such as `/proc` in a container.
fn is_on(system: &Path, real: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().map(|about| about.dev());
    let root = device(Path::new("/"));
    let own = device(system).filter(|own| Some(*own) != root);
    real.starts_with(system) || (own.is_some() && own == device(real))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    fn why(result: io::Result<Vec<u8>>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_file_is_a_regular_file_of_a_size() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("main.go"), "package main\n").unwrap();
        symlink("main.go", at("link.go")).unwrap();
        assert_eq!(text(at("link.go")).unwrap(), "package main\n");
        symlink("/dev/zero", at("endless")).unwrap();
        assert_eq!(why(bytes(at("endless"))), "it is a device, not a regular file");
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        assert_eq!(why(bytes(at("pipe"))), "it is a pipe, not a regular file");
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(why(bytes(at("socket"))), "it is a socket, not a regular file");
        assert_eq!(why(bytes(folder.path())), "it is a folder, not a regular file");
        File::create(at("large")).unwrap().set_len(SMALL + 1).unwrap();
        assert_eq!(why(bytes(at("large"))), "it is larger than 8 MiB");
        assert_eq!(bytes(at("none")).unwrap_err().kind(), ErrorKind::NotFound);
        symlink("nowhere", at("dangling")).unwrap();
        assert_eq!(bytes(at("dangling")).unwrap_err().kind(), ErrorKind::NotFound);
        std::fs::write(at("latin"), [0xe4]).unwrap();
        assert_eq!(text(at("latin")).unwrap_err().to_string(), "it is no UTF-8");
    }

    #[test]
    fn a_walk_sees_so_much_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["c", "a", "b"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut walk = Walk { left: 5, ..Walk::from(folder.path()) };
        let names = |found: Vec<DirEntry>| -> Vec<_> {
            found.into_iter().map(|entry| entry.file_name().into_string().unwrap()).collect()
        };
        assert_eq!(names(walk.entries(folder.path())), ["a", "b", "c"]);
        assert!(!walk.is_cut());
        assert_eq!(names(walk.entries(folder.path())), ["a", "b"]);
        assert!(walk.is_cut() && walk.entries(folder.path()).is_empty());
        let mut late = Walk::from(folder.path()).within(Duration::ZERO);
        assert!(late.is_cut() && late.entries(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_around_the_project_and_the_kernels_are_no_place_for_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        std::fs::create_dir_all(root.join("api")).unwrap();
        symlink("/", root.join("all")).unwrap();
        symlink("/proc/self", root.join("self")).unwrap();
        let said = |path: &str| no_place_for_files(&root, &root.join(path)).unwrap_or_default();
        assert_eq!(said("api"), "");
        assert_eq!(said("."), "");
        assert_eq!(said("/"), "holds the project itself");
        assert_eq!(said("all"), "leads to /, which holds the project itself");
        assert!(said("..").contains("holds the project itself"), "{}", said(".."));
        for kernels in ["self", "/sys", "/dev"] {
            assert!(said(kernels).contains("belongs to the kernel"), "{kernels}: {}", said(kernels));
        }
    }
}

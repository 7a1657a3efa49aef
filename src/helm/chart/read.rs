//! Reads a folder into a `FileSet`: the one place of this package that touches the disk.

#![allow(clippy::disallowed_methods)]

use super::file_set::FileSet;
use super::ignore::Rules;
use super::{Content, Unread};
use crate::spread;
use opdev_object::names::is_editors;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, iter};

/// The largest file Helm takes.
const LIMIT: u64 = 5 * 1024 * 1024;
/// The largest archive that is read: Helm takes no chart that is larger unpacked.
const ARCHIVE: u64 = 100 * 1024 * 1024;
/// More files and folders than this are no chart. Helm has no such limit, and would walk a whole disk.
const MOST: usize = 50_000;
/// The largest total size of a chart's files, in bytes.
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// Reads a chart's folder, symlinks followed; what `.helmignore` names is not read.
/// A `.tgz` given instead of a folder yields its files.
pub fn read_dir(folder: &Path) -> io::Result<FileSet> {
    read_all(folder, Editors::AreContent)
}

/// Reads a folder without the files that editors keep beside those of the user: for a chart that is being
/// edited, and for output made of it. Helm takes them as content, or fails at a lock that leads nowhere.
pub fn read_dir_in_work(folder: &Path) -> io::Result<FileSet> {
    read_all(folder, Editors::AreLeftOut)
}

/// The outcome for the files that editors keep beside those of the user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Editors {
    /// As for Helm.
    AreContent,
    AreLeftOut,
}

fn read_all(folder: &Path, editors: Editors) -> io::Result<FileSet> {
    read_with(folder, editors, &|Found { path, full }, room| {
        let data = room.file(&full).map(Content::from);
        (path, data)
    })
}

/// Reads a folder, but leaves files that only `.Files` or `crds/` may want until they are asked for: most
/// charts never do, and it can be most of a chart. That each can be opened and is not too large is checked
/// now.
pub fn read_dir_late(folder: &Path) -> io::Result<(FileSet, Unread)> {
    let unread = Unread::default();
    let files = read_with(folder, Editors::AreContent, &|Found { path, full }, room| {
        let data = if is_structure(&path) {
            room.file(&full).map(Content::from)
        } else {
            open(&full).map(|_| Content::late(full, &unread))
        };
        (path, data)
    });
    Ok((files?, unread))
}

/// Returns true if a file says what a chart or a subchart is, and not only what it brings along.
fn is_structure(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    matches!(
        name,
        "Chart.yaml"
            | "Chart.lock"
            | "values.yaml"
            | "values.schema.json"
            | "requirements.yaml"
            | "requirements.lock"
            | ".helmignore"
    ) || name.ends_with(".tgz")
        || path.starts_with("templates/")
        || path.contains("/templates/")
}

fn read_with(
    folder: &Path,
    editors: Editors,
    take: &(impl Fn(Found, &Room) -> (String, io::Result<Content>) + Sync),
) -> io::Result<FileSet> {
    if folder.is_file() {
        let data = small(folder, ARCHIVE)?;
        return super::archive::unpack(&data, &super::archive::Budget::new())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    }
    let ignore = folder.join(".helmignore");
    let text = match small(&ignore, LIMIT) {
        Ok(bytes) => {
            String::from_utf8(bytes).map_err(|_| at(&ignore, &io::Error::other("it is no UTF-8")))?
        }
        // A link that leads nowhere is told as Helm tells it, with what the folder holds.
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(at(&ignore, &error)),
    };
    // A broken .helmignore is reported when the chart is loaded.
    let rules = Rules::parse(&text).unwrap_or_default();
    let room = Room { used: AtomicU64::new(0) };
    let (walked, mut found) = spread::while_made(
        |file| take(file, &room),
        |give| {
            let mut left = MOST;
            let mut found = |file| {
                give(file, CALLS);
            };
            walk(folder, "", &mut Walk { rules: &rules, editors, found: &mut found, left: &mut left }, 0)
        },
    );
    walked?;
    // Several files may be unreadable: the first one by name is told, so that the error is always one and the
    // same.
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    found.into_iter().map(|(path, data)| Ok((path, data?))).collect()
}

/// To open, ask and close a file takes as long as to read some bytes of it.
const CALLS: usize = 1024;

/// How much the files of one chart may still hold.
struct Room {
    used: AtomicU64,
}

impl Room {
    fn file(&self, path: &Path) -> io::Result<Arc<[u8]>> {
        if self.used.load(Ordering::Relaxed) > MOST_BYTES {
            let message = format!("the files of the chart are larger than {MOST_BYTES} bytes together");
            return Err(at(path, &io::Error::other(message)));
        }
        let bytes = file(path)?;
        self.used.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }
}

/// A file of a chart.
struct Found {
    path: String,
    full: PathBuf,
}

/// A walk through a chart's folders.
struct Walk<'a> {
    rules: &'a Rules,
    editors: Editors,
    found: &'a mut dyn FnMut(Found),
    /// Entries that it may still see.
    left: &'a mut usize,
}

fn walk(folder: &Path, prefix: &str, walked: &mut Walk<'_>, depth: usize) -> io::Result<()> {
    if depth > 40 {
        return Err(io::Error::other(format!("{}: folders are nested too deep", folder.display())));
    }
    let entries = fs::read_dir(folder);
    // The caller names the chart itself.
    for entry in if depth == 0 { entries? } else { entries.map_err(|error| at(folder, &error))? } {
        let entry = entry?;
        *walked.left = walked.left.checked_sub(1).ok_or_else(|| {
            io::Error::other(format!(
                "{}: the chart has more than {MOST} files and folders; a link may lead out of it",
                folder.display()
            ))
        })?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if walked.editors == Editors::AreLeftOut && is_editors(&name) {
            continue;
        }
        let path = format!("{prefix}{name}");
        let full = entry.path();
        let mut kind = entry.file_type()?;
        if kind.is_symlink() {
            kind = match fs::metadata(&full) {
                Ok(target) => target.file_type(),
                // Nobody looks at what is left out anyway.
                Err(_) if walked.rules.ignores_one(&path, false) => continue,
                Err(error) => return Err(leads_nowhere(&full, &error)),
            };
        }
        let keep = path == ".helmignore";
        if !keep && walked.rules.ignores_one(&path, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            walk(&full, &format!("{path}/"), walked, depth + 1)?;
        } else if kind.is_file() {
            (walked.found)(Found { path, full });
        } else {
            let message = format!("cannot load irregular file {path} as it has file mode type bits set");
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

/// An error with the path that it is about.
fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn leads_nowhere(link: &Path, error: &io::Error) -> io::Error {
    let target = fs::read_link(link).unwrap_or_default();
    let message = format!("{}: the link leads to {}: {error}", link.display(), target.display());
    io::Error::new(error.kind(), message)
}

/// The bytes of a regular file of at most so many: a device or a pipe may never end.
fn small(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// Opens a file that is not too large, and tells how large it is.
fn open(path: &Path) -> io::Result<(fs::File, u64)> {
    let file = fs::File::open(path).map_err(|error| at(path, &error))?;
    let size = file.metadata()?.len();
    if size > LIMIT {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let message = format!("chart file \"{name}\" is larger than the maximum file size {LIMIT}");
        return Err(io::Error::other(message));
    }
    Ok((file, size))
}

/// Reads a schema that a chart's schema refers to by an absolute path. A device or a pipe is no schema.
pub(crate) fn schema(path: &Path) -> io::Result<Arc<[u8]>> {
    if fs::metadata(path)?.is_file() { file(path) } else { Err(io::Error::other("not a file")) }
}

/// Reads a file, as long as it is when it is opened.
pub(super) fn file(path: &Path) -> io::Result<Arc<[u8]>> {
    let (mut file, size) = open(path)?;
    let mut data: Arc<[u8]> = iter::repeat_n(0, usize::try_from(size).unwrap_or(0)).collect();
    let mut room = Arc::get_mut(&mut data).unwrap_or_default();
    while !room.is_empty() {
        match file.read(room) {
            Ok(0) => break,
            Ok(count) => room = &mut room[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // It has become shorter meanwhile.
    let missing = room.len();
    Ok(if missing == 0 { data } else { Arc::from(&data[..data.len() - missing]) })
}

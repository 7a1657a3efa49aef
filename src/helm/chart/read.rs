//! Reads a folder into a `FileSet`: the one place of this package that touches the disk.

#![allow(clippy::disallowed_methods)]

use super::file_set::FileSet;
use super::ignore::Rules;
use super::{Content, Unread};
use crate::spread;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, iter};

/// The largest file Helm takes.
const LIMIT: u64 = 5 * 1024 * 1024;

/// Reads a chart's folder, symlinks followed; what `.helmignore` names is not read.
/// A `.tgz` given instead of a folder yields its files.
pub fn read_dir(folder: &Path) -> io::Result<FileSet> {
    read_with(folder, &|Found { path, full }| {
        let data = file(&full).map(Content::from);
        (path, data)
    })
}

/// The same, but what only `.Files` or `crds/` may want is read when it is asked for: most charts never do, and it can
/// be most of a chart. That it can be opened and is not too large is looked at now.
pub fn read_dir_late(folder: &Path) -> io::Result<(FileSet, Unread)> {
    let unread = Unread::default();
    let files = read_with(folder, &|Found { path, full }| {
        let data = if is_structure(&path) {
            file(&full).map(Content::from)
        } else {
            open(&full).map(|_| Content::late(full, &unread))
        };
        (path, data)
    });
    Ok((files?, unread))
}

/// Whether a file says what a chart or a subchart is, and not only what it brings along.
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
    take: &(impl Fn(Found) -> (String, io::Result<Content>) + Sync),
) -> io::Result<FileSet> {
    if folder.is_file() {
        let data = fs::read(folder)?;
        return super::archive::unpack(&data, &super::archive::Budget::new())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
    }
    let text = match fs::read_to_string(folder.join(".helmignore")) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    // A broken .helmignore is reported when the chart is loaded.
    let rules = Rules::parse(&text).unwrap_or_default();
    let (walked, mut found) =
        spread::while_made(take, |give| walk(folder, "", &rules, &mut |file| give(file, CALLS), 0));
    walked?;
    // Of several that cannot be read, always the same one is told.
    found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    found.into_iter().map(|(path, data)| Ok((path, data?))).collect()
}

/// To open, ask and close a file takes as long as to read some bytes of it.
const CALLS: usize = 1024;

/// A file of a chart.
struct Found {
    path: String,
    full: PathBuf,
}

fn walk(
    folder: &Path,
    prefix: &str,
    rules: &Rules,
    found: &mut dyn FnMut(Found),
    depth: usize,
) -> io::Result<()> {
    if depth > 40 {
        return Err(io::Error::other(format!("{}: folders are nested too deep", folder.display())));
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        let full = entry.path();
        let mut kind = entry.file_type()?;
        if kind.is_symlink() {
            kind = fs::metadata(&full)?.file_type();
        }
        let keep = path == ".helmignore";
        if !keep && rules.ignores_one(&path, kind.is_dir()) {
            continue;
        }
        if kind.is_dir() {
            walk(&full, &format!("{path}/"), rules, found, depth + 1)?;
        } else if kind.is_file() {
            found(Found { path, full });
        } else {
            let message = format!("cannot load irregular file {path} as it has file mode type bits set");
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

/// Opens a file that is not too large, and tells how large it is.
fn open(path: &Path) -> io::Result<(fs::File, u64)> {
    let file = fs::File::open(path)?;
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

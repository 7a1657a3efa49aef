//! The problem: `opdev init` and `opdev create api` write many files, and may be killed between two of them.
//! So the writes become one: there is a note in the project's folder of what is about to be written, made
//! before the first file and removed after the last. Where opdev was killed in between, the note is still
//! there, and the next of these commands takes back what was written. A file that somebody has changed since
//! stays.

use crate::{PlannedFile, PresentFile, ProjectFiles};
use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opdev_os::private_folder::{STATE, write_in_project};
use opdev_os::read;
use opdev_os::sha256;
use opdev_project::unfinished::NOTE;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// Larger notes are not opdev's.
const MOST: u64 = 256 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    /// Why the file is there, for whoever opens it.
    about: String,
    /// Folders that were missing, outermost first.
    folders: Vec<String>,
    files: Vec<NotedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotedFile {
    path: String,
    /// The digest of the content that is written, in hexadecimal digits.
    sha256: String,
    /// The content before, in base64; nothing for a file that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    before: Option<String>,
}

/// The result of taking a command back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenBack {
    /// The number of files that were removed or got their old content.
    pub files: usize,
    /// Files that were written and then changed by somebody else: they stay.
    pub kept: Vec<String>,
}

/// Notes what is about to be written.
///
/// # Errors
/// Where the note cannot be written.
pub(crate) fn note(root: &Path, present: &dyn ProjectFiles, files: &[(&str, &PlannedFile)]) -> Result<()> {
    // A command that was ended while it wrote its note has left these parts.
    remove_parts(root, NOTE);
    let mut folders = BTreeSet::new();
    let mut noted = Vec::new();
    for (path, file) in files {
        let above = Path::new(path).ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
        folders.extend(
            above
                .filter(|above| root.join(above).symlink_metadata().is_err())
                .map(|above| above.display().to_string()),
        );
        let before = match present.read(path) {
            PresentFile::Content(before) => Some(BASE64_STANDARD.encode(before)),
            PresentFile::Missing | PresentFile::Unreadable => None,
        };
        noted.push(NotedFile { path: (*path).to_owned(), sha256: sha256::digits(&file.content), before });
    }
    let about = "opdev is writing these files, or was ended while it did: the next `opdev init` or `opdev create api` here \
                 takes them back"
        .to_owned();
    let note = Note { about, folders: folders.into_iter().collect(), files: noted };
    write_in_project(root, Path::new(NOTE), &serde_json::to_vec(&note)?)
}

/// Removes the note: all is written.
///
/// # Errors
/// Where it cannot be removed.
pub(crate) fn done(root: &Path) -> Result<()> {
    std::fs::remove_file(root.join(NOTE)).with_context(|| format!("{NOTE} cannot be removed"))
}

/// Takes back what a command that was ended in the middle has written; `None` where there was none.
///
/// # Errors
/// A note that is not opdev's, and what cannot be removed or written.
pub fn take_back(root: &Path, present: &dyn ProjectFiles) -> Result<Option<TakenBack>> {
    let path = root.join(NOTE);
    let Ok(about) = path.symlink_metadata() else { return Ok(None) };
    if !about.is_file() || about.len() > MOST {
        bail!("{} is not a note of opdev's; look at what it is, and remove it", path.display());
    }
    let bytes =
        read::bytes_up_to(&path, MOST).with_context(|| format!("{} cannot be read", path.display()))?;
    let note: Note = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} is not a note of opdev's; look at it, and remove it", path.display()))?;
    let mut named = note.files.iter().map(|file| &file.path).chain(&note.folders);
    if let Some(outside) = named.find(|named| !is_inside(root, named)) {
        bail!("{} names {outside}, which no command of opdev's writes; remove the note", path.display());
    }
    let mut taken = TakenBack::default();
    for file in note.files.iter().rev() {
        remove_parts(root, &file.path);
        let PresentFile::Content(now) = present.read(&file.path) else { continue };
        let before = file.before.as_deref().map(|before| BASE64_STANDARD.decode(before)).transpose()?;
        if before.as_ref() == Some(&now) {
            continue;
        }
        if sha256::digits(&now) != file.sha256 {
            taken.kept.push(file.path.clone());
            continue;
        }
        match before {
            Some(before) => write_in_project(root, Path::new(&file.path), &before)?,
            None => std::fs::remove_file(root.join(&file.path))
                .with_context(|| format!("{} cannot be removed", file.path))?,
        }
        taken.files += 1;
    }
    for folder in note.folders.iter().rev() {
        // A folder with content belongs to somebody.
        let _ = std::fs::remove_dir(root.join(folder));
    }
    done(root)?;
    Ok(Some(taken))
}

/// Removes the parts that `write_in_project` leaves where it is killed between its write and its rename.
fn remove_parts(root: &Path, path: &str) {
    let path = Path::new(path);
    let (Some(name), Some(folder)) = (path.file_name().and_then(|name| name.to_str()), path.parent()) else {
        return;
    };
    let start = format!(".{name}.");
    for entry in read::entries(root.join(folder)).into_iter().flatten() {
        let found = entry.file_name().into_string().unwrap_or_default();
        let random = found.strip_prefix(&start).unwrap_or_default();
        if random.len() == 16 && random.bytes().all(|c| c.is_ascii_hexdigit()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Returns true if a path is one that `opdev init` could write: in the project, without a link on the way,
/// and not among the files of git, which a note that came with a clone could make run something, nor among
/// opdev's own. Some file systems take other letters for those of `.git`, so plain ones are asked for.
fn is_inside(root: &Path, path: &str) -> bool {
    let relative = Path::new(path);
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().is_some_and(|name| {
            let tools = [".git", "git~1", STATE];
            name.is_ascii() && !tools.iter().any(|tool| name.eq_ignore_ascii_case(tool))
        }),
        _ => false,
    };
    let plain = relative.components().all(is_plain);
    let mut above = relative.ancestors().filter(|above| !above.as_os_str().is_empty());
    plain && above.all(|above| root.join(above).symlink_metadata().map_or(true, |about| !about.is_symlink()))
}

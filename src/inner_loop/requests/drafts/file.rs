//! The file of a draft: in a folder that only its owner may enter, gone with the draft, also when a task
//! panics. A text that nobody has decided about, as after a terminal was lost, goes into `.opdev/drafts`, and
//! what the editor left beside it, too.

use super::edit::body_of;
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_os::private_folder::PrivateFolder;
use opdev_os::read;
use opdev_os::state_path::{shown, state_path};
use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The file that an editor leaves to recover its text is no larger than this.
const LARGEST: u64 = 64 << 20;

/// A file for the editor.
#[derive(Debug)]
pub(crate) struct DraftFile {
    folder: PathBuf,
    path: PathBuf,
    /// The text as opdev has made it.
    given: String,
    /// The project that keeps a text which was not written.
    project: PathBuf,
    /// It was decided what becomes of the text.
    decided: AtomicBool,
    /// The folder outlives the draft.
    stays: AtomicBool,
}

impl DraftFile {
    /// Creates a file with a name that editors know as YAML.
    ///
    /// # Errors
    /// Where the folder for temporary files cannot be written to.
    pub(crate) fn create(project: &Path, name: &str, text: &str) -> Result<DraftFile> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)
            .map_err(|error| anyhow!("no random numbers for a file's name: {error}"))?;
        let random = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let folder = std::env::temp_dir().join(format!("opdev-{random}"));
        let path = folder.join(file_name(name));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::DirBuilderExt as _;
            builder.mode(0o700);
        }
        builder.create(&folder).with_context(|| format!("{} cannot be created", folder.display()))?;
        let file = DraftFile {
            folder,
            path,
            given: text.to_owned(),
            project: project.to_owned(),
            decided: AtomicBool::new(false),
            stays: AtomicBool::new(false),
        };
        file.write(text)?;
        Ok(file)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces its text.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            options.mode(0o600);
        }
        let write = || options.open(&self.path)?.write_all(text.as_bytes());
        write().with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Its text.
    ///
    /// # Errors
    /// Where the file is gone, or its text is not UTF-8.
    pub(crate) fn read(&self) -> Result<String> {
        let bytes =
            read::bytes(&self.path).with_context(|| format!("{} cannot be read", self.path.display()))?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) => {
                let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                bail!("line {line} of the text is not UTF-8: save it as UTF-8")
            }
        }
    }

    /// It is decided what becomes of the text: nothing is kept when the draft goes.
    pub(crate) fn decided(&self) {
        self.decided.store(true, Ordering::Relaxed);
    }

    /// Keeps a text that was not written, and says so. Nothing is kept where nobody has changed anything.
    pub(crate) fn keep(&self) -> Option<String> {
        let text = read::bytes(&self.path).unwrap_or_default();
        let body = body_of_bytes(&text);
        let beside = self.beside();
        let changed = !body.is_empty() && body != body_of(&self.given).as_bytes();
        if !changed && beside.is_empty() {
            return None;
        }
        if is_secret(&String::from_utf8_lossy(body)) || is_secret(&self.given) {
            // Nothing of a Secret gets into the project.
            self.stays.store(true, Ordering::Relaxed);
            return Some(format!(
                "; a Secret's text is not kept in the project: it stays in {}",
                self.path.display()
            ));
        }
        Some(match self.keep_in_project(body, &beside) {
            Ok(place) => format!("; the text is kept in {place}"),
            Err(error) => {
                self.stays.store(true, Ordering::Relaxed);
                format!("; the text stays in {}: {error:#}", self.path.display())
            }
        })
    }

    fn keep_in_project(&self, body: &[u8], beside: &[OsString]) -> Result<String> {
        let folder = PrivateFolder::state(&state_path(&self.project))?.folder("drafts")?;
        let old = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // An editor finds what it left by the name of the file.
        let renamed = |left: &OsString, name: &str| {
            let left = left.to_string_lossy();
            if left.contains(&old) { left.replace(&old, name) } else { format!("{name}-{left}") }
        };
        let mut all = Vec::new();
        for left in beside {
            all.push((left, read::bytes_up_to(self.folder.join(left), LARGEST)?));
        }
        let name = free_name(&old, |name| {
            let others =
                all.iter().all(|(left, bytes)| may_take(&folder.path().join(renamed(left, name)), bytes));
            may_take(&folder.path().join(name), body) && others
        })
        .context("there are too many drafts of that name")?;
        folder.write(&name, body)?;
        for (left, bytes) in &all {
            folder.write(&renamed(left, &name), bytes)?;
        }
        Ok(shown(&self.project, &folder.path().join(name)))
    }

    /// The files that the editor has left beside the text.
    fn beside(&self) -> Vec<OsString> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_file = |entry: &fs::DirEntry| {
            entry.path() != self.path
                && entry.metadata().is_ok_and(|file| file.is_file() && (1..=LARGEST).contains(&file.len()))
        };
        entries.filter(is_file).map(|entry| entry.file_name()).collect()
    }
}

impl Drop for DraftFile {
    fn drop(&mut self) {
        if !self.decided.load(Ordering::Relaxed)
            && let Some(kept) = self.keep()
        {
            tracing::warn!("a text in the editor was not written{kept}");
        }
        if !self.stays.load(Ordering::Relaxed) {
            // With it goes what the editor left beside it.
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// The name of the file of a draft.
fn file_name(about: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    format!("{}.yaml", about.chars().map(plain).collect::<String>())
}

/// The text of an earlier draft of that name that is still kept, relative to the project.
pub(crate) fn kept_before(project: &Path, about: &str) -> Option<String> {
    let place = state_path(project).join("drafts").join(file_name(about));
    let is_there = place.symlink_metadata().is_ok_and(|file| file.is_file());
    is_there.then(|| shown(project, &place))
}

/// Returns true if a file is not there, or says the same.
fn may_take(path: &Path, bytes: &[u8]) -> bool {
    match read::bytes(path) {
        Ok(there) => there == bytes,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

/// The first name that is free; none where there are a hundred already.
fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> Option<String> {
    let stem = name.strip_suffix(".yaml").unwrap_or(name);
    let names = std::iter::once(name.to_owned()).chain((2..100).map(|n| format!("{stem}-{n}.yaml")));
    names.into_iter().find(|name| is_free(name))
}

fn is_secret(text: &str) -> bool {
    text.lines().any(|line| line.trim_end().trim_matches(['"', '\'']) == "kind: Secret")
}

/// The text without the comments of opdev, in whatever encoding it is.
fn body_of_bytes(text: &[u8]) -> &[u8] {
    let valid = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&text[..error.valid_up_to()]).unwrap_or_default(),
    };
    &text[valid.len() - body_of(valid).len()..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_goes_with_its_draft_also_in_a_panic() {
        use std::os::unix::fs::PermissionsExt as _;
        let project = tempfile::tempdir().unwrap();
        let file = DraftFile::create(project.path(), "Secret-a/b", "data: {}\n").unwrap();
        let path = file.path().to_owned();
        assert!(path.ends_with("Secret-a-b.yaml"), "{}", path.display());
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _file = file;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && !path.exists() && !path.parent().unwrap().exists());
        assert!(!project.path().join(".opdev").exists(), "nobody has changed anything");
    }

    #[test]
    fn a_text_nobody_has_decided_about_is_kept_with_what_the_editor_left() {
        let project = tempfile::tempdir().unwrap();
        let drafts = project.path().join(".opdev/drafts");
        let begin =
            || DraftFile::create(project.path(), "edit Web a", "# opdev: x\n#---\nsize: 1\n").unwrap();
        // Nothing was saved, but the editor has written down what was typed.
        let file = begin();
        fs::write(file.path().with_file_name(".edit-Web-a.yaml.swp"), "typed").unwrap();
        let folder = file.path().parent().unwrap().to_owned();
        drop(file);
        assert!(!folder.exists());
        assert_eq!(fs::read_to_string(drafts.join(".edit-Web-a.yaml.swp")).unwrap(), "typed");
        // Another text under that name takes none away, and the encoding does not matter.
        let file = begin();
        fs::write(file.path(), b"# opdev: x\n#---\nsize: 2 # gr\xfc\xdfe\n").unwrap();
        assert!(file.read().unwrap_err().to_string().starts_with("line 3 of the text is not UTF-8"));
        drop(file);
        assert_eq!(fs::read(drafts.join("edit-Web-a.yaml")).unwrap(), b"size: 1\n");
        assert_eq!(fs::read(drafts.join("edit-Web-a-2.yaml")).unwrap(), b"size: 2 # gr\xfc\xdfe\n");
        assert_eq!(
            kept_before(project.path(), "edit Web a").as_deref(),
            Some(".opdev/drafts/edit-Web-a.yaml")
        );
        // A second lost editor of the same object writes over nothing that the first one left.
        let file = begin();
        fs::write(file.path().with_file_name(".edit-Web-a.yaml.swp"), "typed later").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(drafts.join(".edit-Web-a.yaml.swp")).unwrap(), "typed");
        assert_eq!(fs::read_to_string(drafts.join(".edit-Web-a-3.yaml.swp")).unwrap(), "typed later");
        // It was decided: nothing more is kept.
        let file = begin();
        fs::write(file.path(), "size: 3\n").unwrap();
        file.decided();
        drop(file);
        assert_eq!(fs::read_dir(&drafts).unwrap().count(), 5);
    }

    #[test]
    fn a_secret_stays_outside_of_the_project() {
        let project = tempfile::tempdir().unwrap();
        let file = DraftFile::create(project.path(), "edit", "kind: Secret\ndata: {}\n").unwrap();
        fs::write(file.path(), "kind: Secret\ndata: {a: YQ==}\n").unwrap();
        let folder = file.path().parent().unwrap().to_owned();
        drop(file);
        assert!(folder.join("edit.yaml").exists() && !project.path().join(".opdev").exists());
        fs::remove_dir_all(folder).unwrap();
    }
}

//! Which Go files are added to a build, for which version of controller-runtime. They are written below a cache folder
//! and named to the go command in an overlay; the project's own folder stays as it is.

use crate::event::TraceLevel;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The oldest minor version of controller-runtime (`v0.N`) that has what the files use.
const OLDEST: u32 = 16;

/// How much is added, from all to the least. Where a build fails because of the added files, the next one is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Passes with their causes, cached reads, logs, and an id on every call.
    Full,
    /// The same without causes.
    Passes,
    /// An id on every call whose context has one, and nothing else.
    Header,
}

impl Rung {
    /// The next one to try; `None` where nothing is left but a build without any file.
    pub fn below(self) -> Option<Rung> {
        match self {
            Rung::Full => Some(Rung::Passes),
            Rung::Passes => Some(Rung::Header),
            Rung::Header => None,
        }
    }

    /// What the header says.
    pub fn level(self) -> TraceLevel {
        match self {
            Rung::Full | Rung::Passes => TraceLevel::Full,
            Rung::Header => TraceLevel::Wire,
        }
    }

    /// In one word, for messages and for the program itself.
    pub fn name(self) -> &'static str {
        match self {
            Rung::Full => "full",
            Rung::Passes => "passes",
            Rung::Header => "header",
        }
    }
}

/// What to put under `Replace` in the file that `go build -overlay` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayFile {
    /// Path in the main package, where there is no such file → the file below the cache folder.
    pub replace: BTreeMap<PathBuf, PathBuf>,
    /// How much is added.
    pub rung: Rung,
}

impl OverlayFile {
    /// Whether a place that the compiler named is in one of the added files, by either of their names. Then the
    /// user has made no mistake: the next rung is to be tried.
    pub fn holds(&self, place: &Path) -> bool {
        let known = |path: &Path| path == place || path.file_name().is_some_and(|name| place.ends_with(name));
        self.replace.iter().any(|(there, here)| known(there) || known(here))
    }
}

/// Why the files could not be written.
#[derive(Debug)]
pub struct OverlayError {
    /// What could not be written.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

impl fmt::Display for OverlayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for OverlayError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Writes the files of a rung below `cache` and says what to put into the overlay. `controller_runtime` is the version
/// that `go list -m` gives, such as `v0.24.1`; an empty one (a `replace` by a folder) is taken for the newest.
///
/// `Ok(None)` where this version has nothing that the files could use.
///
/// # Errors
/// Where the files cannot be written.
pub fn overlay(
    main_package: &Path,
    controller_runtime: &str,
    rung: Rung,
    cache: &Path,
) -> Result<Option<OverlayFile>, OverlayError> {
    let Some(files) = files(minor(controller_runtime), rung) else { return Ok(None) };
    let mut replace = BTreeMap::new();
    for (name, text) in files {
        let digest = Sha256::digest(text.as_bytes());
        let folder: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let kept = cache.join(folder).join(name);
        write(&kept, text).map_err(|source| OverlayError { path: kept.clone(), source })?;
        replace.insert(main_package.join(name), kept);
    }
    Ok(Some(OverlayFile { replace, rung }))
}

/// Writes a file whose folder is named by its content; one that is there is right already.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read(path).is_ok_and(|kept| kept == text.as_bytes()) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // Two builds may write it at once; whichever renames last has written the same bytes.
    let draft = path.with_extension(format!("{}.draft", std::process::id()));
    std::fs::write(&draft, text)?;
    std::fs::rename(&draft, path)
}

/// The N of `v0.N.M`; `None` where it is not said.
fn minor(version: &str) -> Option<u32> {
    let mut parts = version.trim_start_matches('v').split('.');
    match (parts.next()?.parse::<u32>().ok()?, parts.next()?.parse().ok()?) {
        (0, minor) => Some(minor),
        // A major version that nobody has seen yet is newer than all of them.
        _ => Some(u32::MAX),
    }
}

fn files(minor: Option<u32>, rung: Rung) -> Option<Vec<(&'static str, &'static str)>> {
    let minor = minor.unwrap_or(u32::MAX);
    if minor < OLDEST {
        return None;
    }
    let _ = rung;
    None
}

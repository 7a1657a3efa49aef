//! Go files that are added to a build, by the version of controller-runtime. They are written below a cache
//! folder and named to the go command in an overlay; the project's own folder stays as it is.

use opdev_event::TraceLevel;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The oldest minor version of controller-runtime (`v0.N`) that has what the files use.
const OLDEST: u32 = 16;

/// How much is added, from all to the least. Where a build fails because of the added files, the next one is
/// tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rung {
    /// Reconciles with their causes, cached reads, logs, and an id on every call.
    Full,
    /// Everything but the recorders of Events: an Event goes to a reconcile of the object that it is about.
    Causes,
    /// Reconciles and cached reads, without causes.
    Passes,
    /// An id on every call whose context has one, and nothing else.
    Header,
}

impl Rung {
    /// The next one to try; `None` where nothing is left but a build without any file.
    pub fn below(self) -> Option<Rung> {
        match self {
            Rung::Full => Some(Rung::Causes),
            Rung::Causes => Some(Rung::Passes),
            Rung::Passes => Some(Rung::Header),
            Rung::Header => None,
        }
    }

    /// The level that the header shows.
    pub fn level(self) -> TraceLevel {
        match self {
            Rung::Full | Rung::Causes => TraceLevel::Full,
            Rung::Passes => TraceLevel::Reconciles,
            Rung::Header => TraceLevel::Wire,
        }
    }

    /// In one word, for messages and for the program itself.
    pub fn name(self) -> &'static str {
        match self {
            Rung::Full => "full",
            Rung::Causes => "causes",
            Rung::Passes => "passes",
            Rung::Header => "header",
        }
    }
}

/// The entries under `Replace` in the file that `go build -overlay` reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayFile {
    /// Path in the main package, where there is no such file → the file below the cache folder.
    pub replace: BTreeMap<PathBuf, PathBuf>,
    /// How much is added.
    pub rung: Rung,
}

impl OverlayFile {
    /// Returns true if a place that the compiler named is in one of the added files, by either of their
    /// names. Then the user has made no mistake: the next rung is to be tried.
    pub fn holds(&self, place: &Path) -> bool {
        self.replace.iter().any(|(there, here)| {
            here == place || there == place || there.file_name().is_some_and(|name| place.ends_with(name))
        })
    }
}

/// Why the files could not be written.
#[derive(Debug)]
pub struct OverlayError {
    /// The file that could not be written.
    pub path: PathBuf,
    /// The system's words.
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

/// Writes the files of a rung below `cache` and says what to put into the overlay. `controller_runtime` is
/// the version that `go list -m` gives, such as `v0.24.1`; an empty one (a `replace` by a folder) is taken
/// for the newest.
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
    let files = files(minor(controller_runtime).unwrap_or(u32::MAX), rung);
    if files.is_empty() {
        return Ok(None);
    }
    let mut replace = BTreeMap::new();
    for Added(name, text) in files {
        replace.insert(main_package.join(name), kept(cache, name, text)?);
    }
    Ok(Some(OverlayFile { replace, rung }))
}

/// A file with this text below a cache folder.
///
/// # Errors
/// Where it cannot be written.
pub(super) fn kept(cache: &Path, name: &str, text: &str) -> Result<PathBuf, OverlayError> {
    let digest = Sha256::digest(text.as_bytes());
    let folder: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let path = cache.join(folder).join(name);
    match write(&path, text) {
        Ok(()) => Ok(path),
        Err(source) => Err(OverlayError { path, source }),
    }
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

/// A Go file that may be added, with its name in the main package. Go sets variables in the order of file
/// names: these come first, so that a client which the program makes in a variable finds what it needs.
struct Added(&'static str, &'static str);

const TRACE: Added = Added("aa_opdev_trace.go", include_str!("trace.go"));
const PLACES: Added = Added("aa_opdev_places.go", include_str!("places.go"));
const PASSES: Added = Added("aa_opdev_passes.go", include_str!("passes.go"));
const WAITS: Added = Added("aa_opdev_waits.go", include_str!("waits.go"));
const RECORDERS: Added = Added("aa_opdev_recorders.go", include_str!("recorders.go"));
const RECORDERS_NEW: Added = Added("aa_opdev_recorders_new.go", include_str!("recorders_new.go"));
const RECORDERS_ANNOTATED: Added =
    Added("aa_opdev_recorders_annotated.go", include_str!("recorders_annotated.go"));
const CAUSES: Added = Added("aa_opdev_causes.go", include_str!("causes.go"));
const QUEUE_UNTYPED: Added = Added("aa_opdev_queue_untyped.go", include_str!("queue_untyped.go"));
const QUEUE_TYPED: Added = Added("aa_opdev_queue_typed.go", include_str!("queue_typed.go"));
const QUEUE_PRIORITY: Added = Added("aa_opdev_queue_priority.go", include_str!("queue_priority.go"));
const INFORMER_OPTIONS: Added = Added("aa_opdev_informer_options.go", include_str!("informer_options.go"));

/// The files of a rung; none where the version is older than all that they were made for.
fn files(minor: u32, rung: Rung) -> Vec<Added> {
    if minor < OLDEST {
        return Vec::new();
    }
    let mut files = vec![TRACE, PLACES];
    if rung == Rung::Header {
        return files;
    }
    files.push(PASSES);
    // Clients wait for their own writes since 0.25.
    if minor >= 25 {
        files.push(WAITS);
    }
    if rung == Rung::Passes {
        return files;
    }
    if rung == Rung::Full {
        files.push(RECORDERS);
        // Recorders of the newer Events are there since 0.23, and take annotations since 0.25.
        match minor {
            ..23 => {}
            23..25 => files.push(RECORDERS_NEW),
            25.. => files.push(RECORDERS_ANNOTATED),
        }
    }
    files.push(CAUSES);
    // Queues hold requests since 0.19, know priorities since 0.20; informers take options since 0.21.
    files.push(if minor < 19 { QUEUE_UNTYPED } else { QUEUE_TYPED });
    if minor >= 20 {
        files.push(QUEUE_PRIORITY);
    }
    if minor >= 21 {
        files.push(INFORMER_OPTIONS);
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(version: &str, rung: Rung) -> Vec<&'static str> {
        let files = files(minor(version).unwrap_or(u32::MAX), rung);
        files
            .iter()
            .map(|Added(name, _)| name.trim_start_matches("aa_opdev_").trim_end_matches(".go"))
            .collect()
    }

    #[test]
    fn the_version_decides_which_files_are_added() {
        let all = [
            "trace",
            "places",
            "passes",
            "waits",
            "recorders",
            "recorders_annotated",
            "causes",
            "queue_typed",
            "queue_priority",
            "informer_options",
        ];
        let but = |names: &[&'static str]| {
            let left = all.iter().filter(|name| !names.contains(name)).copied();
            left.collect::<Vec<_>>()
        };
        assert_eq!(names("v0.25.0", Rung::Full), all);
        let new = ["trace", "places", "passes", "recorders", "recorders_new", "causes"];
        let rest = ["queue_typed", "queue_priority", "informer_options"];
        assert_eq!(names("v0.24.1", Rung::Full), [&new[..], &rest].concat());
        assert_eq!(names("v0.99.0", Rung::Full), all, "newer than all that are known");
        assert_eq!(names("", Rung::Full), all, "a folder in place of the module");
        assert_eq!(names("v0.20.4", Rung::Full), but(&["waits", "recorders_annotated", "informer_options"]));
        assert_eq!(
            names("v0.19.0-beta.0", Rung::Full),
            but(&["waits", "recorders_annotated", "queue_priority", "informer_options"])
        );
        assert_eq!(
            names("v0.16.1", Rung::Full),
            ["trace", "places", "passes", "recorders", "causes", "queue_untyped"]
        );
        assert_eq!(names("v0.25.0", Rung::Causes), but(&["recorders", "recorders_annotated"]));
        assert_eq!(names("v0.16.1", Rung::Passes), ["trace", "places", "passes"]);
        assert_eq!(names("v0.24.1", Rung::Header), ["trace", "places"]);
        assert!(names("v0.15.3", Rung::Full).is_empty(), "too old");
    }

    /// A file that no version asks for would be left out without a word.
    #[test]
    fn each_go_file_of_the_folder_is_added_for_some_version() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("instrument");
        let kept: std::collections::BTreeSet<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".go").map(str::to_owned))
            .collect();
        let added = (OLDEST..40).flat_map(|minor| files(minor, Rung::Full));
        let added: std::collections::BTreeSet<String> = added
            .map(|Added(name, _)| name.trim_start_matches("aa_opdev_").trim_end_matches(".go").to_owned())
            .collect();
        assert_eq!(added, kept);
    }

    #[test]
    fn each_rung_adds_less_and_the_header_says_what_is_missing() {
        let mut rungs = vec![Rung::Full];
        while let Some(below) = rungs.last().unwrap().below() {
            assert!(names("v0.25.0", below).len() < names("v0.25.0", *rungs.last().unwrap()).len());
            rungs.push(below);
        }
        let has_causes: Vec<bool> =
            rungs.iter().map(|rung| names("v0.25.0", *rung).contains(&"causes")).collect();
        let says_full: Vec<bool> = rungs.iter().map(|rung| rung.level() == TraceLevel::Full).collect();
        assert_eq!(has_causes, says_full, "the header says full exactly where causes are told");
    }

    #[test]
    fn files_are_kept_by_their_content_and_known_by_both_names() {
        let cache = std::env::temp_dir().join(format!("opdev-overlay-{}", std::process::id()));
        let package = Path::new("/project/cmd");
        let first = overlay(package, "v0.24.1", Rung::Full, &cache).unwrap().unwrap();
        assert_eq!(overlay(package, "v0.24.1", Rung::Full, &cache).unwrap().unwrap(), first);
        for (there, here) in &first.replace {
            assert!(there.starts_with(package) && here.starts_with(&cache) && here.is_file());
            assert!(first.holds(there) && first.holds(here), "the compiler names either");
        }
        assert!(first.holds(Path::new("cmd/aa_opdev_trace.go")), "relative to where the build runs");
        assert!(!first.holds(Path::new("cmd/main.go")));
        assert_eq!(overlay(package, "v0.15.0", Rung::Full, &cache).unwrap(), None);
        std::fs::remove_dir_all(&cache).unwrap();
    }
}

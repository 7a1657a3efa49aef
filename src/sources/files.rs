//! Files as they were read from the disk at one moment, and the words about one that cannot be used.

use super::Allow;
use super::definitions::Types;
use super::reconcilers::Texts;
use super::watches::WatchesFile;
use opdev_event::{Diagnostic, Permission, Place, Severity};
use opdev_helm::chart::FileSet;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::sync::Arc;

/// The content that was read from the disk at one moment.
#[derive(Debug)]
pub struct Files {
    /// `watches.yaml`, or why it cannot be read.
    pub watches: WatchesFile,
    /// Path and text of `opdev.yaml`, where there is one that can be read.
    pub settings: Option<(String, String)>,
    /// Each chart folder that `watches.yaml` names, or why it cannot be read.
    pub charts: BTreeMap<String, io::Result<FileSet>>,
    /// Each chart that the releases of programs name, or why it cannot be read.
    pub named_charts: BTreeMap<String, io::Result<FileSet>>,
    /// The output of the Go type files.
    pub types: Types,
    /// Paths and texts of CRD files.
    pub crds: Vec<(String, String)>,
    /// CRDs of these files that the project's kustomization patches, as they are then, by name.
    pub patched: BTreeMap<String, Arc<Value>>,
    /// Texts of everything below the folders of reconcilers.
    pub reconcilers: Texts,
    /// Paths and texts of samples.
    pub samples: Vec<(String, String)>,
    /// Environment variables, for `overrideValues`.
    pub env: BTreeMap<String, String>,
    /// The user's settings.
    pub options: Arc<Options>,
}

/// The user's settings about kinds.
#[derive(Clone, Debug, Default, Hash)]
pub struct Options {
    /// The script or the folder of templates that reconciles a kind, by the kind.
    pub reconcilers: BTreeMap<String, String>,
    /// Folders whose scripts and folders reconcile the kind that they are named after.
    pub reconciler_folders: Vec<String>,
    /// The parts of the outside world that programs may reach.
    pub allow: Allow,
    /// The permissions of the project; variables of the environment that are not named here are not read.
    pub granted: BTreeSet<Permission>,
    /// Links that lead out of the project: where they are, and where they lead.
    pub linked: Vec<(String, String)>,
    /// Dependencies in `charts/` that are older than the folder they were packed from.
    pub outdated: Vec<Outdated>,
    /// Files and folders of the project that are not read, and why.
    pub unread: Vec<(String, String)>,
    /// Where objects of a kind say how many replicas they want, by the kind.
    pub scale: BTreeMap<String, String>,
    /// The only kinds to reconcile; empty means all.
    pub only: Vec<String>,
    /// The operator's own programs.
    pub programs: Vec<OwnProgram>,
}

/// A dependency in `charts/` that is not the state of its `file://` folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outdated {
    /// The chart's folder, relative to the project's root.
    pub chart: String,
    /// The dependency's name in Chart.yaml.
    pub name: String,
    /// The archive or folder below the chart.
    pub packed: String,
    /// The folder that `file://` names, relative to the project's root.
    pub source: String,
    /// A file of it that differs.
    pub file: String,
}

impl Outdated {
    /// Returns true if the copy is an archive, which packing writes anew; a folder is the user's own copy.
    pub fn is_archive(&self) -> bool {
        self.packed.ends_with(".tgz")
    }
}

/// The kinds that a program of the operator's own reconciles.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnProgram {
    /// The program in words, such as `go ./cmd`.
    pub words: String,
    /// True if it also reconciles the kinds of `watches.yaml`, as hybrid operators do.
    pub charts: bool,
    /// The kinds that it reconciles; empty for those that no other program names.
    pub kinds: Vec<String>,
}

impl OwnProgram {
    /// The program that reconciles a kind, of several: the one that names it, else the first one that names
    /// none.
    pub fn of_kind<'a>(programs: &'a [OwnProgram], kind: &str) -> Option<&'a OwnProgram> {
        let named = programs.iter().find(|program| program.kinds.iter().any(|named| named == kind));
        named.or_else(|| programs.iter().find(|program| program.kinds.is_empty()))
    }
}

/// A problem of a whole file.
pub(super) fn problem(file: &str, message: String) -> Diagnostic {
    let place = Place { file: file.to_owned(), line: 0, column: 0 };
    Diagnostic {
        severity: Severity::Error,
        message,
        place: Some(place),
        excerpt: None,
        hint: None,
        kind: None,
    }
}

/// A fingerprint of a value.
pub(super) fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Fingerprints of the files of charts, by path: a chart can be megabytes, so they are made once.
pub(super) type Prints<'f> = BTreeMap<&'f str, u64>;

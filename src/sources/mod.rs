//! One immutable, numbered set of charts, watches, CRDs and samples. A reconcile sees exactly one of them.
//! Pure: file sets come in, a set of sources comes out. `dev/reload.rs` reads the files.

use crate::event::{Diagnostic, Sample};
use opdev_helm::chart::Chart;
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A set of sources.
#[derive(Debug, Default)]
pub struct Sources {
    /// Counted from 1.
    pub number: u64,
    /// The files that led to it, relative to the project's root; empty at start.
    pub files: Vec<String>,
    /// When the last of those files was closed or renamed into place; `None` at start.
    pub saved_at: Option<Instant>,
    /// One entry per line of `watches.yaml` that names a kind.
    pub watches: Vec<Arc<Watch>>,
    /// CRDs to apply: the project's own, or the schema-less one the Operator SDK would scaffold.
    pub crds: Vec<Arc<Value>>,
    /// Files to apply with a key.
    pub samples: Vec<Sample>,
    /// What is wrong, warnings included.
    pub diagnostics: Vec<Diagnostic>,
}

/// One entry of `watches.yaml`, with its chart loaded.
#[derive(Debug)]
pub struct Watch {
    /// The kind it reconciles.
    pub gvk: Gvk,
    /// The chart's folder, relative to the project's root.
    pub chart_path: String,
    /// The newest chart that loaded; `None` where there was none yet.
    pub chart: Option<Arc<Chart>>,
    /// Why the newest files are not the ones that serve.
    pub broken: Option<Diagnostic>,
    /// The set of sources that last changed anything about this entry.
    pub changed_in: u64,
    /// Whether objects of the release are watched, too. Default true.
    pub watch_dependents: bool,
    /// Values forced by the operator, expanded; each a `--set-string` pair.
    pub overrides: BTreeMap<String, String>,
    /// How often an object is reconciled without a cause; `None` means the flag's default.
    pub reconcile_period: Option<Duration>,
    /// Label selector of the objects to reconcile, as in `metav1.LabelSelector`; null means all.
    pub selector: Value,
    /// `server` lets `lookup` see the cluster while the candidate is rendered.
    pub dry_run_option: String,
    /// How many objects of this kind are reconciled at once; `None` means the flag's default.
    pub max_concurrent: Option<usize>,
}

impl Sources {
    /// The entry of a kind, whatever the version.
    pub fn watch(&self, group: &str, kind: &str) -> Option<&Arc<Watch>> {
        self.watches.iter().find(|watch| watch.gvk.group == group && watch.gvk.kind == kind)
    }
}

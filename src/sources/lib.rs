//! One immutable, numbered set of charts, programs, watches, CRDs and samples. A reconcile sees exactly one
//! of them. Pure: file sets come in, a set of sources comes out. `project/load` reads the files.

mod chart_dependencies;
pub mod chart_options;
pub mod chart_problems;
mod chart_settings;
mod charts;
pub mod created;
pub mod deadline;
pub mod definitions;
mod files;
mod installs;
pub mod load;
pub mod merge_conflict;
pub mod on_save;
mod overrides;
mod reconcilers;
pub mod time_limit;
pub mod values;
mod watches;

pub use watches::WatchesFile;

use chart_options::ChartOptions;
use opdev_event::{Diagnostic, Sample};
use opdev_helm::chart::Chart;
use opdev_object::meta::Gvk;
use opdev_object::selector::LabelSelector;
use opdev_script::contract::{Limits, Program};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A set of sources.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Counted from 1.
    pub number: u64,
    /// The files that led to it, relative to the project's root; empty at start.
    pub files: Vec<String>,
    /// When the last of those files was closed or renamed into place; `None` at start.
    pub saved_at: Option<Instant>,
    /// The kinds that are reconciled, and by what.
    pub watches: Vec<Arc<Watch>>,
    /// The kinds that are shown, but that opdev itself does not reconcile.
    pub shown: Vec<Shown>,
    /// CRDs to apply: the project's own, or the schema-less one the Operator SDK would scaffold.
    pub definitions: Vec<Arc<definitions::Definition>>,
    /// Where objects of a kind say how many replicas they want, by the kind, as the user has set it.
    pub scale: BTreeMap<String, String>,
    /// Files to apply with a key.
    pub samples: Vec<Sample>,
    /// Samples that cannot be read, and why; these are among `diagnostics` too.
    pub broken_samples: Vec<Diagnostic>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// A kind that opdev itself does not reconcile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The kind.
    pub gvk: Gvk,
    /// The file with its type, or what would reconcile it.
    pub source: String,
    /// Why nothing does.
    pub why: String,
    /// The operator's own program, in words, where that one reconciles it.
    pub program: Option<String>,
}

/// A kind and what reconciles its objects, loaded.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The kind it reconciles.
    pub gvk: Gvk,
    /// The reconciler of its objects.
    pub reconciler: Reconciler,
    /// Why the newest files are not the ones that serve.
    pub broken: Option<Diagnostic>,
    /// The set of sources that last changed anything about this entry.
    pub changed_in: u64,
    /// How often an object is reconciled without a cause; `None` means the flag's default.
    pub reconcile_period: Option<Duration>,
    /// Label selector of the objects to reconcile, as in `metav1.LabelSelector`; null means all.
    pub selector: Value,
    /// How many objects of this kind are reconciled at once; `None` means the flag's default.
    pub max_concurrent: Option<usize>,
}

/// The reconciler of the objects of a kind.
#[derive(Clone, Debug)]
pub enum Reconciler {
    /// A chart, as in `watches.yaml`: the custom resource's spec are its values.
    Chart(Arc<ChartReconciler>),
    /// A program of the user's, as in `config/reconcilers`: what it wants to be is made so.
    Type(Arc<TypeReconciler>),
}

/// A chart that feeds a kind.
#[derive(Debug)]
pub struct ChartReconciler {
    /// The chart's folder, relative to the project's root.
    pub path: String,
    /// The newest chart that loaded; `None` where there was none yet.
    pub chart: Option<Arc<Chart>>,
    /// True if objects of the release are watched, too. Default true.
    pub watch_dependents: bool,
    /// Values forced by the operator, expanded; each a `--set-string` pair.
    pub overrides: BTreeMap<String, String>,
    /// `server` lets `lookup` see the cluster while the candidate is rendered.
    pub dry_run_option: String,
    /// The options of its release.
    pub options: ChartOptions,
    /// The hosts from which schemas may be fetched that its `values.schema.json` refers to.
    pub allow: Allow,
    /// The script beside it, where it has one.
    pub script: Option<Arc<TypeReconciler>>,
}

impl ChartReconciler {
    /// Returns true if there is a version that can serve: with the script that belongs to it.
    pub fn is_loaded(&self) -> bool {
        self.chart.is_some() && self.script.as_ref().is_none_or(|script| script.program.is_some())
    }

    /// The kinds of objects that its script maps to custom resources.
    pub fn watched_kinds(&self) -> &[Gvk] {
        let program = self.script.as_ref().and_then(|script| script.program.as_ref());
        program.map(|program| program.facts().watches.as_slice()).unwrap_or_default()
    }
}

/// A script or a folder of templates that feeds a kind.
#[derive(Clone, Debug, Default)]
pub struct TypeReconciler {
    /// Its file or folder, relative to the project's root.
    pub path: String,
    /// The newest program that loaded; `None` where there was none yet.
    pub program: Option<Arc<dyn Program>>,
    /// The texts of its files by the paths that its diagnostics name, for excerpts.
    pub files: BTreeMap<String, Arc<str>>,
    /// The charts that its releases may name, by the path that they name, relative to the project's root.
    pub charts: BTreeMap<String, Arc<Chart>>,
    /// The parts of the outside world that it may reach.
    pub allow: Allow,
    /// The limits of one call.
    pub limits: Limits,
}

/// The parts of the outside world that a program may reach, from `opdev.yaml`. Empty lists allow nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Allow {
    /// Hosts that `fetch` may reach, such as `api.example.com`, `localhost:8080` or `*.example.com`; a host
    /// without a port allows the ports of http and https.
    pub hosts: Vec<String>,
    /// Programs that `exec` may run, by the name or path that the call names.
    pub programs: Vec<String>,
    /// Hosts and programs that the project's files allow and the user has not.
    pub refused: Vec<String>,
}

impl Watch {
    /// Returns true if it picks among the objects of its kind.
    pub fn has_selector(&self) -> bool {
        !self.selector.is_null()
    }

    /// Returns true if its selector picks an object. One that cannot be read picks nothing.
    pub fn picks(&self, object: &Value) -> bool {
        if !self.has_selector() {
            return true;
        }
        let labels =
            object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default();
        LabelSelector::from_json(&self.selector).is_ok_and(|selector| selector.matches(&labels))
    }

    /// The file or folder that feeds it, relative to the project's root.
    pub fn path(&self) -> &str {
        match &self.reconciler {
            Reconciler::Chart(chart) => &chart.path,
            Reconciler::Type(program) => &program.path,
        }
    }

    /// Returns true if there is a version that can serve.
    pub fn is_loaded(&self) -> bool {
        match &self.reconciler {
            Reconciler::Chart(chart) => chart.is_loaded(),
            Reconciler::Type(program) => program.program.is_some(),
        }
    }

    /// The chart that feeds it, where one does.
    pub fn chart(&self) -> Option<&Arc<ChartReconciler>> {
        match &self.reconciler {
            Reconciler::Chart(chart) => Some(chart),
            Reconciler::Type(_) => None,
        }
    }

    /// The program that feeds it, where one does.
    pub fn program(&self) -> Option<&Arc<TypeReconciler>> {
        match &self.reconciler {
            Reconciler::Chart(_) => None,
            Reconciler::Type(program) => Some(program),
        }
    }
}

impl Sources {
    /// The entry of a kind, whatever the version.
    pub fn watch(&self, group: &str, kind: &str) -> Option<&Arc<Watch>> {
        self.watches.iter().find(|watch| watch.gvk.group == group && watch.gvk.kind == kind)
    }

    /// The CRD of a kind, whatever the version.
    pub fn definition(&self, group: &str, kind: &str) -> Option<&Arc<definitions::Definition>> {
        let is = |gvk: Gvk| gvk.group == group && gvk.kind == kind;
        self.definitions.iter().find(|definition| definition.gvk().is_some_and(is))
    }
}

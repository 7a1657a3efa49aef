//! The memory of a release's last render, so that the next one runs only the templates that a change reaches.
//! It has the reads and the output of each template. A kept output is used only where everything its template
//! read is the same; the result is that of a full render.

use super::Capabilities;
use super::input::{ReleaseInfo, RenderInput};
use super::scope::{self, Scope};
use crate::chart::{Chart, File, Metadata};
use crate::manifest::{self, ManifestError, Part};
use opdev_template::{Compat, Inputs, NodeId, Paths, ROOT, Read, ReadSet, Seen, World};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// After so many paths of values the numbers start again.
const MOST_PATHS: usize = 100_000;

/// The memory of one release. Renders that share it must bring the same environment: clock, randomness and
/// cluster are asked again by the templates that asked them before, and only by those.
#[derive(Default)]
pub struct Memory(Mutex<Option<Box<State>>>);

impl Memory {
    /// The state, which is nobody else's until it is put back.
    pub(super) fn take(&self) -> Box<State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    /// About how many bytes it takes, values and charts aside.
    pub fn bytes(&self) -> usize {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let outputs = state.as_ref().map(|state| state.outputs.values()).into_iter().flatten();
        // A text is kept twice: as a whole and by documents.
        outputs.map(|output| 2 * output.text.len() + 48 * output.seen.reads.len()).sum()
    }

    pub(super) fn put(&self, state: Box<State>) {
        let later = state.epochs.iter().map(|epoch| epoch.paths.count()).sum::<usize>();
        if state.paths.count() + later < MOST_PATHS {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(state);
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Outputs may hold secrets.
        f.write_str("Memory")
    }
}

/// The memory between renders.
#[derive(Default)]
pub(super) struct State {
    pub(super) prepared: Option<Prepared>,
    pub(super) paths: Paths,
    pub(super) base: Option<Base>,
    /// The outputs of the last render, by template.
    pub(super) outputs: Outputs,
    /// One epoch for each template of the last render that changed what the others see.
    pub(super) epochs: Vec<Epoch>,
}

/// The part of a render after a template has changed what the others see.
pub(super) struct Epoch {
    /// That template.
    pub(super) writer: String,
    pub(super) paths: Paths,
    /// The state that the templates after it see.
    pub(super) world: World,
}

/// Outputs by the path of their template.
pub(super) type Outputs = BTreeMap<String, Arc<Output>>;

/// The output of one template.
#[derive(Default)]
pub(super) struct Output {
    pub(super) text: String,
    pub(super) seen: Seen,
    /// True if it asked clock, randomness or cluster.
    pub(super) impure: bool,
    /// How many templates before it had changed what the others see.
    pub(super) epoch: usize,
    /// True if it did so itself.
    pub(super) wrote: bool,
    /// Its documents, once they were read.
    pub(super) parts: OnceLock<Vec<Arc<Part>>>,
}

impl Output {
    /// Its documents; those that stood in an output before are not read again.
    pub(super) fn documents(
        &self,
        path: &str,
        before: Option<&Arc<Output>>,
        compat: Compat,
    ) -> Result<&[Arc<Part>], ManifestError> {
        if self.parts.get().is_none() {
            let old = before.and_then(|output| output.parts.get()).map(Vec::as_slice).unwrap_or_default();
            let _ = self.parts.set(manifest::parts_of(path, &self.text, old, compat)?);
        }
        Ok(self.parts.get().map(Vec::as_slice).unwrap_or_default())
    }
}

/// A chart as dependencies and values decided, for the next render with the same ones.
pub(super) struct Prepared {
    /// The chart as it was given, without templates and files.
    given: Chart,
    user: Value,
    /// The chart that it became, also without templates and files.
    pub(super) chart: Chart,
    /// The coalesced values, which its schemas allow.
    pub(super) values: Arc<Value>,
    pub(super) warnings: Vec<String>,
}

impl Prepared {
    pub(super) fn new(
        given: &Chart,
        user: &Value,
        chart: &Chart,
        values: &Arc<Value>,
        warnings: &[String],
    ) -> Self {
        Self {
            given: without_files(given),
            user: user.clone(),
            chart: without_files(chart),
            values: Arc::clone(values),
            warnings: warnings.to_vec(),
        }
    }

    /// Returns true if it still is what a chart and values come to.
    pub(super) fn fits(&self, chart: &Chart, user: &Value) -> bool {
        self.user == *user && same_values(&self.given, chart)
    }
}

fn without_files(chart: &Chart) -> Chart {
    Chart {
        metadata: chart.metadata.clone(),
        values: Arc::clone(&chart.values),
        schema: chart.schema.clone(),
        subcharts: chart.subcharts.iter().map(|sub| Arc::new(without_files(sub))).collect(),
        ..Chart::default()
    }
}

fn same_values(a: &Chart, b: &Chart) -> bool {
    (Arc::ptr_eq(&a.values, &b.values) || a.values == b.values)
        && a.schema == b.schema
        && a.metadata == b.metadata
        && a.metadata.lists_dependencies == b.metadata.lists_dependencies
        && a.subcharts.len() == b.subcharts.len()
        && a.subcharts.iter().zip(&b.subcharts).all(|(a, b)| same_values(a, b))
}

/// The input of a render, as far as templates see it.
pub(super) struct Base {
    compat: Compat,
    charts: Vec<BaseChart>,
    values: Arc<Value>,
    release: ReleaseInfo,
    capabilities: Capabilities,
}

struct BaseChart {
    path: String,
    node: NodeId,
    metadata: Metadata,
    files: Vec<File>,
}

impl Base {
    pub(super) fn new(
        scopes: &[Scope<'_>],
        values: &Arc<Value>,
        input: &RenderInput<'_>,
        paths: &mut Paths,
    ) -> Base {
        let mut inputs = Inputs { watch: Some((Rc::default(), Some(paths))) };
        let charts = scopes.iter().map(|scope| BaseChart {
            path: scope.path.clone(),
            node: scope::node(scope, &mut inputs),
            metadata: scope.chart.metadata.clone(),
            files: scope.chart.files.clone(),
        });
        Base {
            compat: input.compat,
            charts: charts.collect(),
            values: Arc::clone(values),
            release: input.release.clone(),
            capabilities: input.capabilities.clone(),
        }
    }

    /// Returns true if charts, files and cluster are the same.
    pub(super) fn same_objects(&self, new: &Base) -> bool {
        let same = |a: &BaseChart, b: &BaseChart| a.metadata == b.metadata && a.files == b.files;
        self.capabilities == new.capabilities && self.charts.iter().zip(&new.charts).all(|(a, b)| same(a, b))
    }

    /// The differences of the input, as templates read it; `None` where no output can be kept.
    pub(super) fn changes(&self, new: &Base, paths: &Paths) -> Option<ReadSet> {
        let shape = |base: &Base| base.charts.iter().map(|chart| chart.path.clone()).collect::<Vec<_>>();
        if self.compat != new.compat || shape(self) != shape(new) {
            return None;
        }
        let mut found = ReadSet::default();
        for (old, chart) in self.charts.iter().zip(&new.charts) {
            let mut differs = |key: &str| {
                found.insert(Read::Key(chart.node, key.into()));
                found.insert(Read::All(chart.node));
            };
            if old.metadata != chart.metadata {
                differs("Chart");
            }
            if old.files != chart.files {
                differs("Files");
            }
            if self.capabilities != new.capabilities {
                differs("Capabilities");
            }
        }
        let mut compare = |key: &str, old: &Value, new: &Value| {
            if let (Some(node), Value::Object(old), Value::Object(new)) = (paths.known(ROOT, key), old, new) {
                differences(old, new, node, paths, &mut found);
            }
        };
        compare("Release", &release(&self.release), &release(&new.release));
        if !Arc::ptr_eq(&self.values, &new.values) {
            compare("Values", &self.values, &new.values);
        }
        Some(found)
    }
}

fn release(release: &ReleaseInfo) -> Value {
    json!({
        "Name": release.name,
        "Namespace": release.namespace,
        "IsUpgrade": release.is_upgrade,
        "IsInstall": release.is_install,
        "Revision": release.revision,
    })
}

fn differences(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    node: NodeId,
    paths: &Paths,
    found: &mut ReadSet,
) {
    fn pairs(map: &Map<String, Value>) -> impl Iterator<Item = (&[u8], &Value)> {
        map.iter().map(|(key, value)| (key.as_bytes(), value))
    }
    opdev_template::differences(node, pairs(old), pairs(new), found, |key, old, new, found| {
        match (old, new) {
            (Value::Object(old), Value::Object(new)) => {
                // Nobody has read what never got a number.
                if let Some(below) = paths.known(node, key) {
                    differences(old, new, below, paths, found);
                }
                true
            }
            (old, new) => old == new,
        }
    });
}

//! Options of a new project or a new API, and the variables that fill its files.

use anyhow::{Context as _, Result, bail};
use opdev_helm::chart::{Chart, FileSet};
use opdev_sources::time_limit::TimeLimit;

/// The release of the Operator SDK whose images and tools the files name.
pub const OPERATOR_SDK: &str = "v1.42.3";

/// The name of kubebuilder's layout of Go operators.
pub(super) const GO_LAYOUT: &str = "go.kubebuilder.io/v4";

/// The reconciler of the kinds of a new project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Helm charts, as `operator-sdk init --plugins helm` lays them out.
    Chart,
    /// Types with scripts or templates; no Go program.
    Typed,
    /// An operator in Go, as kubebuilder's plugin `go/v4` lays it out.
    Go,
}

impl Layout {
    /// The value of `layout` in the file `PROJECT`.
    pub fn plugin(self) -> &'static str {
        match self {
            Layout::Chart => "helm.sdk.operatorframework.io/v1",
            Layout::Typed => "opdev.dev/v1",
            Layout::Go => GO_LAYOUT,
        }
    }
}

/// The options of `opdev init`.
#[derive(Clone, Debug)]
pub struct InitOptions {
    /// The domain of all API groups, such as `my.domain`.
    pub domain: String,
    /// The project's name; a DNS-1123 label. Names and the namespace of the operator begin with it.
    pub project_name: String,
    /// The reconciler of the kinds.
    pub layout: Layout,
    /// True if the project may have several API groups.
    pub multigroup: bool,
    /// The Go module, for [`Layout::Go`]; empty means that of a `go.mod` that is there, or one made of domain
    /// and name.
    pub repo: String,
}

/// The chart of a new API.
#[derive(Clone, Debug)]
pub struct ChartSource {
    /// The user's name for the chart, for messages.
    pub reference: String,
    /// Its files, by path from its folder.
    pub files: FileSet,
    /// The chart that they make.
    pub chart: Chart,
    /// Links among the files that lead out of the chart's folder, and where to.
    pub links_out: Vec<(String, String)>,
    /// Until when renders of it may go on; whoever writes the project sets it.
    pub limit: TimeLimit,
}

impl ChartSource {
    /// The chart of some files.
    ///
    /// # Errors
    /// Why they make no chart.
    pub fn load(reference: &str, files: FileSet, links_out: Vec<(String, String)>) -> Result<ChartSource> {
        let chart = Chart::load(&files).with_context(|| format!("the chart {reference}"))?;
        if chart.metadata.is_library() {
            bail!(
                "{reference} is a library chart (`type: library` in its Chart.yaml): it makes no objects; take a chart that \
                 depends on it"
            );
        }
        Ok(ChartSource {
            reference: reference.to_owned(),
            files,
            chart,
            links_out,
            limit: TimeLimit::default(),
        })
    }
}

/// The reconciler of a new kind.
#[derive(Clone, Debug)]
pub enum Reconciler {
    /// A chart; `None` for a new small one that bears the kind's name.
    Chart(Option<Box<ChartSource>>),
    /// A script `config/reconcilers/<kind>.ts`.
    TypeScript,
    /// A folder of Go templates `config/reconcilers/<kind>/`.
    Templates,
    /// A controller of the project's Go program: `internal/controller/<kind>_controller.go`.
    Go,
    /// Nothing yet.
    Nothing,
}

/// How much the CRD of a chart's kind knows of its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrdSchema {
    /// Any field, as the Operator SDK writes it.
    Open,
    /// The fields of the chart's `values.schema.json`, or else of its `values.yaml`.
    Values,
}

/// The options of `opdev create api`. An empty text means the default.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The API group without the domain; default with a chart: the only one that the project has and may
    /// have, else `charts`.
    pub group: String,
    /// The version; default `v1alpha1` with a chart.
    pub version: String,
    /// The kind; default: the chart's name in camel case.
    pub kind: String,
    /// The plural of the resource; default: as kubebuilder forms it.
    pub plural: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
    /// The reconciler of the kind.
    pub reconciler: Reconciler,
    /// The schema of a chart's kind.
    pub crd_schema: CrdSchema,
    /// True if an API that exists is written anew.
    pub force: bool,
    /// This year, for the heads of generated Go files.
    pub year: String,
}

/// A text of `files/` with its placeholders filled. A placeholder is an upper-case word between two `@`.
pub(super) fn fill(text: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
}

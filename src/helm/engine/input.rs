//! Input and output of a render.

use super::Capabilities;
use super::memory::Memory;
use super::release_read::ReleaseRead;
use crate::chart::Chart;
use crate::chart::Place;
use crate::manifest::{Document, Hook};
use crate::values::CoalesceError;
use crate::values::schema::{Fetch, SchemaErrors};
use opdev_template::{Compat, Environment, ExecError, ParseCache, ParseError};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The release that templates see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// `.Release.Name`
    pub name: String,
    /// `.Release.Namespace`
    pub namespace: String,
    /// `.Release.Revision`
    pub revision: i64,
    /// `.Release.IsInstall`
    pub is_install: bool,
    /// `.Release.IsUpgrade`
    pub is_upgrade: bool,
}

impl ReleaseInfo {
    /// A first installation.
    pub fn install(name: impl Into<String>, namespace: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            namespace: namespace.into(),
            revision: 1,
            is_install: true,
            is_upgrade: false,
        }
    }
}

/// Everything that a render needs besides the chart.
pub struct RenderInput<'a> {
    /// The user's values, not coalesced.
    pub values: &'a Value,
    /// The release.
    pub release: ReleaseInfo,
    /// The cluster's versions and kinds.
    pub capabilities: &'a Capabilities,
    /// The Helm whose behaviour the render has.
    pub compat: Compat,
    /// Clock, randomness, lookup.
    pub env: &'a (dyn Environment + Sync),
    /// Templates parsed before; renders of the same chart share one.
    pub cache: Option<Arc<ParseCache>>,
    /// The reads and outputs of the last render of this release.
    pub memory: Option<&'a Memory>,
    /// True if templates may run on several cores where there is no memory: they ask the environment in no
    /// order then.
    pub parallel: bool,
    /// True if values are not checked against values.schema.json: Helm's `--skip-schema-validation`.
    pub skip_schema_validation: bool,
    /// Fetches what a schema refers to by its address; without it such a chart does not render.
    pub fetch_schema: Option<Arc<Fetch>>,
}

impl<'a> RenderInput<'a> {
    /// A render with Helm 3's behaviour and no cache, on one core.
    pub fn new(
        values: &'a Value,
        release: ReleaseInfo,
        capabilities: &'a Capabilities,
        env: &'a (dyn Environment + Sync),
    ) -> Self {
        Self {
            values,
            release,
            capabilities,
            compat: Compat::V3,
            env,
            cache: None,
            memory: None,
            parallel: false,
            skip_schema_validation: false,
            fetch_schema: None,
        }
    }
}

/// The output of a render.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The manifest as Helm stores it.
    pub manifest: String,
    /// Its documents, in install order.
    pub documents: Vec<Document>,
    /// The hooks, in install order of their kinds.
    pub hooks: Vec<Hook>,
    /// The root chart's NOTES.txt.
    pub notes: String,
    /// Helm's warnings.
    pub warnings: Vec<String>,
    /// The chart as the release took it (dependencies decided, values imported): what the record stores.
    pub chart: Chart,
    /// True if a template read the clock, randomness or the cluster.
    pub impure: bool,
    /// The templates that read what `.Release` says of this very revision, `NOTES.txt` included; known only
    /// where there is a memory.
    pub release_reads: Vec<ReleaseRead>,
    /// How many templates ran; what the others gave the last time is as good.
    pub executed: usize,
}

/// Rendered documents that are no YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// All that was rendered, file by file.
    pub text: String,
    /// The place of a template that wrote what cannot be read, where that is known.
    pub origin: Option<Place>,
}

/// Why a chart does not render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError {
    /// The error, with what is known about it.
    pub kind: Box<RenderErrorKind>,
    /// Helm's own text.
    pub message: String,
    /// The file and place to look at, where there is one.
    pub place: Option<Place>,
    /// The line of text at that place.
    pub excerpt: String,
    /// Hints, a sentence each: the value that was nil and who could set it, a near name, the way that led
    /// there.
    pub hints: Vec<String>,
}

/// The error when a chart was rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RenderErrorKind {
    /// The values do not go together with the chart.
    Values(CoalesceError),
    /// The values do not pass the schemas of the chart and its subcharts.
    Schema(SchemaErrors),
    /// The chart is not for this version of Kubernetes.
    KubeVersion {
        /// The version that the chart requires.
        required: String,
        /// The version of Kubernetes.
        version: String,
    },
    /// A template does not parse.
    Parse(ParseError),
    /// A template failed while it ran.
    Execution(ExecError),
    /// The output of a template is not YAML. The error's place is one in the rendered document.
    Manifest(Unreadable),
}

impl RenderError {
    /// An error without a place; the message is Helm's text.
    pub(super) fn new(kind: RenderErrorKind, message: String) -> Self {
        Self { kind: Box::new(kind), message, place: None, excerpt: String::new(), hints: Vec::new() }
    }

    /// The rendered text, where the output of a template is not YAML.
    pub fn rendered(&self) -> Option<&Unreadable> {
        match &*self.kind {
            RenderErrorKind::Manifest(rendered) => Some(rendered),
            RenderErrorKind::Values(_)
            | RenderErrorKind::Schema(_)
            | RenderErrorKind::KubeVersion { .. }
            | RenderErrorKind::Parse(_)
            | RenderErrorKind::Execution(_) => None,
        }
    }
}

impl From<CoalesceError> for RenderError {
    fn from(error: CoalesceError) -> RenderError {
        let message = error.to_string();
        RenderError::new(RenderErrorKind::Values(error), message)
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RenderError {}

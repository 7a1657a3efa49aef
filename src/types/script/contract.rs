//! The one contract of all type reconcilers: what is observed goes in, what is desired comes out, one parent
//! at a time. Its shape is that of Metacontroller's sync hook (parent, children, related, finalizing →
//! status, children, resyncAfterSeconds, finalized), with patches, conditions, events, releases and waits
//! beside it, so that the same logic can run there. Engines (`script`, `templates`) implement `Program`; the
//! operator implements `Host`, makes all writes, and decides nothing that is said here.

use opdev_object::meta::Gvk;
use opdev_types::diagnostic::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The state that a reconciler sees.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The custom resource.
    pub parent: Arc<Value>,
    /// Objects of the kinds in [`Facts::owns`] that the parent controls, in the order of kind, namespace,
    /// name.
    pub children: Vec<Arc<Value>>,
    /// The releases that this reconciler asked for before and that are still installed, by name.
    pub releases: Vec<ReleaseState>,
    /// The parent is being deleted and this is a call of the finalize function.
    pub finalizing: bool,
    /// The frozen clock of this reconcile, RFC 3339 in UTC.
    pub now: String,
    /// Where random numbers of this reconcile start: the same for the same parent.
    pub seed: u64,
}

/// The state that a reconciler wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Desired {
    /// The whole `status` without conditions; `None` leaves it as it is.
    pub status: Option<Value>,
    /// Every child there should be; children that are owned and not listed are deleted, unless `waiting`.
    /// A child without a name but with `generateName` is created (see [`Facts::owns`]).
    pub children: Vec<Value>,
    /// Changes of objects that the reconciler did not create; never pruned.
    pub patches: Vec<Patch>,
    /// Conditions to merge into `status.conditions`; times and observedGeneration are the operator's part.
    pub conditions: Vec<Value>,
    /// Kubernetes Events to record.
    pub events: Vec<RequestedEvent>,
    /// Charts to install as children; a release that is owned and not listed is uninstalled.
    pub releases: Vec<Release>,
    /// The reason why the reconciler waits, in its own words. Listed children are kept, none is deleted.
    pub waiting: Option<String>,
    /// Run again after this time at the latest.
    pub requeue_after: Option<Duration>,
    /// Answer of the finalize function: nothing is left to do and the parent may go.
    pub finalized: bool,
    /// Objects that were read through the host; a change of one of them is a cause for the next reconcile.
    pub reads: Vec<Read>,
}

/// A change of an object that somebody else created.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// apiVersion, kind, metadata.name (and namespace), and the fields to set: one server-side apply.
    pub object: Value,
    /// True if the parent becomes an owner of it.
    pub own: bool,
    /// True if the object is made where there is none. What such a patch has set stays when it is no longer
    /// listed, as with a restore, which happens once; fields of other patches are given back then.
    pub create: bool,
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestedEvent {
    /// `Normal` or `Warning`.
    pub kind: String,
    /// One CamelCase word.
    pub reason: String,
    /// For people.
    pub message: String,
}

/// A chart to be installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The release's name.
    pub name: String,
    /// Its namespace; the parent's where `None`.
    pub namespace: Option<String>,
    /// Folder or archive of the chart, relative to the project's root.
    pub chart: String,
    /// Values over the chart's own.
    pub values: Value,
    /// The options of its release, as in `charts` of `opdev.yaml`; null where there are none.
    pub options: Value,
}

/// A release as it was when the reconcile began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleaseState {
    /// The release's name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// The name and version of the chart that is installed, such as `memcached-0.1.0`.
    pub chart: String,
    /// The values that it was installed with, over the chart's own.
    pub values: Value,
    /// Helm's word for the newest revision: `deployed`, `failed`, `pending-install`, `uninstalling` and so
    /// on.
    pub status: String,
    /// The newest revision, counted from 1.
    pub revision: i64,
    /// True if the newest revision is deployed and all its objects are ready.
    pub ready: bool,
    /// Why it is not: what failed, or the first object that is not ready; empty where it is ready.
    pub message: String,
    /// Its live objects in the order of its manifest; those that are missing are left out.
    pub objects: Vec<Arc<Value>>,
}

impl ReleaseState {
    /// The release as reconcilers see it, its fields by their own names.
    pub fn to_json(&self) -> Value {
        serde_json::json!({
            "name": self.name,
            "namespace": self.namespace,
            "chart": self.chart,
            "values": self.values,
            "status": self.status,
            "revision": self.revision,
            "ready": self.ready,
            "message": self.message,
            "objects": self.objects,
        })
    }
}

/// A read of the cluster: one object, or all that a selector picks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// Group, version and kind.
    pub gvk: Gvk,
    /// Namespace; `None` for cluster-scoped kinds and for lists over all namespaces.
    pub namespace: Option<String>,
    /// Name; `None` for a list.
    pub name: Option<String>,
    /// Label selector of a list in the form of kubectl's `-l`; empty means all.
    pub selector: String,
}

/// The declarations of a reconciler, known once it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The kind it reconciles where the file says so; else the file's name does.
    pub kind: Option<Gvk>,
    /// Kinds of children to watch and to show as `children`.
    pub owns: Vec<Gvk>,
    /// True if there is a finalize function, so that the parent needs a finalizer.
    pub finalizes: bool,
    /// Hosts that `fetch` may reach and programs that `exec` may run, as the file asks for them; what is
    /// allowed is in `opdev.yaml`.
    pub asks: Vec<String>,
    /// The functions of a script beside a chart; empty for a script that reconciles a kind by itself.
    pub chart: Vec<ChartFunction>,
    /// Kinds of objects that a script beside a chart maps to custom resources.
    pub watches: Vec<Gvk>,
}

impl Facts {
    /// Returns true if it stands beside a chart instead of reconciling a kind by itself.
    pub fn is_chart_script(&self) -> bool {
        !self.chart.is_empty() || !self.watches.is_empty()
    }
}

/// A function that a script beside a chart may export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChartFunction {
    /// The values of the release, of the custom resource.
    Values,
    /// Before the release is installed, upgraded or looked at.
    Before,
    /// After that went well.
    After,
    /// The custom resource is left alone.
    Paused,
    /// Changes the objects that the chart has rendered.
    Render,
    /// A Kubernetes Event that is about to be recorded.
    OnEvent,
    /// The namespaces of the release and of its records.
    Namespaces,
    /// The ServiceAccount that the release is written as.
    ServiceAccountName,
}

impl ChartFunction {
    /// All of them.
    pub const ALL: [ChartFunction; 8] = [
        ChartFunction::Values,
        ChartFunction::Before,
        ChartFunction::After,
        ChartFunction::Paused,
        ChartFunction::Render,
        ChartFunction::OnEvent,
        ChartFunction::Namespaces,
        ChartFunction::ServiceAccountName,
    ];

    /// The name that scripts export.
    pub fn name(self) -> &'static str {
        match self {
            ChartFunction::Values => "values",
            ChartFunction::Before => "before",
            ChartFunction::After => "after",
            ChartFunction::Paused => "paused",
            ChartFunction::Render => "render",
            ChartFunction::OnEvent => "onEvent",
            ChartFunction::Namespaces => "namespaces",
            ChartFunction::ServiceAccountName => "serviceAccountName",
        }
    }
}

/// A call of a script beside a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartCall {
    /// A function of the script.
    Function(ChartFunction),
    /// The function `map` of one of its `watches`, counted from 0.
    Map(usize),
}

/// A question for a script beside a chart.
#[derive(Clone, Debug)]
pub struct ChartQuestion {
    /// The function.
    pub call: ChartCall,
    /// The arguments, in order; `None` stands for the custom resource.
    pub arguments: Vec<Option<Value>>,
}

/// The answer of a script beside a chart.
#[derive(Clone, Debug, Default)]
pub struct ChartAnswer {
    /// The value that the function gave; null for nothing. Of `before` and `after` null: theirs is in
    /// `desired`.
    pub value: Value,
    /// Patches, events, conditions, waits and reads.
    pub desired: Desired,
}

/// The limits of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall time, calls of the host included.
    pub time: Duration,
    /// Bytes of the script's heap.
    pub memory: usize,
    /// Bytes of the script's stack.
    pub stack: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { time: Duration::from_secs(5), memory: 64 << 20, stack: 512 << 10 }
    }
}

/// A loaded reconciler of any engine. It keeps no state from call to call.
pub trait Program: Send + Sync + fmt::Debug {
    /// The facts that it declared when it was loaded.
    fn facts(&self) -> &Facts;

    /// One call. Blocks its thread for at most `limits.time`.
    ///
    /// # Errors
    /// What the script threw, a limit it ran into, or an answer that makes no sense; with the user's line and
    /// column.
    fn reconcile(
        &self,
        observed: &Observed,
        host: &dyn Host,
        limits: &Limits,
    ) -> Result<Desired, Box<Diagnostic>>;

    /// One call of a function of a script beside a chart. Blocks its thread for at most `limits.time`.
    ///
    /// # Errors
    /// As for `reconcile`; also where the program has no such functions.
    fn ask(
        &self,
        question: &ChartQuestion,
        observed: &Observed,
        host: &dyn Host,
        limits: &Limits,
    ) -> Result<ChartAnswer, Box<Diagnostic>> {
        let _ = (observed, host, limits);
        let message = format!("there is no function for {:?}", question.call);
        Err(Box::new(Diagnostic::error(message, None)))
    }
}

/// The outside world of a reconciler. Calls block; an error becomes an exception in the script.
pub trait Host: Send + Sync {
    /// One object, `None` where there is none.
    ///
    /// # Errors
    /// Such as a kind that is not served, or a refusal of the API server.
    fn get(&self, read: &Read) -> Result<Option<Arc<Value>>, HostError>;

    /// All objects that the read picks, by namespace and name.
    ///
    /// # Errors
    /// As for `get`.
    fn list(&self, read: &Read) -> Result<Vec<Arc<Value>>, HostError>;

    /// Resolves a kind written without its version or group, such as `Pod` or `apps/Deployment`.
    ///
    /// # Errors
    /// Where no such kind is served, with the nearest ones.
    fn kind(&self, text: &str) -> Result<Gvk, HostError>;

    /// An HTTP request to an allowed host.
    ///
    /// # Errors
    /// Where the host is not allowed, or no answer came.
    fn fetch(&self, request: &Fetch) -> Result<Fetched, HostError>;

    /// Runs an allowed program.
    ///
    /// # Errors
    /// Where the program is not allowed, or did not start.
    fn exec(&self, command: &Exec) -> Result<Executed, HostError>;

    /// A line for the log of this reconcile. `level` is one of debug, info, warn, error.
    fn log(&self, level: &str, message: &str);
}

/// Why a host does not do what a reconciler asks for, in words for the author.
#[derive(Debug)]
pub struct HostError {
    kind: HostErrorKind,
    source: Box<dyn Error + Send + Sync>,
}

/// The sort of a host's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostErrorKind {
    /// The request makes no sense, such as an address that names no host.
    Invalid,
    /// No such kind is served.
    NotServed,
    /// It is not allowed, or not done in a trial run.
    NotAllowed,
    /// The time of the call is over.
    TimeIsOver,
    /// It was tried and failed; the source says why.
    Failed,
}

impl HostError {
    /// An error that says what its source says.
    pub fn new(kind: HostErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> HostError {
        HostError { kind, source: source.into() }
    }

    /// The sort of the error.
    pub fn kind(&self) -> HostErrorKind {
        self.kind
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// Its text is the source's, so that its own source is the source of that.
impl Error for HostError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.source()
    }
}

/// An HTTP request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetch {
    /// `GET` and so on.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// Headers.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Option<String>,
}

/// Its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    /// HTTP status.
    pub status: u16,
    /// Headers in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as text.
    pub body: String,
}

/// A program to run; never through a shell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exec {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The standard input.
    pub input: Option<String>,
}

/// The result of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

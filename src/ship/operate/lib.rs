//! The operator as the process of a cluster: reads the project once, waits until it leads, and reconciles
//! until it is told to stop. No files of the project are watched, nothing is written to the disk. `lease`
//! decides who leads, `election` asks and writes; `work` runs the manager; `metrics` counts, `logs` writes,
//! `health` and `servers` answer the kubelet and Prometheus, `orphans` waits for processes that nobody else
//! waits for.

mod authorization;
mod created;
mod election;
mod health;
mod lease;
mod logs;
mod metrics;
mod orphans;
mod process;
mod servers;
mod text;
mod work;

use anyhow::{Result, bail};
use election::{Election, Lead};
use health::Health;
use jiff::Timestamp;
use lease::Timing;
use logs::Line;
pub use logs::{LogLevel, LogStyle, LogWriter, TimeEncoding};
use metrics::{About, Metrics};
use opdev_cluster::{Choice, Connection};
use opdev_event::{Diagnostic, Permission, words};
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use opdev_sources::Sources;
use servers::Served;
pub use servers::{MetricsTls, ServerSettings};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use work::{Rules, Work};

/// The command to run.
pub struct OperateInput {
    /// The project.
    pub project: Project,
    /// The permissions of the project beyond rendering and applying.
    pub trust: Trust,
    /// The permissions of these that the project wants, all of them granted.
    pub granted: Vec<Permission>,
    /// The cluster; never the embedded control plane.
    pub cluster: Choice,
    /// True if this is a pod: who deployed it means it to write.
    pub in_pod: bool,
    /// How the operator runs; namespaces and read-only are filled in here.
    pub operator: Settings,
    /// The only namespaces to watch; empty means all.
    pub namespaces: Vec<String>,
    /// Where metrics and probes are served.
    pub servers: ServerSettings,
    /// The Lease that replicas elect a leader by.
    pub election: Option<ElectionInput>,
    /// Where log lines go.
    pub log: LogWriter,
    /// Fires when opdev is told to stop.
    pub shutdown: CancellationToken,
}

/// A Lease.
#[derive(Clone, Debug)]
pub struct ElectionInput {
    /// Its name.
    pub id: String,
    /// Its namespace; that of the pod where none is named.
    pub namespace: Option<String>,
    /// The name of this machine or pod.
    pub host: String,
}

/// Runs until it is told to stop.
///
/// # Errors
/// Where the project has nothing to reconcile, no API server can be reached or written to, an address cannot
/// be listened on, or the lead is lost.
pub async fn run(input: OperateInput) -> Result<()> {
    let version = Line::new(LogLevel::Info, "cmd", "Version");
    input.log.write(version.with("opdev", env!("CARGO_PKG_VERSION")));
    let (sources, problems) = opdev_project::load::read_operated(&input.project, &input.trust, INSTEAD)?;
    let shutdown = input.shutdown.clone();
    let mut connection = tokio::select! {
        connection = Connection::to_cluster(&input.cluster) => connection?,
        () = shutdown.cancelled() => return Ok(()),
    };
    if connection.cluster.read_only && !input.in_pod {
        bail!(
            "the context {} is not clearly local\n  why: {}\n  to do: if this operator shall write there, say \
             --allow-context {}",
            connection.cluster.name,
            connection.cluster.marks,
            connection.cluster.name
        );
    }
    connection.read_only.lift();
    let servers = CancellationToken::new();
    let ended = serve(input, (sources, problems), &mut connection, &servers).await;
    servers.cancel();
    connection.close().await;
    ended
}

async fn serve(
    input: OperateInput,
    (sources, problems): (Sources, Vec<Diagnostic>),
    connection: &mut Connection,
    servers: &CancellationToken,
) -> Result<()> {
    let OperateInput { operator, namespaces, log, election, .. } = input;
    tell_start(&log, &namespaces, &input.granted, &input.project);
    let about = About {
        server: host_of(&connection.cluster.server),
        lease: election.as_ref().map(|election| election.id.clone()),
        started: Timestamp::now(),
    };
    let metrics = Arc::new(Metrics::new(about));
    let health = Arc::new(Health::new(problems.iter().map(words::diagnostic).collect()));
    for problem in &problems {
        log.write(Line::new(LogLevel::Error, "cmd", words::diagnostic(problem)));
    }
    for watch in &sources.watches {
        metrics.serves(&watch.gvk, watch.max_concurrent.unwrap_or(operator.max_concurrent));
        let period = watch.reconcile_period.unwrap_or(operator.reconcile_period);
        let line = Line::new(LogLevel::Info, "helm.controller", "Watching resource");
        let line = line.with("apiVersion", watch.gvk.api_version()).with("kind", watch.gvk.kind.clone());
        log.write(line.with("reconcilePeriod", words::took(period)));
    }
    let lead = election.as_ref().map(|_| Lead::default());
    let anytime = connection.supervised(Arc::new(Rules { metrics: Arc::clone(&metrics), lead: None }))?;
    let leading = Rules { metrics: Arc::clone(&metrics), lead: lead.clone() };
    let client = connection.supervised(Arc::new(leading))?;
    let namespace = connection.namespace.clone();
    let election = election.map(|election| Election {
        client: anytime.clone(),
        namespace: election.namespace.unwrap_or(namespace),
        name: election.id,
        me: election::identity(&election.host),
        timing: Timing::default(),
        lead: lead.unwrap_or_default(),
        health: Arc::clone(&health),
    });
    let served = Served { metrics: Arc::clone(&metrics), health: Arc::clone(&health), client: anytime };
    for line in servers::start(&input.servers, &served, servers).await? {
        log.write(Line::new(LogLevel::Info, "cmd", line));
    }
    let _reaping = AbortOnDropHandle::new(tokio::spawn(orphans::reap()));
    let shutdown = input.shutdown;
    let work = Work { sources, namespaces, settings: operator, client, metrics, health, log, shutdown };
    work.run(connection, election).await
}

/// Says what is watched, and what the project may do or does not get.
fn tell_start(log: &LogWriter, namespaces: &[String], granted: &[Permission], project: &Project) {
    log.write(match namespaces {
        [] => Line::new(LogLevel::Info, "cmd", "Watching all namespaces"),
        some => Line::new(LogLevel::Info, "cmd", "Watching namespaces").with("namespaces", some.to_vec()),
    });
    for permission in granted {
        let line = Line::new(LogLevel::Info, "cmd", format!("The project may {permission}"));
        log.write(line.with("setting", permission.setting()));
    }
    for file in &project.settings.apply_on_start {
        let line =
            Line::new(LogLevel::Info, "cmd", "Nothing is applied at the start of an operator in a cluster");
        log.write(line.with("file", file.clone()).with("setting", "applyOnStart in opdev.yaml"));
    }
}

/// The advice for an operator that is a program of its own.
const INSTEAD: &str = "build and deploy that image; opdev operate runs charts, scripts and templates";

/// Host and port of an address.
fn host_of(server: &str) -> String {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

//! `opdev operate`: the operator as the process of a cluster, with the flags of helm-operator's `run`. Exit
//! codes: 0 told to stop, 1 failed, the lead was lost, or told to stop twice, 2 wrong usage.

use super::arguments::WrongUsage;
use opdev_cluster::owner::Owner;
use opdev_cluster::{Choice, in_pod};
use opdev_event::words::Expected;
use opdev_event::{Permission, TrustAnswer};
use opdev_os::user_config;
use opdev_project::Project;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use opdev_release::script::outside::end_programs;
use opdev_release::settings::{HelmCompat, Settings};

use anyhow::{Context as _, Result, bail};
use opdev_operate::{
    ElectionInput, LogLevel, LogStyle, LogWriter, MetricsTls, OperateInput, ServerSettings, TimeEncoding,
};
use opdev_sources::on_save::OnSave;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Run the operator in a cluster: no screen, no reloads; leader election, probes, metrics and JSON logs
#[derive(Debug, clap::Args)]
#[command(args_override_self = true)]
pub(super) struct OperateArgs {
    /// Which chart reconciles which kind
    #[arg(long, value_name = "FILE", default_value = "./watches.yaml")]
    watches_file: PathBuf,
    /// How often an object is reconciled without a cause; 0 means never
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = super::arguments::duration)]
    reconcile_period: Duration,
    /// How many objects of one kind are reconciled at once; default: one for each core
    #[arg(long, value_name = "N")]
    max_concurrent_reconciles: Option<usize>,
    /// Where metrics are served; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":8080", conflicts_with = "metrics_addr")]
    metrics_bind_address: String,
    /// Deprecated: use --metrics-bind-address
    #[arg(long, value_name = "ADDRESS", hide = true)]
    metrics_addr: Option<String>,
    /// Serve metrics with TLS
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    metrics_secure: bool,
    /// Serve metrics only to those that may get /metrics; asks the API server with TokenReview and
    /// SubjectAccessReview
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    metrics_require_rbac: bool,
    /// The folder with the certificate of the metrics; default: one that is made for this process
    #[arg(long, value_name = "DIR")]
    metrics_cert_path: Option<PathBuf>,
    /// The name of the certificate's file
    #[arg(long, value_name = "FILE", default_value = "tls.crt")]
    metrics_cert_name: String,
    /// The name of its key's file
    #[arg(long, value_name = "FILE", default_value = "tls.key")]
    metrics_cert_key: String,
    /// Where /healthz and /readyz are served; 0 serves none
    #[arg(long, value_name = "ADDRESS", default_value = ":8081")]
    health_probe_bind_address: String,
    /// Let replicas elect the one that reconciles
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool, conflicts_with = "enable_leader_election")]
    leader_elect: bool,
    /// Deprecated: use --leader-elect
    #[arg(long, hide = true, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    enable_leader_election: bool,
    /// The name of the Lease
    #[arg(long, value_name = "NAME", env = "OPERATOR_NAME", hide_env = true)]
    leader_election_id: Option<String>,
    /// The namespace of the Lease; default: that of the pod
    #[arg(long, value_name = "NAME")]
    leader_election_namespace: Option<String>,
    /// Hide override values in Kubernetes events
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    suppress_override_values: bool,
    /// No effect: helm-operator has it, and here metrics are always served with HTTP/1.1
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    enable_http2: bool,
    /// Text for people at level debug, instead of JSON at level info
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true", require_equals = true, value_parser = go_bool)]
    zap_devel: bool,
    /// How log lines are written: json or console
    #[arg(long, value_name = "ENCODER", value_parser = ["json", "console"], ignore_case = true)]
    zap_encoder: Option<String>,
    /// How much is logged: debug, info, error, or a number above 0 for debug
    #[arg(long, value_name = "LEVEL")]
    zap_log_level: Option<LogLevel>,
    /// No effect: helm-operator has it, and here there are no stack traces
    #[arg(long, value_name = "LEVEL", value_parser = ["info", "error", "panic"])]
    zap_stacktrace_level: Option<String>,
    /// How times are written: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano
    #[arg(long, value_name = "ENCODING", default_value = "rfc3339")]
    zap_time_encoding: TimeEncoding,
    /// How long reconciles that run may take to end once opdev is told to stop; 0 does not wait for them
    #[arg(long, value_name = "DURATION", default_value = "7s", value_parser = super::arguments::duration)]
    graceful_shutdown_timeout: Duration,
    /// Use this kubeconfig instead of KUBECONFIG, the pod's ServiceAccount or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Write to this context although it is not clearly local (may be repeated); in a pod there is no such
    /// question
    #[arg(long, value_name = "CONTEXT")]
    allow_context: Vec<String>,
    /// Refused: charts, scripts and templates have no webhooks
    #[arg(long, hide = true, value_name = "PORT")]
    webhook_port: Option<String>,
    /// Refused: charts, scripts and templates have no webhooks
    #[arg(long, hide = true, value_name = "DIR")]
    webhook_cert_path: Option<String>,
    /// Refused: charts, scripts and templates have no webhooks
    #[arg(long, hide = true, value_name = "FILE")]
    webhook_cert_name: Option<String>,
    /// Refused: charts, scripts and templates have no webhooks
    #[arg(long, hide = true, value_name = "FILE")]
    webhook_cert_key: Option<String>,
    /// The project's folder instead of the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    helm_compat: HelmCompat,
}

/// How long what is still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Truth as Go's flags write it.
fn go_bool(text: &str) -> Result<bool, Expected> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(Expected("true or false")),
    }
}

/// Runs the operator. What is wrong with the command line or the project is an error; what ends the operator
/// later is a line of its log.
pub(super) fn run(args: &OperateArgs) -> Result<ExitCode> {
    let shutdown = CancellationToken::new();
    let (servers, election) = flags(args).map_err(|why| WrongUsage(format!("{why:#}")))?;
    let input = input(args, servers, election, &shutdown)?;
    let (log, own) = (input.log.clone(), input.log.clone());
    for (flag, why) in ignored(args) {
        log.write_ignored(flag, why);
    }
    super::logging::to_lines(move |level, target, message| own.write_own(level, target, message));
    let mut asked = false;
    super::signals::hear(move |_| {
        // A second signal means that the user does not want to wait.
        if std::mem::replace(&mut asked, true) {
            end_programs();
            std::process::exit(1);
        }
        shutdown.cancel();
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("opdev").build()?;
    let ended = runtime.block_on(opdev_operate::run(input));
    end_programs();
    if let Err(error) = &ended {
        log.write_end(error);
    }
    runtime.shutdown_timeout(LAST_WAIT);
    log.finish();
    Ok(if ended.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Flags of helm-operator that are given and do nothing, and why.
fn ignored(args: &OperateArgs) -> impl Iterator<Item = (&'static str, &'static str)> {
    let http2 = args.enable_http2.then_some(("--enable-http2", "metrics are served with HTTP/1.1"));
    let traces = args.zap_stacktrace_level.as_ref();
    let traces = traces.map(|_| ("--zap-stacktrace-level", "there are no stack traces"));
    http2.into_iter().chain(traces)
}

/// What flags say that belong together.
fn flags(args: &OperateArgs) -> Result<(ServerSettings, Option<ElectionInput>)> {
    refuse_webhooks(args)?;
    let tls = match (args.metrics_secure, &args.metrics_cert_path) {
        (false, None) => None,
        (false, Some(_)) => {
            bail!("--metrics-cert-path needs --metrics-secure: without it metrics are served without TLS")
        }
        (true, None) => Some(MetricsTls::SelfSigned),
        (true, Some(folder)) => Some(MetricsTls::Files {
            certificate: folder.join(&args.metrics_cert_name),
            key: folder.join(&args.metrics_cert_key),
        }),
    };
    let metrics = args.metrics_addr.as_ref().unwrap_or(&args.metrics_bind_address);
    let servers =
        ServerSettings::of(metrics, &args.health_probe_bind_address, tls, args.metrics_require_rbac)?;
    Ok((servers, election(args)?))
}

fn input(
    args: &OperateArgs,
    servers: ServerSettings,
    election: Option<ElectionInput>,
    shutdown: &CancellationToken,
) -> Result<OperateInput> {
    let project = project(args)?;
    let in_pod = writes_to_own_cluster(args);
    let (trust, granted) = trust(&project, in_pod)?;
    let operator = Settings {
        reconcile_period: args.reconcile_period,
        helm_compat: args.helm_compat,
        suppress_override_values: args.suppress_override_values,
        // An image with another chart is an upgrade, with its hooks.
        on_save: OnSave::Upgrade,
        // There is nobody who could let a paused object go on; a loop is an error in the log, and counted.
        pause_loops: false,
        finish: args.graceful_shutdown_timeout,
        leave: LAST_WAIT,
        ..Settings::default()
    };
    let max_concurrent = args.max_concurrent_reconciles.unwrap_or(operator.max_concurrent);
    Ok(OperateInput {
        cluster: Choice {
            context: args.context.clone(),
            kubeconfig: args.kubeconfig.clone(),
            allow_contexts: [args.allow_context.clone(), user_config::allow_contexts()?].concat(),
            owner: Owner::of_user(),
            never_embedded: true,
            ..Choice::default()
        },
        operator: Settings { max_concurrent, ..operator },
        namespaces: super::arguments::namespaces(std::env::var("WATCH_NAMESPACE").ok().as_deref()),
        servers,
        election,
        log: LogWriter::to_stderr(style(args)),
        shutdown: shutdown.clone(),
        project,
        trust,
        granted,
        in_pod,
    })
}

/// Returns true if the operator runs in a pod and works on that pod's cluster, with that pod's
/// ServiceAccount. Only there who built the image has decided all: elsewhere the files may be anybody's, and
/// the credentials are the user's.
fn writes_to_own_cluster(args: &OperateArgs) -> bool {
    let named = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
    in_pod() && !named && args.kubeconfig.is_none() && args.context.is_none()
}

fn refuse_webhooks(args: &OperateArgs) -> Result<()> {
    let given = [
        ("--webhook-port", &args.webhook_port),
        ("--webhook-cert-path", &args.webhook_cert_path),
        ("--webhook-cert-name", &args.webhook_cert_name),
        ("--webhook-cert-key", &args.webhook_cert_key),
    ];
    match given.iter().find(|(_, value)| value.is_some()) {
        Some((flag, _)) => bail!(
            "{flag}: opdev operate serves no webhooks, for charts, scripts and templates have none\n  to do: remove the flag; an \
             operator with webhooks runs as its own program"
        ),
        None => Ok(()),
    }
}

fn project(args: &OperateArgs) -> Result<Project> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let root = args.project.clone().unwrap_or_else(|| here.clone());
    let mut project = Project::discover(Some(&root), &here)?;
    let watches = root.join(&args.watches_file);
    if watches.is_file() {
        project.watches = Some(args.watches_file.clone());
    } else if args.watches_file != Path::new("./watches.yaml") {
        bail!("there is no watches file {}", watches.display());
    }
    Ok(project)
}

/// What the project may do. What stands in an image was put there by who built it, so in a pod nobody is
/// asked; elsewhere the user has to have trusted it.
fn trust(project: &Project, in_pod: bool) -> Result<(Trust, Vec<Permission>)> {
    let mut wanted = trust::wanted(project);
    // Neither is done here.
    wanted.retain(|one| !matches!(one, Permission::StartOperator { .. } | Permission::ApplyOnStart { .. }));
    if in_pod {
        let trust = Trust::of(&project.root, Store::none());
        trust.decide(TrustAnswer::Once, &wanted);
        return Ok((trust, wanted));
    }
    Ok((super::trust::trusted(project, &wanted)?, wanted))
}

fn election(args: &OperateArgs) -> Result<Option<ElectionInput>> {
    if !args.leader_elect && !args.enable_leader_election {
        return Ok(None);
    }
    let Some(id) = args.leader_election_id.clone().filter(|id| !id.is_empty()) else {
        bail!("--leader-elect needs --leader-election-id: the name of the Lease that replicas share");
    };
    let namespace = args.leader_election_namespace.clone().filter(|name| !name.is_empty());
    if namespace.is_none() && !in_pod() {
        bail!("--leader-elect needs --leader-election-namespace outside of a cluster");
    }
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    Ok(Some(ElectionInput { id, namespace, host: host.unwrap_or_default().trim().to_owned() }))
}

fn style(args: &OperateArgs) -> LogStyle {
    let json = match args.zap_encoder.as_deref() {
        Some(encoder) => encoder.eq_ignore_ascii_case("json"),
        None => !args.zap_devel,
    };
    let level = if args.zap_devel { LogLevel::Debug } else { LogLevel::Info };
    LogStyle { json, level: args.zap_log_level.unwrap_or(level), time: args.zap_time_encoding }
}

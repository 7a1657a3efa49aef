//! `opdev plan`: what reconciles would do, before they do it. Exit codes: 0 nothing would change, 2 something would, 1 something
//! would fail, or no plan can be made.

use crate::print;
use anyhow::{Context as _, Result, anyhow};
use opdev_cluster::Choice;
use opdev_cluster::owner::Owner;
use opdev_controlplane::Webhooks;
use opdev_deploy::plan;
use opdev_deploy::plan::{PlanInput, Selector};
use opdev_event::words::escaped_json;
use opdev_os::user_config;
use opdev_project::Project;
use opdev_project::trust;
use opdev_release::settings::{HelmCompat, Settings};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Show what a reconcile of each object would do with the files as they are. Writes nothing
#[derive(Debug, clap::Args)]
pub(super) struct PlanArgs {
    /// Only these objects; default: all of the project's kinds
    #[arg(value_name = "KIND[/[NAMESPACE/]NAME]")]
    objects: Vec<Selector>,
    /// Use the embedded control plane, whatever the kubeconfig says: the one of an `opdev run` in this project, else a copy
    /// of what it keeps
    #[arg(long, conflicts_with_all = ["context", "kubeconfig"])]
    embedded: bool,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// Use this context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Use this kubeconfig instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Look at this namespace only
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    namespace: Option<String>,
    /// Look at all namespaces (the default with the embedded control plane)
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Ask the API server for no dry run: compare what is rendered with what is there
    #[arg(long)]
    offline: bool,
    /// Show every field that would change, with all of its value
    #[arg(long)]
    diff: bool,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = PlanFormat::Text)]
    output: PlanFormat,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    helm_compat: HelmCompat,
}

/// How a plan is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum PlanFormat {
    Text,
    Json,
}

/// Something would change.
const CHANGES: u8 = 2;
/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Prints the plan.
pub(super) fn run(args: PlanArgs) -> Result<ExitCode> {
    let (format, diff) = (args.output, args.diff);
    let input = input(args)?;
    let stop = super::signals::stop_signal()?;
    let copies = tempfile::tempdir().context("no folder for a copy of the objects can be made")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _log = super::logging::to_stderr();
    let planned = runtime.block_on(async {
        tokio::select! {
            planned = plan::plan(input, copies.path()) => planned,
            name = stop => Err(anyhow!("{name} has stopped the plan")),
        }
    });
    runtime.shutdown_timeout(LAST_WAIT);
    // Secrets may be in it. Now nobody makes another file there.
    drop(copies);
    let planned = planned?;
    let text = match format {
        PlanFormat::Text => print::plan(&planned, diff),
        PlanFormat::Json => format!("{}\n", escaped_json(serde_json::to_string(&planned)?)),
    };
    let mut out = super::visible::out();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    Ok(match (planned.fails(), planned.changes()) {
        (true, _) => ExitCode::FAILURE,
        (false, true) => ExitCode::from(CHANGES),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn input(args: PlanArgs) -> Result<PlanInput> {
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(args.project.as_deref(), &from)?;
    args.kubernetes.choose(project.settings.kubernetes.as_deref())?;
    let trust = super::trust::trusted(&project, &trust::wanted(&project))?;
    let all_namespaces = match (args.all_namespaces, &args.namespace) {
        (true, _) => Some(true),
        (false, Some(_)) => Some(false),
        (false, None) => None,
    };
    Ok(PlanInput {
        cluster: Choice {
            embedded: args.embedded,
            context: args.context,
            kubeconfig: args.kubeconfig,
            namespace: args.namespace.or_else(|| project.settings.namespace.clone()),
            allow_contexts: user_config::allow_contexts()?,
            webhooks: Webhooks::default(),
            owner: Owner::of_user(),
            ..Choice::default()
        },
        operator: Settings {
            helm_compat: args.helm_compat,
            on_save: project.settings.reload.release.unwrap_or_default(),
            ..Settings::default()
        },
        project,
        trust,
        all_namespaces,
        objects: args.objects,
        offline: args.offline,
    })
}

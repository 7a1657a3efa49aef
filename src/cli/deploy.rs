//! `opdev install`, `uninstall`, `deploy` and `undeploy`.

use opdev_cluster::Choice;
use opdev_cluster::owner::Owner;
use opdev_event::words::visible;
use opdev_os::user_config;
use opdev_project::Project;
use opdev_project::trust::{Store, Trust};

use anyhow::{Context as _, Result, anyhow};
use opdev_deploy::{ApplyOptions, DeployInput, RemoveOptions};
use std::future::Future;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// Which project and which cluster.
#[derive(Debug, clap::Args)]
struct PlaceArgs {
    /// Use the embedded control plane, whatever the kubeconfig says: the one of an `opdev run` in this
    /// project, else what it keeps
    #[arg(long, conflicts_with_all = ["context", "kubeconfig"])]
    embedded: bool,
    /// Use this context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Use this kubeconfig instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Allow writes to a context that is not clearly local
    #[arg(long, value_name = "NAME")]
    allow_context: Vec<String>,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Let this program, with its arguments, build the kustomization: "kubectl kustomize"
    #[arg(long, value_name = "PROGRAM")]
    kustomize: Option<String>,
}

/// Apply the project's CRDs: those of config/crd, with the Go types as they are now
#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Only ask the API server what it would do
    #[arg(long, value_name = "WHO", value_enum)]
    dry_run: Option<DryRun>,
    /// Print the CRDs instead of applying them
    #[arg(short, long, value_name = "FORMAT", value_enum, conflicts_with = "dry_run")]
    output: Option<ObjectFormat>,
    #[command(flatten)]
    apply: ApplyArgs,
}

/// Delete the project's CRDs. Asks, or refuses without a terminal, where they have objects
#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    remove: RemoveArgs,
}

/// Apply config/default: the CRDs, the roles and the operator itself, and wait until it is there
#[derive(Debug, clap::Args)]
pub(super) struct DeployArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The image of the operator, instead of the one in config/manager/kustomization.yaml. NAME is what the
    /// manifests call it; default: the one that `make deploy` sets, as a rule controller
    #[arg(long, value_name = "[NAME=]REFERENCE")]
    image: Option<String>,
    /// Write the image into config/manager/kustomization.yaml, or where `make deploy` sets it, once it is
    /// deployed
    #[arg(long, requires = "image", conflicts_with = "dry_run")]
    save: bool,
    /// The namespace, instead of the one in config/default
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Only ask the API server what it would do
    #[arg(long, value_name = "WHO", value_enum)]
    dry_run: Option<DryRun>,
    /// Print the objects instead of applying them
    #[arg(short, long, value_name = "FORMAT", value_enum, conflicts_with_all = ["dry_run", "save"])]
    output: Option<ObjectFormat>,
    /// How long to wait for the operator; 0s does not wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = super::arguments::duration)]
    wait: Duration,
    /// Leave out objects whose kinds the cluster lacks
    #[arg(long)]
    skip_missing: bool,
    /// Leave nothing out, not even what only watches the operator
    #[arg(long, conflicts_with = "skip_missing")]
    strict: bool,
    #[command(flatten)]
    apply: ApplyArgs,
}

/// Delete what deploy has applied. Asks, or refuses without a terminal, where custom resources or other
/// objects in the namespace would go too
#[derive(Debug, clap::Args)]
pub(super) struct UndeployArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// The namespace, instead of the one in config/default
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Delete what else is in the namespace too, whoever has put it there, without a question
    #[arg(long)]
    with_unrelated: bool,
    #[command(flatten)]
    remove: RemoveArgs,
}

#[derive(Debug, clap::Args)]
struct ApplyArgs {
    /// Take fields that other managers own
    #[arg(long)]
    force_conflicts: bool,
    /// Apply CRDs although objects would lose data, or not be valid any more
    #[arg(long)]
    accept_impact: bool,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// Delete custom resources too, without a question
    #[arg(short, long, visible_alias = "with-objects")]
    yes: bool,
    /// What is not there is no error
    #[arg(long)]
    ignore_not_found: bool,
    /// How long to wait until all is gone; with 0s what is still going is not waited for
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = super::arguments::duration)]
    wait: Duration,
}

/// The side that is asked in a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum DryRun {
    Server,
}

/// How objects are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ObjectFormat {
    Yaml,
}

/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

pub(super) fn install(args: InstallArgs) -> Result<()> {
    let input = input(args.place, Duration::ZERO)?;
    let dry_run = args.dry_run.is_some();
    if let Some(ObjectFormat::Yaml) = args.output {
        return print(opdev_deploy::rendered_crds(&input)?.as_bytes());
    }
    let options = ApplyOptions { dry_run, ..args.apply.options() };
    finish(opdev_deploy::install(&input, &options, &tell))
}

pub(super) fn uninstall(args: UninstallArgs) -> Result<()> {
    let input = input(args.place, args.remove.wait)?;
    finish(opdev_deploy::uninstall(&input, &args.remove.options(), &tell))
}

pub(super) fn deploy(args: DeployArgs) -> Result<()> {
    let input = input(args.place, args.wait)?;
    let options = ApplyOptions {
        image: args.image,
        save: args.save,
        namespace: args.namespace,
        dry_run: args.dry_run.is_some(),
        skip_missing: args.skip_missing,
        strict: args.strict,
        ..args.apply.options()
    };
    match args.output {
        Some(ObjectFormat::Yaml) => print(opdev_deploy::rendered(&input, &options)?.as_bytes()),
        None => finish(opdev_deploy::deploy(&input, &options, &tell)),
    }
}

pub(super) fn undeploy(args: UndeployArgs) -> Result<()> {
    let input = input(args.place, args.remove.wait)?;
    let options = RemoveOptions {
        namespace: args.namespace,
        with_unrelated: args.with_unrelated,
        ..args.remove.options()
    };
    finish(opdev_deploy::undeploy(&input, &options, &tell))
}

impl ApplyArgs {
    fn options(&self) -> ApplyOptions {
        ApplyOptions {
            force_conflicts: self.force_conflicts,
            accept_impact: self.accept_impact,
            ..ApplyOptions::default()
        }
    }
}

impl RemoveArgs {
    fn options(&self) -> RemoveOptions {
        let is_terminal = super::visible::can_ask();
        RemoveOptions {
            with_objects: self.yes,
            with_unrelated: false,
            ask: is_terminal.then_some(ask),
            ignore_not_found: self.ignore_not_found,
            namespace: None,
        }
    }
}

/// Shows a list of objects and asks whether they go; `yes` is the only word that deletes them.
fn ask(list: &str) -> Result<bool> {
    let mut out = super::visible::err();
    write!(out, "{list}Type yes to delete them: ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("the answer cannot be read")?;
    Ok(answer.trim() == "yes")
}

fn input(place: PlaceArgs, wait: Duration) -> Result<DeployInput> {
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(place.project.as_deref(), &from)?;
    let trust = Trust::of(&project.root, Store::of_user());
    Ok(DeployInput {
        cluster: Choice {
            embedded: place.embedded,
            context: place.context,
            kubeconfig: place.kubeconfig,
            allow_contexts: [place.allow_context, user_config::allow_contexts()?].concat(),
            owner: Owner::of_user(),
            ..Choice::default()
        },
        project,
        trust,
        kustomize: place.kustomize,
        wait,
    })
}

/// Runs one command until it is done or a signal comes.
fn finish(work: impl Future<Output = Result<()>>) -> Result<()> {
    let stop = super::signals::stop_signal()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let _log = super::logging::to_stderr();
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done,
            name = stop => Err(anyhow!("{name} has stopped it; what was applied or deleted until then stays so")),
        }
    });
    runtime.shutdown_timeout(LAST_WAIT);
    done
}

fn print(bytes: &[u8]) -> Result<()> {
    let mut out = super::visible::out();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// One line of progress.
fn tell(line: &str) {
    // A reader that does not listen misses it.
    let _ = print(format!("{}\n", visible(line)).as_bytes());
}

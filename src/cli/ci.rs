//! `opdev ci`: the operator tested without a cluster, or in namespaces of one. Exit codes: 0 green, 1 red, 2 wrong usage, 3 no environment (the project
//! does not load, the operator does not serve, nothing to run), 130 broken off; with a program that program's own.

use super::webhooks::WebhookArgs;

use anyhow::{Context as _, Result, bail};
use opdev_ci::{CiInput, KeptPlane, NoScenario, Pick, Shard};
use opdev_cluster::Choice;
use opdev_cluster::owner::Owner;
use opdev_controlplane::{ExecAnswer, Webhooks};
use opdev_event::shell;
use opdev_event::words::visible;
use opdev_os::private_folder::{make_folders, write_named};
use opdev_os::user_config;
use opdev_project::Project;
use opdev_project::trust;
use opdev_release::script::outside::end_programs;
use opdev_release::settings::{HelmCompat, Settings};
use opdev_scenario::found::Gate;
use opdev_scenario::html::EMBEDDED;
use opdev_scenario::report::Report;
use opdev_scenario::shared_cluster::Namespaces;
use regex::Regex;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Test the operator without a cluster: each sample on a control plane of its own, or any program against one
///
/// A sample is applied; once all is settled a second reconcile must write nothing; then it is deleted, and nothing that was
/// made for it may be left. With `-- PROGRAM` that program runs instead, with KUBECONFIG set, and its exit code is opdev's.
#[derive(Debug, clap::Args)]
pub(super) struct CiArgs {
    /// Only these samples, or folders with tests of kuttl (steps such as 00-install.yaml and 00-assert.yaml); default: all of
    /// the project's samples
    #[arg(value_name = "PATH", conflicts_with = "program")]
    paths: Vec<String>,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    junit: Option<PathBuf>,
    /// Write an HTML report
    #[arg(long, value_name = "FILE", conflicts_with = "program")]
    html: Option<PathBuf>,
    /// Only samples whose path matches
    #[arg(long, value_name = "REGEX", conflicts_with = "program")]
    filter: Option<Regex>,
    /// How many scenarios run at once; default: one for each core, and one where the operator is a program of its own or with
    /// --context
    #[arg(long, value_name = "N", conflicts_with = "program")]
    parallel: Option<usize>,
    /// Begin no other scenario once one has failed
    #[arg(long, conflicts_with = "program")]
    fail_fast: bool,
    /// Run each scenario N times
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "program", value_parser = at_least_once)]
    repeat: usize,
    /// Run only part I of N parts
    #[arg(long, value_name = "I/N", conflicts_with = "program")]
    shard: Option<Shard>,
    /// How long each step may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::arguments::duration)]
    timeout: Duration,
    /// Let the steps of test folders run their commands
    #[arg(long, conflicts_with = "program")]
    run_commands: bool,
    /// The findings that fail a scenario: errors, warnings too, or none. `opdev explain RULE` tells of a rule
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = FailingFindings::Error, conflicts_with = "program")]
    findings: FailingFindings,
    /// Leave settled samples alone: delete and change nothing, and do not stop the program
    #[arg(long, conflicts_with = "program")]
    no_disturb: bool,
    /// Once a scenario has failed, leave its control plane and the operator as they are, begin no other, print the kubeconfig
    /// and wait for ctrl-c
    #[arg(long, conflicts_with = "program")]
    keep: bool,
    /// The number that random functions of charts start from: the same one gives the same values; default: another one each time
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// No scenario at all is fine
    #[arg(long, conflicts_with = "program")]
    allow_empty: bool,
    /// The controllers that run: all of them with simulated pods, only those of the cluster (garbage
    /// collection, namespaces), or none, as under envtest
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = super::serve::Which::All)]
    controllers: super::serve::Which,
    /// Answer an `exec` in a simulated pod: `ok`, `exit:3` or a text to print; may be repeated. Part of the
    /// command may stand in front, as in `redis-cli ping=PONG`: then only such commands are answered.
    /// Others are refused
    #[arg(long, value_name = "[COMMAND=]ANSWER", conflicts_with = "context")]
    exec: Vec<ExecAnswer>,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// Let the operator's calls go out as its ServiceAccount with the roles of config/rbac and no more. Without a name it is
    /// the project's own
    #[arg(long, value_name = "[NAMESPACE/]NAME", num_args = 0..=1, default_missing_value = "")]
    as_serviceaccount: Option<String>,
    /// Let the control planes ask for rights, as clusters do: what calls with the token of a ServiceAccount may do what its
    /// roles say. The kubeconfig stays an administrator's
    #[arg(long)]
    rbac: bool,
    /// Run on the cluster of this context, each scenario in a namespace of its own that is removed afterwards. CRDs are applied
    /// as `opdev run` does, and stay
    #[arg(long, value_name = "NAME", conflicts_with_all = ["controllers", "rbac", "webhooks", "strict_webhooks", "webhook_certs"])]
    context: Option<String>,
    /// Look for the context in this kubeconfig instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "context")]
    kubeconfig: Option<PathBuf>,
    /// Allow writes to a context that is not clearly local
    #[arg(long, value_name = "NAME", requires = "context")]
    allow_context: Vec<String>,
    /// Keep the events of each scenario in DIR/SCENARIO/events.jsonl, for `opdev tail --file`. Secrets are masked in it
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    helm_compat: HelmCompat,
    #[command(flatten, next_help_heading = "Webhooks")]
    webhooks: WebhookArgs,
    /// A program to run against the control plane with the operator, such as `kubectl kuttl test tests/e2e`
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// The findings that fail a scenario.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum FailingFindings {
    Error,
    Warning,
    None,
}

impl From<FailingFindings> for Gate {
    fn from(which: FailingFindings) -> Gate {
        match which {
            FailingFindings::Error => Gate::Error,
            FailingFindings::Warning => Gate::Warning,
            FailingFindings::None => Gate::None,
        }
    }
}

/// Why a text does not say how often scenarios run.
#[derive(Debug)]
enum RepeatError {
    Never,
    NoNumber(String),
}

impl fmt::Display for RepeatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RepeatError::Never => f.write_str("each scenario runs at least once"),
            RepeatError::NoNumber(text) => write!(f, "{text} is no number"),
        }
    }
}

impl std::error::Error for RepeatError {}

fn at_least_once(text: &str) -> Result<usize, RepeatError> {
    match text.parse() {
        Ok(0) => Err(RepeatError::Never),
        Ok(times) => Ok(times),
        Err(_) => Err(RepeatError::NoNumber(text.to_owned())),
    }
}

/// No environment.
const NOTHING: u8 = 3;
/// Broken off by a signal from the keyboard.
const INTERRUPTED: u8 = 130;
/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Runs the scenarios or the program.
pub(super) fn run(args: CiArgs) -> ExitCode {
    match all(args) {
        Ok(code) => code,
        Err(error) => {
            super::visible::complain(&error);
            ExitCode::from(NOTHING)
        }
    }
}

fn all(args: CiArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let (program, empty) = (args.program.clone(), args.allow_empty);
    let files = ReportFiles { junit: args.junit.clone(), html: args.html.clone() };
    let named = HelmCompat::NAMED.into_iter().find(|(_, compat)| *compat == args.helm_compat);
    let compat = named.map_or("3", |(name, _)| name);
    let shutdown = CancellationToken::new();
    let input = input(args, &here, &shutdown)?;
    if let Some(folder) = &input.record {
        make_folders(folder)?;
    }
    let plane = input.cluster.context.clone().unwrap_or_else(|| EMBEDDED.to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("opdev").build()?;
    let _log = super::logging::to_stderr();
    match input.cluster.context.clone() {
        Some(context) => stop_patiently(shutdown, context, input.namespaces.clone())?,
        None => {
            let stop = super::signals::stop_signal()?;
            runtime.spawn(async move {
                stop.await;
                shutdown.cancel();
            });
        }
    }
    let code = if program.is_empty() {
        let mut properties = vec![("opdev", env!("CARGO_PKG_VERSION").to_owned())];
        // Charts are rendered by a version of Helm, and draw random values.
        if input.project.watches.is_some() || !input.project.reconcilers.is_empty() {
            properties.push(("helm-compat", compat.to_owned()));
            properties.push(("seed", input.operator.fresh_randomness.unwrap_or_default().to_string()));
        }
        properties.push(("plane", plane));
        runtime.block_on(all_scenarios(&input, &files, empty, &properties))
    } else {
        runtime.block_on(one_program(&input, &here, &program))
    };
    end_programs();
    runtime.shutdown_timeout(LAST_WAIT);
    code
}

/// Ends at the first signal what runs on a cluster, which has to be cleaned up; at the second one that is left to the user.
fn stop_patiently(shutdown: CancellationToken, context: String, namespaces: Namespaces) -> Result<()> {
    let mut asked_before = false;
    super::signals::hear(move |asked| {
        let left = namespaces.names();
        if !std::mem::replace(&mut asked_before, true) {
            if !left.is_empty() {
                let told =
                    "The namespaces of the scenarios are removed; once more leaves them as they are.\n";
                let _ = tell(&mut super::visible::err(), told);
            }
            shutdown.cancel();
            return;
        }
        end_programs();
        for name in left {
            let left = format!("left behind: `kubectl --context {context} delete namespace {name}`\n");
            let _ = tell(&mut super::visible::err(), &left);
        }
        std::process::exit(asked.code());
    })
}

/// Where reports go.
struct ReportFiles {
    junit: Option<PathBuf>,
    html: Option<PathBuf>,
}

async fn all_scenarios(
    input: &CiInput,
    files: &ReportFiles,
    empty: bool,
    properties: &[(&str, String)],
) -> Result<ExitCode> {
    let (scenarios, notes) = opdev_ci::scenarios(input)?;
    for note in notes {
        tell(&mut super::visible::err(), &format!("note: {note}\n"))?;
    }
    if scenarios.is_empty() && !empty {
        return Err(NoScenario.into());
    }
    let (report, kept) = opdev_ci::run(input, &scenarios).await?;
    let told = reported(&report, files, properties);
    // Whoever looks at what is left wants the report first, and has it, whatever became of its files.
    if told.is_ok() && !kept.is_empty() {
        tell(&mut super::visible::err(), &left(&kept))?;
        input.shutdown.cancelled().await;
    }
    let mut left_behind = Ok(());
    for plane in kept {
        let on_cluster = plane.namespace().is_some();
        let stopped = plane.stop().await;
        // What was wrong with the scenario stands in the report; what is left on a cluster stands nowhere else.
        left_behind = left_behind.and(if on_cluster { stopped } else { Ok(()) });
    }
    told.and(left_behind)?;
    Ok(ExitCode::from(code(&report)))
}

fn reported(report: &Report, files: &ReportFiles, properties: &[(&str, String)]) -> Result<()> {
    tell(&mut super::visible::out(), &opdev_scenario::report::text(report))?;
    if let Some((_, seed)) = properties.iter().find(|(name, _)| report.failed() && *name == "seed") {
        tell(
            &mut super::visible::out(),
            &format!("random functions of charts draw the same again with --seed {seed}\n"),
        )?;
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some() {
        tell(&mut super::visible::out(), &opdev_scenario::report::annotations(report))?;
    }
    if let Some(path) = &files.junit {
        write_named(path, opdev_scenario::junit(report, properties).as_bytes())?;
    }
    if let Some(path) = &files.html {
        write_named(path, opdev_scenario::html(report, properties).as_bytes())?;
    }
    Ok(())
}

/// How to reach what was left running.
fn left(kept: &[KeptPlane]) -> String {
    let mut text = String::new();
    for plane in kept {
        let list = shell::word(plane.kubeconfig());
        let namespace = plane.namespace().map_or_else(String::new, |name| format!(", namespace {name}"));
        text.push_str(&format!("{} runs on: export KUBECONFIG={list}{namespace}\n", visible(&plane.name)));
    }
    text + "ctrl-c ends opdev\n"
}

fn code(report: &Report) -> u8 {
    match (report.interrupted, report.failed(), report.error()) {
        (true, _, _) => INTERRUPTED,
        (false, true, _) => 1,
        (false, false, Some(_)) => NOTHING,
        (false, false, None) => 0,
    }
}

async fn one_program(input: &CiInput, here: &Path, program: &[String]) -> Result<ExitCode> {
    let ended = opdev_ci::program(input, here, program).await?;
    if ended.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if let Some(why) = ended.operator {
        bail!("the operator did not serve at the end: {why}");
    }
    let own = ended.status.code().and_then(|code| u8::try_from(code).ok());
    Ok(ExitCode::from(own.unwrap_or(1)))
}

fn tell(out: &mut impl std::io::Write, text: &str) -> Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn input(args: CiArgs, here: &Path, shutdown: &CancellationToken) -> Result<CiInput> {
    let project = Project::discover(args.project.as_deref(), here)?;
    args.kubernetes.choose(project.settings.kubernetes.as_deref())?;
    let trust = super::trust::trusted(&project, &trust::wanted(&project))?;
    let mut webhooks = Webhooks::default();
    args.webhooks.apply(&mut webhooks);
    let seed = super::arguments::seed(args.seed)?;
    // Programs share ports and folders, and scenarios on one cluster the names of what is in no namespace.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shares = project.has_program() || args.context.is_some();
    let parallel = if shares { 1 } else { cores };
    let allow_contexts = match args.context {
        Some(_) => [args.allow_context, user_config::allow_contexts()?].concat(),
        None => Vec::new(),
    };
    Ok(CiInput {
        findings: args.findings.into(),
        disturbs: !args.no_disturb && project.settings.findings.experiments != Some(false),
        cluster: Choice {
            embedded: args.context.is_none(),
            never_embedded: args.context.is_some(),
            in_memory: true,
            controllers_at_rest: true,
            context: args.context,
            kubeconfig: args.kubeconfig,
            allow_contexts,
            rbac: args.rbac,
            namespace: project.settings.namespace.clone(),
            service_account: args.as_serviceaccount,
            controllers: args.controllers.into(),
            exec: args.exec,
            webhooks,
            webhook_certificates: args.webhooks.folder(),
            owner: Owner::of_user(),
            ..Choice::default()
        },
        operator: Settings {
            helm_compat: args.helm_compat,
            on_save: project.settings.reload.release.unwrap_or_default(),
            fresh_randomness: Some(seed),
            ..Settings::default()
        },
        project,
        trust,
        pick: Pick { paths: args.paths, filter: args.filter, shard: args.shard, repeat: args.repeat },
        parallel: args.parallel.unwrap_or(parallel),
        fail_fast: args.fail_fast,
        limit: args.timeout,
        run_commands: args.run_commands,
        keep: args.keep,
        record: args.record,
        namespaces: Namespaces::default(),
        shutdown: shutdown.clone(),
    })
}

//! `opdev upgrade`: the next release rehearsed on living objects. Exit codes: 0 nothing as bad as `--fail-on`, 1 findings, 2 wrong
//! usage, 3 no environment (a version does not load, there is nothing to upgrade), 130 broken off.

use anyhow::{Context as _, Result};
use opdev_event::shell;
use opdev_event::words::escaped_json;
use opdev_os::private_folder::write_named;
use opdev_project::Project;
use opdev_project::trust::{Store, Trust};
use opdev_release::script::outside::end_programs;
use opdev_release::settings::{HelmCompat, Settings};
use opdev_upgrade::{
    End, EndInput, Input, Level, Progress, Reader, Rehearsed, Report, Variant, WORKING_TREE,
};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Rehearse the next release: what happens to the objects of the version that users have when they install this one
///
/// The version before makes the objects of its samples on a control plane of its own. Then the CRDs and the operator are swapped
/// for those of the working tree, and each write that is refused, each field that is lost and each pod that is made anew is told.
#[derive(Debug, clap::Args)]
pub(super) struct UpgradeArgs {
    /// The version that users have: a tag, a commit, or a folder; default: the newest tag that leads to HEAD
    #[arg(long, value_name = "REF|DIR")]
    from: Option<String>,
    /// The version that they get; default: the working tree
    #[arg(long, value_name = "REF|DIR")]
    to: Option<String>,
    /// Also rehearse each release in between, one after the other: the tags between the two versions, or
    /// these
    #[arg(long, value_name = "TAGS", num_args = 0..=1, require_equals = true, value_delimiter = ',', default_missing_value = "")]
    through: Option<Vec<String>>,
    /// Only these ways to swap: plain, crd-left-old, roles-left-old, back, same
    #[arg(long, value_name = "VARIANTS", value_delimiter = ',')]
    only: Vec<Variant>,
    /// The findings that make the exit code 1
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// Pods that are made anew are errors
    #[arg(long)]
    no_restarts: bool,
    /// Tell all of every finding, and name the objects that differ
    #[arg(short, long)]
    verbose: bool,
    /// How to print it
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Text)]
    output: ReportFormat,
    /// Write a JUnit report
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Write a report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// How long the operator may take to settle each time
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::arguments::duration)]
    timeout: Duration,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// A file or folder of the project with its Deployment and roles, in both versions; default:
    /// config/default
    #[arg(long, value_name = "FILE|DIR")]
    manifests: Option<PathBuf>,
    /// How many variants run at once; default: one for each core
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Allow both versions what they want beyond rendering and applying, for this time
    #[arg(long)]
    trust: bool,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    helm_compat: HelmCompat,
}

/// From which level on findings fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    Error,
    Warning,
    None,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportFormat {
    Text,
    /// One document
    Json,
    /// Each step as a line of JSON, the report in the last one
    JsonLines,
}

impl FailOn {
    fn level(self) -> Option<Level> {
        match self {
            FailOn::Error => Some(Level::Error),
            FailOn::Warning => Some(Level::Warning),
            FailOn::None => None,
        }
    }
}

/// No environment.
const NOTHING: u8 = 3;
/// Broken off by a signal from the keyboard.
const INTERRUPTED: u8 = 130;
/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Rehearses, and prints what was found.
pub(super) fn run(args: &UpgradeArgs) -> ExitCode {
    let shutdown = CancellationToken::new();
    match rehearse(args, &shutdown) {
        Ok(code) => code,
        Err(_) if shutdown.is_cancelled() => ExitCode::from(INTERRUPTED),
        Err(error) => {
            super::visible::complain(&error);
            ExitCode::from(NOTHING)
        }
    }
}

fn rehearse(args: &UpgradeArgs, shutdown: &CancellationToken) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("opdev").build()?;
    let _log = super::logging::to_stderr();
    let stop = super::signals::stop_signal()?;
    let asked = shutdown.clone();
    runtime.spawn(async move {
        stop.await;
        asked.cancel();
    });
    let told = each_step(args, shutdown, &runtime);
    end_programs();
    runtime.shutdown_timeout(LAST_WAIT);
    let reports = told?;
    if let Some(path) = &args.junit {
        let fails = args.fail_on.level().unwrap_or(Level::Error);
        write_named(path, opdev_upgrade::junit(&reports, fails).as_bytes())?;
    }
    if let Some(path) = &args.html {
        let step = |report| Rehearsed { report, command: replay(args, report) };
        let steps: Vec<Rehearsed<'_>> = reports.iter().map(step).collect();
        write_named(path, opdev_upgrade::html(&steps).as_bytes())?;
    }
    let fails = args.fail_on.level().is_some_and(|level| reports.iter().any(|report| report.has(level)));
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Rehearses each step, and tells of it as soon as it is known.
fn each_step(
    args: &UpgradeArgs,
    shutdown: &CancellationToken,
    runtime: &tokio::runtime::Runtime,
) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for input in inputs(args, shutdown)? {
        let tell_step = |progress: &Progress| {
            if args.output == ReportFormat::JsonLines {
                let _ = writeln!(super::visible::out(), "{}", escaped_json(progress.json().to_string()));
            }
        };
        let mut report = runtime.block_on(opdev_upgrade::rehearse(&input, tell_step))?;
        if args.no_restarts {
            report.forbid_restarts();
        }
        tell(args, &report)?;
        reports.push(report);
    }
    Ok(reports)
}

/// The steps: from each version to the one after it, and at last from the first to the last, as users do who
/// skip releases. Without `--through` the last is the only one.
fn inputs(args: &UpgradeArgs, shutdown: &CancellationToken) -> Result<Vec<Input>> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(args.project.as_deref(), &here)?;
    args.kubernetes.choose(project.settings.kubernetes.as_deref())?;
    let trust = Trust::of(&project.root, Store::of_user());
    let command = super::trust::command(&project.root);
    let reader = Reader::of_operators(&project.root, trust, command, args.trust)
        .with_manifests(args.manifests.clone());
    let from = args.from.clone().map_or(EndInput::NewestTag, EndInput::Named);
    let to = args.to.clone().map_or_else(|| EndInput::Folder(project.root.clone()), EndInput::Named);
    let (from, to) = (reader.read(&from)?, reader.read(&to)?);
    let between = between(args, &project, &reader, &from.name)?;
    if args.to.is_none() {
        tell_dirty(&project);
    }
    let all = || Variant::ALL.to_vec();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let step = |from: &End, to: &End| Input {
        from: from.clone(),
        to: to.clone(),
        trust: reader.trust(),
        operator: Settings { helm_compat: args.helm_compat, ..Settings::default() },
        only: if args.only.is_empty() { all() } else { args.only.clone() },
        limit: args.timeout,
        parallel: args.parallel.unwrap_or(cores),
        shutdown: shutdown.clone(),
    };
    let mut steps = Vec::new();
    if !between.is_empty() {
        let whole: Vec<&End> = [&from].into_iter().chain(&between).chain([&to]).collect();
        steps.extend(whole.windows(2).map(|pair| step(pair[0], pair[1])));
    }
    steps.push(step(&from, &to));
    Ok(steps)
}

/// The versions that `--through` names, or the tags between the two ends.
fn between(args: &UpgradeArgs, project: &Project, reader: &Reader, from: &str) -> Result<Vec<End>> {
    let Some(named) = &args.through else { return Ok(Vec::new()) };
    let mut names: Vec<String> = named.iter().filter(|name| !name.is_empty()).cloned().collect();
    if names.is_empty() {
        let git = opdev_upgrade::Git::of(&project.root)?;
        let from = git.revision(from).context("--through without a value looks for the tags after --from")?;
        let tags = git.tags_between(&from, args.to.as_deref())?;
        names.extend(tags.into_iter().map(|tag| tag.name));
        if names.is_empty() {
            writeln!(super::visible::err(), "note: no tag lies between the two versions")?;
        }
    }
    names.into_iter().map(|name| reader.read(&EndInput::Named(name))).collect()
}

/// What is not committed counts, and whoever compares tags wants to know that.
fn tell_dirty(project: &Project) {
    let changed = opdev_upgrade::Git::of(&project.root).map_or(0, |git| git.changed_files());
    let files = match changed {
        0 => return,
        1 => "1 file that is not committed counts".to_owned(),
        many => format!("{many} files that are not committed count"),
    };
    let _ = writeln!(super::visible::err(), "note: {files} for the working tree");
}

fn tell(args: &UpgradeArgs, report: &Report) -> Result<()> {
    let mut text = match args.output {
        ReportFormat::Text => opdev_upgrade::text(report, args.verbose, &replay(args, report)),
        ReportFormat::JsonLines => {
            let line = opdev_upgrade::json_line(report, &replay(args, report));
            format!("{}\n", escaped_json(line.to_string()))
        }
        ReportFormat::Json => format!("{}\n", escaped_json(opdev_upgrade::json(report).to_string())),
    };
    if args.output == ReportFormat::Text && std::env::var_os("GITHUB_ACTIONS").is_some() {
        text.push_str(&opdev_upgrade::annotations(report));
    }
    let mut out = super::visible::out();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The command that rehearses the same two versions.
fn replay(args: &UpgradeArgs, report: &Report) -> String {
    let mut command = format!("opdev upgrade --from {}", shell::word(&report.from));
    if let Some(manifests) = &args.manifests {
        command.push_str(&format!(" --manifests {}", shell::word(&manifests.display().to_string())));
    }
    // The working tree has a name for people only.
    let to =
        if args.through.is_some() && report.to != WORKING_TREE { Some(&report.to) } else { args.to.as_ref() };
    if let Some(to) = to {
        command.push_str(&format!(" --to {}", shell::word(to)));
    }
    command
}

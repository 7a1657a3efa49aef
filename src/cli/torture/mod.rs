//! `opdev torture`. Exit codes: 0 no finding, 1 findings, 2 wrong usage, 3 no environment (the project does not load, its program
//! does not build, no scenario can be run), 130 broken off.

mod progress;

use anyhow::{Context as _, Result, anyhow, bail};
use opdev_ci::Pick;
use opdev_controlplane::ExecAnswer;
use opdev_event::words::{escaped_json, visible};
use opdev_os::private_folder::write_named;
use opdev_project::Project;
use opdev_project::trust;
use opdev_release::script::outside::end_programs;
use opdev_release::settings::{HelmCompat, Settings};
use opdev_torture::{Class, Ignored, Level, Progress, Report, TortureInput};
use progress::Shown;
use regex::Regex;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Find the bugs that nobody thought of: the operator is killed between two writes, is not there while something changes, hears
/// late of it, and is judged by how that ends
///
/// Each sample goes through scenarios: made, changed, deleted, made again. Three undisturbed runs say how each ends; then each
/// plan disturbs the operator at one point. An end that differs is tried again twice before it is told. All of it runs on
/// control planes of opdev's own, never on a cluster.
#[derive(Debug, clap::Args)]
pub(super) struct TortureArgs {
    /// Only these samples; default: all of the project's samples
    #[arg(value_name = "PATH")]
    paths: Vec<String>,
    /// Only samples whose path matches
    #[arg(long, value_name = "REGEX")]
    filter: Option<Regex>,
    /// Only these scenarios, such as recreate or up-down; default: all that apply
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    scenario: Vec<String>,
    /// Only these disturbances: restart, down, crash, past, blind, slow, lost, conflict, deleted-early,
    /// bad-pods; default: all that apply
    #[arg(long, value_name = "WHICH", value_delimiter = ',')]
    only: Vec<Class>,
    /// Change one field of each sample at a time instead, from its schema: changed back all has to be as before, and a changed
    /// object as a new one with the change
    #[arg(long, conflicts_with_all = ["scenario", "only"])]
    fields: bool,
    /// Only fields whose path begins so, such as spec.storage
    #[arg(long, value_name = "PATH", requires = "fields")]
    field: Vec<String>,
    /// How much is tried: the first plan of each kind, all plans up to the third of a kind, or every plan.
    /// With --fields: no part that the sample lacks is switched on, six are, or all
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = HowMuch::Normal)]
    level: HowMuch,
    /// Begin no other plan after so long, such as 60s
    #[arg(long, value_name = "DURATION", value_parser = super::arguments::duration)]
    time: Option<Duration>,
    /// Answer an `exec` in a simulated pod: `ok`, `exit:3` or a text to print; may be repeated. Part of the
    /// command may stand in front, as in `redis-cli ping=PONG`: then only such commands are answered.
    /// Others are refused
    #[arg(long, value_name = "[COMMAND=]ANSWER")]
    exec: Vec<ExecAnswer>,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// How many runs at once; default: as many as fit the cores, and one for a program that listens on a
    /// fixed port
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Number that random functions of charts draw by; default: another one each time
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// How long each step of a run may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = super::arguments::duration)]
    timeout: Duration,
    /// Run the plan of one finding again, from its file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "filter", "scenario", "only", "level", "time", "fields"])]
    replay: Option<PathBuf>,
    /// Do not compare a field: KIND/NAME PATH, with * for any name or any path
    #[arg(long, value_name = "WHAT")]
    ignore: Vec<Ignored>,
    /// Findings of this file are known and fail nothing
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the findings into a file for --baseline
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
    /// Write a JUnit report: a suite for each scenario, a case for each kind of disturbance
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print each step as a line of JSON instead of the report
    #[arg(long)]
    json: bool,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    helm_compat: HelmCompat,
}

/// How much is tried.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum HowMuch {
    Quick,
    Normal,
    Deep,
}

impl From<HowMuch> for Level {
    fn from(much: HowMuch) -> Level {
        match much {
            HowMuch::Quick => Level::Quick,
            HowMuch::Normal => Level::Normal,
            HowMuch::Deep => Level::Deep,
        }
    }
}

/// No environment.
const NOTHING: u8 = 3;
/// Broken off by a signal from the keyboard.
const INTERRUPTED: u8 = 130;
/// How long threads that are still at work may take at the end.
const LAST_WAIT: Duration = Duration::from_millis(500);

/// Tortures the operator of the project.
pub(super) fn run(args: TortureArgs) -> ExitCode {
    match all(args) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            super::visible::complain(&error);
            ExitCode::from(NOTHING)
        }
    }
}

fn all(args: TortureArgs) -> Result<u8> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let shutdown = CancellationToken::new();
    let outputs = Outputs {
        json: args.json,
        junit: args.junit.clone(),
        baseline: args.baseline.clone(),
        write_baseline: args.write_baseline.clone(),
    };
    let replay = args.replay.clone();
    let input = input(args, &here, &shutdown)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_name("opdev").build()?;
    let _log = super::logging::to_stderr();
    let stop = super::signals::stop_signal()?;
    runtime.spawn(async move {
        stop.await;
        shutdown.cancel();
    });
    let code = match replay {
        Some(file) => runtime.block_on(one(&input, &here.join(file))),
        None => runtime.block_on(campaign(&input, &outputs)),
    };
    end_programs();
    runtime.shutdown_timeout(LAST_WAIT);
    // Whatever is broken off in the middle, a build among it, ends with an error of its own.
    if input.shutdown.is_cancelled() { Ok(INTERRUPTED) } else { code }
}

/// Where results go.
struct Outputs {
    json: bool,
    junit: Option<PathBuf>,
    baseline: Option<PathBuf>,
    write_baseline: Option<PathBuf>,
}

async fn campaign(input: &TortureInput, outputs: &Outputs) -> Result<u8> {
    let known = outputs.baseline.as_deref().map(read_baseline).transpose()?.unwrap_or_default();
    let mut shown = (!outputs.json).then(Shown::to_stderr);
    let tell_each = |progress: &Progress| {
        // A line that cannot be written is no reason to stop: the report comes at the end.
        let _ = match &mut shown {
            Some(shown) => shown.tell(progress),
            None => writeln!(super::visible::out(), "{}", escaped_json(progress.json().to_string())),
        };
    };
    let ended = opdev_torture::torture(input, tell_each).await;
    if let Some(shown) = &mut shown {
        let _ = shown.clear();
    }
    let mut report = ended?;
    report.mark_known(&known);
    for note in &report.notes {
        writeln!(super::visible::err(), "note: {}", visible(note))?;
    }
    if !outputs.json {
        write!(super::visible::out(), "{}", opdev_torture::text(&report))?;
        if !report.findings.is_empty() {
            writeln!(
                super::visible::out(),
                "random functions of charts draw the same again with --seed {}",
                report.seed
            )?;
        }
    }
    if let Some(path) = &outputs.junit {
        write_named(path, opdev_torture::junit(&report).as_bytes())?;
    }
    if let Some(path) = &outputs.write_baseline {
        let keys: Vec<String> = report.findings.iter().map(opdev_torture::Finding::key).collect();
        let text = opdev_object::yaml::to_string(&json!({ "findings": keys }));
        write_named(path, text.as_bytes())?;
    }
    Ok(code(&report))
}

fn code(report: &Report) -> u8 {
    if report.interrupted {
        INTERRUPTED
    } else if report.new_findings() > 0 {
        1
    } else if report.plans() == 0 && !report.problems.is_empty() {
        NOTHING
    } else {
        0
    }
}

fn read_baseline(path: &Path) -> Result<Vec<String>> {
    let text = opdev_os::read::text(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let value =
        opdev_object::yaml::from_str(&text).map_err(|error| anyhow!("{}", error.in_file(path.display())))?;
    let Some(all) = value["findings"].as_array() else {
        bail!("{} has no list `findings`: `opdev torture --write-baseline` writes one", path.display());
    };
    Ok(all.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

async fn one(input: &TortureInput, file: &Path) -> Result<u8> {
    let replayed = opdev_torture::replay(input, file).await?;
    let mut out = super::visible::out();
    writeln!(out, "disturbance   {}", visible(&replayed.how))?;
    for difference in &replayed.differences {
        writeln!(out, "different     {}", visible(&difference.words()))?;
    }
    if !replayed.met {
        writeln!(out, "the disturbance did not take place: the operator does other things by now")?;
    } else if replayed.differences.is_empty() {
        writeln!(out, "nothing is different: it ends as undisturbed runs do")?;
    } else if !replayed.again {
        writeln!(out, "none of this was different when the file was written")?;
    }
    if input.shutdown.is_cancelled() {
        return Ok(INTERRUPTED);
    }
    Ok(u8::from(!replayed.differences.is_empty()))
}

fn input(args: TortureArgs, here: &Path, shutdown: &CancellationToken) -> Result<TortureInput> {
    let project = Project::discover(args.project.as_deref(), here)?;
    args.kubernetes.choose(project.settings.kubernetes.as_deref())?;
    let trust = super::trust::trusted(&project, &trust::wanted(&project))?;
    let seed = super::arguments::seed(args.seed)?;
    let folder = match args.replay {
        Some(_) => None,
        None => Some(project.state_folder()?.folder("torture")?),
    };
    let mut ignored = args.ignore;
    for one in &project.settings.torture.ignore {
        let what = one.what.parse().map_err(|error| anyhow!("opdev.yaml: `torture.ignore`: {error}"))?;
        if !ignored.contains(&what) {
            ignored.push(what);
        }
    }
    Ok(TortureInput {
        settings: Settings {
            helm_compat: args.helm_compat,
            on_save: project.settings.reload.release.unwrap_or_default(),
            ..Settings::default()
        },
        project,
        trust,
        pick: Pick { paths: args.paths, filter: args.filter, shard: None, repeat: 1 },
        scenarios: args.scenario,
        fields: args.fields,
        field: args.field,
        level: args.level.into(),
        time: args.time,
        only: args.only,
        exec: args.exec,
        ignored,
        seed,
        parallel: args.parallel,
        limit: args.timeout,
        folder,
        shutdown: shutdown.clone(),
    })
}

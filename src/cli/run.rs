//! `opdev run`: finds the project, sets logging up, and joins the inner loop with the terminal or a printer.

use super::arguments::{self, JsonForm};
use super::begin;
use super::logging;
use super::signals;
use super::webhooks::WebhookArgs;
use crate::print;
use jiff::Timestamp;
use opdev_cluster::Choice;
use opdev_cluster::owner::Owner;
use opdev_event::sink::EventSink;
use opdev_event::words::Expected;
use opdev_event::{Event, FaultRule, Level, Notice, OnExit, ProjectTask, Request, RequestId};
use opdev_findings::Findings;

use opdev_inner_loop::bus;
use opdev_inner_loop::bus::Listener;
use opdev_os::lock::Lock;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::user_config;
use opdev_project::journal::Journal;
use opdev_project::settings;
use opdev_project::trust;
use opdev_project::trust::{Store, Trust};
use opdev_project::{NoProject, Project};
use opdev_release::script::outside::end_programs;
use opdev_release::settings::{HelmCompat, Settings};
use opdev_requests::chart_dependencies;
use opdev_state::{Limits, State};

use anyhow::{Context as _, Result, anyhow, bail};
use opdev_controlplane::{Controllers, ExecAnswer, Webhooks};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What `opdev run` takes.
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Use the embedded control plane, whatever the kubeconfig says
    #[arg(long, conflicts_with_all = ["context", "kubeconfig"])]
    embedded: bool,
    /// Start the embedded control plane empty, instead of with the objects of the last run
    #[arg(long)]
    fresh: bool,
    /// Let simulated pods wait for the ConfigMaps and Secrets that they name, with the kubelet's reasons, and refuse them
    /// where their ServiceAccount is not there; only with the embedded control plane
    #[arg(long)]
    strict_pods: bool,
    /// Answer an `exec` in a simulated pod: `ok`, `exit:3` or a text to print; may be repeated. Part of the
    /// command may stand in front, as in `redis-cli ping=PONG`: then only such commands are answered.
    /// Only with the embedded control plane
    #[arg(long, value_name = "[COMMAND=]ANSWER")]
    exec: Vec<ExecAnswer>,
    #[command(flatten)]
    kubernetes: super::kubernetes::KubernetesArgs,
    /// Let the operator's calls go out as its ServiceAccount with the roles of config/rbac and no more: enforced by the
    /// embedded control plane, impersonated elsewhere. Without a name it is the project's own
    #[arg(long, value_name = "[NAMESPACE/]NAME", num_args = 0..=1, default_missing_value = "")]
    as_serviceaccount: Option<String>,
    /// Use this context of the kubeconfig instead of the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Use this kubeconfig instead of KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Reconcile only this namespace. May be given more than once, or as a list with commas. Without it WATCH_NAMESPACE counts, as for the Operator SDK's operator
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', conflicts_with = "all_namespaces")]
    namespace: Vec<String>,
    /// Reconcile all namespaces (the default with the embedded control plane)
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Allow writes to a context that is not clearly local
    #[arg(long, value_name = "NAME")]
    allow_context: Vec<String>,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print one line for each thing that happens instead of drawing panes (the default without a terminal)
    #[arg(long, conflicts_with = "json")]
    plain: bool,
    /// Print one JSON object for each thing that happens; `--json=compact` leaves whole objects out
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "whole")]
    json: Option<JsonForm>,
    /// Reconcile only this kind; the others are shown. May be given more than once
    #[arg(long, value_name = "KIND")]
    only: Vec<String>,
    /// Let saved charts wait for your answer, with a list of what they would change; `H` answers, `g h` ends it
    #[arg(long)]
    hold: bool,
    /// Disturb calls of the operator's own program to the embedded control plane, such as `conflict update */status
    /// times=1`, `503 every=3` or `hold pods`; docs/traced-operators.md lists the rules. May be given more than once
    #[arg(long, value_name = "RULE")]
    disturb: Vec<FaultRule>,
    /// The calls that are hit by chance: the same number hits the same calls
    #[arg(long, value_name = "NUMBER", default_value = "1", requires = "disturb")]
    disturb_seed: u64,
    /// Run the operator's own Go program under the debugger Delve (dlv), which waits for an editor at this address; the program
    /// does not wait
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:2345", value_parser = debug_address)]
    debug: Option<String>,
    /// Download, once at the start, what charts of watches.yaml depend on and lack: `opdev dependency build` for each of them
    #[arg(long)]
    build_dependencies: bool,
    /// Look at the files twice a second instead of listening to the kernel
    #[arg(long)]
    poll: bool,
    /// How often an object is reconciled without a cause, unless watches.yaml says otherwise; 0 for never
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = arguments::duration)]
    reconcile_period: Duration,
    /// How many objects of one kind are reconciled at once
    #[arg(long, value_name = "N")]
    max_concurrent_reconciles: Option<usize>,
    /// Render charts as this Helm does
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = arguments::compat)]
    helm_compat: HelmCompat,
    /// What becomes of custom resources on a cluster that lives on when opdev ends: leave, uninstall or release (their
    /// finalizers); without it, opdev asks where there is a terminal, and leaves them as they are where there is none
    #[arg(long, value_name = "HOW", value_parser = on_exit)]
    on_exit: Option<OnExit>,
    /// How much history to keep in memory: reconciles, versions of objects, logs; 64Mi unless opdev.yaml says otherwise
    #[arg(long, value_name = "BYTES", value_parser = settings::bytes)]
    history: Option<usize>,
    /// Do not show values of overrideValues in Kubernetes events
    #[arg(long)]
    suppress_override_values: bool,
    #[command(flatten, next_help_heading = "Webhooks of the embedded control plane")]
    webhooks: WebhookArgs,
}

/// The number of the request that comes with the start. The screen counts its own from 1.
const AT_START: RequestId = RequestId::MAX / 2;

/// The notice of a project that cannot be written.
fn kept_elsewhere(folder: &Path) -> Event {
    Event::Noticed(Notice {
        at: Timestamp::now(),
        level: Level::Info,
        message: format!(
            "the project's folder cannot be written, so opdev keeps its files in {}",
            folder.display()
        ),
        hint: None,
        object: None,
    })
}

/// An address at which Delve can wait.
fn debug_address(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.map(|_| text.to_owned()).ok_or_else(|| "it is HOST:PORT, such as 127.0.0.1:2345".to_owned())
}

fn on_exit(text: &str) -> Result<OnExit, Expected> {
    let found = OnExit::NAMED.into_iter().find(|(name, _)| *name == text);
    found.map(|(_, how)| how).ok_or(Expected("leave, uninstall or release"))
}

/// How what happens is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Panes,
    Plain,
    Json(JsonForm),
}

impl RunArgs {
    fn output(&self) -> Output {
        match (self.json, self.plain) {
            (Some(form), _) => Output::Json(form),
            (_, true) => Output::Plain,
            _ if !opdev_tui::usable() => Output::Plain,
            _ => Output::Panes,
        }
    }
}

/// Runs until the user quits or a signal comes.
pub(super) fn run(args: RunArgs, began: Instant) -> Result<()> {
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    let project = project(&args, &from)?;
    if args.max_concurrent_reconciles == Some(0) {
        bail!("--max-concurrent-reconciles must be at least 1");
    }
    let output = args.output();
    let trust = trust(&project, output)?;
    let allow_contexts = [args.allow_context.clone(), user_config::allow_contexts()?].concat();
    let state_folder = project.state_folder()?;
    // The journal, the log and the kubeconfig are one opdev's.
    let _lock = match Lock::take(&state_folder, "lock", &command_line())? {
        Ok(lock) => lock,
        Err(holder) => bail!(
            "another opdev runs in this project: {holder}\n  where: {}\n  to do: follow it with `opdev tail`, or stop it \
             first; two operators on the same files and objects undo each other's work",
            project.root.display()
        ),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("opdev")
        .build()
        .context("the runtime does not start")?;
    let (events, incoming) = EventSink::channel(bus::CAPACITY);
    let log = logging::start(&state_folder, events.clone())?;
    let journal = Journal::start(&state_folder)?;
    let shutdown = CancellationToken::new();
    let (ask, requests) = mpsc::channel::<(RequestId, Request)>(64);
    let _entered = runtime.enter();
    let (listener, printer) = match output {
        Output::Panes => (None, None),
        Output::Plain | Output::Json(_) => {
            let (listener, printer) = Printer::start(output, &shutdown)?;
            (Some(listener), Some(printer))
        }
    };
    let mut limits = Limits::default();
    let set = project.settings.history.as_deref().and_then(|text| settings::bytes(text).ok());
    limits.bytes = args.history.or(set).unwrap_or(limits.bytes);
    let findings = Findings::ignoring(project.settings.ignored())
        .asking(project.settings.findings.experiments != Some(false));
    let bus = bus::start(
        State::with_limits(limits),
        incoming,
        (Some(journal), listener),
        (findings, Some(ask.downgrade())),
        shutdown.clone(),
    );
    if !state_folder.path().starts_with(&project.root) {
        runtime.block_on(events.emit(kept_elsewhere(state_folder.path())));
    }
    let screen = match output {
        Output::Panes => Some(screen(opdev_tui::TuiInput {
            snapshots: bus.snapshots.clone(),
            requests: ask.clone(),
            shutdown: shutdown.clone(),
            first_frame: Some(Box::new(move |at| {
                tracing::info!(
                    "first frame {} ms after the process began",
                    at.duration_since(began).as_millis()
                );
            })),
        })?),
        Output::Plain | Output::Json(_) => None,
    };
    if args.build_dependencies && chart_dependencies::are_missing(&project) {
        // Nothing else is in the queue yet, which has room.
        let _ = ask.try_send((AT_START, ProjectTask::FetchDependencies.into()));
    }
    let allowed = (trust, allow_contexts);
    let input = input(args, (project, allowed), events, requests, &shutdown, (&log, state_folder, began));
    let result = hear(shutdown.clone()).and_then(|()| runtime.block_on(opdev_inner_loop::run(input)));
    shutdown.cancel();
    let screen_result = screen.map_or(Ok(()), ScreenThread::finish);
    drop(ask);
    log.finish();
    // The bus ends with its last sender; a task that hangs must not hold the user's shell.
    let bus_result =
        match runtime.block_on(async { tokio::time::timeout(Duration::from_secs(2), bus.task).await }) {
            Ok(Err(_)) => Err(anyhow!("opdev tripped over a bug of its own; the log has the details")),
            Ok(Ok(())) | Err(_) => Ok(()),
        };
    let printed = printer.map_or(Ok(()), Printer::finish);
    // What a reconciler has started must not outlive it.
    end_programs();
    runtime.shutdown_timeout(Duration::from_secs(1));
    printed.and(result).and(screen_result).and(bus_result)
}

/// The project to run. Where there is none, and somebody to ask, one may be made here.
fn project(args: &RunArgs, from: &Path) -> Result<Project> {
    let found = Project::discover(args.project.as_deref(), from);
    // A project whose settings are broken is one: making another would hide the fault.
    let none = found.as_ref().is_err_and(anyhow::Error::is::<NoProject>);
    let asks = none && args.project.is_none() && args.output() == Output::Panes;
    let project = if asks && begin::offer(from)? { Project::discover(None, from) } else { found }?;
    args.kubernetes.choose(project.settings.kubernetes.as_deref())?;
    Ok(project)
}

/// What the user allows the project. Where nobody can be asked, all that it wants must be trusted already.
fn trust(project: &Project, output: Output) -> Result<Trust> {
    let trust = Trust::of(&project.root, Store::of_user());
    let unanswered = trust.unanswered(&trust::wanted(project))?;
    match output {
        Output::Plain | Output::Json(_) if !unanswered.is_empty() => {
            bail!("{}", trust::refusal(project, &unanswered, &super::trust::command(&project.root)))
        }
        Output::Panes | Output::Plain | Output::Json(_) => Ok(trust),
    }
}

/// How opdev was started, for whoever meets its lock.
fn command_line() -> String {
    let words: Vec<String> = std::env::args().skip(1).collect();
    format!("opdev {}", words.join(" "))
}

/// The screen has a thread of its own, so that nothing on it holds the operator up, nor the other way round.
fn screen(input: opdev_tui::TuiInput) -> Result<ScreenThread> {
    let shutdown = input.shutdown.clone();
    let (tell, ended) = std_mpsc::channel();
    let draw = move || {
        // Also where the screen panics: without it the user could not even quit.
        let _stop = shutdown.drop_guard();
        let shown = opdev_tui::run(input);
        let _ = tell.send(());
        shown
    };
    let thread = std::thread::Builder::new()
        .name("screen".to_owned())
        .spawn(draw)
        .context("no thread for the screen")?;
    Ok(ScreenThread { thread, ended })
}

/// The thread that draws.
struct ScreenThread {
    thread: std::thread::JoinHandle<Result<()>>,
    ended: std_mpsc::Receiver<()>,
}

/// The longest time that the screen may take to end once the rest of opdev has. An editor that was asked to
/// end has a second.
const LAST_FRAME: Duration = Duration::from_millis(1500);

impl ScreenThread {
    /// Waits for its end, unless the terminal takes nothing in: a write waits for that, maybe for ever.
    fn finish(self) -> Result<()> {
        if self.ended.recv_timeout(LAST_FRAME) == Err(std_mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("the terminal takes nothing in; opdev ends without it");
            super::visible::give_up();
            opdev_terminal::restore();
            return Ok(());
        }
        self.thread.join().unwrap_or_else(|_| bail!("the screen panicked; the log has the details"))
    }
}

/// The namespaces to reconcile, each once: what was given, else what WATCH_NAMESPACE lists; none where all
/// were asked for.
fn named_namespaces(given: Vec<String>, all: bool, watch_namespace: Option<String>) -> Vec<String> {
    let listed = || {
        let text = watch_namespace.filter(|_| !all).unwrap_or_default();
        text.split(',').map(str::to_owned).collect()
    };
    let mut named: Vec<String> = if given.is_empty() { listed() } else { given };
    let mut seen = std::collections::HashSet::new();
    named.iter_mut().for_each(|name| *name = name.trim().to_owned());
    named.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    named
}

fn input(
    args: RunArgs,
    (project, (trust, allow_contexts)): (Project, (Trust, Vec<String>)),
    events: EventSink,
    requests: mpsc::Receiver<(RequestId, Request)>,
    shutdown: &CancellationToken,
    (log, state_folder, began): (&logging::Log, PrivateFolder, Instant),
) -> opdev_inner_loop::Input {
    let mut operator = Settings {
        reconcile_period: args.reconcile_period,
        helm_compat: args.helm_compat,
        suppress_override_values: args.suppress_override_values,
        on_save: project.settings.reload.release.unwrap_or_default(),
        ..Settings::default()
    };
    if let Some(limit) = args.max_concurrent_reconciles {
        operator.max_concurrent = limit;
    }
    let named = named_namespaces(args.namespace, args.all_namespaces, std::env::var("WATCH_NAMESPACE").ok());
    let all_namespaces = match (named.as_slice(), args.all_namespaces) {
        ([_], _) => Some(false),
        ([_, _, ..], _) | ([], true) => Some(true),
        ([], false) => None,
    };
    let first_namespace = named.first().cloned();
    if named.len() > 1 {
        operator.only = named;
    }
    let mut webhooks = Webhooks::default();
    args.webhooks.apply(&mut webhooks);
    opdev_inner_loop::Input {
        cluster: Choice {
            never_embedded: false,
            reach: None,
            embedded: args.embedded,
            fresh: args.fresh,
            in_memory: false,
            controllers_at_rest: false,
            context: args.context,
            kubeconfig: args.kubeconfig,
            namespace: first_namespace.or_else(|| project.settings.namespace.clone()),
            allow_contexts,
            service_account: args.as_serviceaccount,
            webhooks,
            strict_pods: args.strict_pods || project.settings.strict_pods,
            exec: args.exec,
            webhook_certificates: args.webhooks.folder(),
            controllers: Controllers::default(),
            rbac: false,
            owner: Owner::of_user(),
        },
        on_exit: args.on_exit.or(project.settings.on_exit),
        project,
        trust,
        operator,
        all_namespaces,
        only: args.only,
        poll: args.poll,
        hold: args.hold,
        disturb: args.disturb,
        disturb_seed: args.disturb_seed,
        debug: args.debug,
        state_folder,
        log_file: Some(log.file.clone()),
        began,
        events,
        requests,
        shutdown: shutdown.clone(),
    }
}

/// Prints events where there is no terminal, on a thread of its own: a reader that pauses never holds the
/// operator up (lines it has no room for are counted), and one that goes away ends opdev, as it ends other
/// filters.
struct Printer {
    /// Why a line could not be written; closed once the last one is.
    done: std_mpsc::Receiver<std::io::Error>,
}

/// Lines that may wait for the reader.
const WAITING_LINES: usize = 16_384;

impl Printer {
    fn start(output: Output, shutdown: &CancellationToken) -> Result<(Listener, Printer)> {
        let (lines, waiting) = std_mpsc::sync_channel::<String>(WAITING_LINES);
        let (end, done) = std_mpsc::channel();
        let shutdown = shutdown.clone();
        let print = move || {
            let mut out = std::io::BufWriter::new(super::visible::out());
            while let Ok(first) = waiting.recv() {
                // What waits by now is written at once.
                let mut lines = std::iter::once(first).chain(waiting.try_iter().take(WAITING_LINES));
                let written = lines.try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
                if let Err(error) = written {
                    shutdown.cancel();
                    // What is left in the buffer would be written once more.
                    let _ = out.into_parts();
                    let _ = end.send(error);
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("printer".to_owned())
            .spawn(print)
            .context("no thread for printing")?;
        let mut dropped = 0u64;
        let mut plain = print::Lines::default();
        let mut summary = print::summary::Summary::default();
        let listener = move |event: &Event| {
            let open = summary.see(event).filter(|_| output == Output::Plain);
            let line = match output {
                Output::Json(JsonForm::Whole) => Some(print::json(event)),
                Output::Json(JsonForm::Compact) => Some(print::compact(event)),
                Output::Plain | Output::Panes => plain.line(event),
            };
            let Some(line) = line else { return };
            if dropped > 0 && lines.try_send(lost(output, dropped)).is_ok() {
                dropped = 0;
            }
            for line in std::iter::once(line).chain(open) {
                if let Err(std_mpsc::TrySendError::Full(_)) = lines.try_send(line) {
                    dropped += 1;
                }
            }
        };
        Ok((Box::new(listener), Printer { done }))
    }

    /// Waits until the last line is out, unless the reader does not read. One that has gone away wants no
    /// more.
    ///
    /// # Errors
    /// Why a line could not be written.
    fn finish(self) -> Result<()> {
        match self.done.recv_timeout(Duration::from_secs(2)) {
            Ok(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Says that the reader was too slow.
fn lost(output: Output, lines: u64) -> String {
    match output {
        Output::Json(_) => format!("{{\"event\":\"outputDropped\",\"lines\":{lines}}}"),
        Output::Plain | Output::Panes => format!("({lines} lines were dropped: nobody read them in time)"),
    }
}

/// SIGINT, SIGTERM and SIGHUP stop opdev in good order; a second one stops it at once, and so does a SIGTERM
/// that has not been obeyed in time.
fn hear(shutdown: CancellationToken) -> Result<()> {
    let mut asked_before = false;
    signals::hear(move |asked| {
        // `ctrl-c` in an editor is the editor's.
        if asked.is_interrupt() && opdev_terminal::editor::interrupt_is_the_editors() {
            return;
        }
        if asked_before {
            end_programs();
            opdev_terminal::restore();
            std::process::exit(asked.code());
        }
        asked_before = true;
        opdev_os::read::end_walks();
        opdev_terminal::editor::wait_for_the_end();
        shutdown.cancel();
        if !asked.is_interrupt() {
            signals::end_anyway(asked, || {
                end_programs();
                opdev_terminal::restore();
            });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debugger_waits_at_a_host_and_a_port() {
        for good in ["127.0.0.1:2345", "[::1]:2345", "localhost:0", ":2345"] {
            assert_eq!(debug_address(good).unwrap(), good);
        }
        for bad in ["foo", "127.0.0.1", "127.0.0.1:", "localhost:http", "1:70000"] {
            assert!(debug_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn namespaces_are_given_or_listed_by_the_environment() {
        let named = |given: &[&str], all: bool, listed: Option<&str>| {
            let given = given.iter().map(|name| (*name).to_owned()).collect();
            named_namespaces(given, all, listed.map(str::to_owned)).join(" ")
        };
        assert_eq!(named(&[], false, None), "");
        assert_eq!(named(&[], false, Some(" a, b ,,a")), "a b");
        assert_eq!(named(&["c", "d"], false, Some("a")), "c d");
        assert_eq!(named(&[], true, Some("a,b")), "");
    }
}

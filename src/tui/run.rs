//! The problem: snapshots come faster than a terminal draws, an editor may own the terminal, and the process
//! may be stopped, resized or hung up at any moment. No key may be lost or do its action twice.
//!
//! The loop of the terminal's thread: snapshots, keys, signals and the next visible clock change come in,
//! frames go out. Draws only when something has changed, and never more often than a screen can show.

use super::command::Mouse;
use super::command::{Command, Input};
use super::drafts::editor_due;
use super::draw::draw;
use super::links::{self, Link};
use super::settings::appearance::Look;
use super::update::update;
use super::view::ViewState;
use anyhow::Context;
use base64::Engine as _;
use crossterm::event::{Event as TerminalEvent, EventStream, KeyEventKind};
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType};
use futures::StreamExt;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use opdev_event::{
    Asker, DraftId, DraftTask, OnExit, ProcessState, ProgramRun, Request, RequestId, SessionRequest,
};
use opdev_panes::glyphs;
use opdev_panes::keys::chord::Key;
use opdev_panes::theme::Theme;
use opdev_state::State;
use opdev_terminal::background::{Background, Taken};
use opdev_terminal::editor::{Editor, interrupt_is_the_editors};
use opdev_terminal::pace::{GAP, Pace};
use opdev_terminal::screen::{self, TerminalScreen};
use opdev_terminal::watch::gone;
use opdev_terminal::{Guard, background, clipboard, frozen};
use ratatui::backend;
use rustix::process::{Pid, getpgid, getpgrp, kill_process_group};
use std::future::poll_fn;
use std::io::{self, IsTerminal, Write as _};
use std::mem::{ManuallyDrop, replace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long the screen waits for the rest of opdev to stop.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything that the terminal needs.
pub struct TuiInput {
    /// The state, whenever it has changed. The screen closes when the sender is gone.
    pub snapshots: watch::Receiver<Arc<State>>,
    /// Where keys ask for things. Numbers count from 1.
    pub requests: mpsc::Sender<(RequestId, Request)>,
    /// Closes the screen.
    pub shutdown: CancellationToken,
    /// Told once, when the first frame is on the screen.
    pub first_frame: Option<Box<dyn FnOnce(Instant) + Send>>,
}

/// Returns true if there is a terminal that can show the screen.
pub fn usable() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb" || term.is_empty());
    io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

/// Shows the screen until `shutdown` fires, the user quits, or the terminal goes away. Blocks: give it a
/// thread of its own, and join that thread before the process ends. A panic in here comes back as an error.
pub fn run(input: TuiInput) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shown = catch_unwind(AssertUnwindSafe(|| runtime.block_on(show(input))));
    shown.unwrap_or_else(|_| Err(anyhow::anyhow!("the terminal's thread panicked")))
}

/// Signals that end the screen or put it to sleep.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    stop: Signal,
    /// Rings once the terminal is gone without a signal.
    gone: Arc<Notify>,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
            gone: gone(),
        })
    }

    /// Waits for the next wish of the terminal: true to end the screen, false to sleep.
    async fn next(&mut self) -> bool {
        loop {
            return tokio::select! {
                _ = self.terminate.recv() => true,
                _ = self.interrupt.recv() => match interrupt_is_the_editors() {
                    true => continue,
                    false => true,
                },
                _ = self.hangup.recv() => true,
                () = self.gone.notified() => true,
                _ = self.stop.recv() => false,
            };
        }
    }
}

/// The state of the loop.
struct Loop {
    view: ViewState,
    state: Arc<State>,
    requests: mpsc::Sender<(RequestId, Request)>,
    /// Never dropped: it would tell a terminal that is gone that its cursor cannot be shown, and panic.
    screen: ManuallyDrop<TerminalScreen>,
    /// The links that are on the screen.
    links: Vec<Link>,
    guard: Guard,
    dirty: bool,
    /// How far the next frame is from the one before: further where frames take long, unless a key waits for
    /// one.
    gap: Duration,
    pace: Pace,
    /// The job is to be stopped.
    sleepy: bool,
    drawn: Instant,
    leave_by: Option<Instant>,
    /// A question about the terminal's background that may still be answered.
    background: Option<Background>,
    /// A file that the user wants to see in the editor: path, line, column.
    file: Option<(PathBuf, u32, u32)>,
    /// A program that is to have the terminal.
    program: Option<ProgramRun>,
    /// A text that is to be edited now: its draft and its file.
    due: Option<(DraftId, PathBuf)>,
}

/// How the screen looks as the environment asks for it.
fn look_of(var: impl Fn(&str) -> Option<String> + Copy) -> Look {
    let ascii = glyphs::ascii_only(var);
    Look {
        knows_links: links::are_known(var),
        ascii,
        ascii_terminal: ascii,
        ..Look::on(Theme::detect(var), TimeZone::system())
    }
}

async fn show(mut input: TuiInput) -> anyhow::Result<()> {
    let guard = Guard::take()?;
    let screen = screen::open()?;
    let var = |name: &str| std::env::var(name).ok();
    let look = look_of(var);
    let view = ViewState { look, ..ViewState::default() };
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let state = Arc::clone(&input.snapshots.borrow_and_update());
    let (requests, drawn) = (input.requests, Instant::now());
    let mut at = Loop {
        view,
        state,
        requests,
        screen: ManuallyDrop::new(screen),
        links: Vec::new(),
        guard,
        dirty: true,
        gap: GAP,
        pace: Pace::default(),
        sleepy: false,
        drawn,
        leave_by: None,
        background: None,
        file: None,
        program: None,
        due: None,
    };
    let mut keys = EventStream::new();
    let early = if Theme::asks_background(var) { at.ask_background(&mut keys).await? } else { Vec::new() };
    at.draw()?;
    if let Some(told) = input.first_frame.take() {
        told(Instant::now());
    }
    for event in early {
        if at.input(event)? {
            return Ok(());
        }
    }
    loop {
        let deadline = at.deadline();
        let mut leave = false;
        let panicked = Arc::clone(&at.guard.panicked);
        tokio::select! {
            () = input.shutdown.cancelled() => leave = true,
            key = keys.next() => match key {
                Some(Ok(event)) => {
                    leave = at.input(event)?;
                    for event in typed_meanwhile(&mut keys).await {
                        leave = leave || at.input(event)?;
                    }
                }
                // The terminal is gone.
                Some(Err(_)) | None => {
                    at.ask_to_quit();
                    leave = true;
                }
            },
            changed = input.snapshots.changed() => match changed {
                Ok(()) => {
                    at.state = Arc::clone(&input.snapshots.borrow_and_update());
                    at.dirty = true;
                }
                Err(_) => leave = true,
            },
            end = signals.next() => {
                if end {
                    at.ask_to_quit();
                    leave = true;
                } else {
                    at.sleepy = true;
                }
            }
            () = panicked.notified() => {
                at.view.told.panicked = at.guard.last_panic();
                tracing::error!("panicked: {}", at.view.told.panicked.as_deref().unwrap_or_default());
                at.dirty = true;
            }
            () = tokio::time::sleep_until(deadline.into()) => at.dirty = true,
        }
        if leave || at.leave_by.is_some_and(|by| Instant::now() >= by) {
            return Ok(());
        }
        if at.wants_editor() {
            // The stream reads keys that are the editor's now.
            drop(keys);
            if at.edit_what_is_due(&mut signals, &input.shutdown).await? {
                return Ok(());
            }
            keys = EventStream::new();
        }
        if std::mem::take(&mut at.sleepy) {
            at.suspend().await?;
        }
        if at.draw_due()? {
            return Ok(());
        }
    }
}

/// Whatever else has been typed by now: it is one frame. Polls in this task's own context, because the stream
/// keeps the waker of the first poll that found nothing.
async fn typed_meanwhile(keys: &mut EventStream) -> Vec<TerminalEvent> {
    poll_fn(|context| {
        let mut events = Vec::new();
        while let Poll::Ready(Some(Ok(event))) = keys.poll_next_unpin(context) {
            events.push(event);
        }
        Poll::Ready(events)
    })
    .await
}

impl Loop {
    /// Returns true if a text is to be edited, or a file to be shown in the editor.
    fn wants_editor(&mut self) -> bool {
        self.due = editor_due(&mut self.view, &self.state);
        self.due.is_some() || self.file.is_some() || self.program.is_some()
    }

    /// Opens the editor for that; says whether opdev is to end.
    async fn edit_what_is_due(
        &mut self,
        signals: &mut Signals,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<bool> {
        if let Some((draft, file)) = self.due.take()
            && self.edit(draft, &file, signals, shutdown).await?
        {
            return Ok(true);
        }
        if let Some((path, line, column)) = self.file.take() {
            self.guard.lend();
            let editor = Editor::start_at(&path, line, column);
            match self.lend(editor, signals, shutdown).await? {
                None => return Ok(true),
                Some(problem) => self.view.told.message = problem,
            }
        }
        if let Some(program) = self.program.take() {
            let root =
                self.state.started.as_ref().map_or_else(|| ".".to_owned(), |started| started.root.clone());
            self.guard.lend();
            let started = Editor::program(&program, Path::new(&root));
            match self.lend(started, signals, shutdown).await? {
                None => return Ok(true),
                Some(problem) => self.view.told.message = problem,
            }
        }
        Ok(false)
    }

    /// Draws where that is due, and takes keys that were typed meanwhile; true means leave.
    fn draw_due(&mut self) -> anyhow::Result<bool> {
        if !self.dirty || self.drawn.elapsed() < self.gap {
            return Ok(false);
        }
        self.draw()?;
        self.follow();
        frozen::typed().into_iter().try_fold(false, |leave, event| Ok(leave || self.input(event)?))
    }

    /// When to wake without a reason from outside.
    fn deadline(&self) -> Instant {
        let next = if self.dirty {
            self.drawn + self.gap
        } else {
            let wake = self.view.screen.wake.unwrap_or(Duration::from_secs(3600));
            self.drawn + wake + Duration::from_millis(2)
        };
        self.leave_by.map_or(next, |by| next.min(by))
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let (state, view) = (&self.state, &mut self.view);
        screen::fit(&mut self.screen)?;
        let drawn = self.screen.draw(|frame| draw(state, view, frame, Timestamp::now()))?;
        let links = links::of_frame(drawn.buffer, view, state);
        // Those that were there are still: nothing has been drawn over them.
        for link in links.iter().filter(|link| !self.links.contains(link)) {
            let out = self.screen.backend_mut();
            write!(out, "{}", link.begin)?;
            backend::Backend::draw(out, link.cells.iter().map(|(x, y, cell)| (*x, *y, cell)))?;
            write!(out, "{}", links::END)?;
        }
        self.links = links;
        self.screen.backend_mut().end()?;
        // The settings and a key may change it, and after a pause it is to be taken again.
        self.guard.mouse(self.view.look.mouse)?;
        self.dirty = false;
        self.drawn = Instant::now();
        self.gap = self.pace.after(begun, self.drawn);
        Ok(())
    }

    /// Asks the terminal for its background and waits a moment for the answer. What else came in meanwhile
    /// comes back.
    async fn ask_background(&mut self, keys: &mut EventStream) -> anyhow::Result<Vec<TerminalEvent>> {
        let begun = Instant::now();
        self.background = Some(Background::asked(begun));
        write!(self.screen.backend_mut(), "{}", background::QUESTION)?;
        self.screen.backend_mut().flush()?;
        let mut early = Vec::new();
        while let Some(left) = background::WAIT.checked_sub(begun.elapsed()) {
            let Ok(Some(Ok(event))) = tokio::time::timeout(left, keys.next()).await else { break };
            match self.sort_out(event) {
                Some(events) => early.extend(events),
                None => return Ok(early),
            }
        }
        Ok(early)
    }

    /// The events that are for this loop: an answer about the background is not. `None` once it is there.
    fn sort_out(&mut self, event: TerminalEvent) -> Option<Vec<TerminalEvent>> {
        let Some(background) = &mut self.background else { return Some(vec![event]) };
        match background.take(event, Instant::now()) {
            Taken::Events(events) => Some(events),
            Taken::Part => Some(Vec::new()),
            Taken::Light(light) => {
                let theme = Theme::told(|name| std::env::var(name).ok(), light);
                // A choice of the settings or the user stays.
                if self.view.look.theme == self.view.look.following.terminal {
                    self.view.look.theme = theme;
                }
                self.view.look.following.terminal = theme;
                (self.background, self.dirty) = (None, true);
                None
            }
        }
    }

    /// Takes one event of the terminal; true means leave.
    fn input(&mut self, event: TerminalEvent) -> anyhow::Result<bool> {
        for event in self.sort_out(event).unwrap_or_default() {
            if self.take(event)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn take(&mut self, event: TerminalEvent) -> anyhow::Result<bool> {
        let input = match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => Input::Key(Key::from(key)),
            TerminalEvent::Paste(text) => Input::Paste(text),
            // A terminal that shrinks and grows again has lost what it showed, even where the size is the old
            // one by the time somebody looks.
            TerminalEvent::Resize(..) => {
                self.guard.renew()?;
                self.repaint()?;
                self.gap = GAP;
                return Ok(false);
            }
            TerminalEvent::FocusGained => {
                self.dirty = true;
                return Ok(false);
            }
            TerminalEvent::Mouse(mouse) => match Mouse::of(mouse) {
                Some(mouse) => Input::Mouse(mouse),
                None => return Ok(false),
            },
            TerminalEvent::Key(_) | TerminalEvent::FocusLost => return Ok(false),
        };
        self.dirty = true;
        self.gap = GAP;
        for command in update(&mut self.view, input, &self.state) {
            match command {
                Command::Request(id, request) => self.ask(id, request),
                Command::Redraw => {
                    self.guard.renew()?;
                    self.repaint()?;
                }
                Command::Copy(text) => self.copy(&text)?,
                Command::OpenFile { path, line, column } => self.file = Some((path, line, column)),
                Command::Run(program) => self.program = Some(program),
                Command::Suspend => self.sleepy = true,
                Command::Leave => return Ok(true),
            }
        }
        Ok(false)
    }

    fn ask(&mut self, id: RequestId, request: Request) {
        // An action on custom resources takes its time.
        let on_exit = self.state.started.as_ref().filter(|started| !started.cluster.embedded);
        let on_exit = on_exit.and_then(|started| started.on_exit).unwrap_or_default();
        let quits =
            matches!(request, Request::Session(SessionRequest::Quit { .. })) && on_exit == OnExit::Leave;
        if quits || matches!(request, Request::Session(SessionRequest::Leave { how: OnExit::Leave })) {
            self.leave_by = Some(Instant::now() + PATIENCE);
        }
        if self.requests.try_send((id, request)).is_err() {
            self.view.told.message = Some("opdev takes no requests right now; try again".to_owned());
        }
    }

    /// Logs are followed, values and whole objects are asked for as long as they are on the screen.
    fn follow(&mut self) {
        let logs = super::act::change_view::follow(&mut self.view, &self.state);
        let whole = super::act::change_view::look(&mut self.view, &self.state);
        let values = super::act::change_view::follow_values(&mut self.view, &self.state);
        let table = super::kind_table::follow(&mut self.view, &self.state);
        for request in logs.into_iter().chain(whole).chain(values).chain(table) {
            let id = self.view.requests.number();
            self.ask(id, request.into());
        }
    }

    /// Lends the terminal to the editor until it ends; true means leave. The state is taken in again
    /// afterwards.
    async fn edit(
        &mut self,
        draft: DraftId,
        file: &Path,
        signals: &mut Signals,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<bool> {
        self.guard.lend();
        let Some(problem) = self.lend(Editor::start(file), signals, shutdown).await? else { return Ok(true) };
        let id = self.view.requests.number();
        self.ask(id, DraftTask::Edited { draft, problem }.into());
        Ok(false)
    }

    /// Waits for an editor that has the terminal, and takes it back. `None` means leave; else why its text is
    /// not to be used, if it is not.
    async fn lend(
        &mut self,
        editor: io::Result<Editor>,
        signals: &mut Signals,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<Option<Option<String>>> {
        let problem = match editor {
            Err(error) => Some(format!("the editor does not start: {error}")),
            Ok(mut editor) => loop {
                tokio::select! {
                    problem = editor.ended() => break problem,
                    () = shutdown.cancelled() => {
                        editor.terminate().await;
                        return Ok(None);
                    }
                    _ = signals.terminate.recv() => {
                        editor.terminate().await;
                        self.ask_to_quit();
                        return Ok(None);
                    }
                    _ = signals.hangup.recv() => {
                        editor.terminate().await;
                        self.ask_to_quit();
                        return Ok(None);
                    }
                    () = signals.gone.notified() => {
                        editor.terminate().await;
                        self.ask_to_quit();
                        return Ok(None);
                    }
                    // The editor has it, too, and has given the terminal back.
                    _ = signals.stop.recv() => self.sleep(Guard::stop_lent).await?,
                    // Its own.
                    _ = signals.interrupt.recv() => {}
                }
            },
        };
        self.guard.take_back()?;
        // Keys typed to the editor must not press a button here.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        self.repaint()?;
        Ok(Some(problem))
    }

    /// Puts a text on the clipboard: of tmux, where opdev runs in it, else the terminal is asked (OSC 52).
    fn copy(&mut self, text: &str) -> anyhow::Result<()> {
        if clipboard::to_tmux(text) {
            if let Some(message) = &mut self.view.told.message {
                *message = message.replacen("asked the terminal to copy", "copied by tmux", 1);
            }
            return Ok(());
        }
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        write!(self.screen.backend_mut(), "\x1b]52;c;{encoded}\x07")?;
        self.screen.backend_mut().flush()?;
        Ok(())
    }

    fn ask_to_quit(&mut self) {
        let id = self.view.requests.next;
        self.ask(id, SessionRequest::Quit { by: Asker::Signal }.into());
    }

    /// Gives the terminal to the shell and sleeps until the shell wakes this job again.
    async fn suspend(&mut self) -> anyhow::Result<()> {
        self.sleep(Guard::stop_job).await?;
        self.guard.take_back()?;
        self.repaint()
    }

    /// Stops this job, and with it the operator's programs: the API server stands still with opdev, and the
    /// calls of a program that went on would time out. The stop comes a little after it was asked for, so the
    /// wake-up itself ends the sleep.
    async fn sleep(&self, stop: fn(&Guard) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut woken = signal(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?;
        let programs = self.program_groups();
        let tell = |signal| {
            for group in &programs {
                let _ = kill_process_group(*group, signal);
            }
        };
        tell(rustix::process::Signal::STOP);
        let asked = stop(&self.guard);
        if asked.is_ok() {
            woken.recv().await;
        }
        tell(rustix::process::Signal::CONT);
        asked
    }

    /// The process groups of the operator's programs that run, but never opdev's own.
    fn program_groups(&self) -> Vec<Pid> {
        let own = getpgrp();
        let running = self.state.programs.runs().filter_map(|run| match run.state {
            ProcessState::Running { pid, .. } => i32::try_from(pid).ok().and_then(Pid::from_raw),
            _ => None,
        });
        running.filter_map(|pid| getpgid(Some(pid)).ok()).filter(|group| *group != own).collect()
    }

    /// Forgets what is on the screen, so that the next frame draws all of it. `Terminal::clear` would ask the
    /// terminal where its cursor is, and the answer would come in as keys.
    fn repaint(&mut self) -> anyhow::Result<()> {
        let before = ManuallyDrop::into_inner(replace(&mut self.screen, ManuallyDrop::new(screen::open()?)));
        screen::let_go(before)?;
        self.links.clear();
        queue!(self.screen.backend_mut(), Clear(ClearType::All))?;
        self.dirty = true;
        Ok(())
    }
}

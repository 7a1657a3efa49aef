//! The terminal as a resource: taken once, given back once, whatever happens: quit, error, panic, signal.
//! Panics of other threads do not touch the screen: they are kept and told when it is down. The panic hook
//! that was there before is called for every panic, and must not print for threads other than the main one.

pub mod background;
pub mod clipboard;
pub mod editor;
pub mod frozen;
pub mod output;
pub mod pace;
pub mod screen;
pub mod watch;

use anyhow::Context;
use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::termios::LocalModes;
use std::io::{self, Write};
use std::panic::{self, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;
use tokio::sync::Notify;

/// True if the screen is up; whoever sets it to false gives the terminal back.
static UP: AtomicBool = AtomicBool::new(false);
/// True if the terminal reports the mouse to us.
static MOUSE: AtomicBool = AtomicBool::new(false);
static HOOK: Once = Once::new();
static SCREEN: Mutex<Option<TerminalOwner>> = Mutex::new(None);

/// The owner of the terminal, and what happened elsewhere meanwhile.
struct TerminalOwner {
    thread: ThreadId,
    panics: Vec<String>,
    told: Arc<Notify>,
}

fn screen() -> std::sync::MutexGuard<'static, Option<TerminalOwner>> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds the terminal; gives it back when dropped.
pub struct Guard {
    /// Rings when another thread panicked.
    pub panicked: Arc<Notify>,
}

impl Guard {
    /// Takes the terminal.
    pub fn take() -> anyhow::Result<Self> {
        install_hook();
        let panicked = Arc::new(Notify::new());
        *screen() = Some(TerminalOwner {
            thread: thread::current().id(),
            panics: Vec::new(),
            told: Arc::clone(&panicked),
        });
        up().context("cannot take over the terminal; --plain works without")?;
        Ok(Guard { panicked })
    }

    /// Has the mouse reported, or leaves it to the terminal, which then selects text with it.
    pub fn mouse(&self, wanted: bool) -> io::Result<()> {
        if MOUSE.swap(wanted, Ordering::SeqCst) == wanted {
            return Ok(());
        }
        if wanted {
            execute!(io::stdout(), EnableMouseCapture)
        } else {
            execute!(io::stdout(), DisableMouseCapture)
        }
    }

    /// The last panic of another thread.
    pub fn last_panic(&self) -> Option<String> {
        screen().as_ref().and_then(|screen| screen.panics.last().cloned())
    }

    /// Gives the terminal back and asks for this job to be stopped: all of it, as the shell expects; `cargo
    /// run` is a part of it, too.
    pub fn stop_job(&self) -> anyhow::Result<()> {
        down();
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)
            .context("cannot stop this job")
    }

    /// Gives the terminal to another program.
    pub fn lend(&self) {
        down();
    }

    /// Stops this job without touching the terminal: another program has it, and has put it in order.
    pub fn stop_lent(&self) -> anyhow::Result<()> {
        rustix::process::kill_current_process_group(rustix::process::Signal::STOP)
            .context("cannot stop this job")
    }

    /// Takes the terminal again where somebody else has put it in order, as `reset` in another window does:
    /// in line mode a key would wait for enter.
    pub fn renew(&self) -> anyhow::Result<()> {
        let modes = rustix::termios::tcgetattr(io::stdin());
        if modes.is_ok_and(|modes| modes.local_modes.contains(LocalModes::ICANON)) {
            down();
            up().context("cannot take the terminal again")?;
        }
        Ok(())
    }

    /// Takes the terminal again.
    pub fn take_back(&self) -> anyhow::Result<()> {
        up().context("cannot take the terminal back")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        down();
        let Some(screen) = screen().take() else { return };
        for panic in screen.panics {
            // The screen is down, and this is what the hook kept back.
            let _ = writeln!(io::stderr(), "{panic}");
        }
    }
}

fn up() -> io::Result<()> {
    enable_raw_mode()?;
    UP.store(true, Ordering::SeqCst);
    let entered = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide);
    if entered.is_err() {
        down();
    }
    entered
}

/// Gives the terminal back at once, for a process that is about to exit without dropping anything. A terminal
/// that takes nothing in, as behind a network that is gone, gets its line mode back and is left after a
/// moment.
pub fn restore() {
    if !UP.load(Ordering::SeqCst) {
        return;
    }
    // No write: this waits for nobody.
    let _ = disable_raw_mode();
    let (tell, done) = mpsc::channel();
    let give_back = move || {
        down();
        let _ = tell.send(());
    };
    if thread::Builder::new().name("restore".to_owned()).spawn(give_back).is_ok() {
        let _ = done.recv_timeout(LONGEST_RESTORE);
    }
}

/// How long a terminal may take to be given back.
const LONGEST_RESTORE: Duration = Duration::from_millis(200);

/// Gives the terminal back, unless that was done already.
fn down() {
    if UP.swap(false, Ordering::SeqCst) {
        // Each on its own: a failure of one must not keep the others from happening.
        if MOUSE.swap(false, Ordering::SeqCst) {
            let _ = execute!(io::stdout(), DisableMouseCapture);
        }
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = execute!(io::stdout(), LeaveAlternateScreen);
        let _ = execute!(io::stdout(), Show);
        let _ = disable_raw_mode();
    }
}

fn install_hook() {
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !UP.load(Ordering::SeqCst) {
                return usual(info);
            }
            // A panic while the lock is held must not wait for itself.
            let kept = match SCREEN.try_lock() {
                Ok(mut screen) => keep(screen.as_mut(), info),
                Err(_) => false,
            };
            if !kept {
                down();
            }
            // It logs, and by agreement prints nothing while a thread other than the main one panics.
            usual(info);
        }));
    });
}

/// Keeps the panic of a thread that does not draw. The main thread's ends the process: nothing to keep it
/// for.
fn keep(screen: Option<&mut TerminalOwner>, info: &PanicHookInfo<'_>) -> bool {
    let here = thread::current();
    let Some(screen) = screen.filter(|screen| screen.thread != here.id() && here.name() != Some("main"))
    else {
        return false;
    };
    let payload = info.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text =
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("without words");
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let name = here.name().unwrap_or("unnamed").to_owned();
    if screen.panics.len() < 20 {
        screen.panics.push(format!("{text}{place} (thread {name})"));
    }
    screen.told.notify_one();
    true
}

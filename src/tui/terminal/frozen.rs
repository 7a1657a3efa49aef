//! `ctrl-c` at a terminal that takes nothing in, as behind a network that is gone. The thread that draws waits
//! in a write then, and nobody reads keys; another one reads them here, and asks the process to end. What else
//! is typed is kept for the thread that draws. The terminal stays in the mode that it is in: an editor or a
//! shell may have it next.

use crossterm::event::{self, Event, KeyCode, KeyModifiers};
use rustix::process::{Signal, getpid, kill_process};
use std::io::{self, Stdout, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The longest time that a write may take before keys are read elsewhere. A slow link is no reason.
const SLOW: Duration = Duration::from_secs(2);

/// The time between two looks for keys from then on.
const LOOK: Duration = Duration::from_millis(200);

/// The longest time of one look. With no time at all, crossterm looks only at what it has read before.
const MOMENT: Duration = Duration::from_millis(5);

/// The longest wait of a write for the other thread to have read. It may be in the middle of a sequence of keys
/// whose end does not come.
const LAST_READ: Duration = Duration::from_millis(50);

/// The write that goes on, and what was typed meanwhile. A write does not end while the other thread reads: of
/// two readers, one would wait for a key that is gone.
static OUTPUT: Mutex<Output> =
    Mutex::new(Output { since: None, is_watched: false, is_reading: false, typed: Vec::new() });

/// The thread that reads keys meanwhile. `None` where the system gives none.
static READER: OnceLock<Option<Thread>> = OnceLock::new();

struct Output {
    since: Option<Instant>,
    /// True if the other thread looks by itself.
    is_watched: bool,
    is_reading: bool,
    typed: Vec<Event>,
}

fn output() -> MutexGuard<'static, Output> {
    OUTPUT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Standard output, whose writes are watched.
pub struct WatchedOutput(Stdout);

impl WatchedOutput {
    /// Watches standard output from now on.
    pub(super) fn new() -> Self {
        READER.get_or_init(|| {
            let reader = thread::Builder::new().name("frozen keys".to_owned()).spawn(read_while_frozen);
            reader.ok().map(|reader| reader.thread().clone())
        });
        WatchedOutput(io::stdout())
    }

    fn watched<T>(&mut self, write: impl FnOnce(&mut Stdout) -> T) -> T {
        let mut begun = output();
        begun.since = Some(Instant::now());
        let is_watched = std::mem::replace(&mut begun.is_watched, true);
        drop(begun);
        if !is_watched && let Some(Some(reader)) = READER.get() {
            reader.unpark();
        }
        let written = write(&mut self.0);
        let ended = Instant::now();
        loop {
            let mut now = output();
            if !now.is_reading || ended.elapsed() > LAST_READ {
                now.since = None;
                return written;
            }
            drop(now);
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Write for WatchedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.watched(|stdout| stdout.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.watched(Stdout::flush)
    }
}

/// Keys that were typed while a write took long, and are to be taken now.
pub fn typed() -> Vec<Event> {
    std::mem::take(&mut output().typed)
}

fn read_while_frozen() {
    let mut was_asked = false;
    loop {
        let mut now = output();
        let Some(since) = now.since else {
            now.is_watched = false;
            drop(now);
            thread::park();
            thread::sleep(SLOW);
            continue;
        };
        let left = SLOW.saturating_sub(since.elapsed());
        now.is_reading = left.is_zero();
        drop(now);
        if left.is_zero() {
            let (stop, typed): (Vec<_>, Vec<_>) = read().into_iter().partition(is_stop);
            let mut now = output();
            now.typed.extend(typed);
            now.is_reading = false;
            drop(now);
            // Once: a second signal would not leave the time to clean up. And not the signal of the key:
            // only this one is obeyed within a time.
            if !stop.is_empty() && !std::mem::replace(&mut was_asked, true) {
                let _ = kill_process(getpid(), Signal::TERM);
            }
        }
        thread::sleep(left.max(LOOK));
    }
}

/// Reads what is there.
fn read() -> Vec<Event> {
    let mut events = Vec::new();
    while let Ok(true) = event::poll(MOMENT) {
        let Ok(event) = event::read() else { break };
        events.push(event);
    }
    events
}

fn is_stop(event: &Event) -> bool {
    event
        .as_key_press_event()
        .is_some_and(|key| key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL))
}

//! Signals that ask this process to end. They are heard on a thread of their own, so that they are obeyed
//! also while every worker of the async runtime is stuck. Never decides what there is to clean up.

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::future::Future;
use std::io::Write as _;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long stopping in good order may take. Less than five seconds, so that the process has ended by then.
const LIMIT: Duration = Duration::from_millis(4500);

/// How long the last line may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A signal that asks to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked(i32);

impl Asked {
    /// `SIGTERM`, for example.
    pub(super) fn name(self) -> &'static str {
        match self.0 {
            SIGINT => "SIGINT",
            SIGTERM => "SIGTERM",
            _ => "SIGHUP",
        }
    }

    /// From the keyboard.
    pub(super) fn is_interrupt(self) -> bool {
        self.0 == SIGINT
    }

    /// The exit code of a process that the signal has ended, as shells have it.
    pub(super) fn code(self) -> i32 {
        128 + self.0
    }
}

/// Hears SIGINT, SIGTERM and SIGHUP from now on; `obey` runs on the thread that hears them.
///
/// # Errors
/// Where the system gives no handler or no thread.
pub(super) fn hear(mut obey: impl FnMut(Asked) + Send + 'static) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("signals cannot be handled")?;
    let hear = move || signals.forever().for_each(|signal| obey(Asked(signal)));
    thread::Builder::new().name("signals".to_owned()).spawn(hear).context("no thread for signals")?;
    Ok(())
}

/// Ends the process unless it has ended by itself until then; `last` runs just before.
pub(super) fn end_anyway(asked: Asked, last: impl FnOnce() + Send + 'static) {
    let end = move || {
        thread::sleep(LIMIT);
        last();
        let why = "was asked to stop and could not in time; its log names what is stuck";
        let text = format!("opdev: {}: {why}", asked.name());
        // Standard error may be a terminal that takes nothing in.
        let (told, done) = mpsc::channel();
        let tell = move || {
            let _ = writeln!(std::io::stderr(), "{text}");
            let _ = told.send(());
        };
        if thread::Builder::new().name("last words".to_owned()).spawn(tell).is_ok() {
            let _ = done.recv_timeout(LAST_WORDS);
        }
        std::process::exit(asked.code());
    };
    // Without a thread there is no time to lose.
    if thread::Builder::new().name("deadline".to_owned()).spawn(end).is_err() {
        std::process::exit(asked.code());
    }
}

/// Resolves to the name of the first signal that asks to stop. From then on the process has five seconds to
/// end.
///
/// # Errors
/// Where signals cannot be heard.
pub fn stop_signal() -> Result<impl Future<Output = &'static str>> {
    let (tell, told) = oneshot::channel();
    let mut tell = Some(tell);
    hear(move |asked| {
        // One that repeats what was asked is no reason to leave things behind.
        if let Some(tell) = tell.take() {
            opdev_os::read::end_walks();
            let _ = tell.send(asked.name());
            end_anyway(asked, || ());
        }
    })?;
    Ok(async move {
        match told.await {
            Ok(name) => name,
            // The thread lives as long as the process.
            Err(_) => std::future::pending().await,
        }
    })
}

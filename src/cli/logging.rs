//! Where `tracing` goes: a rolling file in `.opdev/`, and the log pane by way of the event channel.
//! Nothing ever goes to standard output or standard error: a stray line would break the screen.

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, LogLine, Notice};
use opdev_os::private_folder::PrivateFolder;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer};

/// How many lines wait at most until they are written; more are lost. The queue is allocated as a whole, 32
/// bytes for each.
const WAITING: usize = 16_384;

/// The running log; dropping it flushes the file.
pub(super) struct Log {
    /// Where the newest lines are.
    pub(super) file: PathBuf,
    _writer: WorkerGuard,
    pane: &'static Pane,
}

impl Log {
    /// Lets go of the event channel, so that the bus can end.
    pub(super) fn finish(self) {
        self.pane.close();
    }
}

/// What the user sees: opdev's own words. Libraries repeat raw answers on every try; what matters of them is
/// told as a notice, once, with what to do.
const SHOWN: &str = "off,opdev=info";

/// Starts logging. `OPDEV_LOG` filters the file as `RUST_LOG` does elsewhere; the default is
/// `info,opdev=debug`, without kube's client, whose warnings repeat whole answers.
pub(super) fn start(folder: &PrivateFolder, events: EventSink) -> Result<Log> {
    let daily = DailyFile::open(folder)?;
    let newest = folder.path().join(&daily.name);
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(WAITING).finish(daily);
    let filter = EnvFilter::try_from_env("OPDEV_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,opdev=debug,kube_client=error"));
    let file = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).with_filter(filter);
    let pane: &'static Pane = Box::leak(Box::new(Pane { events: Mutex::new(Some(events)) }));
    let shown = ToPane(pane).with_filter(EnvFilter::new(SHOWN));
    tracing_subscriber::registry().with(file).with(shown).init();
    report_panics(pane);
    Ok(Log { file: newest, _writer: guard, pane })
}

/// How many days are kept.
const DAYS: usize = 5;

/// `opdev.YYYY-MM-DD.log` of today (UTC); older ones go. Opened through the folder's handle: a planted link
/// leads nowhere.
struct DailyFile {
    folder: PrivateFolder,
    name: String,
    file: File,
}

impl DailyFile {
    fn open(folder: &PrivateFolder) -> Result<DailyFile> {
        let name = format!("opdev.{}.log", Timestamp::now().strftime("%Y-%m-%d"));
        let file = folder.append(&name).context("the log cannot be written")?;
        let daily = DailyFile { folder: folder.clone(), name, file };
        daily.remove_old();
        Ok(daily)
    }

    fn remove_old(&self) {
        let names = self.folder.names().unwrap_or_default();
        let logs = names.iter().filter_map(|name| name.to_str());
        let logs: Vec<&str> =
            logs.filter(|name| name.starts_with("opdev.") && name.ends_with(".log")).collect();
        for old in logs.iter().take(logs.len().saturating_sub(DAYS)) {
            let _ = self.folder.remove(old);
        }
    }
}

impl Write for DailyFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let today = Timestamp::now().strftime("%Y-%m-%d").to_string();
        if !self.name.contains(&today)
            && let Ok(next) = DailyFile::open(&self.folder)
        {
            *self = next;
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Logs to standard error, for a server without a screen. `OPDEV_LOG` says what; by default only what the
/// server cannot mend itself. A reader that does not read loses lines and holds nothing up. Dropping the
/// guard writes what is left.
pub(super) fn to_stderr() -> WorkerGuard {
    let (writer, guard) =
        NonBlockingBuilder::default().buffered_lines_limit(WAITING).finish(std::io::stderr());
    let filter = EnvFilter::try_from_env("OPDEV_LOG")
        .unwrap_or_else(|_| EnvFilter::new("off,opdev=error,opdev_apimachinery::watchdog=warn"));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).with_filter(filter);
    // Somebody who has set another one up, such as a test, keeps it.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    guard
}

/// Hands each line to `write`, for an operator in a cluster, whose log has a form of its own; filtered as
/// `to_stderr` does. A panic is such a line, too, without what it says of objects.
pub(super) fn to_lines(write: impl Fn(Level, &str, String) + Clone + Send + Sync + 'static) {
    let filter = EnvFilter::try_from_env("OPDEV_LOG").unwrap_or_else(|_| EnvFilter::new("off,opdev=warn"));
    let _ = tracing_subscriber::registry().with(ToLines(write.clone()).with_filter(filter)).try_init();
    std::panic::set_hook(Box::new(move |info| {
        if opdev_controlplane::panics_are_caught() {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let message = format!("a part of opdev panicked at {place}: {}", words(info.payload()));
        write(Level::Error, "panic", message);
    }));
}

struct ToLines<W>(W);

impl<S: Subscriber, W: Fn(Level, &str, String) + 'static> Layer<S> for ToLines<W> {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        (self.0)(level(*metadata.level()), metadata.target(), format!("{}{}", text.message, text.fields));
    }
}

/// A panic of the store over a damaged file is caught there and told in other words: its own text would stand
/// beside them.
pub(super) fn leave_out_caught_panics() {
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !opdev_controlplane::panics_are_caught() {
            others(info);
        }
    }));
}

/// A panic of any task is logged and shown; the task's owner decides what goes on.
fn report_panics(pane: &'static Pane) {
    std::panic::set_hook(Box::new(move |info| {
        if opdev_controlplane::panics_are_caught() {
            return;
        }
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        let words = words(info.payload());
        let trace = std::backtrace::Backtrace::force_capture();
        tracing::error!(%thread, %place, "panic: {words}\n{trace}");
        let notice = Notice {
            at: Timestamp::now(),
            level: Level::Error,
            message: format!("a part of opdev panicked at {place}"),
            hint: Some("this is a bug in opdev; the log has the details".to_owned()),
            object: None,
        };
        pane.notice(notice);
        if thread == "main" {
            let _ = writeln!(std::io::stderr(), "opdev panicked at {place}: {words}");
        }
    }));
}

/// What a panic says, as far as it was written in the source: a message put together at run time may quote an
/// object, and with it a secret.
fn words(payload: &dyn std::any::Any) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("(message withheld)")
}

/// The way to the log pane; closed when opdev stops.
struct Pane {
    events: Mutex<Option<EventSink>>,
}

impl Pane {
    fn close(&self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn log(&self, line: LogLine) {
        if let Some(events) = &*self.events.lock().unwrap_or_else(PoisonError::into_inner) {
            events.log(line);
        }
    }

    fn notice(&self, notice: Notice) {
        if let Some(events) = &*self.events.lock().unwrap_or_else(PoisonError::into_inner) {
            events.try_emit(Event::Noticed(notice));
        }
    }
}

struct ToPane(&'static Pane);

impl<S: Subscriber> Layer<S> for ToPane {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        self.0.log(LogLine {
            at: Timestamp::now(),
            level: level(*event.metadata().level()),
            target: event.metadata().target().to_owned(),
            message: format!("{}{}", text.message, text.fields),
            reconcile: text.reconcile,
        });
    }
}

fn level(of: tracing::Level) -> Level {
    match of {
        tracing::Level::ERROR => Level::Error,
        tracing::Level::WARN => Level::Warn,
        tracing::Level::INFO => Level::Info,
        tracing::Level::DEBUG => Level::Debug,
        tracing::Level::TRACE => Level::Trace,
    }
}

/// The fields of one event, put into words.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
    reconcile: Option<u64>,
}

impl Visit for Text {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "reconcile" {
            self.reconcile = Some(value);
        } else {
            self.record_debug(field, &value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            let _ = write!(self.fields, " {}={value}", field.name());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn five_days_are_kept_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let private = PrivateFolder::make(&folder.path().join(".opdev")).unwrap();
        for day in 1..=7 {
            private.write(&format!("opdev.2020-01-0{day}.log"), b"old").unwrap();
        }
        private.write("events.jsonl", b"").unwrap();
        let mut daily = DailyFile::open(&private).unwrap();
        daily.write_all(b"line\n").unwrap();
        let names = private.names().unwrap();
        assert_eq!(names.len(), 6, "{names:?}");
        assert!(names.iter().any(|name| name == "opdev.2020-01-07.log"));
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        private.remove(&daily.name).unwrap();
        std::os::unix::fs::symlink(&victim, private.path().join(&daily.name)).unwrap();
        assert!(DailyFile::open(&private).is_err());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
    }

    #[test]
    fn libraries_say_nothing_to_the_user() {
        struct Count(Arc<AtomicUsize>);
        impl<S: Subscriber> Layer<S> for Count {
            fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let seen = Arc::new(AtomicUsize::new(0));
        let layer = Count(Arc::clone(&seen)).with_filter(EnvFilter::new(SHOWN));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "kube_runtime::watcher", "forbidden");
            tracing::error!(target: "kube_client::client", "forbidden");
            tracing::warn!(target: "hyper", "closed");
            tracing::info!(target: "opdev::dev", "one");
            tracing::warn!(target: "opdev_controlplane::server", "two");
        });
        assert_eq!(seen.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_panic_tells_no_secret() {
        let caught =
            std::panic::catch_unwind(|| panic!("{} is no number", String::from("kanari"))).unwrap_err();
        assert_eq!(words(caught.as_ref()), "(message withheld)");
        let caught = std::panic::catch_unwind(|| panic!("a bug")).unwrap_err();
        assert_eq!(words(caught.as_ref()), "a bug");
    }
}

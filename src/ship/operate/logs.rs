//! Log lines as helm-operator writes them, one JSON object each, or as text for people.

use jiff::Timestamp;
use opdev_event::words;
use opdev_event::words::Expected;
use opdev_event::{Event, Level, Outcome, Reconcile, ReleaseStep};
use serde_json::{Map, Value, json};
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// The level of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Only what failed.
    Error,
    /// The changes.
    Info,
    /// Also reconciles that changed nothing.
    Debug,
}

impl FromStr for LogLevel {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Expected> {
        match text {
            "error" | "panic" => Ok(LogLevel::Error),
            "info" => Ok(LogLevel::Info),
            "debug" => Ok(LogLevel::Debug),
            number if number.parse::<u32>().is_ok_and(|number| number > 0) => Ok(LogLevel::Debug),
            _ => Err(Expected("debug, info, error, panic or a number above 0")),
        }
    }
}

/// The format of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeEncoding {
    /// Seconds since 1970.
    Epoch,
    /// Milliseconds since 1970.
    Millis,
    /// Nanoseconds since 1970.
    Nano,
    /// As `2026-01-02T03:04:05.678Z`.
    Iso8601,
    /// As `2026-01-02T03:04:05Z`.
    Rfc3339,
    /// As `2026-01-02T03:04:05.678901234Z`.
    Rfc3339Nano,
}

impl FromStr for TimeEncoding {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Expected> {
        match text.to_ascii_lowercase().as_str() {
            "epoch" => Ok(TimeEncoding::Epoch),
            "millis" => Ok(TimeEncoding::Millis),
            "nano" | "nanos" => Ok(TimeEncoding::Nano),
            "iso8601" => Ok(TimeEncoding::Iso8601),
            "rfc3339" => Ok(TimeEncoding::Rfc3339),
            "rfc3339nano" => Ok(TimeEncoding::Rfc3339Nano),
            _ => Err(Expected("epoch, millis, nano, iso8601, rfc3339 or rfc3339nano")),
        }
    }
}

/// The style of lines.
#[derive(Clone, Copy, Debug)]
pub struct LogStyle {
    /// JSON, or text for people.
    pub json: bool,
    /// The level.
    pub level: LogLevel,
    /// The format of times.
    pub time: TimeEncoding,
}

/// One line, before it is written.
pub(super) struct Line {
    level: LogLevel,
    logger: &'static str,
    message: String,
    fields: Map<String, Value>,
}

impl Line {
    pub(super) fn new(level: LogLevel, logger: &'static str, message: impl Into<String>) -> Line {
        Line { level, logger, message: message.into(), fields: Map::new() }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Line {
        self.fields.insert(name.to_owned(), value.into());
        self
    }
}

impl LogStyle {
    /// The text of a line with its line break; `None` where it says too little.
    pub(super) fn text(&self, line: Line, at: Timestamp) -> Option<String> {
        if line.level > self.level {
            return None;
        }
        let level = match line.level {
            LogLevel::Error => "error",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        };
        let time = self.time(at);
        if self.json {
            // In zap's order, for people who read it raw.
            let known: [(&str, Value); 4] = [
                ("level", level.into()),
                ("ts", time),
                ("logger", line.logger.into()),
                ("msg", line.message.into()),
            ];
            let fields =
                line.fields.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(name)));
            let all = known.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).chain(fields);
            let all: Vec<String> = all.collect();
            return Some(format!("{}\n", words::escaped_json(format!("{{{}}}", all.join(",")))));
        }
        let time = time.as_str().map_or_else(|| time.to_string(), str::to_owned);
        let fields = match line.fields.is_empty() {
            true => String::new(),
            false => format!("\t{}", words::escaped_json(Value::Object(line.fields).to_string())),
        };
        let message = words::visible_line(&line.message);
        Some(format!("{time}\t{}\t{}\t{message}{fields}\n", level.to_uppercase(), line.logger))
    }

    fn time(&self, at: Timestamp) -> Value {
        let nanoseconds = at.as_nanosecond();
        match self.time {
            TimeEncoding::Epoch => json!(at.as_duration().as_secs_f64()),
            TimeEncoding::Millis => json!(at.as_duration().as_secs_f64() * 1000.0),
            TimeEncoding::Nano => i64::try_from(nanoseconds).map_or(Value::Null, Value::from),
            TimeEncoding::Iso8601 => json!(at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()),
            TimeEncoding::Rfc3339 => json!(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
            TimeEncoding::Rfc3339Nano => json!(at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ").to_string()),
        }
    }
}

/// How many lines wait for a reader who is slow. More are counted, and left out.
const WAITING: usize = 4_096;
/// How long the last lines may take to be written at the end.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Writes log lines to standard error, as zap does, from a thread of its own: a reader who pauses delays
/// nobody. Clones write to the same place.
#[derive(Clone)]
pub struct LogWriter {
    style: LogStyle,
    waiting: SyncSender<Waiting>,
    lost: Arc<AtomicU64>,
}

enum Waiting {
    Line(String),
    /// Somebody waits until all lines before this are written.
    End(SyncSender<()>),
}

impl LogWriter {
    /// Writes to standard error.
    pub fn to_stderr(style: LogStyle) -> LogWriter {
        LogWriter::over(style, std::io::stderr())
    }

    fn over(style: LogStyle, mut out: impl Write + Send + 'static) -> LogWriter {
        let (waiting, lines) = sync_channel(WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let log = LogWriter { style, waiting, lost: Arc::clone(&lost) };
        // It ends with the last clone. Nobody reads the lines any more where writing fails.
        std::thread::spawn(move || {
            for next in lines {
                let count = lost.swap(0, Ordering::Relaxed);
                if count > 0 {
                    let line =
                        Line::new(LogLevel::Error, "cmd", format!("{count} lines of the log were lost"));
                    let text = style.text(line, Timestamp::now()).unwrap_or_default();
                    let _ = out.write_all(text.as_bytes());
                }
                let _ = match next {
                    Waiting::Line(text) => out.write_all(text.as_bytes()),
                    Waiting::End(written) => {
                        let _ = written.send(());
                        out.flush()
                    }
                };
            }
        });
        log
    }

    pub(super) fn write(&self, line: Line) {
        if let Some(text) = self.style.text(line, Timestamp::now())
            && self.waiting.try_send(Waiting::Line(text)).is_err()
        {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, though not for long.
    pub fn finish(&self) {
        let until = Instant::now() + LAST_LINES;
        let (tell, written) = sync_channel(1);
        while let Err(TrySendError::Full(_)) = self.waiting.try_send(Waiting::End(tell.clone())) {
            if Instant::now() > until {
                return;
            }
            std::thread::sleep(LAST_LINES / 200);
        }
        let _ = written.recv_timeout(until.saturating_duration_since(Instant::now()));
    }

    /// A line of opdev's own log.
    pub fn write_own(&self, of: Level, target: &str, message: String) {
        self.write(Line::new(level(of), "opdev", message).with("target", target));
    }

    /// Says that something on the command line does nothing here, and why.
    pub fn write_ignored(&self, flag: &str, why: &str) {
        let line = Line::new(LogLevel::Info, "cmd", format!("{flag} has no effect"));
        self.write(line.with("why", why));
    }

    /// Says why the operator ends.
    pub fn write_end(&self, error: &anyhow::Error) {
        let line = Line::new(LogLevel::Error, "cmd", "the operator has ended");
        self.write(line.with("error", format!("{error:#}")));
    }
}

/// The lines about an event.
pub(super) fn lines(event: &Event) -> Vec<Line> {
    match event {
        Event::Reconciled(reconcile) => of_reconcile(reconcile),
        Event::LoopFound(found) => {
            let line = Line::new(LogLevel::Error, "opdev.loops", format!("{}: {found}", found.object));
            vec![line.with("kind", found.object.gvk.kind.clone()).with("name", found.object.name.clone())]
        }
        Event::Noticed(notice) => {
            let line = Line::new(level(notice.level), "opdev", notice.message.clone());
            vec![match &notice.hint {
                Some(hint) => line.with("hint", hint.clone()),
                None => line,
            }]
        }
        Event::Log(said) => vec![
            Line::new(level(said.level), "opdev.reconciler", said.message.clone())
                .with("target", said.target.clone()),
        ],
        Event::ConnectionChanged(changed) => {
            let trouble = changed.trouble.as_ref();
            trouble
                .map(|trouble| {
                    let level = if trouble.kind.still_answers() { LogLevel::Debug } else { LogLevel::Error };
                    Line::new(level, "opdev", trouble.why.clone())
                })
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

fn level(of: Level) -> LogLevel {
    match of {
        Level::Error => LogLevel::Error,
        Level::Warn | Level::Info => LogLevel::Info,
        Level::Debug | Level::Trace => LogLevel::Debug,
    }
}

fn of_reconcile(reconcile: &Reconcile) -> Vec<Line> {
    let object = &reconcile.object;
    let about = |line: Line| {
        line.with("namespace", object.namespace.clone().unwrap_or_default())
            .with("name", object.name.clone())
            .with("apiVersion", object.gvk.api_version())
            .with("kind", object.gvk.kind.clone())
            .with("controller", format!("{}-controller", object.gvk.kind.to_lowercase()))
            .with("controllerGroup", object.gvk.group.clone())
            .with("controllerKind", object.gvk.kind.clone())
            .with("reconcileID", reconcile.id.to_string())
            .with("causes", words::causes(&reconcile.causes))
    };
    if let Some(failure) = &reconcile.failure {
        let line = Line::new(LogLevel::Error, "helm.controller", "Failed to reconcile release");
        return vec![about(line).with("error", failure.chain.join(": "))];
    }
    let of_releases = reconcile.releases.iter().map(|release| {
        let message = match release.step {
            ReleaseStep::Installed => "Installed release",
            ReleaseStep::Upgraded | ReleaseStep::Rewritten => "Upgraded release",
            ReleaseStep::RolledBack => "Rolled back release",
        };
        let line = Line::new(LogLevel::Info, "helm.controller", message);
        about(line).with("release", release.name.clone()).with("revision", release.revision)
    });
    let lines: Vec<Line> = of_releases.collect();
    if !lines.is_empty() {
        return lines;
    }
    let (level, message) = match reconcile.outcome {
        Outcome::Uninstalled => (LogLevel::Info, "Uninstalled release"),
        Outcome::Applied => (LogLevel::Info, "Applied"),
        Outcome::Repaired => (LogLevel::Info, "Repaired release"),
        Outcome::Waiting => (LogLevel::Info, "Waiting"),
        Outcome::Installed | Outcome::Upgraded | Outcome::Unchanged | Outcome::Gone | Outcome::Failed => {
            (LogLevel::Debug, "Reconciled release")
        }
    };
    vec![about(Line::new(level, "helm.controller", message))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_zap() {
        let at: Timestamp = "2026-01-02T03:04:05.5Z".parse().unwrap();
        let line = || Line::new(LogLevel::Info, "cmd", "Watching all\nnamespaces").with("a", 1);
        let style = LogStyle { json: true, level: LogLevel::Info, time: TimeEncoding::Rfc3339 };
        let text = style.text(line(), at).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["ts"], "2026-01-02T03:04:05Z");
        assert_eq!((value["level"].as_str(), value["logger"].as_str()), (Some("info"), Some("cmd")));
        assert_eq!(text.lines().count(), 1);
        assert!(text.starts_with("{\"level\":\"info\",\"ts\":\"2026-"), "{text}");
        let plain = LogStyle { json: false, time: TimeEncoding::Epoch, ..style };
        let text = plain.text(line(), at).unwrap();
        assert!(
            text.starts_with("1767323045.5\tINFO\tcmd\tWatching all") && text.ends_with("\t{\"a\":1}\n"),
            "{text}"
        );
        assert!(LogStyle { level: LogLevel::Error, ..style }.text(line(), at).is_none());
        assert_eq!("4".parse::<LogLevel>(), Ok(LogLevel::Debug));
        assert!("loud".parse::<LogLevel>().is_err() && "week".parse::<TimeEncoding>().is_err());
    }

    /// A reader who reads nothing until told to.
    struct Slow(std::sync::mpsc::Receiver<()>, Arc<std::sync::Mutex<String>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.recv();
            self.1.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_reader_holds_nobody_up_and_is_told_what_was_lost() {
        let style = LogStyle { json: true, level: LogLevel::Info, time: TimeEncoding::Rfc3339 };
        let (go, wait) = std::sync::mpsc::channel();
        let read = Arc::new(std::sync::Mutex::new(String::new()));
        let log = LogWriter::over(style, Slow(wait, Arc::clone(&read)));
        let many = WAITING as u64 * 2;
        for number in 0..many {
            log.write(Line::new(LogLevel::Info, "cmd", format!("line {number}")));
        }
        drop(go);
        log.finish();
        let read = read.lock().unwrap();
        let lost = read.lines().find_map(|line| {
            let (before, _) = line.split_once(" lines of the log were lost")?;
            before.rsplit('"').next()?.parse::<u64>().ok()
        });
        let written = read.lines().filter(|line| line.contains("\"line ")).count() as u64;
        assert_eq!(lost.map(|lost| lost + written), Some(many));
        assert!(read.contains("\"line 0\"") && written >= WAITING as u64, "{written}");
    }
}

//! The two pipes of a process, as log lines: read as fast as the process writes, told only as fast as anybody
//! can read. What is too much is counted. The last lines are kept, for they say why a process ended.

use super::debugger;
use super::logs;
use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, LogLine};
use opdev_facts::missing_kinds::MissingKind;
use opdev_facts::observed::{ObjectLine, Seen};
use opdev_facts::record::PrintedLine;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

/// Bytes of a line; the rest of a longer one is left out.
const LONGEST: usize = 16 << 10;
/// Lines that may come at once, and how many more each second.
const BURST: f64 = 2_000.0;
const PER_SECOND: f64 = 1_000.0;
/// Lines that are kept of the end.
const KEPT: usize = 400;
/// How often dropped lines are told of.
const TELL: Duration = Duration::from_secs(1);

/// The last lines of a process, both pipes in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// The lines so far.
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line.to_owned());
    }
}

/// Reads one pipe to its end.
pub(super) async fn follow(mut pipe: impl AsyncRead + Unpin, mut told: Told, tail: Tail) {
    let mut bytes = vec![0; 64 << 10];
    let mut line: Vec<u8> = Vec::new();
    let mut entry = logs::Joiner::default();
    loop {
        let read = match pipe.read(&mut bytes).await {
            Ok(0) | Err(_) => break,
            Ok(read) => &bytes[..read],
        };
        let at = Timestamp::now();
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(line.len()).min(part.len());
            line.extend_from_slice(&part[..room]);
            if part.last() != Some(&b'\n') {
                continue;
            }
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            tail.push(text);
            told.hear(text);
            if told.has_room() {
                told.tell(at, entry.push(text));
            }
            line.clear();
        }
        // Lines of one entry are written together: a stack never waits for the next entry.
        told.tell(at, entry.flush());
        told.report();
    }
    if !line.is_empty() {
        let text = String::from_utf8_lossy(&line);
        tail.push(&text);
        told.tell(Timestamp::now(), entry.push(&text));
    }
    told.tell(Timestamp::now(), entry.flush());
    told.said = told.filled.checked_sub(TELL).unwrap_or(told.said);
    told.report();
}

/// The way of lines to the log pane, with a limit.
pub(super) struct Told {
    target: String,
    events: EventSink,
    traced: Option<mpsc::Sender<Seen>>,
    missing: Option<mpsc::Sender<MissingKind>>,
    stops: Option<mpsc::Sender<String>>,
    named: Option<mpsc::Sender<()>>,
    room: f64,
    filled: Instant,
    dropped: u64,
    said: Instant,
}

impl Told {
    /// `target` names the process in its log lines. Lines that its trace tells, too, go to `traced`.
    pub(super) fn new(target: String, events: EventSink, traced: Option<mpsc::Sender<Seen>>) -> Told {
        let now = Instant::now();
        Told {
            target,
            events,
            traced,
            missing: None,
            stops: None,
            named: None,
            room: BURST,
            filled: now,
            dropped: 0,
            said: now,
        }
    }

    /// Also tells which kinds the program misses. One that finds no room is said again by the program.
    pub(super) fn missing(self, kinds: mpsc::Sender<MissingKind>) -> Told {
        Told { missing: Some(kinds), ..self }
    }

    /// Also tells why a debugger says that the program stands still.
    pub(super) fn stops(self, stops: mpsc::Sender<String>) -> Told {
        Told { stops: Some(stops), ..self }
    }

    /// Also tells that lines name the objects that they are about.
    pub(super) fn named(self, named: mpsc::Sender<()>) -> Told {
        Told { named: Some(named), ..self }
    }

    fn hear(&self, line: &str) {
        if let (Some(stops), Some(reason)) = (&self.stops, debugger::stop_reason(line)) {
            // A reason that waits to be heard says the same.
            let _ = stops.try_send(reason.to_owned());
        }
    }

    /// Returns true if one more line may be told; counts it otherwise.
    fn has_room(&mut self) -> bool {
        if self.room < 1.0 {
            let now = Instant::now();
            self.room = (self.room + now.duration_since(self.filled).as_secs_f64() * PER_SECOND).min(BURST);
            self.filled = now;
        }
        if self.room < 1.0 {
            self.dropped += 1;
            return false;
        }
        self.room -= 1.0;
        true
    }

    fn tell(&self, at: Timestamp, entry: Option<logs::Entry>) {
        let Some(entry) = entry else { return };
        let target = if entry.logger.is_empty() { self.target.clone() } else { entry.logger.clone() };
        let (level, message) = (entry.level.unwrap_or(Level::Info), entry.text());
        if let (Some(missing), Some(kind)) = (&self.missing, MissingKind::read(&message)) {
            _ = missing.try_send(kind);
        }
        let line = LogLine { at, level, target, message, reconcile: None };
        let seen = match (entry.name, &entry.object) {
            (Some(name), _) => {
                Some(Seen::Printed(PrintedLine { name, line: line.clone(), stack: entry.stack() }))
            }
            (None, Some(object)) => {
                if let Some(named) = self.named.as_ref().filter(|_| self.traced.is_some()) {
                    // A single message is enough.
                    let _ = named.try_send(());
                }
                let (object, reason) = (object.clone(), entry.reason.clone());
                Some(Seen::Line(ObjectLine { object, reason, line: line.clone() }))
            }
            (None, None) => None,
        };
        // A line that finds no room is shown as it is: better twice than never.
        if let (Some(traced), Some(seen)) = (&self.traced, seen)
            && traced.try_send(seen).is_ok()
        {
            return;
        }
        self.events.log(line);
    }

    fn report(&mut self) {
        if self.dropped > 0 && self.said.elapsed() >= TELL {
            self.events.try_emit(Event::LogDropped { lines: self.dropped });
            self.dropped = 0;
            self.said = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_lines_with_a_name_or_an_object_go_to_the_trace_and_none_is_lost_without_it() {
        let text = "{\"msg\":\"plain\"}\n{\"msg\":\"named\",\"opdev\":\"7.1\"}\n";
        let (events, mut shown) = EventSink::channel(8);
        let (traced, mut named) = mpsc::channel(8);
        let told = |traced| Told::new("operator".to_owned(), events.clone(), traced);
        follow(text.as_bytes(), told(Some(traced.clone())), Tail::default()).await;
        let mut message = || match shown.try_recv() {
            Ok(Event::Log(line)) => Some(line.message),
            _ => None,
        };
        assert_eq!((message().as_deref(), message()), (Some("plain"), None));
        let seen = named.recv().await;
        assert!(matches!(&seen, Some(Seen::Printed(printed)) if printed.line.message == "named"), "{seen:?}");
        let about = "[2026-11-23 08:00:00,000] kopf.objects         [INFO    ] [default/demo] done\n";
        follow(about.as_bytes(), told(Some(traced.clone())), Tail::default()).await;
        let seen = named.recv().await;
        assert!(matches!(&seen, Some(Seen::Line(about)) if about.object == "default/demo"), "{seen:?}");
        // Without a trace, and where it has ended.
        drop(named);
        for traced in [None, Some(traced)] {
            follow(text.as_bytes(), told(traced), Tail::default()).await;
            assert_eq!((message().as_deref(), message().as_deref()), (Some("plain"), Some("named")));
        }
    }
}

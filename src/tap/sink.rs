//! The way of all events to the bus: state waits for room, log lines are dropped under load and counted.

use crate::event::{Event, LogLine};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;

/// A bounded channel of events. Clones share the count of dropped log lines.
#[derive(Clone, Debug)]
pub struct EventSink {
    sender: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
}

impl EventSink {
    /// A sink and the receiver that drains it, with room for `capacity` events.
    pub fn channel(capacity: usize) -> (EventSink, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (EventSink { sender, dropped: Arc::default() }, receiver)
    }

    /// Sends a fact and waits for room. A closed bus swallows it: then nobody is left to tell.
    pub async fn emit(&self, event: Event) {
        self.report_drops();
        let _closed = self.sender.send(event).await;
    }

    /// Sends a fact if there is room, for places that cannot wait, such as a panic hook.
    pub fn try_emit(&self, event: Event) {
        let _full_or_closed = self.sender.try_send(event);
    }

    /// Sends a log line if there is room, else counts it as dropped.
    pub fn log(&self, line: LogLine) {
        self.report_drops();
        if self.sender.try_send(Event::Log(line)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report_drops(&self) {
        let lines = self.dropped.swap(0, Ordering::Relaxed);
        if lines > 0 && self.sender.try_send(Event::LogDropped { lines }).is_err() {
            self.dropped.fetch_add(lines, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Level;
    use jiff::Timestamp;

    fn line(message: &str) -> LogLine {
        LogLine {
            at: Timestamp::UNIX_EPOCH,
            level: Level::Info,
            target: String::new(),
            message: message.to_owned(),
            reconcile: None,
        }
    }

    #[tokio::test]
    async fn log_lines_are_dropped_and_counted_while_facts_wait() {
        let (sink, mut events) = EventSink::channel(2);
        for i in 0..5 {
            sink.log(line(&i.to_string()));
        }
        let waiting = tokio::spawn({
            let sink = sink.clone();
            async move { sink.emit(Event::Stopping { reason: "test".into() }).await }
        });
        assert!(matches!(events.recv().await, Some(Event::Log(line)) if line.message == "0"));
        assert!(matches!(events.recv().await, Some(Event::Log(line)) if line.message == "1"));
        waiting.await.unwrap();
        sink.log(line("later"));
        let mut seen = Vec::new();
        drop(sink);
        while let Some(event) = events.recv().await {
            seen.push(match event {
                Event::LogDropped { lines } => format!("dropped {lines}"),
                Event::Stopping { .. } => "stopping".to_owned(),
                Event::Log(line) => line.message,
                other => panic!("unexpected {other:?}"),
            });
        }
        assert_eq!(seen, ["dropped 3", "stopping"].map(str::to_owned).to_vec(), "later has no room");
    }
}

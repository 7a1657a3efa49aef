//! The problem: a cluster that was left still has tasks that end later. Their last events would show objects
//! of one cluster on the screen of another.
//!
//! The way of all events to the bus: state waits for room, log lines are dropped under load and counted. What
//! tells of one cluster passes a gate, so that nothing of a cluster that was left comes through once another
//! one is worked on.

use crate::{Event, LogLine};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// A bounded channel of events. Clones share the count of dropped log lines.
#[derive(Clone, Debug)]
pub struct EventSink {
    sender: mpsc::Sender<Event>,
    dropped: Arc<AtomicU64>,
    gate: Option<Arc<Mutex<Gate>>>,
}

/// The gate that events of one cluster pass.
#[derive(Debug)]
enum Gate {
    /// Not yet: they wait.
    Held(VecDeque<Event>),
    Open,
    Closed,
}

impl EventSink {
    /// A sink and the receiver that drains it, with room for `capacity` events.
    pub fn channel(capacity: usize) -> (EventSink, mpsc::Receiver<Event>) {
        let (sender, receiver) = mpsc::channel(capacity);
        (EventSink { sender, dropped: Arc::default(), gate: None }, receiver)
    }

    /// A sink for what is told of one cluster. It holds everything back until it is opened.
    pub fn gated(&self) -> EventSink {
        let gate = Arc::new(Mutex::new(Gate::Held(VecDeque::new())));
        EventSink { sender: self.sender.clone(), dropped: Arc::clone(&self.dropped), gate: Some(gate) }
    }

    /// Opens the gate: this comes first, then what was held back.
    pub async fn open(&self, first: Event) {
        let Some(gate) = &self.gate else { return self.emit(first).await };
        if let Gate::Held(waiting) = &mut *gate.lock().unwrap_or_else(PoisonError::into_inner) {
            waiting.push_front(first);
        }
        while let Ok(room) = self.sender.reserve().await {
            let mut gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            let Gate::Held(waiting) = &mut *gate else { return };
            match waiting.pop_front() {
                Some(event) => room.send(event),
                None => *gate = Gate::Open,
            }
        }
    }

    /// Closes the gate: once this is back, nothing comes through any more, whoever still holds a clone.
    pub fn close(&self) {
        if let Some(gate) = &self.gate {
            *gate.lock().unwrap_or_else(PoisonError::into_inner) = Gate::Closed;
        }
    }

    fn pass(&self, room: mpsc::Permit<'_, Event>, event: Event) {
        let Some(gate) = &self.gate else { return room.send(event) };
        match &mut *gate.lock().unwrap_or_else(PoisonError::into_inner) {
            Gate::Held(waiting) => waiting.push_back(event),
            Gate::Open => room.send(event),
            Gate::Closed => {}
        }
    }

    /// Returns true if so many events wait that more of them should be small.
    pub fn is_behind(&self) -> bool {
        const MANY: usize = 64;
        let held = |gate: &Arc<Mutex<Gate>>| {
            matches!(*gate.lock().unwrap_or_else(PoisonError::into_inner), Gate::Held(_))
        };
        self.sender.max_capacity() - self.sender.capacity() >= MANY || self.gate.as_ref().is_some_and(held)
    }

    /// Sends a fact and waits for room. A closed bus swallows it: then nobody is left to tell.
    pub async fn emit(&self, event: Event) {
        self.report_drops();
        if let Ok(room) = self.sender.reserve().await {
            self.pass(room, event);
        }
    }

    /// Sends a fact if there is room, for places that cannot wait, such as a panic hook.
    pub fn try_emit(&self, event: Event) {
        if let Ok(room) = self.sender.try_reserve() {
            self.pass(room, event);
        }
    }

    /// Sends a log line if there is room, else counts it as dropped.
    pub fn log(&self, line: LogLine) {
        self.report_drops();
        match self.sender.try_reserve() {
            Ok(room) => self.pass(room, Event::Log(line)),
            Err(_) => _ = self.dropped.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn report_drops(&self) {
        let lines = self.dropped.swap(0, Ordering::Relaxed);
        if lines > 0 && self.sender.try_send(Event::LogDropped { lines }).is_err() {
            self.dropped.fetch_add(lines, Ordering::Relaxed);
        }
    }
}

/// Where reconciles are told of, and who numbers them.
#[derive(Clone, Debug)]
pub struct ReconcileSink {
    /// Where they are told of.
    pub events: EventSink,
    /// The counter that numbers them.
    pub numbers: ReconcileNumbers,
}

/// Numbers of reconciles from 1 on, shared by all whose reconciles stand on one screen. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct ReconcileNumbers(Arc<AtomicU64>);

impl ReconcileNumbers {
    /// The number of the reconcile that begins now.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use jiff::Timestamp;

    #[tokio::test]
    async fn it_is_behind_while_many_events_wait_and_while_all_are_held_back() {
        let (sink, mut receiver) = EventSink::channel(100);
        let gated = sink.gated();
        assert!(!sink.is_behind() && gated.is_behind());
        gated.open(Event::HoldChanged { on: true }).await;
        assert!(!gated.is_behind());
        for _ in 0..70 {
            sink.emit(Event::HoldChanged { on: false }).await;
        }
        assert!(sink.is_behind() && gated.is_behind());
        let mut all = Vec::new();
        receiver.recv_many(&mut all, 100).await;
        assert!(!sink.is_behind());
    }

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
    #[tokio::test]
    async fn a_gate_holds_back_opens_and_closes_for_good() {
        let (sink, mut events) = EventSink::channel(8);
        let gated = sink.gated();
        gated.log(line("held"));
        sink.log(line("of nobody's cluster"));
        gated.open(Event::Log(line("first"))).await;
        gated.emit(Event::Log(line("then"))).await;
        let late = gated.clone();
        gated.close();
        late.emit(Event::Log(line("late"))).await;
        late.try_emit(Event::Log(line("late")));
        late.log(line("late"));
        late.open(Event::Log(line("opened again"))).await;
        drop((sink, gated, late));
        let mut seen = Vec::new();
        while let Some(Event::Log(line)) = events.recv().await {
            seen.push(line.message);
        }
        assert_eq!(seen, ["of nobody's cluster", "first", "held", "then"]);
    }
}

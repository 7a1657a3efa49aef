//! Events that the goroutine of one reconcile sends for all of them.

use super::*;
use crate::Attribution;
use opdev_event::sink::ReconcileNumbers;
use opdev_event::{Event, Outcome, Reconcile};
use opdev_facts::observed::Seen;
use opdev_facts::record::{Begin, ControllerAdded, End, LogRecord, Record, TraceObject, Traced};
use serde_json::json;
use std::sync::Arc;

const EVENTS: &str = "/api/v1/namespaces/default/events";

struct World {
    attribution: Attribution,
    clock: i64,
    events: Vec<Event>,
}

impl World {
    fn new() -> World {
        let attribution = Attribution::new(ReconcileNumbers::default());
        let mut world = World { attribution, clock: 0, events: Vec::new() };
        world.tell(Record::Controller(ControllerAdded {
            name: "thing".to_owned(),
            group: "test.example.com".to_owned(),
            kind: "Thing".to_owned(),
            ..ControllerAdded::default()
        }));
        world
    }

    fn tell(&mut self, record: Record) {
        self.clock += 1_000_000;
        let at = time(self.clock);
        let seen = Seen::Traced(Traced { process: 1, at, record });
        self.events.extend(self.attribution.see(seen));
    }

    fn begin(&mut self, name: &str) {
        self.begin_as(&format!("of-{name}"), name);
    }

    fn begin_as(&mut self, id: &str, name: &str) {
        let (t, id, name) = (self.clock, id.to_owned(), name.to_owned());
        let controller = "thing".to_owned();
        self.tell(Record::Begin(Begin {
            t,
            id,
            controller,
            namespace: "default".to_owned(),
            name,
            ..Begin::default()
        }));
    }

    fn record(&mut self, name: &str) {
        self.record_as(&format!("of-{name}"), name);
    }

    fn record_as(&mut self, id: &str, name: &str) {
        let object = TraceObject {
            kind: "Thing".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            ..TraceObject::default()
        };
        let (t, id) = (self.clock, id.to_owned());
        let (reason, message) = ("Made".to_owned(), String::new());
        self.tell(Record::Recorded(RecordedEvent { t, id, object, reason, message }));
    }

    fn end(&mut self, name: &str) {
        self.end_as(&format!("of-{name}"));
    }

    fn end_as(&mut self, id: &str) {
        let (t, id) = (self.clock, id.to_owned());
        self.tell(Record::End(End { t, id, ..End::default() }));
    }

    /// The broadcaster sends an Event; its goroutine was started in the reconcile of this object.
    fn send(&mut self, name: &str, started_in: &str) {
        self.clock += 1_000_000;
        let event = json!({"apiVersion": "v1", "kind": "Event", "reason": "Made",
            "metadata": {"name": format!("{name}.1"), "namespace": "default", "resourceVersion": "7"},
            "involvedObject": {"kind": "Thing", "namespace": "default", "name": name}});
        self.events.extend(self.attribution.see(Seen::Call(ObservedCall {
            at: time(self.clock),
            took_micros: 100,
            method: "POST".to_owned(),
            path: EVENTS.to_owned(),
            query: String::new(),
            mark: Some(format!("of-{started_in} goroutine")),
            status: 201,
            sent: Some(event.clone()),
            answered: Some(event),
            disturbed: false,
            warnings: Vec::new(),
        })));
    }

    /// Calls of the reconcile with this id, guessed ones, and those that came after its end.
    fn calls(&self, id: &str) -> (usize, usize, u32) {
        let found = self.events.iter().rev().find_map(|event| match event {
            Event::Reconciled(reconcile) => {
                let process = reconcile.process.as_ref().unwrap();
                let counts = (reconcile.calls.len(), process.guessed_calls.len(), process.late_calls);
                (process.reconcile_id == id).then_some(counts)
            }
            _ => None,
        });
        found.unwrap()
    }

    /// The newest telling of an object's reconcile.
    fn reconcile(&self, name: &str) -> Arc<Reconcile> {
        let reconciles = self.events.iter().rev().filter_map(|event| match event {
            Event::Reconciled(reconcile) => Some(reconcile),
            _ => None,
        });
        Arc::clone(reconciles.into_iter().find(|reconcile| reconcile.object.name == name).unwrap())
    }
}

#[test]
fn an_event_belongs_to_the_reconcile_that_recorded_it_and_changes_no_outcome() {
    let mut world = World::new();
    for name in ["a", "b", "c"] {
        world.begin(name);
        world.record(name);
        world.end(name);
    }
    for name in ["a", "b", "c"] {
        world.send(name, "a");
    }
    for name in ["a", "b", "c"] {
        let reconcile = world.reconcile(name);
        assert_eq!(reconcile.calls.len(), 1, "{name}: {:?}", reconcile.calls);
        assert_eq!((reconcile.outcome, reconcile.objects.len()), (Outcome::Unchanged, 0), "{name}");
        assert!(reconcile.process.as_ref().unwrap().guessed_calls.is_empty());
    }
    // A record that comes before its reconcile ends makes no difference.
    world.begin("d");
    world.record("d");
    world.send("d", "a");
    world.end("d");
    let reconcile = world.reconcile("d");
    assert_eq!(
        (reconcile.calls.len(), reconcile.outcome, reconcile.objects.len()),
        (1, Outcome::Unchanged, 0)
    );
    assert_eq!(reconcile.process.as_ref().unwrap().late_calls, 0);
}

#[test]
fn an_event_whose_recorder_is_not_known_is_guessed_by_its_object() {
    let mut world = World::new();
    world.begin("a");
    world.end("a");
    world.begin("b");
    world.send("b", "a");
    world.end("b");
    world.send("b", "a");
    assert!(world.reconcile("a").calls.is_empty());
    let reconcile = world.reconcile("b");
    let process = reconcile.process.as_ref().unwrap();
    assert_eq!((reconcile.calls.len(), process.guessed_calls.as_slice()), (2, &[0, 1][..]));
    assert_eq!(reconcile.outcome, Outcome::Unchanged);
    // Long after its reconcile it may be of anything.
    world.clock += 5_000_000_000;
    world.send("b", "a");
    assert_eq!(world.reconcile("b").calls.len(), 2);
}

#[test]
fn a_call_that_is_seen_before_its_record_takes_no_later_one() {
    let mut world = World::new();
    world.begin("a");
    world.send("a", "x");
    world.clock -= 2_000_000;
    world.record("a");
    world.end("a");
    world.begin("b");
    world.record("b");
    world.send("b", "x");
    world.end("b");
    assert_eq!((world.reconcile("a").calls.len(), world.reconcile("b").calls.len()), (1, 1));
    assert!(world.attribution.recorders.recorded.is_empty() && world.attribution.recorders.early.is_empty());
}

#[test]
fn a_guess_that_the_program_confirms_is_none_any_more() {
    for ended_before in [false, true] {
        let mut world = World::new();
        world.begin("a");
        world.send("a", "x");
        if ended_before {
            world.end("a");
            assert_eq!(world.reconcile("a").process.as_ref().unwrap().guessed_calls, [0]);
        }
        world.clock -= 3_000_000;
        world.record("a");
        if !ended_before {
            world.end("a");
        }
        let reconcile = world.reconcile("a");
        assert_eq!((reconcile.calls.len(), reconcile.process.as_ref().unwrap().guessed_calls.len()), (1, 0));
    }
}

/// The call of the second reconcile is seen before anything else of it, and looks like one of the first.
#[test]
fn a_guess_that_the_program_corrects_changes_over() {
    for still_open in [false, true] {
        let mut world = World::new();
        world.begin("a");
        world.record("a");
        world.send("a", "x");
        if !still_open {
            world.end("a");
        }
        world.send("a", "x");
        world.clock -= 3_000_000;
        world.begin_as("second", "a");
        world.record_as("second", "a");
        if still_open {
            world.end("a");
        }
        world.end_as("second");
        assert_eq!(world.calls("of-a"), (1, 0, 0), "still open: {still_open}");
        assert_eq!(world.calls("second"), (1, 0, 0), "still open: {still_open}");
    }
}

#[test]
fn a_panic_has_the_words_of_the_log_and_a_place_without_addresses() {
    let mut world = World::new();
    let stack = "goroutine 7 [running]:\nruntime/debug.Stack()\n\t/go/debug/stack.go:26 +0x5e\npanic({0x1c0, 0x2f0})\n\
        \t/go/runtime/panic.go:860 +0x13a\nexample.com/shop/internal.(*CartReconciler).Reconcile(0xc0001, {0x1c5, 0xc02})\n\
        \t/work/shop/internal/cart.go:87 +0x2a5\n";
    let mut fails = |values: Vec<(String, String)>, error: &str| {
        world.begin("a");
        let (id, error) = ("of-a".to_owned(), error.to_owned());
        world.tell(Record::Log(LogRecord { id: id.clone(), error, values, ..LogRecord::default() }));
        let t = world.clock;
        world.tell(Record::End(End { t, id, panic: stack.to_owned(), ..End::default() }));
        world.reconcile("a").failure.clone().unwrap().chain
    };
    let place = "/work/shop/internal/cart.go:87 in internal.(*CartReconciler).Reconcile";
    let words = "panic: assignment to entry in nil map";
    let logged = vec![("panic".to_owned(), "\"assignment to entry in nil map\"".to_owned())];
    assert_eq!(fails(logged, ""), [words, place]);
    assert_eq!(fails(Vec::new(), "panic: assignment to entry in nil map [recovered]"), [words, place]);
    assert_eq!(fails(Vec::new(), ""), ["the reconciler panicked", place]);
}

/// The record of the second reconcile comes after the call that sends its Event, while the Event of the first
/// is still to be sent.
#[test]
fn a_call_that_comes_before_its_record_takes_no_other_one() {
    let event = |id: &str, message: &str| RecordedEvent {
        t: 1_000_000,
        id: id.to_owned(),
        object: TraceObject { kind: "Thing".to_owned(), name: "a".to_owned(), ..TraceObject::default() },
        reason: "Made".to_owned(),
        message: message.to_owned(),
    };
    let call = |message: &str| ObservedCall {
        at: time(2_000_000),
        took_micros: 100,
        method: "POST".to_owned(),
        path: EVENTS.to_owned(),
        query: String::new(),
        mark: None,
        status: 201,
        sent: Some(
            json!({"reason": "Made", "message": message, "involvedObject": {"kind": "Thing", "name": "a"}}),
        ),
        answered: None,
        disturbed: false,
        warnings: Vec::new(),
    };
    let mut recorders = Recorders::default();
    assert!(recorders.told(event("one", "in the first reconcile")).is_none());
    assert_eq!(recorders.reconcile_of(&call("in the second reconcile")), None, "its record is still to come");
    recorders.guessed(&call("in the second reconcile"), "two");
    let known = recorders.told(event("two", "in the second reconcile")).unwrap();
    assert_eq!((known.id.as_str(), known.guessed.as_deref()), ("two", Some("two")));
    let combined = call("(combined from similar events): in the first reconcile");
    assert_eq!(recorders.reconcile_of(&combined).as_deref(), Some("one"));
}

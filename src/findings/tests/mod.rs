//! A program under test with its facts, for the tests of each rule in the rule's own file: each bug in its
//! dress, and beside it what looks like it and is none. Here stand the tests that concern no single rule.

#![allow(clippy::needless_pass_by_value)]

mod asked;
mod guessed;
mod life;
mod words;

pub(crate) use super::Findings;
pub(crate) use jiff::Timestamp;
pub(crate) use opdev_event::evidence::{
    ConfigFact, Evidence, FieldFact, Handover, OwnerFact, ReadFact, ReadySign, RefusalFact, StaleFact,
    WarningFact, WorkloadFact, WriteFact, WriteVerb,
};
pub(crate) use opdev_event::{
    Body, Cause, CauseKind, Event, FindingSeverity, KindHealth, KindStatus, ObjectGone, ObjectSeen, Outcome,
    PrinterColumn, ProcessChanged, ProcessExit, ProcessState, ProgramTrace, Reconcile, Relation, RuleFinding,
    SourcesChanged, TraceLevel, UnrelatedObject, UnrelatedSeen, WatchEvent,
};
pub(crate) use opdev_object::meta::{Gvk, ObjectRef};
pub(crate) use serde_json::{Value, json};
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).unwrap()
}

pub(crate) fn cr(name: &str) -> ObjectRef {
    let gvk = Gvk::new("lib.example.com", "v1", "Shelf");
    ObjectRef {
        gvk,
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
    }
}

pub(crate) fn child(kind: &str, name: &str) -> ObjectRef {
    let group = if matches!(kind, "Deployment" | "StatefulSet") { "apps" } else { "" };
    let gvk = Gvk::new(group, "v1", kind);
    ObjectRef {
        gvk,
        namespace: Some("default".to_owned()),
        name: name.to_owned(),
        uid: Some(format!("uid-{name}")),
    }
}

/// A program under test, and what was told of it.
pub(crate) struct World {
    pub(crate) findings: Findings,
    pub(crate) now: i64,
    pub(crate) next: u64,
    pub(crate) told: Vec<Event>,
}

impl World {
    pub(crate) fn new() -> World {
        let mut world = World { findings: Findings::default(), now: 0, next: 0, told: Vec::new() };
        world.restart(&[]);
        world
    }

    pub(crate) fn event(&mut self, event: &Event) {
        let told = self.findings.see(event);
        self.told.extend(told);
    }

    pub(crate) fn restart(&mut self, files: &[&str]) {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        self.process(ProcessState::Running { pid: 1, files, since_save: Duration::ZERO });
    }

    /// The program ends by itself, with these last words.
    pub(crate) fn ends(&mut self, message: Option<&str>) {
        let exit = ProcessExit {
            status: "exit code 1".to_owned(),
            ran: Duration::ZERO,
            message: message.map(str::to_owned),
            place: None,
            hint: None,
        };
        self.process(ProcessState::Restarting { exit, after: Duration::ZERO });
    }

    fn process(&mut self, state: ProcessState) {
        let run = ProcessChanged {
            at: at(self.now),
            program: "go ./cmd".to_owned(),
            state,
            starts: 1,
            traced: None,
            breakpoint: None,
        };
        self.event(&Event::ProcessChanged(Arc::new(run)));
    }

    /// A reconcile that begins now and takes a moment.
    pub(crate) fn reconcile(&mut self, change: impl FnOnce(&mut Evidence)) {
        self.next += 1;
        let mut evidence = Evidence {
            reconcile: self.next,
            controller: "shelf".to_owned(),
            object: cr("a"),
            level: Some(TraceLevel::Full),
            at: at(self.now),
            ended: at(self.now + 5),
            reads: vec![ReadFact { objects: vec![cr("a").key()], missing: false, ..ReadFact::default() }],
            ..Evidence::default()
        };
        change(&mut evidence);
        if evidence.causes.is_empty() {
            evidence.causes = timer();
        }
        self.now += 10;
        let ended = reconcile(evidence);
        self.event(&Event::Reconciled(Arc::new(ended.clone())));
        // Told again, with a late call: it counts once.
        self.event(&Event::Reconciled(Arc::new(ended)));
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.now += 1000;
            let told = self.findings.elapsed(at(self.now));
            self.told.extend(told);
        }
    }

    pub(crate) fn seen(&mut self, object: &ObjectRef, value: Value) {
        let seen = ObjectSeen {
            at: at(self.now),
            object_ref: object.clone(),
            metadata_only: false,
            object: Body::new(&value),
        };
        self.event(&Event::ObjectSeen(seen));
    }

    pub(crate) fn unrelated(&mut self, object: &ObjectRef) {
        let (namespace, name, uid) = (object.namespace.clone(), object.name.clone(), object.uid.clone());
        let objects = vec![UnrelatedObject { namespace, name, uid, changed_by: None }];
        self.event(&Event::UnrelatedSeen(UnrelatedSeen {
            at: at(self.now),
            gvk: object.gvk.clone(),
            objects,
        }));
    }

    pub(crate) fn gone(&mut self, object: &ObjectRef) {
        self.event(&Event::ObjectGone(ObjectGone { at: at(self.now), object_ref: object.clone() }));
    }

    pub(crate) fn opened(&self) -> Vec<Arc<RuleFinding>> {
        let opened = |event: &Event| match event {
            Event::FindingOpened(finding) => Some(Arc::clone(finding)),
            _ => None,
        };
        self.told.iter().filter_map(opened).collect()
    }

    /// Rules that were told, each with its worst severity.
    pub(crate) fn rules(&self) -> Vec<(String, FindingSeverity)> {
        let mut rules: Vec<(String, FindingSeverity)> = Vec::new();
        for event in &self.told {
            let (Event::FindingOpened(finding) | Event::FindingCounted(finding)) = event else { continue };
            match rules.iter_mut().find(|(rule, _)| *rule == finding.rule) {
                Some(known) => known.1 = known.1.min(finding.severity),
                None => rules.push((finding.rule.clone(), finding.severity)),
            }
        }
        rules
    }

    pub(crate) fn loud(&self) -> Vec<String> {
        let rules = self.rules().into_iter();
        rules.filter(|(_, severity)| *severity != FindingSeverity::Hint).map(|(rule, _)| rule).collect()
    }

    pub(crate) fn closed(&self) -> Vec<(String, String)> {
        let closed = |event: &Event| match event {
            Event::FindingClosed(finding) => Some((finding.rule.clone(), finding.ended.clone()?.how)),
            _ => None,
        };
        self.told.iter().filter_map(closed).collect()
    }
}

pub(crate) fn reconcile(evidence: Evidence) -> Reconcile {
    Reconcile {
        id: evidence.reconcile,
        object: evidence.object.clone(),
        causes: evidence.causes.clone(),
        sources: 0,
        at: evidence.at,
        queued: Duration::ZERO,
        took: Duration::ZERO,
        steps: Vec::new(),
        calls: Vec::new(),
        outcome: Outcome::Applied,
        status: Vec::new(),
        objects: Vec::new(),
        requeue: None,
        waiting: None,
        releases: Vec::new(),
        failure: None,
        process: Some(Box::new(ProgramTrace {
            controller: evidence.controller.clone(),
            reconcile_id: evidence.reconcile.to_string(),
            traced: TraceLevel::Full,
            reads: Vec::new(),
            own_writes: Vec::new(),
            guessed_calls: Vec::new(),
            disturbed_calls: Vec::new(),
            late_calls: 0,
            told_again: false,
            findings: Vec::new(),
            evidence: Handover::new(evidence),
        })),
    }
}

pub(crate) fn woken(object: ObjectRef, event: WatchEvent, by: Option<&str>, own: bool) -> Cause {
    let kind = CauseKind::Watch {
        object,
        event,
        fields: Vec::new(),
        by: by.map(str::to_owned),
        own_write: own,
        relation: Relation::Owner,
    };
    Cause { at: at(0), kind }
}

pub(crate) fn own() -> Vec<Cause> {
    vec![woken(cr("a"), WatchEvent::Modified, Some("manager"), true)]
}

pub(crate) fn by_user() -> Vec<Cause> {
    vec![woken(cr("a"), WatchEvent::Modified, Some("kubectl-edit"), false)]
}

pub(crate) fn timer() -> Vec<Cause> {
    vec![Cause {
        at: at(0),
        kind: CauseKind::Wait { why: "the reconcile before asked to run again".to_owned() },
    }]
}

pub(crate) fn update(object: &ObjectRef, subresource: &str, fields: Vec<FieldFact>) -> WriteFact {
    WriteFact {
        object: object.clone(),
        subresource: subresource.to_owned(),
        verb: WriteVerb::Update,
        manager: "manager".to_owned(),
        before: vec!["manager".to_owned()],
        held: true,
        fields,
        ..WriteFact::default()
    }
}

pub(crate) fn field(path: &str, old: u64, new: u64) -> FieldFact {
    FieldFact { path: path.to_owned(), old, new, sent: true, scalar: true, ..FieldFact::default() }
}

pub(crate) fn create(object: &ObjectRef, now: i64) -> WriteFact {
    WriteFact {
        at: at(now),
        object: object.clone(),
        verb: WriteVerb::Create,
        created: true,
        manager: "manager".to_owned(),
        ..WriteFact::default()
    }
}

pub(crate) fn owned(controller: bool) -> Vec<OwnerFact> {
    vec![OwnerFact { kind: "Shelf".to_owned(), name: "a".to_owned(), uid: "uid-a".to_owned(), controller }]
}

pub(crate) fn shelf(generation: i64, more: Value) -> Value {
    let mut object = json!({"apiVersion": "lib.example.com/v1", "kind": "Shelf", "metadata": {"name": "a",
        "namespace": "default", "uid": "uid-a", "generation": generation,
        "managedFields": [{"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z"}]}, "spec": {}});
    if let (Some(to), Some(from)) = (object.as_object_mut(), more.as_object()) {
        for (key, value) in from {
            match key.as_str() {
                "deletionTimestamp" | "finalizers" | "annotations" => to["metadata"][key] = value.clone(),
                _ => _ = to.insert(key.clone(), value.clone()),
            }
        }
    }
    object
}

/// A world in which opdev may ask for reconciles.
pub(crate) fn embedded() -> World {
    let mut world = World::new();
    world.findings.table.embedded = true;
    world
}

pub(crate) fn asks(world: &mut World) -> Vec<String> {
    world
        .findings
        .asks()
        .into_iter()
        .map(|(controller, object)| format!("{controller} {}", object.name))
        .collect()
}

pub(crate) fn check() -> Vec<Cause> {
    vec![Cause { at: at(0), kind: CauseKind::Check }]
}

//! Events that have to come later because of a reconcile: rules of absence judge it once its time has passed.

use super::templates::{ChangedBy, Takes};
use super::values::ChangedValue;
use super::{Table, Track, is_never};
use jiff::{SignedDuration, Timestamp};
use opdev_event::evidence::{Evidence, WriteFact, WriteVerb};
use opdev_object::meta::{ObjectKey, ObjectRef};

/// A judgement of a rule of absence that has to wait.
#[derive(Clone, Debug)]
pub struct Pending {
    pub what: Wait,
    pub at: Timestamp,
    pub controller: String,
    pub primary: ObjectRef,
    pub about: ObjectRef,
    pub reconcile: u64,
}

/// The event for which it waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Wait {
    /// The echo of a create; with what the owner reference of the child says, and whether its maker looks at
    /// it each time: then it is none that is made once and left alone.
    /// `made` is the number of the reconcile that made it, among those of its custom resource.
    Echo { referenced: Option<bool>, looks: bool, made: u64 },
    /// Garbage collection of a child whose owner is not the object that is there.
    Owner { uid: String },
    /// The status that an update of the whole object sent.
    Status { path: String },
    /// observedGeneration
    Generation,
    /// A workload whose pods have taken a configuration that has changed since; how they take it, and how
    /// the reconcile with this number came to know of it.
    Rolled { workload: ObjectKey, generation: i64, takes: Takes, by: ChangedBy, since: u64 },
    /// A child that still has the old value of a changed field, and where in it; `reached` is the place in
    /// another child that has got the new one.
    Applied {
        field: Box<ChangedValue>,
        place: String,
        changed_at: Timestamp,
        generation: i64,
        reached: Option<String>,
    },
    /// A child whose fields somebody else has changed, after a reconcile that has heard of it.
    PutBack,
    /// A child that is not touched any more since a reconcile with this number.
    Untouched { since: u64 },
}

impl Wait {
    /// The time after which it was told, or never will be.
    pub(crate) fn lasts(&self) -> SignedDuration {
        match self {
            // A controller that comes again has to come three times.
            Wait::Rolled { .. } => SignedDuration::from_secs(90),
            _ => SignedDuration::from_secs(15),
        }
    }
}

impl Pending {
    pub fn age(&self, table: &Table) -> SignedDuration {
        table.now.duration_since(self.at)
    }
}

impl Table {
    /// True while a rule of absence has something to judge: an event that has to come, a question that opdev
    /// still asks (`asks`) or that is not answered yet, a child that may stay.
    pub fn is_undecided(&self, asks: bool) -> bool {
        let clear = |one: &Pending| match &one.what {
            Wait::Echo { .. } => {
                let controller = self.controllers.get(&one.controller);
                let heard = |known: &super::Controller| {
                    known.unclear
                        || known.echoed.contains(&(one.about.gvk.group.clone(), one.about.gvk.kind.clone()))
                };
                controller.is_some_and(|known| !heard(known))
            }
            Wait::Generation => {
                let live = self.live.get(&one.primary.key());
                live.is_some_and(|live| live.observed.is_some_and(|seen| seen != live.generation))
            }
            Wait::PutBack => !self.left_so(&one.primary.key(), &one.about.key()).is_empty(),
            _ => true,
        };
        // Rules look at it no longer than that, but where a controller comes again.
        let young = |one: &&Pending| one.age(self) < SignedDuration::from_secs(12);
        let asked = |at: Option<Timestamp>| {
            asks && at.is_some_and(|at| self.now.duration_since(at) < SignedDuration::from_secs(10))
        };
        self.pending.iter().filter(young).any(clear)
            || self.live.values().any(|live| live.gone.is_none() && asked(live.changed.map(|(at, _)| at)))
            || self.tracks.values().any(|track| asked(track.unheard.as_ref().map(|one| one.at)))
            || self.taken.iter().any(|(at, _)| asked(Some(*at)))
            || asks && self.has_drift()
            || self.left().any(|(_, gone)| self.now.duration_since(gone) < SignedDuration::from_secs(12))
    }

    /// Notes what has to come later because of a reconcile.
    pub(crate) fn wait_for(&mut self, evidence: &Evidence, track: &Track) {
        let primary = evidence.object.key();
        let mut waits: Vec<(Wait, ObjectRef)> = Vec::new();
        let wrote_status = |write: &WriteFact| write.object.key() == primary && write.subresource == "status";
        // A reconciler that writes the status has to say with each generation that it was seen.
        if track.writes_status && evidence.error.is_empty() {
            self.pending.retain(|one| {
                one.primary.key() != primary
                    || one.controller != evidence.controller
                    || one.what != Wait::Generation
            });
            waits.push((Wait::Generation, evidence.object.clone()));
        }
        if evidence.writes.iter().any(wrote_status) {
            self.pending.retain(|one| {
                !(one.primary.key() == primary && matches!(one.what, Wait::Status { .. } | Wait::Generation))
            });
            if evidence.error.is_empty() {
                waits.push((Wait::Generation, evidence.object.clone()));
            }
        }
        for (at, write) in evidence.writes.iter().enumerate().filter(|(_, write)| !is_never(&write.object)) {
            let key = write.object.key();
            if write.created && key.kind != primary.kind {
                let reference = write.owners.iter().find(|owner| owner.kind == primary.kind);
                let referenced = reference.map(|owner| owner.controller);
                let reads = evidence.reads.iter().any(|read| read.objects.contains(&key));
                let looks = reads || write.verb == WriteVerb::Apply;
                waits.push((Wait::Echo { referenced, looks, made: track.count }, write.object.clone()));
            }
            let known = self.live.get(&primary).map(|live| live.uid.clone()).or(evidence.object.uid.clone());
            let strange = write.owners.iter().find(|owner| {
                owner.kind == primary.kind
                    && owner.name == primary.name
                    && known.as_ref().is_some_and(|known| !known.is_empty() && owner.uid != *known)
            });
            if let Some(owner) = strange {
                waits.push((Wait::Owner { uid: owner.uid.clone() }, write.object.clone()));
            }
            let later = evidence.writes.iter().skip(at + 1).any(wrote_status);
            if !write.lost.is_empty() && key == primary && !later {
                waits.push((Wait::Status { path: write.lost.clone() }, write.object.clone()));
            }
        }
        let renewed = track.renewed > 1 && track.count == track.renewed + 1;
        if renewed && !evidence.is_guessed() && evidence.error.is_empty() {
            let others = track.touched.values().filter(|last| **last == track.count).count();
            let left = track.touched.iter().filter(|(key, last)| {
                **last + 3 >= track.renewed
                    && **last < track.renewed
                    && self.makers.get(*key).is_some_and(|maker| maker.primary.key() == primary)
            });
            if others > 0 {
                let objects = left.filter_map(|(key, _)| Some(self.makers.get(key)?.object.clone()));
                waits.extend(objects.map(|object| (Wait::Untouched { since: track.renewed }, object)));
            }
        }
        waits.extend(self.unapplied(evidence));
        waits.extend(self.drift_heard(evidence));
        let controller = &evidence.controller;
        self.pending.extend(waits.into_iter().map(|(what, about)| Pending {
            what,
            at: evidence.ended,
            controller: controller.clone(),
            primary: evidence.object.clone(),
            about,
            reconcile: evidence.reconcile,
        }));
    }
}

//! Pausing, resuming and stepping: a request of the user, or of a detector, closes the queue's gate.
//! Reconciles that are under way end as usual.

use super::Manager;
use super::refusal::{Answer, Refusal};
use crate::queue::Urgency;
use jiff::Timestamp;
use opdev_event::{Cause, CauseKind, Event, PauseScope};
use opdev_object::meta::{ObjectKey, ObjectRef};
use tokio::time::Instant;

impl Manager {
    /// Pauses an object or a kind. The answer is the change, or the reason why there is none.
    pub(super) async fn pause(&mut self, scope: PauseScope, why: Option<String>) -> Answer {
        let scope = self.primary_scope(scope)?;
        if !self.queue.gate.pause(&scope, why, Timestamp::now()) {
            return Err(Refusal::Paused(Box::new(scope)));
        }
        // A saved file has reached the cluster as far as it is to.
        if let Some(reload) = &mut self.saved.reload {
            let gate = &self.queue.gate;
            reload.forget(|key| !gate.holds(key));
        }
        self.settle().await;
        Ok(format!("{scope} paused"))
    }

    /// Lets an object or a kind go; what has collected runs at once.
    pub(super) fn resume(&mut self, scope: PauseScope) -> Answer {
        let scope = self.primary_scope(scope)?;
        let resumed = self.queue.gate.resume(&scope);
        self.loops.forget_all(|key| scope.covers(key));
        if let PauseScope::Object { object } = &scope
            && self.queue.gate.holds_kind(&object.key())
        {
            let kind = object.gvk.kind.clone();
            return Err(Refusal::KindPaused { scope: Box::new(scope), kind });
        }
        if resumed { Ok(format!("{scope} resumed")) } else { Err(Refusal::NotPaused(Box::new(scope))) }
    }

    /// Runs one reconcile for an object, paused or not.
    pub(super) fn step(&mut self, object: &ObjectRef) -> Answer {
        let key = self.one_primary(object)?;
        self.queue.gate.step(&key);
        let cause = Cause { at: Timestamp::now(), kind: CauseKind::User };
        self.queue.add(&key, cause, Urgency::Now, None, Instant::now());
        Ok(format!("one reconcile for {key}"))
    }

    /// The scope with the custom resource that an object belongs to.
    fn primary_scope(&self, scope: PauseScope) -> Result<PauseScope, Refusal> {
        match scope {
            PauseScope::Kind { gvk } if self.sources.watch(&gvk.group, &gvk.kind).is_none() => {
                Err(Refusal::NotReconciled { kind: gvk.kind })
            }
            PauseScope::Kind { gvk } => Ok(PauseScope::Kind { gvk }),
            PauseScope::Object { object } => {
                let key = self.one_primary(&object)?;
                let watch = self.sources.watch(&key.group, &key.kind);
                let gvk = watch.map_or(object.gvk, |watch| watch.gvk.clone());
                Ok(PauseScope::Object { object: self.kinds.reference(&key, &gvk) })
            }
        }
    }

    pub(super) fn one_primary(&self, object: &ObjectRef) -> Result<ObjectKey, Refusal> {
        let found = self.kinds.primaries(object).into_iter().next();
        found.ok_or_else(|| Refusal::NoPrimary(Box::new(object.clone())))
    }

    /// Tells what is paused, whenever that has changed.
    pub(super) async fn tell_pauses(&mut self) {
        let paused = self.queue.paused();
        if paused != self.told.pauses {
            self.told.pauses.clone_from(&paused);
            self.events.emit(Event::PausesChanged { paused }).await;
        }
    }
}

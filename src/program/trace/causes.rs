//! Causes of a reconcile, in the words that all reconciles share.

use super::Attribution;
use opdev_event::reconcile::object_change::{changed_fields, last_writer};
use opdev_event::{Cause, CauseKind, OwnWrite, Relation, WatchEvent, mask, words};
use opdev_facts::record::fields::{reference, time};
use opdev_facts::record::{Begin, TraceCause, TraceObject, Why};
use opdev_object::meta::{ObjectRef, controller};
use std::time::Duration;

impl Attribution {
    /// The causes of a reconcile, and which of them go back to a write of an earlier one.
    pub(super) fn causes_of(&self, begin: &Begin, object: &ObjectRef) -> (Vec<Cause>, Vec<OwnWrite>) {
        let mut causes: Vec<Cause> = Vec::new();
        let mut own = Vec::new();
        for told in &begin.causes {
            let (kind, wrote) = self.cause_of(told, object);
            // Every object of the initial list leads to the same start.
            if matches!(kind, CauseKind::Start | CauseKind::Reload { .. })
                && causes.iter().any(|cause| cause.kind == kind)
            {
                continue;
            }
            if let Some(reconcile) = wrote {
                own.push(OwnWrite { cause: u32::try_from(causes.len()).unwrap_or(u32::MAX), reconcile });
            }
            causes.push(Cause { at: time(told.t), kind });
        }
        (causes, own)
    }

    fn cause_of(&self, told: &TraceCause, object: &ObjectRef) -> (CauseKind, Option<u64>) {
        let kind = match told.why {
            Why::Event if told.initial => self.start(),
            Why::Event => return self.watched(told, object),
            Why::Retry => {
                CauseKind::Retry { attempt: told.attempt, error: mask::text(&told.error, &self.secrets) }
            }
            Why::Requeue if told.after > 0 => {
                let after = Duration::from_nanos(told.after.unsigned_abs());
                CauseKind::Wait { why: format!("requeued by the reconciler ({})", words::took(after)) }
            }
            Why::Requeue => CauseKind::Wait { why: "requeued by the reconciler".to_owned() },
            Why::User => CauseKind::User,
            Why::Check => CauseKind::Check,
            Why::Other => CauseKind::Wait { why: "a source that is no watch, such as a channel".to_owned() },
        };
        (kind, None)
    }

    fn start(&self) -> CauseKind {
        if self.files.is_empty() {
            CauseKind::Start
        } else {
            CauseKind::Reload { sources: self.sources, files: self.files.clone() }
        }
    }

    fn watched(&self, told: &TraceCause, primary: &ObjectRef) -> (CauseKind, Option<u64>) {
        let nobody = TraceObject::default();
        let of = told.object.as_ref().unwrap_or(&nobody);
        let object = reference(of);
        let key = object.key();
        let new = self.versions.at(&key, &of.rv);
        let old = self.versions.at(&key, &told.old);
        let event = match told.event.as_str() {
            "add" => WatchEvent::Added,
            "delete" => WatchEvent::Deleted,
            _ => WatchEvent::Modified,
        };
        let fields = match (&old, &new, event) {
            (Some(old), Some(new), WatchEvent::Modified) => changed_fields(old, new, false),
            _ => Vec::new(),
        };
        let by = match event {
            WatchEvent::Deleted => None,
            WatchEvent::Added | WatchEvent::Modified => {
                new.as_ref().and_then(|new| last_writer(old.as_deref(), new, false))
            }
        };
        let wrote = self.written.get(&(key.clone(), of.rv.clone())).copied();
        let relation = if key == primary.key() {
            Relation::Primary
        } else if new
            .as_ref()
            .or(old.as_ref())
            .and_then(|object| controller(object))
            .is_some_and(|owner| owner.kind == primary.gvk.kind && owner.name == primary.name)
        {
            Relation::Owner
        } else {
            Relation::Related
        };
        (CauseKind::Watch { object, event, fields, by, own_write: wrote.is_some(), relation }, wrote)
    }
}

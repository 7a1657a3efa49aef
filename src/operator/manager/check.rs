//! The check whether a reconcile has nothing left to do: an object is reconciled twice, and the second
//! reconcile should write nothing.

use super::Manager;
use super::refusal::{Answer, Refusal};
use crate::queue::Urgency;
use jiff::Timestamp;
use opdev_event::{Action, Call, Cause, CauseKind, ObjectChange, Reconcile};
use opdev_object::api_path::is_of_events;
use opdev_object::meta::{ObjectKey, ObjectRef};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How many writes of a reconcile are named.
const NAMED: usize = 5;

/// A check under way: the first reconcile brings the object to rest, the second is judged.
#[derive(Debug)]
pub(super) struct Check {
    /// Passes up to this number began before the check.
    before: u64,
    settled: bool,
    reply: oneshot::Sender<Answer>,
}

impl Manager {
    /// Reconciles an object twice; the second reconcile should write nothing.
    pub(super) fn check(&mut self, object: &ObjectRef, reply: oneshot::Sender<Answer>) {
        match self.step(object).and_then(|_| self.one_primary(object)) {
            Ok(key) => {
                // An older check of the same object is answered by its dropped sender.
                self.checks.insert(key, Check { before: self.workers.newest(), settled: false, reply });
            }
            Err(why) => drop(reply.send(Err(why))),
        }
    }

    /// A reconcile of the object has ended.
    pub(super) fn check_goes_on(&mut self, key: &ObjectKey, reconcile: &Reconcile) {
        let Some(mut check) = self.checks.remove(key) else { return };
        if reconcile.id <= check.before {
            self.checks.insert(key.clone(), check);
            return;
        }
        // Whoever asked may have gone away meanwhile.
        if let Some(failure) = &reconcile.failure {
            let why = failure.chain.first().cloned().unwrap_or_default();
            let _ = check.reply.send(Err(Refusal::ReconcileFailed { why }));
        } else if !check.settled {
            check.settled = true;
            check.before = reconcile.id;
            self.checks.insert(key.clone(), check);
            self.queue.gate.step(key);
            let cause = Cause { at: Timestamp::now(), kind: CauseKind::User };
            self.queue.add(key, cause, Urgency::Now, None, Instant::now());
        } else {
            let _ = check.reply.send(verdict(key, reconcile));
        }
    }
}

/// The writes of a reconcile, if it made any.
///
/// # Errors
/// Where it did: what it wrote.
pub fn verdict(key: &ObjectKey, reconcile: &Reconcile) -> Answer {
    let mut writes: Vec<String> = reconcile.objects.iter().map(change).collect();
    writes.extend(reconcile.status.iter().map(|change| format!("{} of its status", change.path)));
    if writes.is_empty() {
        writes.extend(
            reconcile
                .calls
                .iter()
                .filter(|call| is_write(call))
                .map(|call| format!("{} {}", call.verb, call.target)),
        );
    }
    if writes.is_empty() {
        let calls = reconcile.calls.len();
        let plural = if calls == 1 { "" } else { "s" };
        return Ok(format!("{key}: no further writes; reconciled again, {calls} API call{plural}"));
    }
    let more = writes.len().saturating_sub(NAMED);
    writes.truncate(NAMED);
    Err(Refusal::NotAtRest { key: Box::new(key.clone()), writes, more })
}

fn change(change: &ObjectChange) -> String {
    let name = format!("{} {}", change.object.gvk.kind, change.object.name);
    match change.action {
        Action::Created => format!("{name} (created)"),
        Action::Deleted => format!("{name} (deleted)"),
        Action::Updated => {
            let paths: Vec<String> =
                change.changes.iter().take(NAMED).map(|one| one.path.to_string()).collect();
            format!("{name} {}", paths.join(" "))
        }
    }
}

fn is_write(call: &Call) -> bool {
    matches!(call.verb.as_str(), "create" | "update" | "patch" | "delete" | "deletecollection")
        && (200..300).contains(&call.status)
        // Events tell what was done, and change nothing.
        && !is_of_events(&call.path)
        && !call.path.contains("dryRun=")
}

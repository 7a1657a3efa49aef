//! A reconcile that failed because its cache was behind.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "stale-read",
    severity: Warning,
    name: "stale read",
    what: "The cache had an object in an older version than the operator itself had written, and the \
           reconcile failed because of it.",
    when: "the reconcile ended with a conflict as its error, on an object that its cache had in an \
           older version. Where nothing comes of it, only the page of the reconcile says so.",
    never: "conflicts that the reconciler answers with a requeue.",
    fix: "Do not count on the cache right after a write: use what the write returned, or end the \
           reconcile and wait for the event. From controller-runtime 0.25 on a read waits for the program's own write \
           where the manager's options set Client.Cache.EnableReadYourWritesConsistency.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let failed = |object: &opdev_object::meta::ObjectKey| {
        evidence.refusals.iter().any(|refusal| {
            refusal.status == 409 && !refusal.disturbed && refusal.object.as_ref() == Some(object)
        })
    };
    let stale = evidence.stale.iter().find(|stale| failed(&stale.object));
    let Some(stale) = stale.filter(|_| !evidence.error.is_empty()) else { return };
    let why = format!("{}, and the reconcile failed with a conflict", stale.message);
    let told = Told::of(&RULE, evidence).say(&stale.object.kind, why);
    out.push(Told { field: stale.object.kind.clone(), ..told });
}

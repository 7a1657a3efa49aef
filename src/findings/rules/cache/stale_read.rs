//! A reconcile that failed because its cache was behind.

use crate::facts::{Table, failed_by};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, StaleFact};

pub(crate) static RULE: Rule = Rule {
    id: "stale-read",
    severity: Warning,
    name: "stale read",
    what: "The cache had an object in an older version than the operator itself had written, and the \
           reconcile failed because of it.",
    when: "the reconcile ended with a conflict as its error, on an object that its cache had in an \
           older version. Or it ended with the cache's own error that an object is missing which it had \
           made. Where nothing comes of it, only the page of the reconcile says so.",
    never: "conflicts that the reconciler answers with a requeue.",
    fix: "Do not count on the cache right after a write: use what the write returned, or end the \
           reconcile and wait for the event. From controller-runtime 0.25 on a read waits for the program's own write \
           where the manager's options set Client.Cache.EnableReadYourWritesConsistency.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let refused = |stale: &StaleFact| {
        evidence.refusals.iter().find(|refusal| {
            let of_it = refusal.object.as_ref() == Some(&stale.object);
            refusal.status == 409 && !refusal.disturbed && of_it && failed_by(evidence, refusal)
        })
    };
    // The cache answers for itself: no call was refused, and the error has the cache's words, with the kind.
    let lacked = |stale: &&StaleFact| {
        let key = &stale.object;
        let kind =
            if key.group.is_empty() { key.kind.clone() } else { format!("{}.{}", key.kind, key.group) };
        let of_cache = format!("{kind} \"{}\" not found", key.name);
        let begins = evidence
            .error
            .strip_suffix(&of_cache)
            .is_some_and(|before| !before.ends_with(char::is_alphanumeric));
        begins && stale.missing
    };
    let conflict = evidence.stale.iter().find_map(|stale| {
        let there = refused(stale)?.reason == "AlreadyExists";
        Some((stale, if there { "failed: it is there already" } else { "failed with a conflict" }))
    });
    let missing = || evidence.stale.iter().find(lacked).map(|stale| (stale, "failed: not found"));
    let Some((stale, how)) = conflict.or_else(missing) else { return };
    let why = format!("{}, and the reconcile {how}", stale.message);
    let told = Told::of(&RULE, evidence).say(&stale.object.kind, why);
    out.push(Told { field: stale.object.kind.clone(), ..told });
}

//! A reconcile that failed because its cache was behind.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, StaleFact};
use opdev_facts::{Table, failed_by};

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
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
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

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_cache_that_lacks_what_was_just_made_is_told_where_it_fails_the_reconcile() {
        let of = |missing: bool, error: &str| {
            let mut world = World::new();
            world.reconcile(|one| {
                let message = "the cache was behind".to_owned();
                one.stale = vec![StaleFact { object: cr("web").key(), missing, message }];
                one.error = error.to_owned();
            });
            world.loud()
        };
        let run = |error| of(true, error);
        let words = "Shelf.lib.example.com \"web\" not found";
        assert!(of(false, words).is_empty(), "the cache had an older version of it");
        assert_eq!(run("Shelf.lib.example.com \"web\" not found"), ["stale-read"]);
        assert!(run("Shelf.lib.example.com \"other\" not found").is_empty(), "another object");
        assert!(run("Secret \"web\" not found").is_empty(), "another kind of the same name");
        assert!(run("secrets \"web\" not found").is_empty(), "the API server's own answer");
        assert!(run("").is_empty(), "it went well");
    }

    #[test]
    fn a_conflict_by_a_stale_read_is_told_where_the_reconcile_failed_by_it() {
        let conflict = RefusalFact {
            at: at(1),
            verb: "update".to_owned(),
            target: "shelves/a".to_owned(),
            object: Some(cr("a").key()),
            status: 409,
            reason: "Conflict".to_owned(),
            sent: "1".to_owned(),
            ..RefusalFact::default()
        };
        let stale = |error: &str| {
            let mut world = World::new();
            world.reconcile(|one| {
                let message = "the cache was behind".to_owned();
                one.stale = vec![StaleFact { object: cr("a").key(), missing: false, message }];
                one.refusals = vec![conflict.clone()];
                one.error = error.to_owned();
            });
            world.loud()
        };
        assert_eq!(stale("the object has been modified"), ["stale-read"]);
        assert!(stale("").is_empty(), "answered with a requeue");
    }
}

//! Writes that are refused because the object has changed.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "conflict",
    severity: Error,
    name: "conflict",
    what: "A write is refused because somebody has written in between. One such refusal is part of \
           life; three in a row on one object, without a write that succeeds, are not.",
    when: "three conflicts in a row on one object, as a warning; as an error where the same \
           resourceVersion was sent three times, as RetryOnConflict over a cache does.",
    never: "conflicts that the next reconcile repairs.",
    fix: "Patch only your own fields, or read the object live inside the retry.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::AfterStop,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for refusal in evidence.refusals.iter().filter(|refusal| refusal.status == 409) {
        let known = refusal.object.as_ref().and_then(|key| Some((key, table.conflicts.get(key)?)));
        let Some((key, known)) = known.filter(|(_, known)| known.row >= 3) else { continue };
        let again = known.same >= 3;
        let why = if again {
            format!(
                "{key} was sent {} times with the same resourceVersion, and refused each time",
                known.same
            )
        } else {
            format!(
                "{} writes of {key} in a row were refused, for somebody had written in between",
                known.row
            )
        };
        let told = Told { place: refusal.place.clone(), ..Told::of(&RULE, evidence).say(&key.kind, why) };
        out.push(Told { severity: if again { Error } else { Warning }, field: key.to_string(), ..told });
        return;
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn conflicts_count_once_they_come_in_a_row() {
        let conflict = |sent: &str| RefusalFact {
            at: at(1),
            verb: "update".to_owned(),
            target: "shelves/a".to_owned(),
            object: Some(cr("a").key()),
            status: 409,
            reason: "Conflict".to_owned(),
            sent: sent.to_owned(),
            ..RefusalFact::default()
        };
        let run = |sent: [&str; 3], success: bool| {
            let mut world = World::new();
            for one_sent in sent {
                world.reconcile(|one| one.refusals = vec![conflict(one_sent)]);
                if success {
                    world.reconcile(|one| {
                        one.writes = vec![update(&cr("a"), "status", vec![field(".status.x", 1, 2)])];
                    });
                }
            }
            world.rules()
        };
        assert_eq!(run(["1", "2", "3"], false), [("conflict".to_owned(), FindingSeverity::Warning)]);
        assert_eq!(run(["1", "1", "1"], false), [("conflict".to_owned(), FindingSeverity::Error)]);
        assert!(run(["1", "2", "3"], true).is_empty());
    }

    #[test]
    fn a_write_between_that_changes_nothing_was_accepted_for_its_version() {
        let conflict = || RefusalFact {
            object: Some(child("Service", "web").key()),
            verb: "update".to_owned(),
            status: 409,
            reason: "Conflict".to_owned(),
            ..RefusalFact::default()
        };
        let run = |subresource: &str| {
            let mut world = World::new();
            for _ in 0..4 {
                world.reconcile(|one| one.refusals = vec![conflict()]);
                world.reconcile(|one| {
                    let same = update(&child("Service", "web"), subresource, Vec::new());
                    one.writes = vec![WriteFact { unchanged: true, ..same }];
                });
            }
            world.rules().iter().any(|(rule, _)| rule == "conflict")
        };
        assert!(!run(""));
        assert!(run("status"), "the status is written for itself");
    }
}

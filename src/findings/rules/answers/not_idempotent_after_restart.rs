//! A restart of the same program writes again what it had written.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "not-idempotent-after-restart",
    severity: Error,
    name: "another result after a restart",
    what: "After two restarts of the same program, the first reconcile of a custom resource changed one \
           field. Only the program itself had written it, and nothing else had changed. The result \
           depends on the process: a random value, the name of the host, an order, something that is \
           only kept in memory. In a cluster each upgrade and each move of the operator's pod does it.",
    when: "at the second such restart, for the same field.",
    never: "a restart because of a save; custom resources that were changed meanwhile; fields that \
           somebody else had written. Times, the status, certificates and webhook configurations do not \
           count, nor does what was written in the 10 s before.",
    fix: "Compute the field from the custom resource and from what the API server has. Keep in the \
           object what was generated once.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for ((key, path), rewritten) in &table.rewritten {
        if rewritten.reconcile != evidence.reconcile || rewritten.times < 2 {
            continue;
        }
        let Some(write) = evidence.writes.iter().rev().find(|write| write.object.key() == *key) else {
            continue;
        };
        let (old, new) = &rewritten.shown;
        let why = format!(
            "the first reconcile after {} restarts of the same program changed {path} of {}, the last time from \
             {old} to {new}: only the program itself had written it, and {} had not changed",
            rewritten.times, write.object, evidence.object
        );
        let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, path), why);
        out.push(Told { field: path.clone(), ..told.about(&write.object) });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_restart_of_the_same_program_that_changes_a_settled_field_is_told() {
        let run = |files: &[&str], change: fn(u64, &mut Evidence), between: fn(u64, &mut World)| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.writes =
                    vec![WriteFact { owners: owned(true), ..create(&child("ConfigMap", "a-web"), 1) }];
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            for round in 0..3 {
                world.reconcile(|_| {});
                world.wait(15);
                world.restart(files);
                between(round, &mut world);
                world.reconcile(|one| {
                    one.causes = vec![Cause { at: one.at, kind: CauseKind::Start }];
                    let host = FieldFact {
                        shown: ("a".to_owned(), "b".to_owned()),
                        ..field(".data.host", round + 1, round + 2)
                    };
                    let write = WriteFact {
                        at: one.at,
                        owners: owned(true),
                        ..update(&child("ConfigMap", "a-web"), "", vec![host])
                    };
                    one.writes = vec![write];
                    change(round, one);
                });
            }
            world
                .rules()
                .into_iter()
                .filter(|(rule, _)| rule == "not-idempotent-after-restart")
                .map(|(_, severity)| severity)
                .next()
        };
        let nothing = |_: u64, _: &mut World| {};
        let same = |_: u64, _: &mut Evidence| {};
        assert_eq!(run(&[], same, nothing), Some(FindingSeverity::Error));
        assert_eq!(run(&["controller.go"], same, nothing), None, "another program");
        let once = |round: u64, one: &mut Evidence| {
            if round > 0 {
                one.writes.clear();
            }
        };
        assert_eq!(run(&[], once, nothing), None, "once may be what was missed");
        assert_eq!(
            run(&[], |_, one| one.writes[0].fields[0].other = "kubectl-edit".to_owned(), nothing),
            None,
            "drift"
        );
        assert_eq!(run(&[], |_, one| one.writes[0].fields[0].time = true, nothing), None, "a time");
        assert_eq!(
            run(&[], |_, one| one.writes[0].object.gvk.kind = "Secret".to_owned(), nothing),
            None,
            "a certificate"
        );
        let changed = |round: u64, world: &mut World| {
            world.seen(&cr("a"), shelf(2 + i64::try_from(round).unwrap(), json!({})));
        };
        assert_eq!(run(&[], same, changed), None, "the custom resource was changed while it was stopped");
        let input = |round: u64, one: &mut Evidence| {
            one.reads.push(ReadFact {
                objects: vec![child("Secret", "input").key()],
                missing: false,
                version: round.to_string(),
            });
        };
        assert_eq!(run(&[], input, nothing), None, "what it reads has changed");
    }
}

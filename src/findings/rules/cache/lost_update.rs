//! A value of another client that is put back by accident.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_event::evidence::WriteVerb;
use opdev_facts::Table;
use opdev_facts::is_plane;

pub(crate) static RULE: Rule = Rule {
    id: "lost-update",
    severity: Error,
    name: "lost update",
    what: "The operator wrote a value that it had read from its cache, over a newer one of another \
           client. It sent no resourceVersion, so the API server could not refuse it.",
    when: "a write without a resourceVersion put back the value that this reconcile had read, at a path \
           that another client had changed since, of an object that the operator did not make.",
    never: "putting drift back; apply; its own earlier write.",
    fix: "Send only the fields that you compute: client.MergeFrom, or apply; or keep the \
           resourceVersion: client.MergeFromWithOptimisticLock.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Warning,
    torture: InTorture::AfterStop,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in &evidence.writes {
        let made = table.makers.contains_key(&write.object.key());
        if made || matches!(write.verb, WriteVerb::Apply | WriteVerb::Delete) || write.created {
            continue;
        }
        let lost = write.fields.iter().find(|field| {
            field.carried
                && !field.other.is_empty()
                && !table.own.contains(&field.other)
                && !is_plane(&field.other)
        });
        let Some(field) = lost else { continue };
        let why = format!(
            "{} {} was {} by {}, and the reconcile put back {}, which it had read before",
            write.object, field.path, field.shown.0, field.other, field.shown.1
        );
        let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, &field.path), why);
        out.push(Told { field: field.path.clone(), ..told.about(&write.object) });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_value_of_another_client_is_not_put_back() {
        let run = |change: fn(&mut WriteFact)| {
            let mut world = World::new();
            world.reconcile(|one| {
                let carried = FieldFact {
                    carried: true,
                    other: "kubectl-scale".to_owned(),
                    ..field(".spec.replicas", 5, 3)
                };
                let mut write = update(&child("Deployment", "theirs"), "", vec![carried]);
                write.verb = WriteVerb::Patch;
                write.tied = true;
                change(&mut write);
                one.writes = vec![write];
            });
            world.loud()
        };
        assert_eq!(run(|_| {}), ["lost-update"]);
        assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
        assert!(run(|write| write.fields[0].carried = false).is_empty(), "drift is put back");
        assert!(
            run(|write| write.fields[0].other = "manager".to_owned()).is_empty(),
            "its own earlier write"
        );
    }
}

//! The finalizer goes before the cleanup.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;
use opdev_event::evidence::WriteVerb;
use opdev_facts::Table;
use opdev_facts::{is_never, is_programs};

pub(crate) static RULE: Rule = Rule {
    id: "finalizer-order",
    severity: Error,
    name: "finalizer taken off too early",
    what: "The finalizer is taken off before the cleanup is done. If the operator stops in between, or \
           the cleanup fails, nobody does it again: the custom resource is gone.",
    when: "a child that still lives is deleted after the finalizer was taken off: a warning where that \
           goes well, an error where it fails.",
    never: "children that the operator had deleted before.",
    fix: "Clean up first, and take the finalizer off once nothing is left.",
    ends: Ends::WithChild,
    explains: &[],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let release = evidence.writes.iter().find(|write| {
        write.object.key() == evidence.object.key()
            && write.deleting
            && write.released.iter().any(|one| is_programs(one))
    });
    let Some(release) = release else { return };
    for write in
        evidence.writes.iter().filter(|write| write.verb == WriteVerb::Delete && write.at > release.at)
    {
        if is_never(&write.object) || write.object.key() == evidence.object.key() {
            continue;
        }
        let object = &write.object;
        let why = format!(
            "{object} was deleted after the finalizer of {} had been taken off: a crash in between leaves it for ever",
            evidence.object
        );
        let told = Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object);
        out.push(Told { severity: Warning, ..told });
    }
    for refusal in
        evidence.refusals.iter().filter(|refusal| refusal.verb == "delete" && refusal.at > release.at)
    {
        let name = refusal.target.rsplit('/').next().unwrap_or_default();
        let deleted = table.makers.values().any(|maker| maker.object.name == name && maker.deleted.is_some());
        if refusal.status == 404 && (deleted || evidence.error.is_empty()) || refusal.disturbed {
            continue;
        }
        let why = format!(
            "the cleanup of {} failed after its finalizer had been taken off: delete {} was refused ({}), and nobody tries it again",
            evidence.object, refusal.target, refusal.message
        );
        let told = Told::of(&RULE, evidence).say(&refusal.target, why);
        out.push(Told { field: refusal.target.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn the_finalizer_goes_last() {
        let deleting = |one: &mut Evidence| {
            one.deleting = true;
            let released = vec!["lib.example.com/cleanup".to_owned()];
            WriteFact {
                at: at(100),
                deleting: true,
                held: false,
                released,
                ..update(&cr("a"), "", Vec::new())
            }
        };
        let role = child("ConfigMap", "a-data");
        let deleted = |millis| WriteFact {
            at: at(millis),
            verb: WriteVerb::Delete,
            created: false,
            ..create(&child("ConfigMap", "a-data"), 1)
        };
        let mut world = World::new();
        world.reconcile(|one| one.writes = vec![WriteFact { tied: true, ..create(&role, 1) }]);
        world.reconcile(|one| one.writes = vec![deleting(one), deleted(120)]);
        assert_eq!(world.rules(), [("finalizer-order".to_owned(), FindingSeverity::Warning)]);
        let mut fails = World::new();
        fails.reconcile(|one| {
            one.writes = vec![deleting(one)];
            one.error = "configmaps \"a\" not found".to_owned();
            let refusal = RefusalFact {
                at: at(120),
                verb: "delete".to_owned(),
                target: "configmaps/a".to_owned(),
                status: 404,
                ..RefusalFact::default()
            };
            one.refusals = vec![refusal];
        });
        assert_eq!(fails.rules(), [("finalizer-order".to_owned(), FindingSeverity::Error)]);
        let mut good = World::new();
        good.reconcile(|one| one.writes = vec![WriteFact { tied: true, ..create(&role, 1) }]);
        good.reconcile(|one| one.writes = vec![deleted(50), deleting(one)]);
        assert!(good.loud().is_empty(), "{:?}", good.rules());
    }
}

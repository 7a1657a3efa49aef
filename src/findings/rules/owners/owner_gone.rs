//! A child whose owner reference names an object that is not there.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_facts::Table;
use opdev_facts::Wait;

pub(crate) static RULE: Rule = Rule {
    id: "owner-gone",
    severity: Error,
    name: "owner that is not there",
    what: "A child refers to an owner by a uid that is not the uid of the custom resource that is \
           there. Garbage collection deletes the child, and the operator makes it again.",
    when: "the child still lives 5 s after it was made with such a reference.",
    never: "an owner that was deleted between the read and the create: garbage collection takes the \
           child within a moment.",
    fix: "Set the owner from the object that was read in this reconcile, not from a copy of an earlier \
           one.",
    ends: Ends::Fixed,
    explains: &["hot-loop", "object-growth", "conflict"],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Owner { uid } = &one.what else { continue };
        let there = table
            .makers
            .get(&one.about.key())
            .is_some_and(|maker| maker.seen && !maker.gone && maker.deleted.is_none());
        let known = table.live.get(&one.primary.key()).is_some_and(|live| live.uid == *uid);
        if one.age(table).as_secs() < 5 || !there || known {
            continue;
        }
        let why = format!(
            "{} refers to a {} with the uid {uid}, which is not there",
            one.about, one.primary.gvk.kind
        );
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile)
            .say(&one.about.gvk.kind, why)
            .about(&one.about);
        out.push(Told { controller: one.controller.clone(), ..told });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn an_owner_that_never_was_is_told() {
        let mut world = World::new();
        world.seen(&cr("a"), shelf(1, json!({})));
        world.reconcile(|one| {
            let mut owners = owned(true);
            owners[0].uid = "never-was".to_owned();
            one.writes = vec![WriteFact { owners, ..create(&child("Role", "web"), 1) }];
        });
        world.unrelated(&child("Role", "web"));
        world.wait(7);
        assert_eq!(world.loud(), ["owner-gone"]);
    }
}

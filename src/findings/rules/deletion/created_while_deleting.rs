//! A reconcile of a deleted object that makes children again.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "created-while-deleting",
    severity: Error,
    name: "made again while it is deleted",
    what: "The custom resource is being deleted, and the reconcile makes a child again that it had made \
           before. The child stays, or is made and deleted again and again.",
    when: "at the create of a name that was made before the deletion.",
    never: "a new name, such as that of a cleanup Job.",
    fix: "Return after the cleanup where the object has a deletionTimestamp.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Warning,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let live = table.live.get(&evidence.object.key());
    let Some(since) = live.and_then(|live| live.deleting).filter(|_| evidence.deleting) else { return };
    for write in evidence.writes.iter().filter(|write| write.created && write.at > since) {
        let object = &write.object;
        if table.makers.get(&object.key()).is_some_and(|maker| maker.at < since && maker.times > 1) {
            let why = format!("{} is being deleted, and its reconcile made {object} again", evidence.object);
            out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_child_is_not_made_again_while_its_owner_goes() {
        let deleted =
            json!({"finalizers": ["lib.example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let run = |name: &str| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", "data"), 1) }];
            });
            world.now = 1000;
            world.seen(&cr("a"), shelf(2, deleted.clone()));
            world.reconcile(|one| {
                one.deleting = true;
                one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", name), 1500) }];
            });
            world.loud()
        };
        assert_eq!(run("data"), ["created-while-deleting"]);
        assert!(run("cleanup").is_empty());
    }
}

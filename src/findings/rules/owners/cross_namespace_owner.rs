//! An owner reference that garbage collection does not accept.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "cross-namespace-owner",
    severity: Error,
    name: "owner in another namespace",
    what: "A child refers to an owner in another namespace, or a cluster-wide child to an owner in a \
           namespace. Garbage collection takes such an owner for gone and deletes the child.",
    when: "at the write.",
    never: "owners without a namespace.",
    fix: "Tie children in other namespaces with a label, and delete them in a finalizer.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let owner = &evidence.object;
    let Some(namespace) = &owner.namespace else { return };
    for write in evidence.writes.iter().filter(|write| !write.unchanged) {
        let object = &write.object;
        let refers =
            write.owners.iter().any(|one| one.kind == owner.gvk.kind && Some(&one.uid) == owner.uid.as_ref());
        if refers && object.namespace.as_ref() != Some(namespace) && object.key() != owner.key() {
            let why = format!(
                "{object} refers to {owner} as its owner, which lives in namespace {namespace}: garbage collection deletes it"
            );
            out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn an_owner_in_another_namespace_is_told() {
        let mut world = World::new();
        world.reconcile(|one| {
            let mut write = WriteFact { owners: owned(true), ..create(&child("Role", "web"), 1) };
            write.object.namespace = Some("other".to_owned());
            one.writes = vec![write];
        });
        assert_eq!(world.loud(), ["cross-namespace-owner"]);
    }
}

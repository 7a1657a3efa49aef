//! The operator changes or deletes an object that another one made.

use crate::facts::Table;
use crate::facts::{is_never, is_plane};
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_event::evidence::WriteVerb;

pub(crate) static RULE: Rule = Rule {
    id: "foreign-object",
    severity: Error,
    name: "object of somebody else",
    what: "The operator overwrites or deletes an object that another client made, or that a reconcile \
           of another custom resource did, and that nothing ties to the custom resource.",
    when: "at the write.",
    never: "objects that the custom resource names, or that a label or an annotation ties to it; patches \
           and apply; namespaces, nodes, pods and other objects that are shared by their nature.",
    fix: "Look before you write: metav1.IsControlledBy(child, owner).",
    ends: Ends::Fixed,
    explains: &["hot-loop", "object-growth", "conflict"],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

const SHARED: [&str; 9] = [
    "Namespace",
    "Node",
    "Pod",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().filter(|write| !write.created && !write.unchanged) {
        let object = &write.object;
        let judged = matches!(write.verb, WriteVerb::Update | WriteVerb::Delete)
            && write.subresource.is_empty()
            && object.gvk.kind != evidence.object.gvk.kind
            && !SHARED.contains(&object.gvk.kind.as_str())
            && !is_never(object);
        if !judged || write.tied || write.before.is_empty() {
            continue;
        }
        let of = |uid: &str| write.owners.iter().any(|owner| owner.uid == uid);
        let mine = evidence.object.uid.as_deref().is_some_and(of);
        let who = match table.makers.get(&object.key()) {
            Some(maker) if maker.primary.key() != evidence.object.key() => {
                let theirs = maker.primary.uid.as_deref().is_some_and(of) && !mine;
                theirs.then(|| format!("a reconcile of {}", maker.primary))
            }
            Some(_) => None,
            None => {
                let stranger = write.before.iter().all(|manager| {
                    !table.own.contains(manager) && *manager != write.manager && !is_plane(manager)
                });
                let taken = stranger && (write.owners.is_empty() || mine);
                taken.then(|| write.before.first().cloned().unwrap_or_default())
            }
        };
        let Some(who) = who else { continue };
        let did = if write.verb == WriteVerb::Delete { "deleted" } else { "overwrote" };
        let why = format!("the reconcile of {} {did} {object}, which {who} had made", evidence.object);
        out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn objects_of_others_are_left_alone() {
        let run = |change: fn(&mut WriteFact)| {
            let mut world = World::new();
            world.reconcile(|one| {
                let mut write = update(&child("ConfigMap", "theirs"), "", vec![field(".data.x", 1, 2)]);
                write.before = vec!["kubectl-create".to_owned()];
                change(&mut write);
                one.writes = vec![write];
            });
            world.loud()
        };
        assert_eq!(run(|_| {}), ["foreign-object"]);
        assert!(run(|write| write.tied = true).is_empty());
        assert!(run(|write| write.before = vec!["manager".to_owned()]).is_empty());
        assert!(run(|write| write.verb = WriteVerb::Apply).is_empty());
        assert!(run(|write| write.object.gvk.kind = "Namespace".to_owned()).is_empty());
    }
}

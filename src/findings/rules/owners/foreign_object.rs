//! The operator changes or deletes an object that another one made.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Hint};
use opdev_event::evidence::{Evidence, FieldFact, WriteFact, WriteVerb};
use opdev_facts::Table;
use opdev_facts::{is_never, is_plane};

pub(crate) static RULE: Rule = Rule {
    id: "foreign-object",
    severity: Error,
    name: "object of somebody else",
    what: "The operator overwrites or deletes an object that another client made, or that a reconcile \
           of another custom resource did, and that nothing ties to the custom resource.",
    when: "at the write. A patch is told where the custom resource becomes the owner. So is an apply that \
           does so, or that takes over values of another client. It is a hint where the custom resource \
           names a Secret or a claim of somebody else, and becomes its owner: the object is deleted with \
           it.",
    never: "objects that the custom resource names, or that a label or an annotation ties to it. Patches \
           and applies of own fields are none, nor are namespaces, nodes, pods and other objects that are \
           shared.",
    fix: "Look before you write: metav1.IsControlledBy(child, owner).",
    ends: Ends::Fixed,
    explains: &["hot-loop", "object-growth", "conflict"],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

/// Kinds whose content is lost with them.
const GOES: [&str; 2] = ["Secret", "PersistentVolumeClaim"];
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
        let judged = write.subresource.is_empty()
            && object.gvk.kind != evidence.object.gvk.kind
            && !is_never(object)
            && !write.before.is_empty();
        let of = |uid: &str| write.owners.iter().any(|owner| owner.uid == uid);
        let mine = evidence.object.uid.as_deref().is_some_and(of);
        let owns =
            mine && write.fields.iter().any(|field| field.path.starts_with(".metadata.ownerReferences"));
        let stranger = || {
            let strange = |manager: &String| {
                !table.own.contains(manager) && *manager != write.manager && !is_plane(manager)
            };
            !table.makers.contains_key(&object.key()) && write.before.iter().all(strange)
        };
        if judged && write.tied && owns && GOES.contains(&object.gvk.kind.as_str()) && stranger() {
            let (who, owner) = (write.before.first().cloned().unwrap_or_default(), &evidence.object);
            let why = format!(
                "{owner} has become the owner of {object}, which {who} had made: it is deleted with it"
            );
            let told = Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object);
            out.push(Told { severity: Hint, ..told });
        }
        if !judged || write.tied || SHARED.contains(&object.gvk.kind.as_str()) || !takes(table, write, owns) {
            continue;
        }
        let who = match table.makers.get(&object.key()) {
            Some(maker) if maker.primary.key() != evidence.object.key() => {
                let theirs = maker.primary.uid.as_deref().is_some_and(of) && !mine;
                theirs.then(|| format!("a reconcile of {}", maker.primary))
            }
            Some(_) => None,
            None => {
                let taken = stranger() && (write.owners.is_empty() || mine);
                taken.then(|| write.before.first().cloned().unwrap_or_default())
            }
        };
        let Some(who) = who else { continue };
        let did = match write.verb {
            WriteVerb::Delete => "deleted",
            _ if owns => "became the owner of",
            _ => "overwrote",
        };
        let why = format!("the reconcile of {} {did} {object}, which {who} had made", evidence.object);
        out.push(Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object));
    }
}

/// True if a write takes an object as it is, and does not only add something to it.
fn takes(table: &Table, write: &WriteFact, owns: bool) -> bool {
    let of_another = |field: &FieldFact| {
        let own = table.own.contains(&field.other) || is_plane(&field.other) || field.other == write.manager;
        field.sent
            && field.old != 0
            && !field.other.is_empty()
            && !own
            && !field.path.starts_with(".metadata")
    };
    match write.verb {
        WriteVerb::Update | WriteVerb::Delete => true,
        WriteVerb::Patch => owns,
        WriteVerb::Apply => owns || write.fields.iter().any(of_another),
        WriteVerb::Create => false,
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
        assert!(run(|write| write.verb = WriteVerb::Apply).is_empty(), "fields of its own");
        let taken = |write: &mut WriteFact| {
            write.verb = WriteVerb::Apply;
            write.fields[0].other = "kubectl-create".to_owned();
        };
        assert_eq!(run(taken), ["foreign-object"], "values of another one");
        let noted = |write: &mut WriteFact| {
            write.verb = WriteVerb::Apply;
            write.fields[0].other = "kubectl-create".to_owned();
            write.fields[0].path = ".metadata.annotations.note".to_owned();
        };
        assert!(run(noted).is_empty(), "an annotation");
        let owns = |write: &mut WriteFact| {
            write.verb = WriteVerb::Patch;
            write.owners = owned(true);
            write.fields = vec![field(".metadata.ownerReferences", 0, 1)];
        };
        assert_eq!(run(owns), ["foreign-object"], "it becomes the owner");
        let patched = |write: &mut WriteFact| write.verb = WriteVerb::Patch;
        assert!(run(patched).is_empty(), "a field more");
        assert!(run(|write| write.object.gvk.kind = "Namespace".to_owned()).is_empty());
    }

    #[test]
    fn a_secret_that_the_custom_resource_names_and_that_goes_with_it_is_a_hint() {
        let run = |kind: &str, before: &str| {
            let mut world = World::new();
            world.reconcile(|one| {
                let fields = vec![field(".metadata.ownerReferences", 0, 1)];
                let write = update(&child(kind, "theirs"), "", fields);
                let (before, owners) = (vec![before.to_owned()], owned(true));
                one.writes = vec![WriteFact { before, owners, tied: true, ..write }];
            });
            world.rules()
        };
        let hint = [("foreign-object".to_owned(), FindingSeverity::Hint)];
        assert_eq!(run("Secret", "kubectl-create"), hint);
        assert!(run("Secret", "manager").is_empty(), "its own");
        assert!(run("ConfigMap", "kubectl-create").is_empty(), "nothing is lost that is not in a file");
    }
}

//! Labels and annotations of others that an update takes away.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, FieldFact, WriteFact, WriteVerb};
use opdev_facts::Table;
use opdev_facts::is_never;

pub(crate) static RULE: Rule = Rule {
    id: "foreign-metadata",
    severity: Warning,
    name: "metadata of others removed",
    what: "An update of a child removes a label or an annotation of another client. The operator \
           replaces the whole map by its own. Tools that keep their marks there, such as kubectl \
           rollout restart, Argo CD or the controllers of Kubernetes, lose them.",
    when: "at the update or patch.",
    never: "the custom resource itself, and what is no child of it; keys that the operator has set \
           before; apply. Keys of the domain of the custom resource's group may be signals to the \
           operator.",
    fix: "Start from the object that is there and set only your own keys, or use server-side apply.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

/// kubectl rollout restart writes it into the template of the pods: without it each pod starts once more.
const RESTARTED: &str = ".spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]";

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let removed = |field: &&FieldFact| {
        let theirs = !field.other.is_empty() && !table.own.contains(&field.other);
        field.new == 0 && field.old != 0 && theirs && is_metadata(&field.path, &evidence.object.gvk.group)
    };
    let mine = |write: &&WriteFact| {
        let owned = write.owners.iter().any(|owner| Some(&owner.uid) == evidence.object.uid.as_ref());
        owned || table.makers.contains_key(&write.object.key())
    };
    for write in evidence.writes.iter().filter(|write| is_judged(write, evidence)).filter(mine) {
        let Some(field) = write.fields.iter().find(removed) else { continue };
        let object = &write.object;
        let key = field.path.trim_start_matches(".metadata.");
        let why = format!(
            "the reconcile of {} removed {key} of {object}, which {} had set",
            evidence.object, field.other
        );
        let told = Told::of(&RULE, evidence).say(crate::rule::place(object, &field.path), why);
        out.push(Told { field: field.path.clone(), ..told.about(object) });
    }
}

fn is_judged(write: &WriteFact, evidence: &Evidence) -> bool {
    matches!(write.verb, WriteVerb::Update | WriteVerb::Patch)
        && !write.created
        && !write.deleting
        && write.subresource.is_empty()
        && write.object.key() != evidence.object.key()
        && !is_never(&write.object)
}

/// True for a label or an annotation that is no signal to this operator.
fn is_metadata(path: &str, group: &str) -> bool {
    if path == RESTARTED {
        return true;
    }
    let key = [".metadata.labels", ".metadata.annotations"].iter().find_map(|map| path.strip_prefix(map));
    let domain = group.split_once('.').map_or(group, |(_, domain)| domain);
    // The whole map is one path where nothing of it stays.
    key.is_some_and(|key| domain.is_empty() || !key.contains(domain))
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    const RESTARTED: &str = ".spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]";

    #[test]
    fn labels_of_others_that_an_update_takes_away_are_told() {
        let run = |change: fn(&mut WriteFact, &mut FieldFact)| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.writes =
                    vec![WriteFact { owners: owned(true), ..create(&child("Deployment", "a-web"), 1) }];
            });
            world.reconcile(|one| {
                let path = ".metadata.annotations[argocd.argoproj.io/tracking-id]";
                let mut label = FieldFact { other: "argocd".to_owned(), ..field(path, 4, 0) };
                let mut write = WriteFact {
                    owners: owned(true),
                    ..update(&child("Deployment", "a-web"), "", Vec::new())
                };
                change(&mut write, &mut label);
                write.fields = vec![label];
                one.writes = vec![write];
            });
            world.rules().into_iter().find(|(rule, _)| rule == "foreign-metadata")
        };
        assert_eq!(run(|_, _| {}).map(|(_, severity)| severity), Some(FindingSeverity::Warning));
        assert!(
            run(|_, field| field.path = RESTARTED.to_owned()).is_some(),
            "a rollout restart that is undone"
        );
        assert!(run(|_, field| field.other.clear()).is_none(), "its own label of before");
        assert!(
            run(|_, field| field.other = "manager".to_owned()).is_none(),
            "of another controller of the program"
        );
        assert!(run(|_, field| field.new = 5).is_none(), "put back to its own value");
        assert!(run(|write, _| write.verb = WriteVerb::Apply).is_none(), "apply");
        assert!(run(|write, _| write.object = cr("a")).is_none(), "a sign on the custom resource");
        assert!(
            run(|_, field| field.path = ".metadata.annotations[shelves.example.com/retry]".to_owned())
                .is_none()
        );
        assert!(
            run(|write, _| (write.object, write.owners) = (child("Namespace", "x"), Vec::new())).is_none()
        );
        assert!(run(|_, field| field.path = ".spec.replicas".to_owned()).is_none(), "drift that is put back");
    }
}

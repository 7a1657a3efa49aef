//! Children that stay when their custom resource is gone.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Hint, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::shared::has_own_name;
use opdev_facts::{Maker, Table};
use opdev_facts::{is_never, is_programs};
use opdev_object::meta::ObjectRef;

pub(crate) static RULE: Rule = Rule {
    id: "missing-owner",
    severity: Error,
    name: "no owner reference",
    what: "A child has no owner reference, so garbage collection does not know that it belongs to the \
           custom resource. It stays when the custom resource is deleted.",
    when: "at creation, as a warning, where the custom resource has no finalizer of the operator and \
           nothing leads back to it; as a warning where the child lives 10 s after the custom resource \
           is gone, and as an error where it also lives 10 s after the next start of the operator. As a \
           hint where several custom resources share the child. It is shared where more than one uses \
           it, or nothing of its name comes from one.",
    never: "children in other namespaces and cluster-wide ones before the custom resource is gone; what \
           a label, an annotation or the spec ties to it; policies such as Retain or Orphan; what was \
           made after the deletion was asked for. A shared child is not told while another one that \
           uses it is there.",
    fix: "Set the owner before you create the child: controllerutil.SetControllerReference(owner, \
           child, scheme).",
    ends: Ends::WithChild,
    explains: &[],
    guessed: Guessed::Warning,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: Some(absent),
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if evidence.deleting || evidence.keeps || evidence.finalizers.iter().any(|one| is_programs(one)) {
        return;
    }
    for write in evidence.writes.iter().filter(|write| write.created && !is_never(&write.object)) {
        let object = &write.object;
        let near = object.namespace == evidence.object.namespace && object.key() != evidence.object.key();
        if !near || write.tied || !write.owners.is_empty() || object.gvk.kind == "PersistentVolumeClaim" {
            continue;
        }
        let set = evidence
            .writes
            .iter()
            .any(|later| later.object.key() == object.key() && !later.owners.is_empty());
        if set {
            continue;
        }
        let owner = &evidence.object;
        let maker = table.makers.get(&object.key());
        let shared = maker.map_or_else(|| has_own_name(object, owner), Maker::is_shared);
        let why = format!("{object} was made without an owner reference: ");
        let (severity, why) = if shared {
            (Hint, why + &shares(owner) + "it stays when the last of them is deleted")
        } else {
            (Warning, format!("{why}it stays when {owner} is deleted"))
        };
        let told = Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object);
        out.push(if severity == Hint { told_as_hint(told) } else { Told { severity, ..told } });
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for (maker, gone) in table.left().filter(|(maker, _)| !table.is_needed(maker)) {
        if table.now.duration_since(gone).as_secs() < 10 || maker.object.gvk.kind == "PersistentVolumeClaim" {
            continue;
        }
        let after = table.started.filter(|started| *started > gone);
        let stays = after.is_some_and(|started| table.now.duration_since(started).as_secs() >= 10);
        let (object, owner) = (&maker.object, &maker.primary);
        let when = if stays { ", and the operator has been started since" } else { "" };
        let why = format!("{object} still lives though {owner}, for which it was made, is gone{when}: ");
        let why = if maker.is_shared() {
            why + &shares(owner) + "nothing deletes it after the last of them"
        } else {
            why + "it has no owner reference"
        };
        let told = Told::new(&RULE, owner, table.now, 0).say(&object.gvk.kind, why).about(object);
        let told = Told { controller: maker.controller.clone(), reconcile: maker.reconcile, ..told };
        let severity = if stays && !maker.guessed { Error } else { Warning };
        out.push(if maker.is_shared() { told_as_hint(told) } else { Told { severity, ..told } });
    }
}

fn shares(owner: &ObjectRef) -> String {
    format!("several objects of kind {} can share it, and ", owner.gvk.kind)
}

/// One owner would take a shared child away from the others.
fn told_as_hint(told: Told) -> Told {
    let fix = "Leave it if it is meant to stay. Else delete it with the last custom resource that uses it, or give \
               each custom resource a child of its own, with an owner reference.";
    Told { severity: Hint, fix: fix.to_owned(), ..told }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn a_child_without_an_owner_is_told_at_creation_or_when_it_stays() {
        let service = child("Service", "a-web");
        let mut world = World::new();
        world.reconcile(|one| one.writes = vec![create(&child("Service", "a-web"), 1)]);
        assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
        // Nothing here is a fault.
        for look_alike in 0..7 {
            let mut world = World::new();
            world.reconcile(|one| {
                let mut write = create(&child("Service", "a-web"), 1);
                match look_alike {
                    0 => write.owners = owned(true),
                    1 => write.tied = true,
                    2 => one.finalizers = vec!["lib.example.com/cleanup".to_owned()],
                    3 => write.object.namespace = Some("other".to_owned()),
                    4 => one.finalizers = vec!["delete-services".to_owned()],
                    5 => one.finalizers = vec!["shelf.cluster.x-k8s.io".to_owned()],
                    _ => one.keeps = true,
                }
                one.writes = vec![write];
            });
            assert!(world.loud().is_empty(), "{look_alike}: {:?}", world.rules());
        }
        // A child of a custom resource with a finalizer is judged once that is gone; only a restart proves
        // the fault.
        let finalizers = json!({"finalizers": ["lib.example.com/cleanup"]});
        let mut world = World::new();
        world.seen(&cr("a"), shelf(1, finalizers.clone()));
        world.reconcile(|one| {
            one.finalizers = vec!["lib.example.com/cleanup".to_owned()];
            one.writes = vec![create(&child("Service", "a-web"), 1)];
        });
        world.unrelated(&service);
        world.seen(&cr("a"), shelf(1, finalizers));
        world.gone(&cr("a"));
        world.wait(5);
        assert!(world.loud().is_empty());
        world.wait(7);
        assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Warning)]);
        world.restart(&[]);
        world.wait(12);
        assert_eq!(world.rules(), [("missing-owner".to_owned(), FindingSeverity::Error)]);
        world.gone(&service);
        assert_eq!(world.closed(), [("missing-owner".to_owned(), "the object is gone".to_owned())]);
    }

    fn missing_owner(world: &World) -> Vec<(FindingSeverity, String)> {
        let told = world.opened().into_iter().filter(|finding| finding.rule == "missing-owner");
        told.map(|finding| (finding.severity, finding.why.clone())).collect()
    }

    /// The worst severity that `missing-owner` had.
    fn worst(world: &World) -> Option<FindingSeverity> {
        world.rules().into_iter().find(|(rule, _)| rule == "missing-owner").map(|(_, severity)| severity)
    }

    #[test]
    fn a_child_whose_name_says_nothing_of_its_custom_resource_is_a_hint() {
        let mut world = World::new();
        world.reconcile(|one| {
            one.object = cr("backup-1");
            one.writes = vec![create(&child("ServiceAccount", "executor"), 1)];
        });
        world.seen(&cr("backup-1"), shelf(1, json!({})));
        let told = missing_owner(&world);
        assert_eq!(told[0].0, FindingSeverity::Hint);
        expect!["ServiceAccount default/executor was made without an owner reference: several objects of kind Shelf can share it, and it stays when the last of them is deleted"]
        .assert_eq(&told[0].1);
        world.unrelated(&child("ServiceAccount", "executor"));
        world.gone(&cr("backup-1"));
        world.wait(12);
        world.restart(&[]);
        world.wait(12);
        assert_eq!(worst(&world), Some(FindingSeverity::Hint), "never an error, not even after a restart");
        // With a name of the custom resource's own it is an error.
        let mut world = World::new();
        world.reconcile(|one| {
            one.object = cr("backup-1");
            one.writes = vec![create(&child("ServiceAccount", "backup-1-executor"), 1)];
        });
        world.seen(&cr("backup-1"), shelf(1, json!({})));
        world.unrelated(&child("ServiceAccount", "backup-1-executor"));
        world.gone(&cr("backup-1"));
        world.wait(12);
        world.restart(&[]);
        world.wait(12);
        assert_eq!(worst(&world), Some(FindingSeverity::Error));
    }

    #[test]
    fn a_child_that_others_use_is_needed_until_the_last_of_them_goes() {
        let finalizers = || vec!["lib.example.com/cleanup".to_owned()];
        let role = child("Role", "a-role");
        let mut world = World::new();
        world.reconcile(|one| {
            one.finalizers = finalizers();
            one.writes = vec![create(&child("Role", "a-role"), 1)];
        });
        world.reconcile(|one| {
            (one.object, one.finalizers) = (cr("b"), finalizers());
            one.reads.push(ReadFact { objects: vec![role.key()], missing: false, version: "7".to_owned() });
        });
        world.seen(&cr("a"), shelf(1, json!({})));
        world.seen(&cr("b"), shelf(1, json!({})));
        world.unrelated(&role);
        world.gone(&cr("a"));
        world.wait(14);
        world.restart(&[]);
        world.wait(14);
        assert_eq!(worst(&world), None, "b uses it");
        world.gone(&cr("b"));
        world.wait(14);
        assert_eq!(worst(&world), Some(FindingSeverity::Hint));
    }
}

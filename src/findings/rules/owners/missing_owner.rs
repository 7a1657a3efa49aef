//! Children that stay when their custom resource is gone.

use crate::facts::Table;
use crate::facts::{is_never, is_programs};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "missing-owner",
    severity: Error,
    name: "no owner reference",
    what: "A child has no owner reference, so garbage collection does not know that it belongs to the \
           custom resource. It stays when the custom resource is deleted.",
    when: "at creation, as a warning, where the custom resource has no finalizer of the operator and \
           nothing leads back to it; as a warning where the child lives 10 s after the custom resource \
           is gone, and as an error where it also lives 10 s after the next start of the operator.",
    never: "children in other namespaces and cluster-wide ones before the custom resource is gone; what \
           a label, an annotation or the spec ties to it; policies such as Retain or Orphan; what was \
           made after the deletion was asked for.",
    fix: "Set the owner before you create the child: controllerutil.SetControllerReference(owner, \
           child, scheme).",
    storm: false,
    judge: Some(judge),
    absent: Some(absent),
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let _ = table;
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
        let why = format!(
            "{object} was made without an owner reference: it stays when {} is deleted",
            evidence.object
        );
        let told = Told::of(&RULE, evidence).say(&object.gvk.kind, why).about(object);
        out.push(Told { severity: Warning, ..told });
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for (maker, gone) in table.left() {
        if table.now.duration_since(gone).as_secs() < 10 || maker.object.gvk.kind == "PersistentVolumeClaim" {
            continue;
        }
        let after = table.started.filter(|started| *started > gone);
        let stays = after.is_some_and(|started| table.now.duration_since(started).as_secs() >= 10);
        let (object, owner) = (&maker.object, &maker.primary);
        let when = if stays { ", and the operator has been started since" } else { "" };
        let why = format!(
            "{object} still lives though {owner}, for which it was made, is gone{when}: it has no owner reference"
        );
        let told = Told::new(&RULE, owner, table.now, 0).say(&object.gvk.kind, why).about(object);
        let severity = if stays { Error } else { Warning };
        out.push(Told { severity, controller: maker.controller.clone(), reconcile: maker.reconcile, ..told });
    }
}

//! An object that is read by name, and whose changes nobody hears of.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::CauseKind;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use std::time::Duration;

pub(crate) static RULE: Rule = Rule {
    id: "referenced-unwatched",
    severity: Warning,
    name: "change of a read object not seen",
    what: "The reconciler reads an object by its name that it has not made, such as a Secret or a ConfigMap that the \
           custom resource names. The object changed and no reconcile came; a later one, for another reason, wrote \
           because of it.",
    when: "a reconcile that nothing from outside led to read another version of such an object than the one before, \
           and wrote an object that it had not written then.",
    never: "objects that the operator has made, pods; reconcilers that ask to run again within a minute; reconciles with \
            an event of the object, or of somebody else, among their causes.",
    fix: "Watch the kind: Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(…)) with a map function \
          that finds the custom resources by a field index.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let controller = table.controllers.get(&evidence.controller);
    let polls = controller.and_then(|one| one.period).is_some_and(|period| period <= Duration::from_secs(60));
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let wrote = |one: &&WriteFact| one.object.key() != evidence.object.key() && table.is_news(evidence, one);
    let Some(written) = evidence.writes.iter().find(wrote) else { return };
    // A reload starts another build, and what another client does at the same moment may be the reason.
    let quiet = |cause: &opdev_event::Cause| match &cause.kind {
        CauseKind::User | CauseKind::Check | CauseKind::Wait { .. } | CauseKind::Period => true,
        CauseKind::Watch { own_write, .. } => *own_write,
        _ => false,
    };
    if polls || !evidence.causes.iter().all(quiet) || evidence.more_causes {
        return;
    }
    let caused = |key: &ObjectKey| {
        evidence
            .causes
            .iter()
            .any(|cause| matches!(&cause.kind, CauseKind::Watch { object, .. } if object.key() == *key))
    };
    let (now, before) = &track.versions;
    let changed = now.iter().find(|(key, version)| {
        before.get(*key).is_some_and(|old| old != *version)
            && !table.makers.contains_key(*key)
            // They belong to workloads, and change with them.
            && !matches!(key.kind.as_str(), "Pod" | "ReplicaSet" | "Endpoints" | "EndpointSlice")
            && !caused(key)
    });
    let Some((key, _)) = changed.filter(|(key, _)| written.object.key() != **key) else { return };
    let why = format!(
        "{} {} had changed, no reconcile came, and the next one, for another reason, wrote {}",
        key.kind, key.name, written.object
    );
    let about = ObjectRef {
        gvk: Gvk::new(&key.group, "", &key.kind),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: None,
    };
    let told = Told::of(&RULE, evidence).say(&key.kind, why).about(&about);
    out.push(Told { field: key.kind.clone(), ..told });
}

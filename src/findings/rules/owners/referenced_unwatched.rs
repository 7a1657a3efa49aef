//! An object that is read by name, and whose changes nobody hears of.

use crate::facts::Table;
use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
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
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
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

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn an_object_that_is_read_by_name_and_not_watched_is_told_when_another_reason_shows_it() {
        let secret = child("Secret", "token");
        let run = |causes: Vec<Cause>, version: &str, made: bool| {
            let mut world = World::new();
            let map = child("ConfigMap", "web");
            let read = |version: &str| ReadFact {
                objects: vec![secret.key()],
                version: version.to_owned(),
                ..ReadFact::default()
            };
            world.reconcile(|one| {
                one.causes = by_user();
                one.reads.push(read("1"));
                one.writes = if made { vec![create(&secret, 1)] } else { Vec::new() };
            });
            world.reconcile(|one| {
                one.causes = causes;
                one.reads.push(read(version));
                one.writes =
                    vec![WriteFact { at: one.at, ..update(&map, "", vec![field(".data.token", 1, 2)]) }];
            });
            world.rules().into_iter().filter(|(rule, _)| rule == "referenced-unwatched").count()
        };
        let pressed = || vec![Cause { at: at(0), kind: CauseKind::User }];
        assert_eq!(run(pressed(), "2", false), 1);
        assert_eq!(run(check(), "2", false), 1);
        assert_eq!(run(pressed(), "1", false), 0, "it did not change");
        assert_eq!(run(by_user(), "2", false), 0, "somebody changed the custom resource, too");
        assert_eq!(run(pressed(), "2", true), 0, "its own child");
        let heard = vec![woken(secret.clone(), WatchEvent::Modified, Some("kubectl-edit"), false)];
        assert_eq!(run(heard, "2", false), 0, "it is watched");
        let mut world = World::new();
        let (token, pod) = (child("Secret", "key"), child("Pod", "web-0"));
        for (version, causes, read) in
            [("1", by_user(), &secret), ("2", check(), &secret), ("3", check(), &pod)]
        {
            let now = world.now;
            world.reconcile(|one| {
                one.causes = causes;
                for key in [read, &pod] {
                    let (objects, version) = (vec![key.key()], version.to_owned());
                    one.reads.push(ReadFact { objects, version, ..ReadFact::default() });
                }
                one.writes = vec![create(&token, now)];
            });
            world.gone(&token);
        }
        assert!(
            world.rules().iter().all(|(rule, _)| rule != "referenced-unwatched"),
            "somebody deletes it each time"
        );
    }
}

//! An object that is read by name, and whose changes nobody hears of.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::CauseKind;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_facts::{ABSENT, Table, Track};
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use std::time::Duration;

pub(crate) static RULE: Rule = Rule {
    id: "referenced-unwatched",
    severity: Warning,
    name: "change of a read object not seen",
    what: "The reconciler reads an object that it has not made, such as a Secret that the custom resource \
           names. The object changed and no reconcile came. A later one, for another reason, ended \
           otherwise because of it.",
    when: "no reconcile came within 5 s of a change of such an object by another client, and the next one \
           read it anew. It wrote an object, or a part of its status, that it had not written before. Or \
           it failed with the name of the object in its error. On the embedded control plane opdev asks \
           for that reconcile itself, once a change. There an object counts, too, that was made or \
           deleted, or only listed.",
    never: "objects that the operator has made, pods; reconcilers that ask to run again within a minute. \
           Reconciles with an event of the object, or of somebody else, among their causes prove nothing. \
           Nor does a status where a child has changed, too.",
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
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let polls = track.period.is_some_and(|period| period <= Duration::from_secs(60));
    // A reload starts another build, and what another client does at the same moment may be the reason.
    let quiet = |cause: &opdev_event::Cause| match &cause.kind {
        CauseKind::User | CauseKind::Check | CauseKind::Wait { .. } | CauseKind::Period => true,
        CauseKind::Watch { own_write, .. } => *own_write,
        _ => false,
    };
    let primary = table.live.get(&evidence.object.key());
    let other = primary.is_some_and(|live| live.changed.is_some() || live.deleting.is_some());
    if polls || other || !evidence.causes.iter().all(quiet) || evidence.more_causes {
        return;
    }
    let Some((key, how)) = changed(table, track, evidence) else { return };
    // It may make the object itself again, which somebody else had made before.
    let again = |one: &WriteFact| one.created && how == DELETED;
    let wrote = |one: &&WriteFact| {
        one.object.key() != evidence.object.key()
            && (one.object.key() != key || again(one))
            && table.is_news(evidence, one)
    };
    let failed = !evidence.error.is_empty() && track.failures.row == 1 && evidence.error.contains(&key.name);
    let ended = if let Some(written) = evidence.writes.iter().find(wrote) {
        format!("wrote {}", written.object)
    } else if failed {
        format!("failed by it: {}", evidence.error)
    } else if let Some(path) = table.news_of_status(evidence) {
        format!("wrote {path}")
    } else {
        return;
    };
    let asked = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Check));
    let next = if asked { "one that opdev asked for" } else { "the next one, for another reason," };
    let why = format!("{} {} {how}, no reconcile came, and {next} {ended}", key.kind, key.name);
    let about = ObjectRef {
        gvk: Gvk::new(&key.group, "", &key.kind),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: None,
    };
    let told = Told::of(&RULE, evidence).say(&key.kind, why).about(&about);
    out.push(Told { field: key.kind.clone(), ..told });
}

const DELETED: &str = "was deleted";

/// An object that the reconcile has not heard of: one whose change was seen, or one that it had read in another
/// version before.
fn changed(table: &Table, track: &Track, evidence: &Evidence) -> Option<(ObjectKey, &'static str)> {
    let caused = |key: &ObjectKey| {
        evidence
            .causes
            .iter()
            .any(|cause| matches!(&cause.kind, CauseKind::Watch { object, .. } if object.key() == *key))
    };
    let (now, before) = &track.versions;
    let is_newer = |key: &ObjectKey| match (now.get(key), before.get(key)) {
        (Some(now), Some(before)) => now != before,
        // It was listed, or is not looked at any more.
        (None, None) => true,
        _ => false,
    };
    let seen = track.unheard.as_ref().filter(|one| evidence.at >= one.at && is_newer(&one.object));
    if let Some(one) = seen.filter(|one| !caused(&one.object)) {
        let how = match one.how {
            "made" => "was made",
            "deleted" => DELETED,
            _ => "had changed",
        };
        return Some((one.object.clone(), how));
    }
    let read = now.iter().find(|(key, version)| {
        before.get(*key).is_some_and(|old| old != *version && old != ABSENT && *version != ABSENT)
            && !table.makers.contains_key(*key)
            // They belong to workloads, and change with them.
            && !matches!(key.kind.as_str(), "Pod" | "ReplicaSet" | "Endpoints" | "EndpointSlice")
            && !caused(key)
    });
    read.map(|(key, _)| (key.clone(), "had changed"))
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

    #[test]
    fn opdev_asks_for_a_reconcile_once_what_was_read_has_changed() {
        enum Then {
            Writes,
            Nothing,
            Hears,
        }
        let run = |by: &str, period: Option<u64>, live: bool, then: Then| {
            let mut world = embedded();
            let (secret, map) = (child("Secret", "token"), child("ConfigMap", "web"));
            let read = |version: &str| {
                let (objects, version) = (vec![secret.key()], version.to_owned());
                ReadFact { objects, version, ..ReadFact::default() }
            };
            let reads = |one: &mut Evidence, version: &str| {
                let list = if live { &mut one.live_reads } else { &mut one.reads };
                list.push(read(version));
            };
            world.reconcile(|one| {
                one.causes = by_user();
                one.requeue = period.map(Duration::from_secs);
                one.writes = vec![WriteFact { manager: "manager".to_owned(), ..create(&map, 1) }];
                reads(one, "1");
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            world.now += 10_000;
            let changed_by = Some(by.to_owned());
            let (namespace, name, uid) = (secret.namespace.clone(), secret.name.clone(), secret.uid.clone());
            let objects = vec![UnrelatedObject { namespace, name, uid, changed_by }];
            world.event(&Event::UnrelatedSeen(UnrelatedSeen {
                at: at(world.now),
                gvk: secret.gvk.clone(),
                objects,
            }));
            if matches!(then, Then::Hears) {
                world.reconcile(|one| {
                    one.causes =
                        vec![woken(secret.clone(), WatchEvent::Modified, Some("kubectl-edit"), false)];
                    reads(one, "2");
                });
            }
            world.wait(6);
            let asked = asks(&mut world).len();
            if asked > 0 {
                world.reconcile(|one| {
                    one.causes = check();
                    reads(one, "2");
                    if matches!(then, Then::Writes) {
                        one.writes = vec![WriteFact {
                            at: one.at,
                            ..update(&map, "", vec![field(".data.token", 1, 2)])
                        }];
                    }
                });
            }
            let told = world.rules().into_iter().filter(|(rule, _)| rule == "referenced-unwatched").count();
            (asked, told)
        };
        assert_eq!(run("kubectl-edit", None, false, Then::Writes), (1, 1));
        assert_eq!(run("kubectl-edit", None, true, Then::Writes), (1, 1), "read from the API server");
        assert_eq!(run("kubectl-edit", None, false, Then::Nothing), (1, 0), "it makes no use of it");
        assert_eq!(run("kubectl-edit", None, false, Then::Hears), (0, 0), "it is watched");
        assert_eq!(run("kubectl-edit", Some(30), false, Then::Writes), (0, 0), "it comes again soon");
        assert_eq!(run("manager", None, false, Then::Writes), (0, 0), "its own write");
        assert_eq!(run("kube-controller-manager", None, false, Then::Writes), (0, 0), "the plane's");
    }

    #[test]
    fn an_object_of_others_that_is_made_again_only_when_opdev_asks_is_told() {
        let run = |how: &str| {
            let mut world = embedded();
            let secret = child("Secret", "token");
            let read = |missing: bool| ReadFact {
                objects: vec![secret.key()],
                missing,
                version: if missing { String::new() } else { "1".to_owned() },
            };
            world.reconcile(|one| {
                one.causes = by_user();
                one.reads.push(read(false));
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            world.now += 10_000;
            if how == "deleted" {
                world.gone(&secret);
            }
            world.wait(6);
            asks(&mut world);
            let now = world.now;
            world.reconcile(|one| {
                one.causes = check();
                one.reads.push(read(how == "deleted"));
                let fact = update(&secret, "", vec![field(".data.a", 1, 2)]);
                one.writes = match how {
                    "deleted" => vec![WriteFact { owners: owned(true), ..create(&secret, now) }],
                    _ => vec![WriteFact { at: one.at, ..fact }],
                };
            });
            world.rules().into_iter().filter(|(rule, _)| rule == "referenced-unwatched").count()
        };
        assert_eq!(run("deleted"), 1);
        assert_eq!(run("there"), 0, "nothing has changed");
    }

    #[test]
    fn a_listed_object_that_was_deleted_and_a_failure_that_names_it_count() {
        let run = |error: &str| {
            let mut world = embedded();
            let quota = child("ResourceQuota", "limits");
            world.reconcile(|one| {
                one.causes = by_user();
                one.reads.push(ReadFact { objects: vec![quota.key()], ..ReadFact::default() });
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            world.now += 10_000;
            world.gone(&quota);
            world.wait(6);
            assert_eq!(asks(&mut world).len(), 1);
            world.reconcile(|one| {
                one.causes = check();
                one.error = error.to_owned();
            });
            world.rules().into_iter().filter(|(rule, _)| rule == "referenced-unwatched").count()
        };
        assert_eq!(run("there is no ResourceQuota limits"), 1);
        assert_eq!(run("the license server does not answer"), 0, "something else");
    }
}

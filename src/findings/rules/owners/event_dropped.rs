//! A change of the custom resource that leads to no reconcile.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_event::{Cause, CauseKind};
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "event-dropped",
    severity: Error,
    name: "change not seen",
    what: "Somebody changed the custom resource, and no reconcile came. A later one, for another \
           reason, wrote something because of it. Mostly a predicate drops the event.",
    when: "no reconcile came within 5 s of a change of spec, labels or annotations by another client, and \
           the next reconcile wrote. A write of its own status counts where opdev asked for it and no \
           child has changed meanwhile. On the embedded control plane opdev asks for that reconcile \
           itself, once a change.",
    never: "changes of the status; reconciles that write nothing, or what the one before wrote, too; a restart because of a save; changes \
           while faults are injected.",
    fix: "Let all changes through that the reconciler reads: \
           predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, \
           predicate.LabelChangedPredicate{}).",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Warning,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some((at, part)) = table.live.get(&evidence.object.key()).and_then(|live| live.changed) else {
        return;
    };
    let waited = evidence.at.duration_since(at).as_secs_f64();
    let own = |cause: &Cause| match &cause.kind {
        CauseKind::Watch { object, .. } => object.key() == evidence.object.key(),
        CauseKind::Start | CauseKind::Reload { .. } => true,
        _ => false,
    };
    let other =
        |write: &WriteFact| write.object.key() != evidence.object.key() && table.is_news(evidence, write);
    // An operator whose work is outside of the cluster writes nothing but its status.
    let asked = evidence.causes.iter().all(|cause| matches!(cause.kind, CauseKind::Check));
    let wrote = evidence.writes.iter().any(other) || asked && table.news_of_status(evidence).is_some();
    if !(5.0..=600.0).contains(&waited)
        || evidence.causes.iter().any(own)
        || !wrote
        || evidence.queued.as_secs_f64() > 1.0
    {
        return;
    }
    let asked = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Check));
    let next = if asked { "one that opdev asked for" } else { "the next one, for another reason," };
    let why = format!(
        "{part} of {} changed {waited:.0} s before, no reconcile came, and {next} wrote",
        evidence.object
    );
    let told = Told::of(&RULE, evidence).say(part, why);
    out.push(Told { field: part.to_owned(), ..told });
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn a_change_that_no_reconcile_saw_is_told_once_one_writes_because_of_it() {
        let run = |waits: i64, writes: bool| {
            let mut world = World::new();
            world.reconcile(|_| {});
            world.seen(&cr("a"), shelf(1, json!({})));
            world.seen(&cr("a"), shelf(1, json!({"annotations": {"size": "3"}})));
            world.now += waits;
            world.reconcile(|one| {
                one.causes = vec![woken(
                    child("Deployment", "web"),
                    WatchEvent::Modified,
                    Some("kube-controller-manager"),
                    false,
                )];
                if writes {
                    one.writes =
                        vec![update(&child("Deployment", "web"), "", vec![field(".spec.replicas", 1, 3)])];
                }
            });
            world.loud()
        };
        assert_eq!(run(8000, true), ["event-dropped"]);
        assert!(run(100, true).is_empty(), "it came at once");
        assert!(run(8000, false).is_empty(), "nothing came of it");
    }

    #[test]
    fn a_change_that_no_reconcile_answers_is_asked_about_once_and_told_where_the_answer_writes() {
        let mut world = embedded();
        let map = child("ConfigMap", "a");
        world.reconcile(|one| one.causes = by_user());
        world.seen(&cr("a"), shelf(1, json!({})));
        world.now += 10_000;
        world.seen(&cr("a"), shelf(1, json!({"annotations": {"tier": "gold"}})));
        world.wait(4);
        assert_eq!(asks(&mut world), [""; 0], "a worker may still come to it");
        world.wait(2);
        assert_eq!(asks(&mut world), ["shelf a"]);
        assert_eq!(asks(&mut world), [""; 0], "once");
        world.reconcile(|one| {
            one.causes = check();
            one.writes = vec![WriteFact { at: one.at, ..update(&map, "", vec![field(".data.tier", 1, 2)]) }];
        });
        assert_eq!(world.rules(), [("event-dropped".to_owned(), FindingSeverity::Error)]);
        expect!["labels or annotations of Shelf default/a changed 6 s before, no reconcile came, and one that opdev asked for wrote"]
        .assert_eq(&world.opened()[0].why);
    }

    #[test]
    fn what_is_written_each_time_or_put_back_is_no_answer_to_a_change() {
        let (map, pod) = (child("ConfigMap", "a"), child("Pod", "web-0"));
        let run = |before: &dyn Fn(i64) -> Vec<WriteFact>, after: &dyn Fn(i64) -> Vec<WriteFact>| {
            let mut world = embedded();
            let causes = [by_user(), timer()];
            for causes in causes {
                let now = world.now;
                world.reconcile(|one| (one.causes, one.writes) = (causes, before(now)));
            }
            world.seen(&cr("a"), shelf(1, json!({})));
            world.now += 10_000;
            world.seen(&cr("a"), shelf(1, json!({"annotations": {"note": "x"}})));
            world.wait(6);
            asks(&mut world);
            let now = world.now;
            world.reconcile(|one| (one.causes, one.writes) = (check(), after(now)));
            world.rules().into_iter().filter(|(rule, _)| rule == "event-dropped").count()
        };
        let writes = |path: &'static str, other: &'static str, now: i64| {
            let field = FieldFact { other: other.to_owned(), ..field(path, 1, 2) };
            vec![WriteFact { at: at(now), ..update(&map, "", vec![field]) }]
        };
        let delete =
            |now: i64| vec![WriteFact { at: at(now), verb: WriteVerb::Delete, ..update(&pod, "", vec![]) }];
        let make = |now: i64| vec![WriteFact { owners: owned(true), ..create(&map, now) }];
        let nothing = |_: i64| Vec::new();
        assert_eq!(run(&nothing, &|now| writes(".data.a", "", now)), 1);
        assert_eq!(run(&make, &|now| writes(".data.a", "", now)), 1, "it has made it before");
        assert_eq!(
            run(&|now| writes(".data.b", "", now), &|now| writes(".data.a", "", now)),
            1,
            "another field"
        );
        assert_eq!(run(&nothing, &delete), 1);
        assert_eq!(run(&delete, &delete), 0, "a pod that is not ready is deleted each time");
        let other = |now: i64| {
            let fact = |name: &str| update(&child("Pod", name), "", vec![]);
            let pod = WriteFact { at: at(now), verb: WriteVerb::Delete, ..fact("web-1") };
            if now == 0 { vec![pod] } else { Vec::new() }
        };
        assert_eq!(run(&other, &delete), 0, "pods that are made again have other names");
        let event = |now: i64| {
            vec![WriteFact { at: at(now), ..update(&child("Event", "a.1"), "", vec![field(".count", 1, 2)]) }]
        };
        assert_eq!(run(&nothing, &event), 0, "an Event that is counted");
        assert_eq!(run(&|now| writes(".data.a", "", now), &|now| writes(".data.a", "", now)), 0);
        assert_eq!(run(&nothing, &|now| writes(".data.a", "kubectl-edit", now)), 0, "drift is put back");
    }

    #[test]
    fn a_change_that_the_reconciler_does_not_read_is_no_finding() {
        let mut world = embedded();
        world.reconcile(|one| one.causes = by_user());
        world.seen(&cr("a"), shelf(1, json!({})));
        world.now += 10_000;
        world.seen(&cr("a"), shelf(1, json!({"annotations": {"note": "x"}})));
        world.wait(6);
        assert_eq!(asks(&mut world).len(), 1);
        world.reconcile(|one| one.causes = check());
        // A later effect of another event has nothing to do with it.
        world.now += 60_000;
        let map = child("ConfigMap", "a");
        world.reconcile(|one| {
            one.causes = vec![woken(child("Pod", "p"), WatchEvent::Modified, Some("kubelet"), false)];
            one.writes = vec![WriteFact { at: one.at, ..update(&map, "", vec![field(".data.n", 1, 2)]) }];
        });
        assert!(world.loud().is_empty(), "{:?}", world.loud());
    }

    #[test]
    fn a_status_that_only_the_reconcile_that_opdev_asked_for_writes_proves_it_too() {
        let run = |fact: FieldFact, shown: bool| {
            let mut world = embedded();
            let map = child("ConfigMap", "a-data");
            world.reconcile(|one| {
                one.causes = by_user();
                one.writes = vec![WriteFact { owners: owned(true), ..create(&map, 1) }];
            });
            world.seen(&cr("a"), shelf(1, json!({})));
            world.now += 10_000;
            world.reconcile(|one| one.causes = by_user());
            world.seen(&cr("a"), shelf(1, json!({"annotations": {"tier": "gold"}})));
            world.wait(6);
            if shown {
                world.seen(&map, json!({}));
            }
            assert_eq!(asks(&mut world).len(), 1);
            world.reconcile(|one| {
                one.causes = check();
                one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![fact]) }];
            });
            world.rules().into_iter().filter(|(rule, _)| rule == "event-dropped").count()
        };
        let tier = || field(".status.tier", 1, 2);
        assert_eq!(run(tier(), false), 1);
        assert_eq!(run(FieldFact { time: true, ..tier() }, false), 0, "only a time");
        assert_eq!(run(tier(), true), 0, "a child has changed meanwhile");
    }
}

//! Reconciles that opdev asks for itself on the embedded control plane, and rules over reads, errors and
//! readiness.

use super::*;

/// A world in which opdev may ask for reconciles.
fn embedded() -> World {
    let mut world = World::new();
    world.findings.table.embedded = true;
    world
}

fn asks(world: &mut World) -> Vec<String> {
    world
        .findings
        .asks()
        .into_iter()
        .map(|(controller, object)| format!("{controller} {}", object.name))
        .collect()
}

fn check() -> Vec<Cause> {
    vec![Cause { at: at(0), kind: CauseKind::Check }]
}

#[test]
fn who_wants_no_experiments_is_not_asked_about() {
    let run = |experiments: bool| {
        let mut world = embedded();
        world.findings = std::mem::take(&mut world.findings).asking(experiments);
        world.reconcile(|one| one.causes = by_user());
        world.seen(&cr("a"), shelf(1, json!({})));
        world.now += 10_000;
        world.seen(&cr("a"), shelf(1, json!({"annotations": {"tier": "gold"}})));
        world.wait(6);
        asks(&mut world).len()
    };
    assert_eq!((run(true), run(false)), (1, 0));
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
    assert!(world.opened()[0].why.contains("one that opdev asked for wrote"), "{}", world.opened()[0].why);
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
    assert_eq!(run(&|now| writes(".data.b", "", now), &|now| writes(".data.a", "", now)), 1, "another field");
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
fn nothing_is_asked_of_a_cluster_or_of_a_program_whose_causes_are_not_known() {
    for (embedded, more) in [(false, false), (true, true)] {
        let mut world = World::new();
        world.findings.table.embedded = embedded;
        world.reconcile(|one| (one.causes, one.more_causes) = (by_user(), more));
        world.seen(&cr("a"), shelf(1, json!({})));
        world.now += 10_000;
        world.seen(&cr("a"), shelf(2, json!({})));
        world.wait(10);
        assert_eq!(asks(&mut world), [""; 0]);
    }
}

#[test]
fn a_child_that_comes_back_only_when_opdev_asks_is_an_error() {
    let mut world = embedded();
    let service = child("Service", "web");
    world.reconcile(|one| one.causes = by_user());
    world.seen(&cr("a"), shelf(1, json!({})));
    let make = |world: &mut World, causes: Vec<Cause>| {
        let now = world.now;
        world.reconcile(|one| {
            one.causes = causes;
            one.reads.push(ReadFact { objects: vec![service.key()], missing: true, ..ReadFact::default() });
            one.writes = vec![WriteFact { owners: owned(true), ..create(&service, now) }];
        });
    };
    world.seen(&service, json!({}));
    make(&mut world, by_user());
    world.wait(11);
    assert_eq!(world.rules(), [("missing-watch".to_owned(), FindingSeverity::Warning)]);
    world.gone(&service);
    world.wait(6);
    assert_eq!(asks(&mut world), ["shelf a"]);
    // The new one is shown before the reconcile that made it has ended.
    world.seen(&service, json!({}));
    make(&mut world, check());
    assert_eq!(world.rules(), [("missing-watch".to_owned(), FindingSeverity::Error)]);
    // What is less certain does not take the place of the proof, and each second of waiting is no other finding.
    world.wait(14);
    let newest = world.told.iter().rev().find_map(|event| match event {
        Event::FindingCounted(finding) => Some(finding),
        _ => None,
    });
    let newest = newest.unwrap();
    assert!(newest.why.contains("was deleted by somebody else"), "{}", newest.why);
    assert_eq!((newest.times, newest.severity), (2, FindingSeverity::Error));
}

#[test]
fn a_child_that_goes_with_its_owner_or_while_no_program_runs_proves_no_missing_watch() {
    let service = child("Service", "web");
    let make = |world: &mut World, causes: Vec<Cause>, deleting: bool| {
        let now = world.now;
        world.reconcile(|one| {
            (one.causes, one.deleting) = (causes, deleting);
            one.reads.push(ReadFact { objects: vec![service.key()], missing: true, ..ReadFact::default() });
            one.writes = vec![WriteFact { owners: owned(true), ..create(&service, now) }];
        });
    };
    let other = || vec![woken(child("StatefulSet", "web"), WatchEvent::Deleted, None, false)];
    let start = || vec![Cause { at: at(0), kind: CauseKind::Start }];
    // Seconds between the deletion and the next reconcile, its causes, what happens to the custom resource before.
    let run = |seconds: i64, causes: Vec<Cause>, before: &dyn Fn(&mut World), deleting: bool| {
        let mut world = World::new();
        make(&mut world, by_user(), false);
        world.seen(&cr("a"), shelf(1, json!({})));
        world.seen(&service, json!({}));
        world.restart(&[]);
        world.now += 30_000;
        before(&mut world);
        world.gone(&service);
        world.now += seconds * 1000;
        make(&mut world, causes, deleting);
        world.loud()
    };
    assert_eq!(run(20, other(), &|_| {}, false), ["missing-watch"]);
    assert!(run(0, other(), &|_| {}, false).is_empty(), "its event is on the way");
    assert!(run(20, start(), &|_| {}, false).is_empty(), "a program that starts looks at all");
    assert!(run(20, other(), &|_| {}, true).is_empty(), "garbage collection takes what its owner leaves");
    assert!(run(20, other(), &|world| world.gone(&cr("a")), false).is_empty(), "so it does later");
    // The program stands still, the child goes, and the next build makes it again.
    let mut world = World::new();
    make(&mut world, by_user(), false);
    world.gone(&service);
    world.now += 30_000;
    world.restart(&[]);
    make(&mut world, timer(), false);
    assert!(world.loud().is_empty(), "{:?}", world.loud());
}

#[test]
fn an_owner_that_is_no_controller_is_told_though_others_of_the_kind_are_heard_of() {
    let run = |controller: bool| {
        let mut world = World::new();
        world.seen(&cr("a"), shelf(1, json!({})));
        world.reconcile(|one| {
            one.causes = vec![woken(child("ConfigMap", "other"), WatchEvent::Added, Some("manager"), true)];
        });
        let map = child("ConfigMap", "mine");
        world.reconcile(|one| {
            one.causes = by_user();
            one.reads.push(ReadFact { objects: vec![map.key()], missing: true, ..ReadFact::default() });
            one.writes = vec![WriteFact { owners: owned(controller), ..create(&map, 10) }];
        });
        world.wait(12);
        world.loud()
    };
    assert_eq!(run(false), ["missing-watch"]);
    assert!(run(true).is_empty());
}

#[test]
fn an_error_that_nobody_returns_is_told_and_one_that_the_status_says_is_not() {
    let refused = || RefusalFact {
        at: at(1),
        verb: "create".to_owned(),
        target: "configmaps/web".to_owned(),
        object: Some(child("ConfigMap", "web").key()),
        status: 422,
        reason: "Invalid".to_owned(),
        message: "metadata.name: Invalid value".to_owned(),
        ..RefusalFact::default()
    };
    let run = |change: &dyn Fn(&mut Evidence)| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.causes = by_user();
            one.refusals = vec![refused()];
            change(one);
        });
        world.rules()
    };
    let status =
        |ready: bool| WriteFact { at: at(3), became_ready: ready, ..update(&cr("a"), "status", vec![]) };
    let told = |severity| vec![("error-swallowed".to_owned(), severity)];
    assert_eq!(run(&|_| {}), told(FindingSeverity::Warning));
    assert_eq!(run(&|one| one.writes = vec![status(true)]), told(FindingSeverity::Error));
    assert!(run(&|one| one.writes = vec![status(false)]).is_empty(), "a condition says it");
    assert!(run(&|one| one.error = "metadata.name".to_owned()).is_empty(), "it is returned");
    assert!(run(&|one| one.requeue = Some(Duration::from_secs(5))).is_empty(), "it is tried again");
    assert!(run(&|one| one.refusals[0].repeated = true).is_empty(), "a second try went well");
    assert!(run(&|one| one.refusals[0].status = 409).is_empty(), "it is there already");
    assert!(run(&|one| one.refusals[0].target = "events/web".to_owned()).is_empty(), "an Event");
    assert!(run(&|one| one.refusals[0].disturbed = true).is_empty(), "a fault of opdev's own");
    let other =
        run(&|one| one.writes = vec![WriteFact { tied: true, ..create(&child("ConfigMap", "web"), 4) }]);
    assert!(other.is_empty(), "made in another way: {other:?}");
}

#[test]
fn ready_without_a_ready_pod_is_told_and_ready_with_one_is_not() {
    let run = |replicas: u64, ready: u64| {
        let mut world = World::new();
        let deployment = child("Deployment", "web");
        world.reconcile(|one| {
            one.causes = by_user();
            one.writes = vec![WriteFact { owners: owned(true), ..create(&deployment, 0) }];
        });
        world.seen(&deployment, json!({"spec": {"replicas": replicas}, "status": {"readyReplicas": ready}}));
        world.reconcile(|one| {
            one.causes = own();
            let status = update(&cr("a"), "status", vec![field(".status.conditions", 0, 1)]);
            one.writes = vec![WriteFact { at: one.at, became_ready: true, ..status }];
        });
        world.loud()
    };
    assert_eq!(run(2, 0), ["ready-too-early"]);
    assert!(run(2, 1).is_empty());
    assert!(run(0, 0).is_empty(), "scaled to nothing");
}

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
            one.writes = vec![WriteFact { at: one.at, ..update(&map, "", vec![field(".data.token", 1, 2)]) }];
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
    for (version, causes, read) in [("1", by_user(), &secret), ("2", check(), &secret), ("3", check(), &pod)]
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
fn the_same_object_read_from_the_api_server_three_times_is_a_hint() {
    let mut world = World::new();
    world.reconcile(|one| one.read_live = vec![("secrets/token".to_owned(), 4)]);
    assert_eq!(world.rules(), [("call-budget".to_owned(), FindingSeverity::Hint)]);
    let mut world = World::new();
    world.reconcile(|one| one.live = 60);
    assert_eq!(world.rules().len(), 1);
    world.told.clear();
    let mut world = World::new();
    world.reconcile(|one| {
        one.live = 60;
        one.writes = vec![create(&child("ConfigMap", "web"), 1)];
    });
    assert!(!world.rules().iter().any(|(rule, _)| rule == "call-budget"), "it made much");
}

#[test]
fn a_call_that_is_in_vain_in_each_reconcile_is_a_hint() {
    let run = |verb: &str, status: u16, reason: &str, each: usize| {
        let mut world = World::new();
        for round in 0..20 {
            world.reconcile(|one| {
                let refusal = RefusalFact {
                    verb: verb.to_owned(),
                    target: "services/web".to_owned(),
                    status,
                    reason: reason.to_owned(),
                    ..RefusalFact::default()
                };
                one.refusals.extend((round % each == 0).then_some(refusal));
            });
        }
        world.rules()
    };
    let hint = vec![("call-budget".to_owned(), FindingSeverity::Hint)];
    assert_eq!(run("delete", 404, "NotFound", 1), hint);
    assert_eq!(run("create", 409, "AlreadyExists", 1), hint);
    assert!(run("delete", 404, "NotFound", 2).is_empty(), "now and then");
    assert!(
        run("create", 422, "Invalid", 1).iter().all(|(rule, _)| rule != "call-budget"),
        "refused, not in vain"
    );
    assert!(run("get", 404, "NotFound", 1).is_empty(), "it looks");
}

#[test]
fn events_with_other_words_each_time_are_a_flood_only_where_nothing_else_is_done() {
    let run = |writes: bool| {
        let mut world = World::new();
        for round in 0..12_u64 {
            world.now += 500;
            let now = world.now;
            world.reconcile(|one| {
                one.causes = timer();
                let event = opdev_event::evidence::EventFact {
                    about: cr("a").key(),
                    reason: "Synced".to_owned(),
                    message: round,
                };
                let event =
                    WriteFact { event: Some(event), ..create(&child("Event", &format!("e{round}")), now) };
                one.beside = vec![event];
                if writes {
                    let path = format!(".data.k{round}");
                    let map = child("ConfigMap", "web");
                    one.writes =
                        vec![WriteFact { at: one.at, ..update(&map, "", vec![field(&path, 0, round + 1)]) }];
                }
            });
        }
        world.rules().iter().any(|(rule, _)| rule == "event-flood")
    };
    assert!(run(false));
    assert!(!run(true));
}

#[test]
fn events_that_the_user_holds_back_are_none_that_the_operator_misses() {
    let mut world = embedded();
    let service = child("Service", "web");
    world.reconcile(|one| {
        one.causes = by_user();
        one.writes = vec![WriteFact { owners: owned(true), ..create(&service, 0) }];
    });
    world.seen(&cr("a"), shelf(1, json!({})));
    world.event(&Event::Disturbed { rules: vec!["hold".parse().unwrap()] });
    world.now += 1_000;
    world.seen(&cr("a"), shelf(2, json!({})));
    world.gone(&service);
    world.wait(10);
    assert_eq!(asks(&mut world), [""; 0]);
    world.event(&Event::Disturbed { rules: Vec::new() });
    world.wait(10);
    assert_eq!(asks(&mut world), [""; 0], "what came meanwhile proves nothing");
}

#[test]
fn on_a_cluster_a_change_that_nobody_asks_about_keeps_nothing_awake() {
    let mut world = World::new();
    world.reconcile(|one| one.causes = by_user());
    world.seen(&cr("a"), shelf(1, json!({})));
    world.now += 10_000;
    world.seen(&cr("a"), shelf(2, json!({})));
    assert!(world.findings.due().is_some());
    world.wait(62);
    assert_eq!(world.findings.due(), None);
}

//! Children that belong to several custom resources, and what looks like them.

use super::*;

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
    assert!(told[0].1.contains("several objects of kind Shelf can share it"), "{}", told[0].1);
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

const RESTARTED: &str = ".spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]";

fn workload(name: &str, selector: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, "template": {"metadata": {"labels": {"app": "shelf"}}}}})
}

#[test]
fn two_custom_resources_whose_workloads_select_the_same_pods_are_told() {
    let run = |selectors: [Value; 2], primaries: [&str; 2], namespaces: [&str; 2]| {
        let mut world = World::new();
        let in_namespace = |at: usize| {
            let mut deployment = child("Deployment", ["a-web", "b-web"][at]);
            deployment.namespace = Some(namespaces[at].to_owned());
            deployment
        };
        for at in 0..2 {
            world.reconcile(|one| {
                one.object = cr(primaries[at]);
                one.writes =
                    vec![WriteFact { owners: owned(true), ..create(&in_namespace(at), 1 + at as i64) }];
            });
            world.seen(&in_namespace(at), workload(&in_namespace(at).name, &selectors[at]));
        }
        for primary in primaries {
            world.reconcile(|one| one.object = cr(primary));
        }
        let told = world.opened().into_iter().filter(|finding| finding.rule == "overlapping-selector");
        told.map(|finding| finding.why.clone()).collect::<Vec<_>>()
    };
    let same = || json!({"matchLabels": {"app": "shelf"}});
    let told = run([same(), same()], ["a", "b"], ["default", "default"]);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("b-web and Deployment default/a-web of Shelf default/a"), "{told:?}");
    assert!(told[0].contains("app=shelf"), "{told:?}");
    let own = json!({"matchLabels": {"app": "shelf", "name": "b"}});
    assert!(run([same(), own], ["a", "b"], ["default", "default"]).is_empty(), "a label of its own");
    assert!(run([same(), same()], ["a", "a"], ["default", "default"]).is_empty(), "one custom resource");
    assert!(run([same(), same()], ["a", "b"], ["default", "other"]).is_empty(), "two namespaces");
    let wide =
        || json!({"matchLabels": {"app": "shelf"}, "matchExpressions": [{"key": "x", "operator": "Exists"}]});
    assert!(run([wide(), wide()], ["a", "b"], ["default", "default"]).is_empty(), "expressions say more");
}

#[test]
fn labels_of_others_that_an_update_takes_away_are_told() {
    let run = |change: fn(&mut WriteFact, &mut FieldFact)| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = vec![WriteFact { owners: owned(true), ..create(&child("Deployment", "a-web"), 1) }];
        });
        world.reconcile(|one| {
            let path = ".metadata.annotations[argocd.argoproj.io/tracking-id]";
            let mut label = FieldFact { other: "argocd".to_owned(), ..field(path, 4, 0) };
            let mut write =
                WriteFact { owners: owned(true), ..update(&child("Deployment", "a-web"), "", Vec::new()) };
            change(&mut write, &mut label);
            write.fields = vec![label];
            one.writes = vec![write];
        });
        world.rules().into_iter().find(|(rule, _)| rule == "foreign-metadata")
    };
    assert_eq!(run(|_, _| {}).map(|(_, severity)| severity), Some(FindingSeverity::Warning));
    assert!(run(|_, field| field.path = RESTARTED.to_owned()).is_some(), "a rollout restart that is undone");
    assert!(run(|_, field| field.other.clear()).is_none(), "its own label of before");
    assert!(
        run(|_, field| field.other = "manager".to_owned()).is_none(),
        "of another controller of the program"
    );
    assert!(run(|_, field| field.new = 5).is_none(), "put back to its own value");
    assert!(run(|write, _| write.verb = WriteVerb::Apply).is_none(), "apply");
    assert!(run(|write, _| write.object = cr("a")).is_none(), "a sign on the custom resource");
    assert!(
        run(|_, field| field.path = ".metadata.annotations[shelves.example.com/retry]".to_owned()).is_none()
    );
    assert!(run(|write, _| (write.object, write.owners) = (child("Namespace", "x"), Vec::new())).is_none());
    assert!(run(|_, field| field.path = ".spec.replicas".to_owned()).is_none(), "drift that is put back");
}

/// Reconciles of an operator, the first one before the spec is changed: the children that each of them reads,
/// after how many seconds it wants to run again, and whether it writes.
fn left_behind(level: TraceLevel, reconciles: &[(&[&str], u64, bool)]) -> Vec<String> {
    let mut world = World::new();
    let names = ["a-1", "a-2", "a-3"];
    world.reconcile(|one| {
        one.writes = names
            .map(|name| WriteFact { owners: owned(true), ..create(&child("ConfigMap", name), 1) })
            .to_vec();
    });
    for name in names {
        world.unrelated(&child("ConfigMap", name));
    }
    for (at, (children, requeue, writes)) in reconciles.iter().enumerate() {
        world.reconcile(|one| {
            one.level = Some(level);
            one.generation = Some(1 + i64::from(at > 0));
            one.requeue = Some(Duration::from_secs(*requeue)).filter(|after| !after.is_zero());
            let read = |name: &&str| ReadFact {
                objects: vec![child("ConfigMap", name).key()],
                missing: false,
                version: "1".to_owned(),
            };
            one.reads.extend(children.iter().map(read));
            if *writes {
                one.writes = vec![update(&child("ConfigMap", "a-1"), "", vec![field(".data.a", 1, 2)])];
            }
        });
        world.wait(1);
    }
    world.wait(14);
    let told = world.opened().into_iter().filter(|finding| finding.rule == "left-behind");
    told.filter_map(|finding| finding.about.as_ref().map(|about| about.name.clone())).collect()
}

#[test]
fn a_child_that_the_spec_no_longer_asks_for_is_told() {
    let (full, all): (_, &[&str]) = (TraceLevel::Full, &["a-1", "a-2", "a-3"]);
    let fewer: (&[&str], u64, bool) = (&["a-1", "a-3"], 0, false);
    assert_eq!(left_behind(full, &[(all, 0, false), fewer, fewer, fewer]), ["a-2"]);
    // Reconciles that are guessed from calls do not say what they read.
    assert!(left_behind(TraceLevel::Wire, &[(all, 0, false), fewer, fewer, fewer]).is_empty());
    let polls: (&[&str], u64, bool) = (&["a-1", "a-3"], 5, false);
    assert_eq!(
        left_behind(full, &[(all, 5, false), polls, polls, polls]),
        ["a-2"],
        "it polls, and goes to its end"
    );
    // It waits for the first child, and comes to the others later.
    let early: (&[&str], u64, bool) = (&["a-1"], 5, false);
    assert!(left_behind(full, &[(all, 0, false), early, early, early]).is_empty());
    // One step in each reconcile.
    let step: (&[&str], u64, bool) = (&["a-1"], 1, true);
    assert!(left_behind(full, &[(all, 0, false), step, step, step, step]).is_empty());
    // All is touched in the end.
    assert!(left_behind(full, &[(all, 0, false), step, step, (all, 0, false)]).is_empty());
}

#[test]
fn a_generation_is_judged_by_its_own_reconciles() {
    let names = ["a-1", "a-2", "a-3"];
    let mut world = World::new();
    world.reconcile(|one| {
        one.writes = names
            .map(|name| WriteFact { owners: owned(true), ..create(&child("ConfigMap", name), 1) })
            .to_vec();
    });
    for name in names {
        world.unrelated(&child("ConfigMap", name));
    }
    let mut reconcile = |generation: i64, children: &[&str], pause: i64| {
        world.reconcile(|one| {
            one.generation = Some(generation);
            one.reads.extend(children.iter().map(|name| ReadFact {
                objects: vec![child("ConfigMap", name).key()],
                missing: false,
                version: "1".to_owned(),
            }));
        });
        world.wait(pause);
    };
    reconcile(1, &names, 1);
    reconcile(2, &["a-1"], 1);
    reconcile(2, &["a-1", "a-2"], 1);
    reconcile(2, &names, 8);
    // The spec is changed once more after ten seconds, and the first reconcile has come to one child.
    reconcile(3, &["a-1"], 3);
    assert!(!world.opened().iter().any(|finding| finding.rule == "left-behind"));
}

/// A ConfigMap that is made in the second reconcile, and what later ones do.
fn missing_watch(
    deployment: Option<WatchEvent>,
    looks: bool,
    requeue: Option<Duration>,
) -> Vec<FindingSeverity> {
    let mut world = World::new();
    let map = || child("ConfigMap", "a-map");
    world.reconcile(|_| {});
    world.reconcile(|one| one.writes = vec![WriteFact { owners: owned(true), ..create(&map(), 1) }]);
    world.unrelated(&map());
    for _ in 0..2 {
        world.reconcile(|one| {
            one.causes = own();
            one.causes.extend(deployment.map(|event| woken(child("Deployment", "a-web"), event, None, true)));
            one.requeue = requeue;
            if looks {
                one.reads.push(ReadFact {
                    objects: vec![map().key()],
                    missing: false,
                    version: "1".to_owned(),
                });
            }
        });
    }
    world.wait(14);
    let told = world.opened().into_iter().filter(|finding| finding.rule == "missing-watch");
    told.map(|finding| finding.severity).collect()
}

#[test]
fn a_predicate_that_drops_creations_is_no_missing_watch() {
    assert_eq!(missing_watch(None, true, None), [FindingSeverity::Warning]);
    assert_eq!(missing_watch(Some(WatchEvent::Added), true, None), [FindingSeverity::Warning]);
    assert!(missing_watch(Some(WatchEvent::Modified), true, None).is_empty());
}

#[test]
fn a_child_that_a_late_reconcile_makes_once_needs_no_watch() {
    let second = Some(Duration::from_secs(1));
    assert_eq!(missing_watch(None, true, second), [FindingSeverity::Hint]);
    assert!(missing_watch(None, false, second).is_empty(), "nobody puts it back, after a second or ever");
    assert!(missing_watch(None, false, None).is_empty());
}

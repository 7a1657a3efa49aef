//! Reconciles that opdev asks for itself on the embedded control plane.

use super::*;

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

#[test]
fn a_verdict_waits_for_what_only_the_time_decides() {
    let undecided = |world: &World| world.findings.is_undecided();
    let mut world = embedded();
    assert!(!undecided(&world));
    let service = child("Service", "web");
    world.reconcile(|one| {
        one.causes = by_user();
        one.reads.push(ReadFact { objects: vec![service.key()], ..ReadFact::default() });
        one.writes = vec![WriteFact { owners: owned(true), ..create(&service, 0) }];
    });
    assert!(undecided(&world), "no event of the child has come yet");
    world.reconcile(|one| one.causes = vec![woken(service.clone(), WatchEvent::Added, None, true)]);
    assert!(!undecided(&world), "it has come");
    world.seen(&cr("a"), shelf(1, json!({})));
    world.now += 10_000;
    world.seen(&cr("a"), shelf(2, json!({})));
    assert!(undecided(&world), "no reconcile has answered the change yet");
    world.reconcile(|one| one.causes = by_user());
    assert!(!undecided(&world));
    world.seen(&cr("a"), shelf(3, json!({})));
    world.wait(12);
    assert!(!undecided(&world), "it does not wait for ever");
}

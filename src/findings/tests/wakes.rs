//! Watches that wake for nothing, and restarts that change what was settled.

use super::*;
use opdev_event::FieldChange;

fn heartbeat(path: &str) -> Cause {
    let change = FieldChange { path: path.to_owned(), old: Some("1".to_owned()), new: Some("2".to_owned()) };
    let CauseKind::Watch { object, event, by, relation, .. } =
        woken(child("Node", "n"), WatchEvent::Modified, Some("kubelet"), false).kind
    else {
        unreachable!("a watch")
    };
    let kind = CauseKind::Watch { object, event, fields: vec![change], by, own_write: false, relation };
    Cause { at: at(0), kind }
}

#[test]
fn a_heartbeat_that_leads_to_reconciles_is_told() {
    let run = |apart: i64, change: fn(u64, &mut Evidence)| {
        let mut world = World::new();
        for round in 0..40 {
            world.reconcile(|one| {
                one.causes = vec![heartbeat(".status.conditions[type=Ready].lastHeartbeatTime")];
                change(round, one);
            });
            world.now += apart;
        }
        world
            .rules()
            .into_iter()
            .filter(|(rule, _)| rule == "noisy-watch")
            .map(|(_, severity)| severity)
            .next()
    };
    assert_eq!(run(1_000, |_, _| {}), Some(FindingSeverity::Hint));
    assert_eq!(
        run(1_000, |round, one| one.causes.extend((round % 9 == 0).then(by_user).into_iter().flatten())),
        Some(FindingSeverity::Hint)
    );
    assert_eq!(run(3_000, |_, _| {}), None, "20 a minute");
    let write = |round: u64, one: &mut Evidence| {
        if round == 3 {
            one.writes = vec![update(&cr("a"), "status", vec![field(".status.ready", 1, 2)])];
        }
    };
    assert_eq!(run(1_000, write), None, "it has made the operator write");
    assert_eq!(run(1_000, |_, one| one.error = "not reachable".to_owned()), None, "a reconcile that failed");
    assert_eq!(run(1_000, |_, one| one.causes = own()), None, "its own writes");
    assert_eq!(
        run(1_000, |round, one| one.causes = vec![heartbeat([".spec.a", ".status.b"][round as usize % 2])]),
        None
    );
}

#[test]
fn a_restart_of_the_same_program_that_changes_a_settled_field_is_told() {
    let run = |files: &[&str], change: fn(u64, &mut Evidence), between: fn(u64, &mut World)| {
        let mut world = World::new();
        world.reconcile(|one| {
            one.writes = vec![WriteFact { owners: owned(true), ..create(&child("ConfigMap", "a-web"), 1) }];
        });
        world.seen(&cr("a"), shelf(1, json!({})));
        for round in 0..3 {
            world.reconcile(|_| {});
            world.wait(15);
            world.restart(files);
            between(round, &mut world);
            world.reconcile(|one| {
                one.causes = vec![Cause { at: one.at, kind: CauseKind::Start }];
                let host = FieldFact {
                    shown: ("a".to_owned(), "b".to_owned()),
                    ..field(".data.host", round + 1, round + 2)
                };
                let write = WriteFact {
                    at: one.at,
                    owners: owned(true),
                    ..update(&child("ConfigMap", "a-web"), "", vec![host])
                };
                one.writes = vec![write];
                change(round, one);
            });
        }
        world
            .rules()
            .into_iter()
            .filter(|(rule, _)| rule == "not-idempotent-after-restart")
            .map(|(_, severity)| severity)
            .next()
    };
    let nothing = |_: u64, _: &mut World| {};
    let same = |_: u64, _: &mut Evidence| {};
    assert_eq!(run(&[], same, nothing), Some(FindingSeverity::Error));
    assert_eq!(run(&["controller.go"], same, nothing), None, "another program");
    let once = |round: u64, one: &mut Evidence| {
        if round > 0 {
            one.writes.clear();
        }
    };
    assert_eq!(run(&[], once, nothing), None, "once may be what was missed");
    assert_eq!(
        run(&[], |_, one| one.writes[0].fields[0].other = "kubectl-edit".to_owned(), nothing),
        None,
        "drift"
    );
    assert_eq!(run(&[], |_, one| one.writes[0].fields[0].time = true, nothing), None, "a time");
    assert_eq!(
        run(&[], |_, one| one.writes[0].object.gvk.kind = "Secret".to_owned(), nothing),
        None,
        "a certificate"
    );
    let changed = |round: u64, world: &mut World| {
        world.seen(&cr("a"), shelf(2 + i64::try_from(round).unwrap(), json!({})));
    };
    assert_eq!(run(&[], same, changed), None, "the custom resource was changed while it was stopped");
    let input = |round: u64, one: &mut Evidence| {
        one.reads.push(ReadFact {
            objects: vec![child("Secret", "input").key()],
            missing: false,
            version: round.to_string(),
        });
    };
    assert_eq!(run(&[], input, nothing), None, "what it reads has changed");
}

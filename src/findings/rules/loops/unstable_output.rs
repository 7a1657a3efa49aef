//! Output that differs each time although the input does not.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::CauseKind;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "unstable-output",
    severity: Error,
    name: "unstable output",
    what: "The operator writes a value that comes back, or the same items in another order, though \
           nothing has changed. A Go map has no order, and a list from a cache has none. Each write of \
           a pod template starts a rollout.",
    when: "a value came back, or nothing but the order of items, lines or parts differed, 5 times since \
           the last event from outside, in a field that the call itself sent.",
    never: "values that another writer or a webhook changed in between; times. Items of a list move where one comes \
            or goes before them: no value comes back then.",
    fix: "Sort the items before you write.",
    ends: Ends::Calm,
    explains: &["hot-loop", "conflict", "stale-read"],
    guessed: Guessed::Told,
    torture: InTorture::ByChance,
    judge: Some(judge),
    absent: None,
};

/// From this number of times on it is no accident.
const TIMES: u32 = 5;

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let woken_by_others =
        evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Watch { own_write: false, .. }));
    for write in evidence.writes.iter().filter(|write| !write.unchanged) {
        for field in write.fields.iter().filter(|field| field.sent && !field.time) {
            let place = (write.object.key(), field.path.clone());
            let Some(known) = track.fields.get(&place) else { continue };
            let others = table.turns.get(&place).is_some_and(|turns| {
                turns.iter().any(|turn| {
                    turn.writer != evidence.controller
                        || turn.primary.as_ref() != Some(&evidence.object.key())
                })
            });
            // A status follows what is observed: it may well come back with what others did.
            let observes = write.subresource == "status" && known.order < TIMES && woken_by_others;
            if known.back.max(known.order) < TIMES || others || observes {
                continue;
            }
            let object = &write.object;
            let what = match known.order {
                order if order >= known.back => {
                    format!("the same {} items in another order, {order} times", known.items)
                }
                _ => format!(
                    "{} → {}, and a value that was there before came back {} times",
                    known.shown.0, known.shown.1, known.back
                ),
            };
            let why = format!(
                "{object} {} is written again and again with {what}, though nothing has changed",
                field.path
            );
            let fix = if known.order > 0 {
                RULE.fix.to_owned()
            } else {
                "Let the same input always give the same value: sort, and leave out what is random."
                    .to_owned()
            };
            let told =
                Told::of(&RULE, evidence).say(crate::rule::place(object, &field.path), why).about(object);
            // A map may come out in the same order twice: then nothing is written, and the loop rests for a
            // while.
            let by_chance = known.order > 0;
            out.push(Told { field: field.path.clone(), fix, by_chance, ..told });
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn a_list_in_another_order_each_time_is_told_and_takes_the_loop_in() {
        let mut world = World::new();
        let deployment = child("Deployment", "web");
        world.reconcile(|one| one.causes = by_user());
        for round in 0..40 {
            world.reconcile(|one| {
                one.causes = own();
                let path = ".spec.template.spec.containers[name=c].env";
                let env =
                    FieldFact { reordered: Some(3), scalar: false, ..field(path, round + 1, round + 2) };
                one.writes = vec![WriteFact { at: one.at, ..update(&deployment, "", vec![env]) }];
            });
        }
        assert_eq!(world.loud(), ["unstable-output"]);
        let opened = world.opened();
        assert_eq!(opened[0].title, "unstable output: Deployment env");
        expect!["Deployment default/web .spec.template.spec.containers[name=c].env is written again and again with the same 3 items in another order, 5 times, though nothing has changed"]
        .assert_eq(&opened[0].why);
        let last = world.told.iter().rev().find_map(|event| match event {
            Event::FindingCounted(finding) => Some(Arc::clone(finding)),
            _ => None,
        });
        assert_eq!(last.unwrap().explains, ["hot-loop"]);
        world.wait(30);
        assert!(world.closed().is_empty(), "the same order twice is chance");
        world.restart(&["controller.go"]);
        world.reconcile(|one| one.causes = own());
        world.wait(12);
        let closed = world.closed();
        assert_eq!(closed.len(), 1);
        assert!(closed[0].1.starts_with("fixed by your save of controller.go at "), "{}", closed[0].1);
    }

    #[test]
    fn items_that_move_by_one_place_are_no_values_that_come_back() {
        let mut world = World::new();
        let query = child("Deployment", "query");
        for round in 0..20 {
            world.reconcile(|one| {
                one.causes = own();
                let (old, new) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
                let path = ".spec.template.spec.containers[name=c].args[]";
                let more = if round % 2 == 0 { field(path, 0, 2) } else { field(path, 2, 0) };
                let moved = vec![field(path, old, new), more];
                one.writes = vec![WriteFact { at: one.at, ..update(&query, "", moved) }];
            });
        }
        assert!(!world.loud().contains(&"unstable-output".to_owned()), "{:?}", world.loud());
    }

    #[test]
    fn a_switch_that_goes_to_and_fro_is_told() {
        let mut world = World::new();
        for round in 0..20 {
            world.reconcile(|one| {
                one.causes = own();
                let (old, new) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
                one.writes = vec![WriteFact {
                    at: one.at,
                    ..update(&cr("a"), "status", vec![field(".status.on", old, new)])
                }];
            });
        }
        assert_eq!(world.loud(), ["unstable-output"]);
    }

    #[test]
    fn a_status_that_says_for_a_moment_that_a_child_is_put_back_is_no_value_that_comes_back() {
        let run = |deleted: bool| {
            let mut world = World::new();
            let kinds = ["Service", "Secret", "ConfigMap", "Deployment", "Role", "Ingress"];
            world.reconcile(|one| {
                one.writes = kinds.map(|kind| create(&child(kind, "web"), 0)).to_vec();
            });
            for (round, kind) in kinds.iter().cycle().take(18).enumerate() {
                for (old, new) in [(1, 2), (2, 1)] {
                    world.reconcile(|one| {
                        one.causes = own();
                        let says = update(&cr("a"), "status", vec![field(".status.state", old, new)]);
                        one.writes = vec![WriteFact { at: one.at, ..says }];
                        if deleted && new == 2 {
                            one.writes.push(create(&child(kind, "web"), 1_000 * round as i64));
                        }
                    });
                }
            }
            world.loud().contains(&"unstable-output".to_owned())
        };
        assert!(run(false));
        assert!(!run(true));
    }
}

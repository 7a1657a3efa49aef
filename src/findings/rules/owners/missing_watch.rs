//! Changes of a child that never reach its controller.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Hint, Warning};
use opdev_event::evidence::{Evidence, WriteFact};
use opdev_event::{CauseKind, TraceLevel};
use opdev_facts::Table;
use opdev_facts::Wait;

pub(crate) static RULE: Rule = Rule {
    id: "missing-watch",
    severity: Error,
    name: "no watch",
    what: "A controller makes objects of a kind, and no event of them ever comes back to it. When \
           somebody changes or deletes such an object, the operator does not see it.",
    when: "an object that the controller has made, and looks at, was not among the causes \
           of its reconciles for 10 s. An error once it was deleted and came back only with a reconcile for another \
           reason, for which opdev asks itself on the embedded control plane. A hint where the controller asks for a period: the object is put \
           back only after that.",
    never: "objects that later reconciles leave alone; programs of which not all causes are known. A \
           predicate may drop creations on purpose: where other events of children come, nothing is \
           told.",
    fix: "Watch the kind: Owns(&Kind{}) in SetupWithManager.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: Some(absent),
};

/// A reconcile for another reason puts back what somebody had taken away: now it is certain.
fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(controller) = table.controllers.get(&evidence.controller) else { return };
    let period = evidence.requeue.is_some_and(|after| after.as_secs() >= 1);
    if controller.unclear || evidence.level != Some(TraceLevel::Full) || period {
        return;
    }
    let caused = |write: &WriteFact| {
        let of_it = |kind: &CauseKind| matches!(kind, CauseKind::Watch { object, .. } if object.key() == write.object.key());
        evidence.causes.iter().any(|cause| of_it(&cause.kind))
    };
    let own = evidence.object.key();
    let made_again = |write: &&WriteFact| {
        let (key, kind) = (write.object.key(), &write.object.gvk);
        write.created
            && key != own
            && !controller.echoed.contains(&(kind.group.clone(), kind.kind.clone()))
            && table
                .makers
                .get(&key)
                .is_some_and(|maker| maker.remade && maker.controller == evidence.controller)
            && !caused(write)
    };
    let Some(write) = evidence.writes.iter().find(made_again) else { return };
    let kind = &write.object.gvk.kind;
    let why = format!(
        "{} was deleted by somebody else, and {} made it again only when it ran for another reason",
        write.object, evidence.controller
    );
    let referenced = write.owners.iter().any(|owner| owner.kind == own.kind && owner.controller);
    let fix = fix(kind, (!write.owners.is_empty()).then_some(referenced));
    out.push(Told { fix, field: kind.clone(), ..Told::of(&RULE, evidence).say(kind, why) });
}

fn fix(kind: &str, referenced: Option<bool>) -> String {
    match referenced {
        Some(false) => {
            "Owns() needs a controller reference: controllerutil.SetControllerReference, or Owns(…, builder.MatchEveryOwner).".to_owned()
        }
        Some(true) => format!("Watch the kind: Owns(&{kind}{{}}) in SetupWithManager."),
        None => format!(
            "No owner reference leads back: set one with controllerutil.SetControllerReference and watch with \
             Owns(&{kind}{{}}), or watch with Watches(&{kind}{{}}, …) and a map function."
        ),
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for one in &table.pending {
        let Wait::Echo { referenced, looks, made } = &one.what else { continue };
        let kind = &one.about.gvk;
        let Some(controller) = table.controllers.get(&one.controller) else { continue };
        let maker = table.makers.get(&one.about.key());
        // With an owner that is no controller `Owns` hears of others of the kind, and not of this one.
        let echoed = match referenced {
            Some(false) => maker.is_some_and(|maker| maker.echoed),
            _ => controller.echoed.contains(&(kind.group.clone(), kind.kind.clone())),
        };
        let busy = controller.busy.is_some_and(|(_, ended)| ended > one.at);
        // That no creation comes says nothing of what comes later.
        let busy = busy || controller.drops_creations();
        if echoed || busy || controller.unclear || controller.reads == 0 || one.age(table).as_secs() < 10 {
            continue;
        }
        let gone = maker.is_none_or(|maker| maker.gone || maker.deleted.is_some());
        let track = table.tracks.get(&(one.controller.clone(), one.primary.key()));
        // An object that is made once and left alone needs no watch.
        let looked = track.and_then(|track| Some((track, *track.touched.get(&one.about.key())?)));
        let again = looked.is_some_and(|(track, last)| match track.ended > one.at {
            true => last > *made,
            // No reconcile since: its maker looks at it before it makes it.
            false => *looks,
        });
        if gone || !again {
            continue;
        }
        // The period of this object: others of the same controller may ask for another one.
        let period = track.and_then(|track| track.requeue).filter(|after| after.as_secs() >= 1);
        let (severity, period) = match period {
            Some(period) => (Hint, format!("; it is put back only after {} s", period.as_secs())),
            // An operator that leaves the owner out on purpose, and says whose the object is, mostly means it
            // to stay as it is.
            None if referenced.is_none() && maker.is_some_and(|maker| maker.tied) => (Hint, String::new()),
            None if controller.good == 0 => (Hint, String::new()),
            None => (Warning, String::new()),
        };
        let of_it = if *referenced == Some(false) { "of it" } else { "of its kind" };
        let why = format!(
            "{} made {} 10 s ago, and no event {of_it} has ever led to one of its reconciles: a change by others is not seen{period}",
            one.controller, one.about
        );
        let fix = fix(&kind.kind, *referenced);
        let told = Told::new(&RULE, &one.primary, table.now, one.reconcile).say(&kind.kind, why);
        out.push(Told {
            severity,
            fix,
            place: maker.and_then(|maker| maker.place.clone()),
            field: kind.kind.clone(),
            controller: one.controller.clone(),
            ..told
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;
    use expect_test::expect;

    #[test]
    fn a_child_whose_events_never_come_back_is_told() {
        let service = child("Service", "web");
        let run = |again: bool, echo: bool, period: Option<Duration>, controller: bool| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.writes =
                    vec![WriteFact { owners: owned(controller), ..create(&child("Service", "web"), 1) }];
            });
            world.reconcile(|one| {
                one.causes = own();
                if echo {
                    one.causes.push(woken(child("Service", "web"), WatchEvent::Added, None, true));
                }
                if again {
                    one.reads.push(ReadFact {
                        objects: vec![child("Service", "web").key()],
                        missing: false,
                        ..ReadFact::default()
                    });
                }
                one.requeue = period;
            });
            world.unrelated(&service);
            world.wait(14);
            world.opened()
        };
        let told = run(true, false, None, true);
        assert_eq!(
            (told.len(), told[0].rule.as_str(), told[0].severity),
            (1, "missing-watch", FindingSeverity::Warning)
        );
        expect!["Watch the kind: Owns(&Service{}) in SetupWithManager."].assert_eq(&told[0].fix);
        let told = run(true, false, None, false);
        // Never: add Owns.
        expect!["Owns() needs a controller reference: controllerutil.SetControllerReference, or Owns(…, builder.MatchEveryOwner)."]
        .assert_eq(&told[0].fix);
        assert!(run(true, true, None, true).is_empty(), "the echo came");
        assert!(run(false, false, None, true).is_empty(), "made once and left alone");
        let told = run(true, false, Some(Duration::from_secs(60)), true);
        assert_eq!(told[0].severity, FindingSeverity::Hint, "an agreed period");
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
                one.causes
                    .extend(deployment.map(|event| woken(child("Deployment", "a-web"), event, None, true)));
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
                one.reads.push(ReadFact {
                    objects: vec![service.key()],
                    missing: true,
                    ..ReadFact::default()
                });
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
        // What is less certain does not take the place of the proof, and each second of waiting is no other
        // finding.
        world.wait(14);
        let newest = world.told.iter().rev().find_map(|event| match event {
            Event::FindingCounted(finding) => Some(finding),
            _ => None,
        });
        let newest = newest.unwrap();
        expect!["Service default/web was deleted by somebody else, and shelf made it again only when it ran for another reason"]
        .assert_eq(&newest.why);
        assert_eq!((newest.times, newest.severity), (2, FindingSeverity::Error));
    }

    #[test]
    fn a_child_that_goes_with_its_owner_or_while_no_program_runs_proves_no_missing_watch() {
        let service = child("Service", "web");
        let make = |world: &mut World, causes: Vec<Cause>, deleting: bool| {
            let now = world.now;
            world.reconcile(|one| {
                (one.causes, one.deleting) = (causes, deleting);
                one.reads.push(ReadFact {
                    objects: vec![service.key()],
                    missing: true,
                    ..ReadFact::default()
                });
                one.writes = vec![WriteFact { owners: owned(true), ..create(&service, now) }];
            });
        };
        let other = || vec![woken(child("StatefulSet", "web"), WatchEvent::Deleted, None, false)];
        let start = || vec![Cause { at: at(0), kind: CauseKind::Start }];
        // Seconds between the deletion and the next reconcile, its causes, what happens to the custom
        // resource before.
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
                one.causes =
                    vec![woken(child("ConfigMap", "other"), WatchEvent::Added, Some("manager"), true)];
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
}

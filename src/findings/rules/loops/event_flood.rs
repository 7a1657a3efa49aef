//! One message, told again and again.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::{EVENTS_KEPT, Table};

/// New Events in a minute. client-go puts more of one reason together and counts them.
const FLOOD: usize = 10;
const _: () = assert!(FLOOD <= EVENTS_KEPT, "a rule sees no more Events than are kept");

pub(crate) static RULE: Rule = Rule {
    id: "event-flood",
    severity: Warning,
    name: "flood of Events",
    what: "The operator records the same Event again and again. client-go drops what is too much, so \
           that Events that matter are lost.",
    when: "10 new Events a minute with the same object, reason and message; or 10 about one object, of \
           reconciles that write nothing else.",
    never: "counts that rise on one Event.",
    fix: "Record an Event when something changes, not in each reconcile.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for write in evidence.writes.iter().chain(&evidence.beside) {
        let Some(event) = &write.event else { continue };
        let place = (event.about.clone(), event.reason.clone(), event.message);
        let times = table.events.get(&place);
        let lately =
            times.into_iter().flatten().filter(|at| write.at.duration_since(**at).as_secs() < 60).count();
        let within = |at: &&jiff::Timestamp| write.at.duration_since(**at).as_secs() < 60;
        let about = table.events_about.get(&event.about);
        let all = about.into_iter().flatten().filter(within).count();
        // An Event may come with the evidence of another reconcile, for a goroutine of its own sends it.
        let works = table.tracks.iter().any(|((_, object), track)| {
            *object == event.about && !(track.fields.is_empty() && track.made.is_empty())
        });
        let why = if lately >= FLOOD {
            format!("{lately} Events {} with the same message were recorded in a minute", event.reason)
        } else if all >= FLOOD && !works {
            format!(
                "{all} Events about {} were recorded in a minute, and nothing else was written",
                event.about.name
            )
        } else {
            continue;
        };
        let mut told = Told::of(&RULE, evidence).say(&event.reason, why);
        if let Some(live) = table.live.get(&event.about) {
            told.object = live.object.clone();
        } else if event.about != evidence.object.key() {
            let about = table.makers.get(&event.about).map(|maker| maker.object.clone());
            told.about = about.or_else(|| Some(reference(&event.about)));
        }
        out.push(Told { field: event.reason.clone(), ..told });
        return;
    }
}

fn reference(key: &opdev_object::meta::ObjectKey) -> opdev_object::meta::ObjectRef {
    opdev_object::meta::ObjectRef {
        gvk: opdev_object::meta::Gvk::new(&key.group, "", &key.kind),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

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
                    let event = WriteFact {
                        event: Some(event),
                        ..create(&child("Event", &format!("e{round}")), now)
                    };
                    one.beside = vec![event];
                    if writes {
                        let path = format!(".data.k{round}");
                        let map = child("ConfigMap", "web");
                        one.writes = vec![WriteFact {
                            at: one.at,
                            ..update(&map, "", vec![field(&path, 0, round + 1)])
                        }];
                    }
                });
            }
            world.rules().iter().any(|(rule, _)| rule == "event-flood")
        };
        assert!(run(false));
        assert!(!run(true));
    }

    #[test]
    fn the_same_event_without_end_is_told() {
        let event = |message: fn(u64) -> u64| {
            let mut world = World::new();
            for round in 0..14_u64 {
                world.reconcile(|one| {
                    let fact = opdev_event::evidence::EventFact {
                        about: cr("a").key(),
                        reason: "Synced".to_owned(),
                        message: message(round),
                    };
                    let write = create(&child("Event", &format!("e-{round}")), 10);
                    one.beside = vec![WriteFact { at: one.at, event: Some(fact), ..write }];
                    let replicas = vec![field(".spec.replicas", round + 1, round + 2)];
                    one.writes =
                        vec![WriteFact { at: one.at, ..update(&child("Deployment", "web"), "", replicas) }];
                    one.causes = if round == 6 { by_user() } else { own() };
                });
            }
            world.loud()
        };
        assert_eq!(event(|_| 7), ["event-flood"]);
        assert!(event(|round| round).is_empty(), "each with another message, and work beside it");
    }
}

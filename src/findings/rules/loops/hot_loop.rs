//! Reconciles whose own writes start the next one.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "hot-loop",
    severity: Error,
    name: "hot loop",
    what: "The operator writes a field again and again, and each write starts the next reconcile. The \
           cluster never comes to rest, and each write costs the API server a call and every watcher an \
           event.",
    when: "the same field of the same object was written 12 times since the last event from outside, \
           within 60 s; within 10 min it is a warning. It ends 10 s after the last write.",
    never: "reconciles that the reconciler asked for a second or more later; a field that goes on by one \
           step each time, such as a phase.",
    fix: "Write only what differs. Of the custom resource watch spec, annotations and labels: \
           predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, \
           predicate.LabelChangedPredicate{}).",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

/// From this number of writes on it is a loop.
const WRITES: usize = 12;
/// The number where each value is new.
const FRESH: u32 = 30;

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    if track.by_timer {
        return;
    }
    for write in evidence.writes.iter().filter(|write| !write.unchanged) {
        for field in write.fields.iter().filter(|field| field.sent) {
            let place = (write.object.key(), field.path.clone());
            let Some(known) = track.fields.get(&place).filter(|known| known.times.len() >= WRITES) else {
                continue;
            };
            if known.fresh && !known.only_times && known.count < FRESH {
                continue;
            }
            let (Some(first), Some(last)) = (known.times.front(), known.times.back()) else { continue };
            let seconds = last.duration_since(*first).as_secs_f64();
            if seconds > 600.0 {
                continue;
            }
            let rate = (known.times.len() - 1) as f64 / seconds.max(0.001);
            let object = &write.object;
            let same = match known.items {
                items if known.order > 0 => format!("the same {items} items in another order"),
                _ => format!("{} → {}", known.shown.0, known.shown.1),
            };
            let why = format!(
                "each reconcile writes {object} {} again ({same}), and the write starts the next one: {} writes since the last \
                 event from outside",
                field.path, known.count
            );
            let told =
                Told::of(&RULE, evidence).say(crate::rule::place(object, &field.path), why).about(object);
            let severity = if rate >= 1.0 && seconds <= 60.0 { Error } else { Warning };
            let per_second = Some(rate.round() as u32).filter(|rate| *rate > 1);
            out.push(Told { severity, per_second, field: field.path.clone(), ..told });
            // One field says it: the others are written with it.
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_counter_in_the_status_is_a_loop_and_a_few_steps_are_none() {
        let run = |rounds: u64, causes: fn() -> Vec<Cause>, is_timer: bool| {
            let mut world = World::new();
            for round in 0..rounds {
                world.reconcile(|one| {
                    one.causes = causes();
                    let count = field(".status.count", round + 1, round + 2);
                    one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![count]) }];
                    one.requeue = Some(Duration::from_secs(1)).filter(|_| is_timer);
                });
            }
            world.loud()
        };
        assert_eq!(run(60, own, false), ["hot-loop"]);
        assert!(run(20, own, false).is_empty(), "phases");
        assert!(run(60, by_user, false).is_empty(), "a person who writes often");
        assert!(run(60, timer, true).is_empty(), "its own timer of a second");
    }
}

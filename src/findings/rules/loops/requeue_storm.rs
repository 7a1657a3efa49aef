//! A reconciler that asks to run again at once, for ever.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "requeue-storm",
    severity: Warning,
    name: "requeue storm",
    what: "The reconciler asks to run again in less than a second, does nothing, and asks again. The \
           worker is busy with it, and the log fills.",
    when: "20 reconciles in a row and 30 s with equal calls and answers, nothing written and no event \
           among the causes. Where it asks without a time, 4 in a row and 5 s, for the queue makes the \
           pauses longer and longer.",
    never: "reconciles with an error or a conflict among their calls.",
    fix: "Return without a requeue and let a watch wake the reconciler, or ask for a time that fits \
           what it waits for: RequeueAfter.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let seconds = evidence.ended.duration_since(track.idle_since).as_secs();
    let untimed = evidence.requeue.is_some_and(|after| after.is_zero());
    let storm = track.idle >= 20 && seconds >= 30 || untimed && track.idle >= 4 && seconds >= 5;
    if !storm {
        return;
    }
    let asked = match evidence.requeue {
        Some(after) if !after.is_zero() => format!("in {} ms", after.as_millis()),
        _ => "without a time".to_owned(),
    };
    let why = format!(
        "{} reconciles of {} in a row asked to run again {asked} and wrote nothing, each with the same calls and answers",
        track.idle, evidence.object
    );
    out.push(Told::of(&RULE, evidence).say("", why));
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn who_asks_to_run_again_for_ever_is_told() {
        let run = |requeue: Duration, rounds: usize, pause: i64, wakes: bool| {
            let mut world = World::new();
            for round in 0..rounds {
                world.reconcile(|one| {
                    one.requeue = Some(requeue);
                    one.causes = if wakes && round % 5 == 0 { by_user() } else { timer() };
                });
                world.now += pause;
            }
            world.loud()
        };
        assert_eq!(run(Duration::ZERO, 7, 1600, false), ["requeue-storm"]);
        assert!(run(Duration::ZERO, 10, 300, false).is_empty(), "a wait of 3 s");
        assert!(run(Duration::ZERO, 30, 1600, true).is_empty(), "a wait with events");
        assert_eq!(run(Duration::from_millis(200), 160, 200, false), ["requeue-storm"]);
        assert!(run(Duration::from_millis(200), 30, 200, false).is_empty(), "a poll of 6 s");
        assert!(run(Duration::from_secs(5), 60, 5000, false).is_empty(), "a period");
        assert!(run(Duration::from_millis(200), 160, 200, true).is_empty(), "events");
    }
}

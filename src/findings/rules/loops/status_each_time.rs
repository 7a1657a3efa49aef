//! A time in the status that each reconcile writes anew.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "status-each-time",
    severity: Error,
    name: "status written each time",
    what: "Each reconcile writes the time of day into the status, and this write starts the next \
           reconcile.",
    when: "five writes of the status in a row differ in nothing but times, and no timer of the \
           reconciler led to them.",
    never: "a heartbeat that the reconciler asks for itself; counters.",
    fix: "Write a time only when something else in the status changes, or keep it out of the status.",
    ends: Ends::Calm,
    explains: &["hot-loop", "conflict", "stale-read"],
    guessed: Guessed::Told,
    torture: InTorture::NotInThePast,
    judge: Some(judge),
    absent: None,
};

const TIMES: u32 = 5;

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let write = evidence.writes.iter().find(|write| {
        write.subresource == "status"
            && write.object.key() == evidence.object.key()
            && !write.fields.is_empty()
    });
    let Some(write) = write.filter(|_| track.times_only >= TIMES) else { return };
    let Some(field) = write.fields.first() else { return };
    let why = format!(
        "each of {} reconciles wrote {} {} with nothing but a newer time, and this write started the next one",
        track.times_only, evidence.object, field.path
    );
    let told = Told::of(&RULE, evidence).say(crate::rule::place(&evidence.object, &field.path), why);
    out.push(Told { field: field.path.clone(), ..told });
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_time_in_the_status_is_told_and_a_heartbeat_is_not() {
        let run = |causes: fn() -> Vec<Cause>, requeue: Option<Duration>| {
            let mut world = World::new();
            for round in 0..8 {
                world.reconcile(|one| {
                    one.causes = causes();
                    one.requeue = requeue;
                    let time = FieldFact { time: true, ..field(".status.lastSync", round + 1, round + 2) };
                    one.writes = vec![WriteFact { at: one.at, ..update(&cr("a"), "status", vec![time]) }];
                });
            }
            world.loud()
        };
        assert_eq!(run(own, None), ["status-each-time"]);
        assert!(run(timer, Some(Duration::from_secs(3))).is_empty());
    }
}

//! A reconcile that takes long while others wait.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "blocked-worker",
    severity: Warning,
    name: "worker is blocked",
    what: "A reconcile holds its worker for long, and the other objects wait. With one worker a single \
           slow call stops the whole operator.",
    when: "a reconcile takes 10 s while others wait, or 30 s alone; also one that never ends.",
    never: "reconciles of opdev itself.",
    fix: "Give each call a deadline, do not sleep in a reconcile, and ask for a requeue instead; \
           MaxConcurrentReconciles helps where the work is long by nature.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: Some(absent),
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let took = evidence.ended.duration_since(evidence.at).as_secs();
    if took >= 30 {
        let why = format!("the reconcile of {} took {took} s", evidence.object);
        out.push(Told::of(&RULE, evidence).say("", why));
        return;
    }
    // Another one held the worker while this one waited.
    let last = table.tracks.iter().find(|((controller, key), track)| {
        *controller == evidence.controller
            && *key != evidence.object.key()
            && track.ended.duration_since(track.began).as_secs() >= 10
            && evidence.at.duration_since(track.ended).as_secs_f64().abs() < 1.0
    });
    if let Some((_, track)) = last.filter(|_| evidence.queued.as_secs() >= 1) {
        let took = track.ended.duration_since(track.began).as_secs();
        let why =
            format!("the reconcile of {} took {took} s, and {} waited for it", track.object, evidence.object);
        let told = Told::new(&RULE, &track.object, evidence.at, 0).say("", why);
        out.push(Told { controller: evidence.controller.clone(), ..told });
    }
}

fn absent(table: &Table, out: &mut Vec<Told>) {
    for (key, (reconcile, since)) in &table.running {
        let track = table.tracks.iter().find(|((_, object), _)| object == key);
        let took = table.now.duration_since(*since).as_secs();
        let live = table.live.get(key).map(|live| &live.object);
        let object = track.map(|(_, track)| &track.object).or(live);
        if let Some(object) = object.filter(|_| took >= 30 && table.started.is_some()) {
            let why = format!("the reconcile of {object} has run for {took} s and has not ended");
            out.push(Told::new(&RULE, object, table.now, *reconcile).say("", why));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_slow_reconcile_is_told_where_others_wait() {
        let run = |took: i64, queued: u64| {
            let mut world = World::new();
            world.reconcile(|one| {
                one.object = cr("slow");
                one.ended = at(took);
            });
            world.now = took + 1;
            world.reconcile(|one| one.queued = Duration::from_secs(queued));
            world.loud()
        };
        assert_eq!(run(12_000, 11), ["blocked-worker"]);
        assert!(run(12_000, 0).is_empty());
        assert_eq!(run(31_000, 0), ["blocked-worker"]);
    }
}

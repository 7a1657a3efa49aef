//! A custom resource that is to go and does not.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Error;
use opdev_facts::Table;
use opdev_facts::is_programs;

pub(crate) static RULE: Rule = Rule {
    id: "stuck-deletion",
    severity: Error,
    name: "deletion does not end",
    what: "The custom resource was deleted, and a finalizer of the operator keeps it, but nothing goes \
           on.",
    when: "no reconcile came within 10 s of the deletion; or the same error three times; or 30 s at \
           rest, with no requeue and no retry planned.",
    never: "reconciles that come and wait; finalizers of Kubernetes itself; errors of simulated pods.",
    fix: "Take the finalizer off in each way through the reconciler that a deleted object can go.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: None,
    absent: Some(absent),
};

fn absent(table: &Table, out: &mut Vec<Told>) {
    let deleted = table.live.iter().filter(|(_, live)| live.gone.is_none());
    for (key, live) in deleted {
        let Some(since) = live.deleting else { continue };
        let finalizer = live.finalizers.iter().find(|one| is_programs(one));
        let (Some(finalizer), Some(started)) = (finalizer, table.started) else { continue };
        let waited = table.now.duration_since(since.max(started)).as_secs();
        let tracks: Vec<_> = table.tracks.iter().filter(|((_, object), _)| object == key).collect();
        if tracks.is_empty() || table.running.contains_key(key) {
            continue;
        }
        let unseen = waited >= 10 && tracks.iter().all(|(_, track)| track.ended < since);
        let failing =
            tracks.iter().find(|(_, track)| track.errors >= 3 && !track.by_pods && track.began >= since);
        let rest = tracks.iter().all(|(_, track)| {
            track.requeue.is_none()
                && track.error.is_empty()
                && table.now.duration_since(track.ended).as_secs() >= 30
        });
        let why = if let Some((_, track)) = failing {
            format!("each reconcile of the deleted object fails, so {finalizer} stays: {}", track.error)
        } else if unseen {
            format!("no reconcile came in {waited} s since the deletion, so {finalizer} stays")
        } else if waited >= 30 && rest {
            format!(
                "{finalizer} stays: the reconciles since the deletion have ended without an error and without a requeue"
            )
        } else {
            continue;
        };
        out.push(Told::new(&RULE, &live.object, table.now, 0).say("", why));
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_deletion_that_does_not_end_is_told_and_one_that_waits_is_not() {
        let of = |finalizer: &str, seen: bool, requeue: Option<Duration>, error: &str| {
            let mut world = World::new();
            world.reconcile(|_| {});
            let deleted = json!({"finalizers": [finalizer], "deletionTimestamp": "2026-01-01T00:00:00Z"});
            world.seen(&cr("a"), shelf(2, deleted));
            world.now += 50;
            for _ in 0..if error.is_empty() { usize::from(seen) } else { 4 } {
                world.reconcile(|one| {
                    (one.deleting, one.requeue, one.error) = (true, requeue, error.to_owned());
                });
            }
            world.wait(36);
            world.loud()
        };
        let run = |seen, requeue, error: &str| of("lib.example.com/cleanup", seen, requeue, error);
        assert_eq!(of("delete-pods-in-order", false, None, ""), ["stuck-deletion"], "no slash in its name");
        assert_eq!(of("shelf.cluster.x-k8s.io", false, None, ""), ["stuck-deletion"], "of a project");
        assert!(of("foregroundDeletion", false, None, "").is_empty(), "the garbage collector's");
        assert_eq!(run(false, None, ""), ["stuck-deletion"]);
        assert_eq!(run(true, None, ""), ["stuck-deletion"]);
        assert_eq!(run(true, None, "the parent is not there"), ["stuck-deletion"]);
        assert!(run(true, Some(Duration::from_secs(10)), "").is_empty());
    }
}

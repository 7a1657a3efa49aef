//! An error that does not go away.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "same-error",
    severity: Warning,
    name: "same error",
    what: "The reconciles of an object fail with the same error again and again.",
    when: "the same error 10 times in a row and for 60 s.",
    never: "what opdev itself refuses because pods are simulated. On the embedded control plane also errors that no \
            answer of the API server explains, where the reconcile looks for pods or their addresses.",
    fix: "Look at the error: what it waits for may never come.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let seconds = evidence.ended.duration_since(track.errors_since).as_secs();
    if track.errors < 10 || seconds < 60 || track.by_pods || evidence.error.is_empty() {
        return;
    }
    let why = format!(
        "{} reconciles in a row failed in {seconds} s with the same error: {}",
        track.errors, evidence.error
    );
    out.push(Told::of(&RULE, evidence).say("", why));
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn an_application_that_does_not_answer_is_no_fault_where_pods_are_simulated() {
        let (talks, shards) =
            ("received unknown message type: 72", "dial tcp: lookup web.default.svc: no such host");
        let fails = |embedded: bool, pods: bool, error: &str, refused: &str| {
            let mut world = World::new();
            world.findings.table.embedded = embedded;
            let deleted = json!({"finalizers": ["lib.example.com/cleanup"], "deletionTimestamp": "2026-01-01T00:00:00Z"});
            world.reconcile(|_| {});
            world.seen(&cr("a"), shelf(2, deleted));
            for _ in 0..12 {
                world.reconcile(|one| {
                    (one.pods, one.error, one.deleting) = (pods, error.to_owned(), true);
                    if !refused.is_empty() {
                        let message = refused.to_owned();
                        let verb = "get".to_owned();
                        one.refusals =
                            vec![RefusalFact { status: 500, verb, message, ..RefusalFact::default() }];
                    }
                });
                world.now += 6_000;
            }
            world.wait(2);
            world.loud()
        };
        let both = ["same-error", "stuck-deletion"];
        assert_eq!(fails(false, true, talks, ""), both, "on a cluster pods are real");
        assert!(fails(true, true, talks, "").is_empty());
        assert!(fails(true, false, shards, "").is_empty());
        assert_eq!(fails(true, false, talks, ""), both, "it has nothing to do with pods");
        assert_eq!(fails(true, true, "no such thing", "no such thing"), both, "the API server's own word");
        assert_eq!(fails(true, true, "Secret \"a\" not found", ""), both, "the cache's own word");
    }
}

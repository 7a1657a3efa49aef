//! A wish to run again that is returned beside an error.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "result-ignored",
    severity: Hint,
    name: "RequeueAfter is ignored",
    what: "The reconciler returns RequeueAfter together with an error. controller-runtime ignores the result then: it \
           tries again at once, after its own pauses, which begin at 5 ms.",
    when: "two reconciles in a row returned an error with a RequeueAfter, and the second one came sooner than the \
           first had asked for.",
    never: "terminal errors; Requeue without a time; wishes that are shorter than the pause which the queue has \
            reached.",
    fix: "Return one of both. That is the error, where it should be tried again with growing pauses. Or it \
           is the RequeueAfter with a nil error, and the status says what is missing.",
    ends: Ends::Fixed,
    explains: &[],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let Some((after, wish)) = track.failures.came.filter(|_| evidence.ignored.is_some()) else { return };
    let why = format!(
        "the reconcile before failed and asked to run again in {} s; the next one came after {:.1} s, for the wish \
         beside an error is ignored",
        wish.as_secs_f64(),
        after.as_secs_f64()
    );
    out.push(Told::of(&RULE, evidence).say("", why));
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    fn retry() -> Vec<Cause> {
        vec![Cause { at: at(0), kind: CauseKind::Retry { attempt: 1, error: "no answer".to_owned() } }]
    }

    #[test]
    fn a_wish_beside_an_error_is_told_once_the_retry_comes_sooner() {
        let run = |wish: Option<u64>, pause: i64, causes: fn() -> Vec<Cause>| {
            let mut world = World::new();
            for _ in 0..2 {
                world.reconcile(|one| {
                    one.causes = causes();
                    one.error = "no answer".to_owned();
                    one.ignored = wish.map(Duration::from_secs);
                });
                world.now += pause;
            }
            world.rules()
        };
        assert_eq!(run(Some(30), 10, retry), [("result-ignored".to_owned(), FindingSeverity::Hint)]);
        assert!(run(None, 10, retry).is_empty(), "an error alone, or a terminal one");
        assert!(run(Some(1), 5_000, retry).is_empty(), "the queue waits longer than the wish");
        assert!(run(Some(30), 10, by_user).is_empty(), "an event led to it");
    }
}

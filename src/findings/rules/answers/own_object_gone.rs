//! A reconcile that fails because its object is gone.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;
use opdev_facts::Table;

pub(crate) static RULE: Rule = Rule {
    id: "own-object-gone",
    severity: Warning,
    name: "error for an object that is gone",
    what: "The custom resource was deleted, and the reconciler returns the NotFound of its own first read \
           as an error. The request is tried again without end.",
    when: "two reconciles of a custom resource that is gone failed by it. Their first read was of it, and \
           found nothing.",
    never: "reads of other objects that are missing; a custom resource that is there.",
    fix: "Return client.IgnoreNotFound(err) after the first Get: nothing is left to do.",
    ends: Ends::Fixed,
    explains: &["same-error", "result-ignored"],
    guessed: Guessed::Never,
    torture: InTorture::Never,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let primary = evidence.object.key();
    let first = evidence.reads.first().is_some_and(|read| read.missing && read.objects == [primary.clone()]);
    let gone = table.live.get(&primary).is_none_or(|live| live.gone.is_some());
    let names = format!("\"{}\" not found", primary.name);
    if !first || !gone || !is_of_it(&evidence.error, &names, &primary.kind, &primary.group) {
        return;
    }
    let track = table.tracks.get(&(evidence.controller.clone(), primary));
    if track.is_none_or(|track| track.failures.row < 2) {
        return;
    }
    let why = format!("{} is gone, and each reconcile of it fails: {}", evidence.object, evidence.error);
    out.push(Told::of(&RULE, evidence).say("", why));
}

/// True if an error says that an object of a kind is not there: a cache names it by its kind.
fn is_of_it(error: &str, names: &str, kind: &str, group: &str) -> bool {
    let Some(before) = error.find(names).map(|at| error[..at].trim_end()) else { return false };
    let word = before.rsplit([' ', '(', ':', '\n']).next().unwrap_or_default();
    let (resource, of) = word.split_once('.').unwrap_or((word, ""));
    of == group && resource.eq_ignore_ascii_case(kind)
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_reconcile_that_fails_because_its_object_is_gone_is_told() {
        let run = |gone: bool, read: ObjectRef, error: &str| {
            let mut world = World::new();
            world.reconcile(|one| one.causes = by_user());
            world.seen(&cr("a"), shelf(1, json!({})));
            if gone {
                world.gone(&cr("a"));
            }
            for _ in 0..2 {
                world.reconcile(|one| {
                    one.reads =
                        vec![ReadFact { objects: vec![read.key()], missing: true, ..ReadFact::default() }];
                    one.error = error.to_owned();
                });
            }
            world.rules()
        };
        let own = "reading it: Shelf.lib.example.com \"a\" not found";
        assert_eq!(run(true, cr("a"), own), [("own-object-gone".to_owned(), FindingSeverity::Warning)]);
        assert!(run(false, cr("a"), own).is_empty(), "it is there: the cache is behind");
        let secret = "Secret \"a\" not found";
        assert!(run(true, child("Secret", "a"), secret).is_empty(), "another object of this name");
        assert!(run(true, cr("a"), secret).is_empty(), "it went on, and failed by something else");
        assert!(run(true, cr("a"), "the license server does not answer").is_empty());
    }
}

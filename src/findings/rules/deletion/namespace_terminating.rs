//! Writes into a namespace that is being deleted.

use crate::rule::{Ends, Guessed, InTorture, Rule, Told};
use opdev_event::FindingSeverity::{Error, Warning};
use opdev_event::evidence::Evidence;
use opdev_facts::Table;
use opdev_facts::{call_of, is_programs};

pub(crate) static RULE: Rule = Rule {
    id: "namespace-terminating",
    severity: Error,
    name: "namespace is going",
    what: "The operator goes on making objects in a namespace that is being deleted. Each try is \
           refused.",
    when: "two writes were refused because the namespace is being terminated. An error where the custom resource is \
           being deleted, too, and has a finalizer of the operator, which stays by it.",
    never: "the first one.",
    fix: "Stop where the namespace has a deletionTimestamp, and end what the finalizer waits for.",
    ends: Ends::Calm,
    explains: &[],
    guessed: Guessed::Told,
    torture: InTorture::InFullView,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for refusal in evidence.refusals.iter().filter(|refusal| refusal.reason == "NamespaceTerminating") {
        let times =
            table.refused.get(&(evidence.object.key(), call_of(refusal))).copied().unwrap_or_default();
        if times >= 2 {
            let why = format!(
                "{} {} was refused {times} times: the namespace is being deleted",
                refusal.verb, refusal.target
            );
            let held = evidence.finalizers.iter().find(|one| evidence.deleting && is_programs(one));
            let (severity, why) = match held {
                Some(finalizer) => (Error, format!("{why}, so {finalizer} stays, and the namespace with it")),
                None => (Warning, why),
            };
            out.push(Told { severity, ..Told::of(&RULE, evidence).say("", why) });
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::*;

    #[test]
    fn a_write_into_a_namespace_that_ends_is_told() {
        assert_eq!(run(false), [("namespace-terminating".to_owned(), FindingSeverity::Warning)]);
        assert_eq!(run(true), [("namespace-terminating".to_owned(), FindingSeverity::Error)]);
    }

    fn run(held: bool) -> Vec<(String, FindingSeverity)> {
        let mut world = World::new();
        for _ in 0..3 {
            world.reconcile(|one| {
                if held {
                    (one.deleting, one.finalizers) = (true, vec!["delete-pods".to_owned()]);
                }
                one.refusals = vec![RefusalFact {
                    at: at(1),
                    verb: "update".to_owned(),
                    target: "services/web".to_owned(),
                    status: 403,
                    reason: "NamespaceTerminating".to_owned(),
                    message: "because it is being terminated".to_owned(),
                    ..RefusalFact::default()
                }];
                one.error = "terminating".to_owned();
            });
        }
        world.rules()
    }
}

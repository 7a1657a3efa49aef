//! Writes into a namespace that is being deleted.

use crate::facts::Table;
use crate::facts::call_of;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "namespace-terminating",
    severity: Warning,
    name: "namespace is going",
    what: "The operator goes on making objects in a namespace that is being deleted. Each try is \
           refused.",
    when: "two writes were refused because the namespace is being terminated.",
    never: "the first one.",
    fix: "Stop where the namespace has a deletionTimestamp, and end what the finalizer waits for.",
    storm: true,
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
            out.push(Told::of(&RULE, evidence).say("", why));
            return;
        }
    }
}

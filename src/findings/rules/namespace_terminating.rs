//! Writes into a namespace that is being deleted.

use crate::event::FindingSeverity::Warning;
use crate::event::evidence::Evidence;
use crate::findings::facts::Table;
use crate::findings::facts::call_of;
use crate::findings::rule::Rule;
use crate::findings::rule::Told;

pub(in crate::findings) static RULE: Rule = Rule {
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

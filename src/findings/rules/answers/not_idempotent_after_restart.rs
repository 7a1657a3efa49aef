//! A restart of the same program writes again what it had written.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "not-idempotent-after-restart",
    severity: Error,
    name: "another result after a restart",
    what: "After two restarts of the same program, the first reconcile of a custom resource changed one \
           field. Only the program itself had written it, and nothing else had changed. The result \
           depends on the process: a random value, the name of the host, an order, something that is \
           only kept in memory. In a cluster each upgrade and each move of the operator's pod does it.",
    when: "at the second such restart, for the same field.",
    never: "a restart because of a save; custom resources that were changed meanwhile; fields that \
           somebody else had written. Times, the status, certificates and webhook configurations do not \
           count, nor does what was written in the 10 s before.",
    fix: "Compute the field from the custom resource and from what the API server has. Keep in the \
           object what was generated once.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for ((key, path), rewritten) in &table.rewritten {
        if rewritten.reconcile != evidence.reconcile || rewritten.times < 2 {
            continue;
        }
        let Some(write) = evidence.writes.iter().rev().find(|write| write.object.key() == *key) else {
            continue;
        };
        let (old, new) = &rewritten.shown;
        let why = format!(
            "the first reconcile after {} restarts of the same program changed {path} of {}, the last time from \
             {old} to {new}: only the program itself had written it, and {} had not changed",
            rewritten.times, write.object, evidence.object
        );
        let told = Told::of(&RULE, evidence).say(crate::rule::place(&write.object, path), why);
        out.push(Told { field: path.clone(), ..told.about(&write.object) });
    }
}

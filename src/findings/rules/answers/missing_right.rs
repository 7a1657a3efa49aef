//! A call that the roles of the operator do not allow.

use crate::facts::{Table, failed_by};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::{Error, Hint};
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "missing-right",
    severity: Error,
    name: "missing right",
    what: "The authorizer refused a call: the roles of the operator lack a rule.",
    when: "at the first refusal of the authorizer in a reconcile that failed by it. \
           A hint where the reconcile ended well or failed by something else.",
    never: "refusals of a namespace that is going, of a quota, of Pod Security or of a webhook.",
    fix: "Add the rule to the markers and write the roles anew: `opdev rbac --observed` shows the \
           line.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    for refusal in evidence.refusals.iter().filter(|refusal| refusal.status == 403 && !refusal.disturbed) {
        // Only the authorizer says who cannot do it.
        let Some((_, what)) = refusal.message.split_once(" cannot ") else { continue };
        if !refusal.message.contains("is forbidden: User") {
            continue;
        }
        let right = what.split(" in the namespace").next().unwrap_or(what).replace('\"', "");
        let why = format!("the operator may not {right}: its roles lack the rule");
        let told = Told::of(&RULE, evidence).say(&right, why);
        let severity = if failed_by(evidence, refusal) { Error } else { Hint };
        out.push(Told { severity, field: right, ..told });
    }
}

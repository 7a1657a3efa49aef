//! A write that the API server refuses each time.

use crate::facts::Table;
use crate::facts::{call_of, failed_by};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "refused-write",
    severity: Error,
    name: "write refused",
    what: "The API server refuses the same call for the same reason each time. The reconciler tries it \
           again and again and comes no further.",
    when: "the same call was refused twice with the same status and field, and the reconcile failed.",
    never: "conflicts; dry runs; missing rights; a namespace that is going; reconciles that end well, or fail \
            by something else.",
    fix: "Send what the API server accepts; a field that cannot be changed needs the object deleted \
           and made anew.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if evidence.error.is_empty() {
        return;
    }
    for refusal in &evidence.refusals {
        let conflict = refusal.status == 409 && refusal.reason == "Conflict";
        let right = refusal.status == 403 && refusal.message.contains("cannot ");
        let judged = matches!(refusal.verb.as_str(), "create" | "update" | "patch" | "delete")
            && matches!(refusal.status, 400 | 403 | 409 | 413 | 422)
            && refusal.reason != "NamespaceTerminating";
        if !judged || conflict || right || refusal.repeated || refusal.dry_run || refusal.disturbed {
            continue;
        }
        if !failed_by(evidence, refusal) {
            continue;
        }
        let times =
            table.refused.get(&(evidence.object.key(), call_of(refusal))).copied().unwrap_or_default();
        if times < 2 {
            continue;
        }
        let field =
            if refusal.field.is_empty() { String::new() } else { format!(" because of {}", refusal.field) };
        let why = format!(
            "{} {} was refused {times} times{field}: {}",
            refusal.verb, refusal.target, refusal.message
        );
        let told = Told::of(&RULE, evidence).say(format!("{} {}", refusal.verb, refusal.target), why);
        let place = refusal.place.clone();
        out.push(Told { field: format!("{} {}", refusal.target, refusal.field), place, ..told });
    }
}

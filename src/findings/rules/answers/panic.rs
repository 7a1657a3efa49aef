//! A reconciler that panics.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "panic",
    severity: Error,
    name: "panic",
    what: "The reconciler panics. controller-runtime catches it and tries again, with longer and longer \
           pauses.",
    when: "at the first panic.",
    never: "http.ErrAbortHandler; the end of the program.",
    fix: "Look at the place: mostly a nil pointer or map of an optional part of the spec.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(_: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    if evidence.panic.is_empty() || evidence.panic.contains("abort Handler") {
        return;
    }
    let why = format!("the reconcile of {} panics: {}", evidence.object, evidence.panic);
    let told = Told::of(&RULE, evidence).say("", why);
    out.push(Told { place: evidence.place.clone(), ..told });
}

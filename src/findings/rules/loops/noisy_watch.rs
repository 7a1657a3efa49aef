//! A watch that wakes the operator for nothing.

use crate::facts::Table;
use crate::facts::wakes::{MANY_WAKES, WITHIN};
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Hint;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "noisy-watch",
    severity: Hint,
    name: "noisy watch",
    what: "Most reconciles of a custom resource are led to by changes of one field of one kind, and \
           write nothing. They cost time, and hide those that matter.",
    when: "30 reconciles of one custom resource in a minute. Of these, 80 % came from changes of one \
           field and wrote nothing.",
    never: "a field whose change has made another reconcile write; the operator's own writes. \
           Reconciles that failed, were refused something or asked to run again do not count.",
    fix: "Give the watch a predicate that compares the fields which the reconciler reads: \
           Owns(&Kind{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: ...})).",
    storm: true,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let Some((wake, count)) = track.wakes.noisy(evidence.ended) else { return };
    let why = format!(
        "{count} of the last {MANY_WAKES} reconciles of {} within {} s came from changes of {} {} and wrote nothing",
        evidence.object,
        WITHIN.as_secs(),
        wake.kind,
        wake.path
    );
    let told = Told::of(&RULE, evidence).say(format!("{} {}", wake.kind, crate::rule::last(&wake.path)), why);
    out.push(Told { field: format!("{} {}", wake.kind, wake.path), ..told });
}

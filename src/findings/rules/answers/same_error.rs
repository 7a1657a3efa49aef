//! An error that does not go away.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Warning;
use opdev_event::evidence::Evidence;

pub(crate) static RULE: Rule = Rule {
    id: "same-error",
    severity: Warning,
    name: "same error",
    what: "The reconciles of an object fail with the same error again and again.",
    when: "the same error 10 times in a row and for 60 s.",
    never: "what opdev itself refuses because pods are simulated. On the embedded control plane also errors that no \
            answer of the API server explains, where the reconcile looks for pods or their addresses.",
    fix: "Look at the error: what it waits for may never come.",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some(track) = table.tracks.get(&(evidence.controller.clone(), evidence.object.key())) else { return };
    let seconds = evidence.ended.duration_since(track.errors_since).as_secs();
    if track.errors < 10 || seconds < 60 || track.by_pods || evidence.error.is_empty() {
        return;
    }
    let why = format!(
        "{} reconciles in a row failed in {seconds} s with the same error: {}",
        track.errors, evidence.error
    );
    out.push(Told::of(&RULE, evidence).say("", why));
}

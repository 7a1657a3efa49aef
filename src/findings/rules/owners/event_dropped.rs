//! A change of the custom resource that leads to no reconcile.

use crate::facts::Table;
use crate::rule::Rule;
use crate::rule::Told;
use opdev_event::FindingSeverity::Error;
use opdev_event::evidence::Evidence;
use opdev_event::{Cause, CauseKind};

pub(crate) static RULE: Rule = Rule {
    id: "event-dropped",
    severity: Error,
    name: "change not seen",
    what: "Somebody changed the custom resource, and no reconcile came. A later one, for another \
           reason, wrote something because of it. Mostly a predicate drops the event.",
    when: "no reconcile came within 5 s of a change of spec, labels or annotations by another client, \
           and the next reconcile wrote. On the embedded control plane opdev asks for that reconcile itself, once a \
           change.",
    never: "changes of the status; reconciles that write nothing, or what the one before wrote, too; a restart because of a save; changes \
           while faults are injected.",
    fix: "Let all changes through that the reconciler reads: \
           predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, \
           predicate.LabelChangedPredicate{}).",
    storm: false,
    judge: Some(judge),
    absent: None,
};

fn judge(table: &Table, evidence: &Evidence, out: &mut Vec<Told>) {
    let Some((at, part)) = table.live.get(&evidence.object.key()).and_then(|live| live.changed) else {
        return;
    };
    let waited = evidence.at.duration_since(at).as_secs_f64();
    let own = |cause: &Cause| match &cause.kind {
        CauseKind::Watch { object, .. } => object.key() == evidence.object.key(),
        CauseKind::Start | CauseKind::Reload { .. } => true,
        _ => false,
    };
    let wrote = evidence
        .writes
        .iter()
        .any(|write| write.object.key() != evidence.object.key() && table.is_news(evidence, write));
    if !(5.0..=600.0).contains(&waited)
        || evidence.causes.iter().any(own)
        || !wrote
        || evidence.queued.as_secs_f64() > 1.0
    {
        return;
    }
    let asked = evidence.causes.iter().any(|cause| matches!(cause.kind, CauseKind::Check));
    let next = if asked { "one that opdev asked for" } else { "the next one, for another reason," };
    let why = format!(
        "{part} of {} changed {waited:.0} s before, no reconcile came, and {next} wrote",
        evidence.object
    );
    let told = Told::of(&RULE, evidence).say(part, why);
    out.push(Told { field: part.to_owned(), ..told });
}

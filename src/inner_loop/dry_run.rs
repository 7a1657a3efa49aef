//! The shadow run of a saved reconciler: the operator tries it on every known object, and what it would do
//! decides whether it takes over, is refused, or waits for the user's word. Where saved charts are held, one
//! that would change anything waits. Writes nothing.

use jiff::Timestamp;
use opdev_event::{
    Action, Diagnostic, FieldChange, Held, HeldChange, Hurt, Place, Severity, ShadowDecision, ShadowObject,
    ShadowRun, Skipped, words,
};
use opdev_object::diff::Change;
use opdev_object::meta::{ObjectKey, ObjectRef};
use opdev_operator::manager::ManagerRequest;
use opdev_reconcile::dry_run_report::Shadowed;
use opdev_sources::Watch;
use opdev_sources::load::Trial;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How long a trial is waited for.
const PATIENCE: Duration = Duration::from_secs(15);
/// More objects than these are counted, not named.
const NAMED: usize = 10;

/// The outcome of a shadow run.
pub(crate) struct Verdict {
    pub(crate) run: ShadowRun,
    /// Why the new program does not take over.
    pub(crate) problem: Option<Diagnostic>,
    /// The question to the user.
    pub(crate) held: Option<Held>,
}

/// Tries a program; `None` where the operator cannot tell, so that nothing speaks against it.
pub(crate) async fn run(
    operator: &mpsc::Sender<ManagerRequest>,
    trial: &Trial,
    files: &[String],
    number: u64,
) -> Option<Verdict> {
    let begun = Instant::now();
    let new = ask(operator, &trial.watch).await?;
    note_skipped(&new);
    // Only where it matters: what the running one does right now is not the new one's fault.
    let matters = new.deletions().next().is_some() || new.problem().is_some();
    let old =
        if matters { ask(operator, &trial.before).await.unwrap_or_default() } else { Shadowed::default() };
    let problem = first_new_problem(&new, &old);
    let deleted = new_deletions(&new, &old);
    let decision = match (&problem, deleted.is_empty()) {
        (Some(_), _) => ShadowDecision::Refused,
        (None, false) => ShadowDecision::Held,
        (None, true) => ShadowDecision::Switched,
    };
    let kind = trial.watch.gvk.clone();
    let run = ShadowRun {
        at: Timestamp::now(),
        kind: kind.clone(),
        files: files.to_vec(),
        ran: new.ran,
        objects: new.objects,
        decision,
        took: begun.elapsed(),
    };
    let path = trial.watch.path().to_owned();
    let (problem, held) = match decision {
        ShadowDecision::Switched => (None, None),
        ShadowDecision::Refused => (problem.map(|problem| refused(problem, &path)), None),
        ShadowDecision::Held => {
            let held = held(&run, deleted, number);
            let place = Some(Place { file: path, line: 0, column: 0 });
            let problem = Diagnostic {
                severity: Severity::Warning,
                message: format!("the new reconciler of {} is held: {}", kind.kind, held.why),
                place,
                excerpt: None,
                hint: Some("H answers; undoing the edit clears it".to_owned()),
                kind: Some(kind),
            };
            (Some(problem), Some(held))
        }
    };
    Some(Verdict { run, problem, held })
}

/// Tries a saved chart; where it would change anything, it waits.
pub(crate) async fn hold(
    operator: &mpsc::Sender<ManagerRequest>,
    trial: &Trial,
    files: &[String],
    number: u64,
) -> Verdict {
    let begun = Instant::now();
    let asked = ask(operator, &trial.watch).await;
    let why = asked.as_ref().map_or_else(
        || Some("the operator did not say in time what the chart would do".to_owned()),
        reason_to_wait,
    );
    let found = asked.unwrap_or_default();
    note_skipped(&found);
    let decision = if why.is_some() { ShadowDecision::Held } else { ShadowDecision::Switched };
    let kind = trial.watch.gvk.clone();
    let hurts = hurts(&found.objects);
    let run = ShadowRun {
        at: Timestamp::now(),
        kind: kind.clone(),
        files: files.to_vec(),
        ran: found.ran,
        objects: found.objects,
        decision,
        took: begun.elapsed(),
    };
    let Some(why) = why else { return Verdict { run, problem: None, held: None } };
    let held = Held { change: HeldChange::Chart, why, ..held(&run, hurts, number) };
    let problem = Diagnostic {
        severity: Severity::Warning,
        message: format!("the saved chart of {} is held: {}", kind.kind, held.why),
        place: Some(Place { file: trial.watch.path().to_owned(), line: 0, column: 0 }),
        excerpt: None,
        hint: Some("H answers; undoing the edit clears it".to_owned()),
        kind: Some(kind),
    };
    Verdict { run, problem: Some(problem), held: Some(held) }
}

/// The refusals of the first reconciles of a program, which its dry run did not meet: the API server refuses
/// its writes.
pub(crate) fn refused_live(object: &ObjectRef, problem: &Diagnostic, files: &[String]) -> ShadowRun {
    ShadowRun {
        at: Timestamp::now(),
        kind: object.gvk.clone(),
        files: files.to_vec(),
        objects: vec![ShadowObject {
            object: object.clone(),
            problem: Some(problem.clone()),
            ..ShadowObject::default()
        }],
        ran: 1,
        decision: ShadowDecision::Refused,
        took: Duration::ZERO,
    }
}

fn note_skipped(found: &Shadowed) {
    for Skipped { object, why } in &found.skipped {
        tracing::info!("the shadow run says nothing about {object}: {why}");
    }
}

/// Why a saved chart waits; nothing where no object would change.
fn reason_to_wait(found: &Shadowed) -> Option<String> {
    let acts = |object: &&ShadowObject| {
        !object.children.is_empty() || !object.hooks.is_empty() || object.problem.is_some()
    };
    let changing = found.objects.iter().filter(acts).count();
    let skipped = found.skipped.len();
    let unknown = if skipped > 0 { format!("; nothing is known of {skipped} more") } else { String::new() };
    let fails = found.problem().map(|problem| format!("; {}", words::one_line(&problem.message)));
    let what = match changing {
        0 if skipped == 0 => return None,
        0 => "no object that could be tried would change".to_owned(),
        1 => "a reconcile of 1 object would change something".to_owned(),
        n => format!("reconciles of {n} objects would change something"),
    };
    Some(format!("{what}{unknown}{}", fails.unwrap_or_default()))
}

/// The actions that would be taken, deletions first.
fn hurts(objects: &[ShadowObject]) -> Vec<Hurt> {
    let mut all = Vec::new();
    for parent in objects {
        for child in &parent.children {
            let first = child.changes.first();
            let (rank, message) = match child.action {
                Action::Deleted => (0, format!("deleted, for {} does not have it any more", parent.object)),
                Action::Updated => (1, format!("{}, for {}", values(&child.changes), parent.object)),
                Action::Created => (2, format!("created for {}", parent.object)),
            };
            let field = first.map(|change| change.path.to_string()).unwrap_or_default();
            all.push((rank, Hurt { object: child.object.clone(), field, message }));
        }
        for hook in &parent.hooks {
            let message = format!("runs as the {} hook of {}", hook.event, parent.object);
            all.push((3, Hurt { object: hook.object.clone(), field: String::new(), message }));
        }
    }
    all.sort_by_key(|(rank, _)| *rank);
    all.into_iter().map(|(_, hurt)| hurt).collect()
}

/// The values of the first field before and after, and how many other fields change.
fn values(changes: &[Change]) -> String {
    let Some(first) = changes.first() else { return "changed".to_owned() };
    let values = words::values(&FieldChange::from(first));
    match changes.len() - 1 {
        0 => values,
        1 => format!("{values} and 1 field more"),
        more => format!("{values} and {more} fields more"),
    }
}

async fn ask(operator: &mpsc::Sender<ManagerRequest>, watch: &Arc<Watch>) -> Option<Shadowed> {
    let (reply, answer) = oneshot::channel();
    operator.send(ManagerRequest::Shadow { watch: Arc::clone(watch), reply }).await.ok()?;
    tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()
}

/// The first failure on an object on which the running program does not fail.
fn first_new_problem(new: &Shadowed, old: &Shadowed) -> Option<Diagnostic> {
    let failed_before = |object: &ShadowObject| {
        old.objects.iter().any(|other| other.object == object.object && other.problem.is_some())
    };
    let failed = new.objects.iter().filter(|object| object.problem.is_some());
    let fresh = failed.clone().find(|object| !failed_before(object))?;
    let mut problem = fresh.problem.clone()?;
    problem.message = format!("{} (on {})", words::one_line(&problem.message), fresh.object);
    Some(problem)
}

/// The first failure of a program that did not get to run.
fn refused(mut problem: Diagnostic, path: &str) -> Diagnostic {
    problem.place.get_or_insert_with(|| Place { file: path.to_owned(), line: 0, column: 0 });
    problem
        .hint
        .get_or_insert_with(|| "the older reconciler keeps running; correct the file and save it".to_owned());
    problem
}

/// Deletions that the new program would make and the running one would not.
fn new_deletions(new: &Shadowed, old: &Shadowed) -> Vec<Hurt> {
    let old: Vec<ObjectKey> = old.deletions().map(ObjectRef::key).collect();
    let mut found = Vec::new();
    for parent in &new.objects {
        let gone = parent.children.iter().filter(|child| child.action == Action::Deleted);
        for child in gone.filter(|child| !old.contains(&child.object.key())) {
            found.push(Hurt {
                object: child.object.clone(),
                field: String::new(),
                message: format!("deleted, for {} would not list it any more", parent.object),
            });
        }
    }
    found
}

fn held(run: &ShadowRun, deleted: Vec<Hurt>, number: u64) -> Held {
    let count = deleted.len();
    Held {
        at: run.at,
        id: format!("{}@{number}", run.kind.kind),
        change: HeldChange::Reconciler,
        kind: run.kind.clone(),
        files: run.files.clone(),
        why: match count {
            1 => "1 object would be deleted".to_owned(),
            n => format!("{n} objects would be deleted"),
        },
        findings: Vec::new(),
        objects: deleted.into_iter().take(NAMED).collect(),
        more: u32::try_from(count.saturating_sub(NAMED)).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_event::ObjectChange;
    use opdev_object::diff::diff;
    use opdev_object::meta::Gvk;
    use serde_json::json;

    fn reference(kind: &str, name: &str) -> ObjectRef {
        ObjectRef { gvk: Gvk::new("a.b", "v1", kind), name: name.to_owned(), ..ObjectRef::default() }
    }

    fn shadowed(parent: &str, deleted: &[&str], problem: Option<&str>) -> Shadowed {
        let change = |name: &&str| ObjectChange {
            object: reference("Pod", name),
            action: Action::Deleted,
            changes: vec![],
            taken_from: vec![],
        };
        let problem = problem.map(|text| Diagnostic {
            severity: Severity::Error,
            message: text.to_owned(),
            place: None,
            excerpt: None,
            hint: None,
            kind: None,
        });
        let object = ShadowObject {
            object: reference("Set", parent),
            children: deleted.iter().map(change).collect(),
            problem,
            ..ShadowObject::default()
        };
        Shadowed { objects: vec![object], ran: 1, ..Shadowed::default() }
    }

    #[test]
    fn only_what_the_running_one_would_not_delete_waits() {
        let (new, old) = (shadowed("a", &["p1", "p2"], None), shadowed("a", &["p1"], None));
        let found = new_deletions(&new, &old);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].object.name, "p2");
        assert_eq!(found[0].message, "deleted, for Set a would not list it any more");
        assert!(new_deletions(&old, &old).is_empty());
    }

    #[test]
    fn a_chart_that_changes_nothing_does_not_wait() {
        assert_eq!(reason_to_wait(&Shadowed { ran: 3, ..Shadowed::default() }), None);
        let one = shadowed("a", &["p1"], Some("immutable"));
        assert_eq!(
            reason_to_wait(&one).unwrap(),
            "a reconcile of 1 object would change something; immutable"
        );
        let found = hurts(&one.objects);
        assert_eq!(found[0].message, "deleted, for Set a does not have it any more");
        let skipped = Skipped { object: reference("Set", "b"), why: "gone".to_owned() };
        assert!(reason_to_wait(&Shadowed { skipped: vec![skipped], ..Shadowed::default() }).is_some());
    }

    #[test]
    fn a_field_that_would_change_is_told_with_its_values() {
        let mut one = shadowed("a", &["p1"], None);
        let child = &mut one.objects[0].children[0];
        child.action = Action::Updated;
        child.changes = diff(&json!({"spec": {"replicas": 1}}), &json!({"spec": {"replicas": 2}}));
        assert_eq!(hurts(&one.objects)[0].field, ".spec.replicas");
        assert_eq!(hurts(&one.objects)[0].message, "1→2, for Set a");
        let child = &mut one.objects[0].children[0];
        child.changes = diff(&json!({"spec": {"a": 1}}), &json!({"spec": {"a": 2, "b": 1}}));
        assert_eq!(hurts(&one.objects)[0].message, "1→2 and 1 field more, for Set a");
    }

    #[test]
    fn a_failure_that_was_there_before_refuses_nothing() {
        let (new, old) = (shadowed("a", &[], Some("no\nluck")), shadowed("a", &[], Some("no luck")));
        assert!(first_new_problem(&new, &old).is_none());
        let problem = first_new_problem(&new, &shadowed("a", &[], None)).unwrap();
        assert_eq!(problem.message, "no luck (on Set a)");
        let refused = refused(problem, "config/reconcilers/set.ts");
        assert_eq!(refused.place.unwrap().file, "config/reconcilers/set.ts");
    }
}

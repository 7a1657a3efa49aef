//! How a reconcile ends: well, with an outcome, or with a fault that keeps its whole chain of causes. Pure.

use super::memory::Memory;
use super::objects::dry_run::is_unfit;
use super::status::{IRRECONCILABLE, RELEASE_FAILED};
use opdev_client::forbidden::MissingRight;
use opdev_event::{
    Diagnostic, Level, ObjectChange, Outcome, ReleaseChange, Requeue, RequeueReason, Step, mask,
};
use opdev_object::diff::{Change, diff};
use opdev_object::meta::Gvk;
use opdev_script::contract::Read;
use serde_json::{Value, json};
use std::sync::Arc;

/// The result that a worker hands back.
#[derive(Debug)]
pub struct Report {
    pub outcome: Outcome,
    pub uid: Option<String>,
    pub status: Vec<Change>,
    pub objects: Vec<ObjectChange>,
    /// States of objects that the reconcile has read or written, and whether it wrote them.
    pub known: Vec<(Arc<Value>, bool)>,
    /// The kinds of the release's objects.
    pub dependents: Vec<Gvk>,
    /// Objects that the reconcile deleted.
    pub buried: Vec<Arc<Value>>,
    /// The kinds of a program's children.
    pub children: Vec<Gvk>,
    /// The objects that a program has read.
    pub reads: Option<Vec<Read>>,
    pub steps: Vec<Step>,
    pub requeue: Option<Requeue>,
    /// The reason why a program waits.
    pub waiting: Option<String>,
    /// The changes of releases' revisions.
    pub releases: Vec<ReleaseChange>,
    pub failure: Option<Failed>,
    /// Notices for the user, with hints.
    pub notices: Vec<(String, Option<String>)>,
    /// Lines that a program wrote to its log.
    pub logs: Vec<(Level, String)>,
    pub memory: Memory,
}

/// Why a reconcile failed.
#[derive(Debug)]
pub struct Failed {
    pub chain: Vec<String>,
    pub diagnostic: Option<Diagnostic>,
    /// True if trying again can help.
    pub retry: bool,
    /// The right that was missing, where that is why.
    pub missing: Option<MissingRight>,
    /// True if the API server refused a write because it does not fit its kind.
    pub unfit: bool,
}

impl Report {
    /// A report of which only the outcome is known.
    pub fn of(outcome: Outcome) -> Report {
        Report {
            outcome,
            uid: None,
            status: Vec::new(),
            objects: Vec::new(),
            known: Vec::new(),
            dependents: Vec::new(),
            buried: Vec::new(),
            children: Vec::new(),
            reads: None,
            steps: Vec::new(),
            requeue: None,
            waiting: None,
            releases: Vec::new(),
            failure: None,
            notices: Vec::new(),
            logs: Vec::new(),
            memory: Memory::default(),
        }
    }

    /// The object does not exist any more.
    pub fn gone() -> Report {
        Report::of(Outcome::Gone)
    }

    /// A reconcile that could not even begin, or that broke off.
    pub fn failed(chain: Vec<String>) -> Report {
        let missing = missing_right(&chain);
        let failure = Some(Failed { missing, chain, diagnostic: None, retry: true, unfit: false });
        Report { failure, ..Report::of(Outcome::Failed) }
    }

    /// Masks known secrets in everything that will be shown.
    pub fn cover(&mut self, secrets: &[String]) {
        mask::values_of(&mut self.status, secrets);
        self.objects.iter_mut().for_each(|object| mask::values_of(&mut object.changes, secrets));
        for (message, hint) in &mut self.notices {
            *message = mask::text(message, secrets);
            *hint = hint.as_deref().map(|hint| mask::text(hint, secrets));
        }
        self.logs.iter_mut().for_each(|(_, line)| *line = mask::text(line, secrets));
        self.releases.iter_mut().for_each(|release| release.why = mask::text(&release.why, secrets));
        self.waiting = self.waiting.as_deref().map(|words| mask::text(words, secrets));
        if let Some(RequeueReason::Wait { words }) = self.requeue.as_mut().map(|requeue| &mut requeue.reason)
        {
            *words = mask::text(words, secrets);
        }
        let Some(failure) = &mut self.failure else { return };
        failure.chain.iter_mut().for_each(|cause| *cause = mask::text(cause, secrets));
        // A script may write any text, also one that reads like a refusal.
        failure.missing = missing_right(&failure.chain);
        if let Some(diagnostic) = &mut failure.diagnostic {
            diagnostic.message = mask::text(&diagnostic.message, secrets);
            diagnostic.excerpt = diagnostic.excerpt.as_deref().map(|excerpt| mask::text(excerpt, secrets));
            diagnostic.hint = diagnostic.hint.as_deref().map(|hint| mask::text(hint, secrets));
        }
    }
}

/// A reconcile that ended well.
#[derive(Debug)]
pub struct Verdict {
    pub outcome: Outcome,
    pub requeue: Option<Requeue>,
    /// The reason for waiting, in the program's words.
    pub waiting: Option<String>,
}

impl Verdict {
    pub fn new(outcome: Outcome) -> Verdict {
        Verdict { outcome, requeue: None, waiting: None }
    }

    #[must_use]
    pub fn after(mut self, requeue: Option<Requeue>) -> Verdict {
        self.requeue = requeue;
        self
    }
}

/// A reconcile that failed.
#[derive(Debug)]
pub struct Fault {
    pub error: anyhow::Error,
    /// The condition that shows it, and its reason.
    pub condition: Option<(&'static str, &'static str)>,
    pub diagnostic: Option<Box<Diagnostic>>,
    pub retry: bool,
    /// The error after it.
    pub also: Option<anyhow::Error>,
    /// Where it happened.
    pub stage: Stage,
}

/// Where a reconcile of a chart failed, as far as conditions tell it apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// The values could not be made.
    Values,
    /// It could not be told what to do.
    State,
    /// Live objects could not be put back.
    Repair,
    /// Anything else.
    #[default]
    Other,
}

impl Fault {
    /// A failure that no condition shows.
    pub fn plain(error: anyhow::Error) -> Fault {
        Fault { error, condition: None, diagnostic: None, retry: true, also: None, stage: Stage::Other }
    }

    /// The state of the release could not be told or repaired.
    pub fn irreconcilable(error: anyhow::Error) -> Fault {
        Fault { condition: Some((IRRECONCILABLE, "ReconcileError")), ..Fault::plain(error) }
    }

    /// It could not be told what to do.
    pub fn state(error: anyhow::Error) -> Fault {
        Fault { stage: Stage::State, ..Fault::irreconcilable(error) }
    }

    /// Install, upgrade or uninstall failed.
    pub fn release_failed(reason: &'static str, error: anyhow::Error) -> Fault {
        Fault { condition: Some((RELEASE_FAILED, reason)), ..Fault::plain(error) }
    }

    /// The failure as it is shown, not masked yet.
    pub fn into_failed(self) -> Failed {
        let mut chain = chain(&self.error);
        if let Some(also) = &self.also {
            chain.extend(self::chain(also).into_iter().map(|cause| format!("also: {cause}")));
        }
        let blamed = || self.error.downcast_ref::<Blamed>().map(|blamed| blamed.0.clone());
        let diagnostic = self.diagnostic.map(|diagnostic| *diagnostic).or_else(blamed);
        let unfit = self.error.chain().filter_map(|cause| cause.downcast_ref()).any(is_unfit);
        Failed { missing: missing_right(&chain), chain, diagnostic, retry: self.retry, unfit }
    }
}

/// The right that one of the causes names. By its words: on its way here an answer of the API server becomes
/// text in places, such as in scripts.
fn missing_right(chain: &[String]) -> Option<MissingRight> {
    chain.iter().rev().find_map(|cause| MissingRight::parse(cause))
}

/// An error that names a place in a chart.
#[derive(Debug)]
pub(crate) struct Blamed(pub(crate) Diagnostic);

impl std::fmt::Display for Blamed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Blamed {}

/// The whole chain of causes, outermost first.
pub fn chain(error: &anyhow::Error) -> Vec<String> {
    error.chain().map(ToString::to_string).collect()
}

/// The changes in the status, with paths from the object's root.
pub fn status_changes(before: &Value, after: Option<&Value>) -> Vec<Change> {
    let wrap = |status: &Value| if status.is_null() { json!({}) } else { json!({"status": status}) };
    diff(&wrap(before), &wrap(after.unwrap_or(&Value::Null)))
}

//! Why the manager does not do what it is asked for.

use opdev_event::PauseScope;
use opdev_object::meta::{ObjectKey, ObjectRef};
use std::fmt;

/// The manager's answer: the action, or the reason why there was none.
pub type Answer = Result<String, Refusal>;

/// Why the manager does not do what it is asked for, or cannot say that an object is at rest.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// It is paused already.
    Paused(Box<PauseScope>),
    /// It is not paused.
    NotPaused(Box<PauseScope>),
    /// An object stays paused: its kind is paused as a whole.
    KindPaused {
        /// The object.
        scope: Box<PauseScope>,
        /// Its kind.
        kind: String,
    },
    /// Nothing reconciles the kind.
    NotReconciled {
        /// The kind.
        kind: String,
    },
    /// No custom resource that is reconciled is behind the object.
    NoPrimary(Box<ObjectRef>),
    /// The reconcile that was to show that an object is at rest has failed.
    ReconcileFailed {
        /// Why.
        why: String,
    },
    /// An object was reconciled again, and the reconcile wrote something.
    NotAtRest {
        /// The object.
        key: Box<ObjectKey>,
        /// The first writes.
        writes: Vec<String>,
        /// The number of further ones.
        more: usize,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Paused(scope) => write!(f, "{scope} is paused already"),
            Refusal::NotPaused(scope) => write!(f, "{scope} is not paused"),
            Refusal::KindPaused { scope, kind } => {
                write!(f, "{scope} stays paused: its kind {kind} is paused as a whole, resume the kind")
            }
            Refusal::NotReconciled { kind } => write!(f, "nothing reconciles {kind}"),
            Refusal::NoPrimary(object) => {
                write!(f, "no custom resource that opdev reconciles is behind {object}")
            }
            Refusal::ReconcileFailed { why } => write!(f, "could not be judged: the reconcile failed: {why}"),
            Refusal::NotAtRest { key, writes, more } => {
                let writes = writes.join(", ");
                write!(f, "{key} still writes: reconciled again with nothing changed, it wrote {writes}")?;
                if *more > 0 { write!(f, ", and {more} more") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for Refusal {}

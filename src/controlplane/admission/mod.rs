//! Webhooks and policies: which of them a write concerns, what they are asked, what becomes of their answers, and how
//! webhooks are reached. Never decides what an object means and never holds a lock of the store; `registry` says when to ask.
//! Read `hook` and `matching` for who is asked, `review` for what, `dispatch` for the order, `place` and `client` for
//! the way there, `policies` for those that need not be reached, and `convert` for the versions of custom resources.
//!
//! Asking webhooks waits for them: it is refused on a thread that may not wait (`blocking`).

mod attributes;
mod client;
mod convert;
mod dispatch;
mod error;
mod hook;
mod matching;
mod place;
mod policies;
mod review;
mod tls;

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;

pub(crate) use attributes::{Attributes, Operation, Surroundings};
pub(crate) use convert::renamed;
pub(crate) use dispatch::Asking;

pub use place::Webhooks;

use crate::contract::View;
use client::Caller;
use hook::Hooks;
use policies::Policies;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The resources whose objects configure webhooks. No webhook is asked about them.
pub(crate) const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
/// The same of webhooks that only look.
pub(crate) const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// All webhooks and policies of a plane, as they are configured now.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    any: AtomicBool,
    any_hooks: AtomicBool,
    hooks: RwLock<Arc<Hooks>>,
    policies: RwLock<Arc<Policies>>,
    caller: Caller,
    settings: Webhooks,
}

impl Admission {
    /// One that reaches webhooks as told.
    pub(crate) fn new(settings: Webhooks) -> Self {
        Admission { caller: Caller::trusting(settings.authority.clone()), settings, ..Admission::default() }
    }

    /// Whether there is any webhook or policy at all: one load, for every write.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Whether there is any webhook.
    pub(crate) fn any_hooks(&self) -> bool {
        self.any_hooks.load(Ordering::Acquire)
    }

    /// Whether any webhook might be asked about objects of a resource, in whatever group or version.
    pub(crate) fn may_concern(&self, plural: &str) -> bool {
        self.any_hooks() && self.hooks().may_concern(plural)
    }

    /// Takes in what is configured now.
    pub(crate) fn configure(&self, view: &dyn View) {
        let hooks = Hooks::of(&view.list(MUTATING, None), &view.list(VALIDATING, None));
        let policies = Policies::of(view);
        let (any_hooks, any_policies) = (!hooks.is_empty(), !policies.is_empty());
        *self.hooks.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(hooks);
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policies);
        self.any_hooks.store(any_hooks, Ordering::Release);
        self.any.store(any_hooks || any_policies, Ordering::Release);
    }

    fn policies(&self) -> Arc<Policies> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hooks(&self) -> Arc<Hooks> {
        self.hooks.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

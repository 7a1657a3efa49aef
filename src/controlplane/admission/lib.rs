//! Admission webhooks and admission policies. This room selects those that match a write, calls them, and
//! applies their answers. It never decides what an object means and never holds a lock of the store;
//! `registry` decides when to call.
//!
//! - `hook` and `matching`: the configured webhooks, and which requests they match.
//! - `review`: the AdmissionReview that is sent, and the answer that comes back.
//! - `dispatch`: the order of the calls.
//! - `reach`: whether another machine may be called.
//! - `resolver`, `client` and `closed_stream`: the address of a webhook, and the HTTP call.
//! - `policies`: admission policies, which are evaluated here and need no call.
//! - `convert`: conversion webhooks of custom resources.
//!
//! A call blocks its thread until the webhook has answered. It is refused on a thread that may not block
//! (`blocking`).

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

mod attributes;
pub mod authorization;
mod client;
mod closed_stream;
mod convert;
mod dispatch;
mod error;
mod hook;
#[cfg(test)]
mod lists;
mod matching;
mod policies;
mod reach;
mod resolver;
mod review;
mod tls;

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;

pub use attributes::{Attributes, Cluster, Operation};
pub use convert::renamed;
pub use dispatch::Dispatcher;
pub use reach::{OutsideCall, Reach};
pub use resolver::Webhooks;

use client::WebhookClient;
use hook::Hooks;
use opdev_apimachinery::contract::View;
use policies::Policies;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The resources whose objects configure webhooks. No webhook is asked about them.
pub(crate) const MUTATING: &str = "admissionregistration.k8s.io/mutatingwebhookconfigurations";
/// The resource whose objects configure webhooks that only look.
pub(crate) const VALIDATING: &str = "admissionregistration.k8s.io/validatingwebhookconfigurations";

/// All webhooks and policies of a plane, as they are configured now.
#[derive(Debug, Default)]
pub struct Admission {
    any: AtomicBool,
    any_hooks: AtomicBool,
    hooks: RwLock<Arc<Hooks>>,
    policies: RwLock<Arc<Policies>>,
    caller: WebhookClient,
    settings: Webhooks,
}

impl Admission {
    /// Admission with these settings for webhooks.
    pub fn new(settings: Webhooks) -> Self {
        Admission {
            caller: WebhookClient::trusting(settings.authority.clone()),
            settings,
            ..Admission::default()
        }
    }

    /// Returns true if there is any webhook or policy at all: one load, for every write.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Returns true if there is any webhook.
    pub fn any_hooks(&self) -> bool {
        self.any_hooks.load(Ordering::Acquire)
    }

    /// Returns true if any webhook might be asked about objects of a resource, in whatever group or version.
    pub fn may_concern(&self, plural: &str) -> bool {
        self.any_hooks() && self.hooks().may_concern(plural)
    }

    /// Takes in what is configured now.
    pub fn configure(&self, view: &dyn View) {
        let hooks = Hooks::read(&view.list(MUTATING, None), &view.list(VALIDATING, None));
        let policies = Policies::read(view);
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

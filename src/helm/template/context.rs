//! What one render brings: the outside world (clock, randomness, cluster, zone) and the counters of the run.
//! Templates reach nothing else, so a render with the same context gives the same bytes.

use std::collections::HashMap;

/// The outside, handed in.
pub trait Environment {
    /// The time `now` gives.
    fn now(&self) -> jiff::Timestamp;

    /// The zone called `Local`.
    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }

    /// A zone by its IANA name.
    fn named_zone(&self, name: &str) -> Option<jiff::tz::TimeZone> {
        jiff::tz::TimeZone::get(name).ok()
    }

    /// Fills the buffer with random bytes.
    fn random(&self, buffer: &mut [u8]);

    /// `lookup`: the object, a list when `name` is empty, an empty map when there is none.
    ///
    /// # Errors
    /// What the template reports, such as an unknown kind.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<serde_json::Value, String>;

    /// `getHostByName`: an address, or empty when names are not resolved.
    fn resolve_host(&self, _name: &str) -> String {
        String::new()
    }
}

/// Which Helm's functions and texts to follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// Helm 3.19
    #[default]
    V3,
    /// Helm 4.1
    V4,
}

/// The state of one render, shared by every template executed in it.
pub struct Context<'a> {
    pub(super) env: &'a dyn Environment,
    pub(super) compat: Compat,
    /// How often each name is being included right now.
    pub(super) included: HashMap<Box<[u8]>, u32>,
    /// Nested template executions on the stack.
    pub(super) depth: u32,
    /// Whether something read the clock, randomness or the cluster, so that the output may differ next time.
    pub(super) impure: bool,
}

impl<'a> Context<'a> {
    /// A fresh render.
    #[must_use]
    pub fn new(env: &'a dyn Environment, compat: Compat) -> Context<'a> {
        Context { env, compat, included: HashMap::new(), depth: 0, impure: false }
    }

    /// Whether anything so far read the clock, randomness or the cluster.
    #[must_use]
    pub fn is_impure(&self) -> bool {
        self.impure
    }

    /// The outside; marks the render as not repeatable.
    pub(super) fn outside(&mut self) -> &'a dyn Environment {
        self.impure = true;
        self.env
    }
}

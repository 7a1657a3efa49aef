//! After how long the user is told of what does not come.

use std::time::Duration;

/// How long each may take before the user is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A build that still runs.
    pub long_build: Duration,
    /// A program that has not called the API server yet.
    pub first_call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { long_build: Duration::from_secs(120), first_call: Duration::from_secs(15) }
    }
}

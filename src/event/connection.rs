//! Facts about the cluster behind opdev: how well it is protected, whether it answers, who else works on it.

use super::millis;
use jiff::Timestamp;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How far a cluster is protected from opdev.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Protection {
    /// Clearly local: opdev writes.
    #[default]
    Local,
    /// Not clearly local; the user has said that opdev may write.
    Confirmed,
    /// Not clearly local: nothing is written until the user says so.
    ReadOnly,
}

/// The protection was changed by the user's word.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProtectionChanged {
    /// When.
    pub at: Timestamp,
    /// From now on.
    pub protection: Protection,
}

/// The API server does not answer as it should, or does again.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionChanged {
    /// When.
    pub at: Timestamp,
    /// The trouble that opdev waits for; nothing where all is well again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<Trouble>,
}

/// The trouble that keeps the API server from answering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// The sort.
    pub kind: TroubleKind,
    /// Since when.
    pub since: Timestamp,
    /// The failure, and why.
    pub why: String,
    /// The fix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Until opdev tries again.
    #[serde(default, with = "millis::maybe", rename = "retryMs", skip_serializing_if = "Option::is_none")]
    pub retry: Option<Duration>,
}

/// The sort of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TroubleKind {
    /// Nobody answers.
    Unreachable,
    /// Somebody answers who is not trusted, or does not trust opdev's certificate.
    Untrusted,
    /// The credentials are refused, or cannot be had.
    Unauthorized,
    /// A call has been waiting for a while.
    Slow,
    /// The API server asks to come back later.
    Busy,
}

impl TroubleKind {
    /// Returns true if the API server answers all the same, only later.
    #[must_use]
    pub fn still_answers(self) -> bool {
        match self {
            TroubleKind::Slow | TroubleKind::Busy => true,
            TroubleKind::Unreachable | TroubleKind::Untrusted | TroubleKind::Unauthorized => false,
        }
    }
}

/// A copy of the operator that runs on the cluster beside opdev.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedCopy {
    /// Its Deployment.
    pub object: ObjectRef,
    /// How many replicas it wants now.
    pub replicas: i64,
    /// How many it had before opdev froze it; nothing where it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<i64>,
    /// The signs that gave it away.
    pub why: Vec<String>,
}

/// All copies of the operator on the cluster that are known now.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopiesChanged {
    /// When.
    pub at: Timestamp,
    /// They; none where there are none any more.
    pub copies: Vec<DeployedCopy>,
}

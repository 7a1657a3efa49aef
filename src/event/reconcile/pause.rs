//! Paused objects and kinds whose causes collect without leading to reconciles.

use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef};
use serde::{Deserialize, Serialize};

/// The part of an operator that can be paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "camelCase")]
pub enum PauseScope {
    /// One custom resource.
    Object {
        /// The object.
        object: ObjectRef,
    },
    /// All objects of a kind, whatever their version.
    Kind {
        /// The kind.
        gvk: Gvk,
    },
}

impl PauseScope {
    /// Returns true if it means this object.
    pub fn covers(&self, key: &ObjectKey) -> bool {
        match self {
            PauseScope::Object { object } => object.key() == *key,
            PauseScope::Kind { gvk } => gvk.group_kind() == key.group_kind(),
        }
    }
}

impl std::fmt::Display for PauseScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PauseScope::Object { object } => object.fmt(f),
            PauseScope::Kind { gvk } => write!(f, "all of kind {}", gvk.kind),
        }
    }
}

/// Something that is paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    /// The paused part.
    #[serde(flatten)]
    pub what: PauseScope,
    /// Since when.
    pub since: Timestamp,
    /// Why, where opdev paused it by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many objects would be reconciled at once if it were resumed.
    pub waiting: u32,
    /// How many causes they have collected.
    pub causes: u32,
}

//! What becomes of custom resources on a cluster that lives on when opdev ends.

use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};

/// What to do before opdev ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OnExit {
    /// Nothing: everything stays as it is, finalizers with it.
    #[default]
    Leave,
    /// Delete the custom resources and wait until their finalizers have been answered.
    Uninstall,
    /// Take the operator's finalizers off, so that a custom resource that is deleted later does not hang.
    Release,
}

/// How far leaving is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// What is done.
    pub how: OnExit,
    /// How many custom resources it concerns.
    pub total: u32,
    /// Those that are not done.
    pub left: Vec<ObjectRef>,
}

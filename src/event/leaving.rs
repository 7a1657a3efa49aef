//! Leaving a cluster: who asks, where to, and what becomes of custom resources where it lives on.

use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};

/// The last action before opdev ends.
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

impl OnExit {
    /// All with their names on the command line.
    pub const NAMED: [(&str, OnExit); 3] =
        [("leave", OnExit::Leave), ("uninstall", OnExit::Uninstall), ("release", OnExit::Release)];
}

/// The person or program that asks opdev to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Asker {
    /// The user, by a key.
    User,
    /// A signal, or a terminal that is gone: nobody may be there to ask twice.
    Signal,
}

/// A cluster that one can go to while opdev runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "to", rename_all = "camelCase")]
pub enum Destination {
    /// The embedded control plane.
    Embedded,
    /// A context of the kubeconfig.
    Context {
        /// Its name.
        name: String,
    },
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Embedded => f.write_str("the embedded control plane"),
            Destination::Context { name } => write!(f, "context {name}"),
        }
    }
}

/// How far leaving is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaving {
    /// The action.
    pub how: OnExit,
    /// How many custom resources it concerns.
    pub total: u32,
    /// Those that are not done.
    pub left: Vec<ObjectRef>,
    /// Those of the same kinds that are not this operator's, and are not touched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared: Vec<ObjectRef>,
}

//! The plan of a reconcile for one object, told before anything is done: by `opdev plan`, by a dry run of a
//! script, or for a chart that is held. Plain data; the operator foresees it, `cli/print` and the screen show
//! it.

use super::reconcile::changes;
use super::{Diagnostic, Finding, Hurt, ObjectChange};
use opdev_object::diff::Change;
use opdev_object::meta::{Gvk, ObjectRef};
use serde::{Deserialize, Serialize};

/// The plan of a reconciler for one object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowObject {
    /// The object.
    pub object: ObjectRef,
    /// The plan for the release of its chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<ReleaseAhead>,
    /// Writes to its children, in the order in which they would be made; hooks are apart.
    pub children: Vec<ObjectChange>,
    /// Hooks that would run, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookAhead>,
    /// Its status, masked. What the status of a chart's custom resource says of its release is not foreseen.
    #[serde(with = "changes")]
    pub status: Vec<Change>,
    /// Why the reconcile would fail: what a program threw, or what the API server would refuse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Diagnostic>,
    /// Changes that the API server could not be asked about, and why. These are computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsure: Vec<String>,
}

impl ShadowObject {
    /// Returns true if a reconcile would change nothing and would not fail.
    pub fn is_nothing(&self) -> bool {
        let ShadowObject { object: _, release, children, hooks, status, problem, unsure: _ } = self;
        release.is_none() && children.is_empty() && hooks.is_empty() && status.is_empty() && problem.is_none()
    }
}

/// The plan for a release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseAhead {
    /// The actions that would be taken.
    pub step: StepAhead,
    /// The revision that is deployed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// The revision that would be deployed; none where it would be uninstalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Why, in words.
    pub why: String,
    /// The templates whose output differs, relative to the project's root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// The actions that would be taken for a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StepAhead {
    /// Its first revision.
    Install,
    /// A new revision.
    Upgrade,
    /// The deployed revision takes a new rendering in.
    Rewrite,
    /// It is taken off the cluster.
    Uninstall,
}

/// A hook that would run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookAhead {
    /// When, such as `pre-upgrade`.
    pub event: String,
    /// The object that is created.
    pub object: ObjectRef,
}

/// The plan for all objects, with the files as they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The project's name.
    pub project: String,
    /// The context's name, or `embedded`.
    pub cluster: String,
    /// Types of the project that differ from those that the API server has.
    pub types: Vec<TypeAhead>,
    /// The objects that would be treated otherwise than they are now, and those whose reconcile would fail.
    pub objects: Vec<ShadowObject>,
    /// The objects with which nothing would be done.
    pub unchanged: Vec<ObjectRef>,
    /// The objects about which nothing can be told.
    pub skipped: Vec<Skipped>,
    /// Errors of the project's files.
    pub problems: Vec<Diagnostic>,
}

/// An object about which nothing can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The object; without a name it stands for all of its kind.
    pub object: ObjectRef,
    /// Why.
    pub why: String,
}

/// A type that would be brought to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeAhead {
    /// The CRD's name.
    pub name: String,
    /// The kind it defines.
    pub kind: Gvk,
    /// True if the API server does not have it yet.
    pub created: bool,
    /// The changes, the heaviest first.
    pub findings: Vec<Finding>,
    /// The objects it would hurt.
    pub objects: Vec<Hurt>,
    /// Why it would not be applied without the user's word, or not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Plan {
    /// Returns true if anything would be changed.
    pub fn changes(&self) -> bool {
        !self.types.is_empty() || self.objects.iter().any(|object| !object.is_nothing())
    }

    /// Returns true if something would fail, or the files are broken.
    pub fn fails(&self) -> bool {
        let failing = |object: &ShadowObject| object.problem.is_some();
        !self.problems.is_empty() || self.objects.iter().any(failing)
    }
}

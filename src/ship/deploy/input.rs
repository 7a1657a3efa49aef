//! Input of the commands, and the words for objects that all of them use.

use anyhow::Result;
use opdev_cluster::Choice;
use opdev_event::words;
use opdev_object::meta::Gvk;
use opdev_project::Project;
use opdev_project::trust::Trust;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a line of progress goes.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// The input of all four commands.
pub struct DeployInput {
    /// The project.
    pub project: Project,
    /// The permissions that the user gives the project.
    pub trust: Trust,
    /// The cluster.
    pub cluster: Choice,
    /// A program, with arguments, that builds the folder it is given instead of opdev.
    pub kustomize: Option<String>,
    /// How long to wait for what was asked for.
    pub wait: Duration,
}

/// The choice of what is applied, and how.
#[derive(Debug, Default)]
pub struct ApplyOptions {
    /// The image of the operator: `REFERENCE`, or `NAME=REFERENCE` where another image than that of `make
    /// deploy` is meant.
    pub image: Option<String>,
    /// True if the image is written into `config/manager/kustomization.yaml`.
    pub save: bool,
    /// The namespace, instead of that of `config/default`.
    pub namespace: Option<String>,
    /// True if the API server is only asked what it would do.
    pub dry_run: bool,
    /// True if fields of other managers are taken.
    pub force_conflicts: bool,
    /// True if objects whose kind the cluster does not serve are left out.
    pub skip_missing: bool,
    /// True if nothing is left out, not even what only watches the operator.
    pub strict: bool,
    /// True if CRDs are applied although objects would lose data or not be valid any more.
    pub accept_impact: bool,
}

/// The choice of what is removed, and how.
#[derive(Default)]
pub struct RemoveOptions {
    /// True if custom resources go that nobody has named.
    pub with_objects: bool,
    /// True if what else is in the namespace goes with it, whoever has put it there.
    pub with_unrelated: bool,
    /// Asks the user whether these go, where there is somebody to ask; it is given a list of them.
    pub ask: Option<fn(&str) -> Result<bool>>,
    /// True if it is no error that something is not there.
    pub ignore_not_found: bool,
    /// The namespace, instead of that of `config/default`.
    pub namespace: Option<String>,
}

/// Group, version and kind of an object.
pub(super) fn gvk(object: &Value) -> Gvk {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    Gvk::from_api_version(text("apiVersion"), text("kind"))
}

pub(super) fn is_crd(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// An object as kubectl names it in its answers.
pub(super) fn shown(object: &Value) -> String {
    let gvk: Gvk = gvk(object);
    let kind = gvk.kind.to_ascii_lowercase();
    let kind = if gvk.group.is_empty() { kind } else { format!("{kind}.{}", gvk.group) };
    words::visible_line(&format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default()))
}

/// A file relative to the project's root, for messages.
pub(super) fn relative(project: &Project, path: &Path) -> PathBuf {
    path.strip_prefix(&project.root).unwrap_or(path).to_owned()
}

//! A pass of a chart's custom resource under way.

use super::engine::Engine;
use super::parent::Parent;
use super::status::Status;
use crate::api::Api;
use crate::sources::Watch;
use serde_json::Value;
use std::sync::Arc;

/// Says that a release has to be uninstalled before its custom resource may go.
pub(in crate::operator) const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// What older operators wrote.
pub(super) const LEGACY_FINALIZER: &str = "uninstall-helm-release";

/// A pass under way.
pub(super) struct Pass {
    pub(super) parent: Parent,
    pub(super) watch: Arc<Watch>,
    pub(super) status: Status,
    /// The status before this pass.
    pub(super) status_before: Value,
    /// As the operator itself, whomever the release is written as.
    pub(super) api: Api,
    /// Its release.
    pub(super) engine: Engine,
    /// What a script has read or said that is secret.
    pub(super) script_secrets: Vec<String>,
}

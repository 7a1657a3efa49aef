//! A reconcile of a chart's custom resource under way.

use super::custom_resource::Parent;
use opdev_client::Api;
use opdev_release::engine::Engine;
use opdev_release::status::Status;
use opdev_sources::Watch;
use serde_json::Value;
use std::sync::Arc;

/// Says that a release has to be uninstalled before its custom resource may go.
pub const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// The finalizer that older operators wrote.
pub(crate) const LEGACY_FINALIZER: &str = "uninstall-helm-release";

/// A reconcile under way.
pub(crate) struct ChartReconcile {
    pub(crate) parent: Parent,
    pub(crate) watch: Arc<Watch>,
    pub(super) status: Status,
    /// The status before this reconcile.
    pub(super) status_before: Value,
    /// As the operator itself, whomever the release is written as.
    pub(super) api: Api,
    /// Its release.
    pub(crate) engine: Engine,
    /// Secret texts that a script has read or said.
    pub(super) script_secrets: Vec<String>,
}

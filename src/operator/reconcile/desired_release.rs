//! What a release should be made of.

use opdev_helm::chart::Chart;
use serde_json::Value;
use std::sync::Arc;

/// What the release should be made of.
pub(super) struct DesiredRelease {
    pub(super) chart: Arc<Chart>,
    pub(super) spec: Value,
    pub(super) values: Value,
}

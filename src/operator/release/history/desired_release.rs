//! What a release should be made of.

use opdev_helm::chart::Chart;
use serde_json::Value;
use std::sync::Arc;

/// What the release should be made of.
pub(crate) struct DesiredRelease {
    pub(crate) chart: Arc<Chart>,
    pub(crate) spec: Value,
    pub(crate) values: Value,
}

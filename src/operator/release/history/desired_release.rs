//! The content that a release should have.

use opdev_helm::chart::Chart;
use serde_json::Value;
use std::sync::Arc;

/// The wanted release: chart, values and place.
pub struct DesiredRelease {
    pub chart: Arc<Chart>,
    pub spec: Value,
    pub values: Value,
}

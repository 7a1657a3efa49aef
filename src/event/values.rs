//! The effective values of a chart's release, each with where it comes from.

use jiff::Timestamp;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};

/// The effective values of one custom resource's release, or why there are none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValuesExplained {
    /// When.
    pub at: Timestamp,
    /// The custom resource.
    pub object: ObjectRef,
    /// The chart that feeds it, relative to the project's root; empty where none does.
    pub chart: String,
    /// Sorted by path.
    pub values: Vec<EffectiveValue>,
    /// Why there are no values to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One effective value, already masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveValue {
    /// Its path, as `--set` would take it; a list is one value.
    pub path: String,
    /// The value as JSON in one line.
    pub value: String,
    /// The source of the value.
    pub from: ValueFrom,
    /// The place in words: `charts/web/values.yaml:12`, `custom resource`.
    pub origin: String,
}

/// The source of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ValueFrom {
    /// The chart's own values.yaml.
    Default,
    /// A chart below it.
    Subchart,
    /// A global that flowed down from a chart above.
    Global,
    /// The spec of the custom resource.
    CustomResource,
    /// An override in watches.yaml.
    Override,
    /// Nobody who was looked at.
    Unknown,
}

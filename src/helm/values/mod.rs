//! Values: how a release's own values meet a chart's defaults (`coalesce`), and how `--set` is read (`set`).
//! Values are JSON objects; floats come from files, integers from `--set` and custom resources.

mod coalesce;
mod plain_schema;
pub mod schema;
mod schema_error;
mod schema_rules;
pub mod set;
mod set_error;

pub use crate::merge_values::{merge, merge_tables, path_value, table};
pub use coalesce::{CoalesceError, Coalesced, coalesce, merge_defaults};
pub use set::{SetError, parse_set, parse_set_json, parse_set_string};

use crate::chart::ChartError;
use opdev_template::Compat;
use serde_json::Value;

/// Reads a values file as that Helm does; every number is a float64.
pub fn from_yaml(text: &str, compat: Compat) -> Result<Value, ChartError> {
    crate::chart::parse_values(text, compat)
}

/// Reads a values file as it lies on the disk: its bytes may be UTF-16, and need not be text at all.
///
/// # Errors
/// What Helm says of it.
pub fn from_bytes(data: &[u8], compat: Compat) -> Result<Value, ChartError> {
    crate::chart::parse_values_bytes(data, compat)
}

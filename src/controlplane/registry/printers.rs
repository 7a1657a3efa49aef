//! The Tables of all kinds: each kind's strategy names its printer.

use super::strategy::strategy_of;
use jiff::Timestamp;
use opdev_apimachinery::resource::Resource;
use opdev_apis::table::{self, Tables};
use serde_json::Value;

/// The printers of all kinds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Printers;

impl Tables for Printers {
    fn columns(&self, resource: &Resource) -> Vec<Value> {
        table::columns(resource, strategy_of(resource).printer.as_ref())
    }

    fn cells(&self, resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
        table::cells(resource, strategy_of(resource).printer.as_ref(), object, now)
    }

    fn conditions(&self, resource: &Resource, object: &Value) -> Option<Value> {
        strategy_of(resource).printer.and_then(|printer| (printer.conditions)(object))
    }
}

//! The seam to the printer columns: who makes the rows of `as=Table` answers.

use jiff::Timestamp;
use opdev_apimachinery::resource::Resource;
use serde_json::Value;

/// Makes Table columns and cells. The handlers put them together with metadata and selectors.
pub trait Tables: Send + Sync {
    /// `columnDefinitions` of a resource.
    fn columns(&self, resource: &Resource) -> Vec<Value>;
    /// The cells of one row, as many as there are columns.
    fn cells(&self, resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value>;
    /// The conditions of a row.
    fn conditions(&self, _resource: &Resource, _object: &Value) -> Option<Value> {
        None
    }
}

//! The seam to the printer columns: who makes the rows of `as=Table` answers.

use crate::registry::Resource;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Makes Table columns and cells. The handlers put them together with metadata and selectors.
pub trait Tables: Send + Sync {
    /// `columnDefinitions` of a resource.
    fn columns(&self, resource: &Resource) -> Vec<Value>;
    /// The cells of one row, as many as there are columns.
    fn cells(&self, resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value>;
}

/// What upstream answers for kinds without columns of their own: name and creation time.
#[derive(Clone, Copy, Debug, Default)]
pub struct UpstreamDefault;

impl Tables for UpstreamDefault {
    fn columns(&self, _resource: &Resource) -> Vec<Value> {
        vec![
            json!({"name": "Name", "type": "string", "format": "name", "priority": 0,
                   "description": "Name must be unique within a namespace."}),
            json!({"name": "Created At", "type": "date", "format": "", "priority": 0,
                   "description": "When the object was created."}),
        ]
    }

    fn cells(&self, _resource: &Resource, object: &Value, _now: Timestamp) -> Vec<Value> {
        vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()]
    }
}

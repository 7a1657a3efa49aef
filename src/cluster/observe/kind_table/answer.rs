//! The answer of an API server that is asked for a Table: a Table, or, from servers that know none, a plain
//! list.

use jiff::Timestamp;
use opdev_event::{ServedKind, TableColumn, TableRow};
use opdev_object::meta::ObjectRef;
use serde::Deserialize;
use serde_json::Value;

/// A page of a list, or what one event of a watch is about.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    #[serde(default)]
    column_definitions: Option<Vec<Definition>>,
    #[serde(default)]
    rows: Option<Vec<RowOf>>,
    /// A plain list has these instead.
    #[serde(default)]
    items: Option<Vec<Partial>>,
}

/// One event of a watch.
#[derive(Deserialize)]
pub(super) struct Line {
    #[serde(rename = "type")]
    pub(super) event: String,
    pub(super) object: Answer,
}

/// `metadata` of a list. That of an object has more, which is passed over.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ListMetadata {
    pub(super) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(super) next: Option<String>,
    pub(super) remaining_item_count: Option<u64>,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    priority: i32,
}

#[derive(Deserialize)]
struct RowOf {
    #[serde(default)]
    cells: Vec<Value>,
    #[serde(default)]
    object: Partial,
}

#[derive(Default, Deserialize)]
struct Partial {
    #[serde(default)]
    metadata: RowMetadata,
}

/// Metadata of a row without `managedFields`, which is most of it.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RowMetadata {
    name: String,
    namespace: Option<String>,
    uid: Option<String>,
    creation_timestamp: Option<Timestamp>,
    deletion_timestamp: Option<String>,
    labels: Value,
    finalizers: Vec<String>,
}

impl Answer {
    /// Returns true if it is a plain list.
    pub(super) fn is_plain(&self) -> bool {
        self.items.is_some()
    }

    /// Its columns, where it has any, and its rows. In a watch only the first Table has columns.
    pub(super) fn table(&self, kind: &ServedKind) -> (Option<Vec<TableColumn>>, Vec<TableRow>) {
        if let Some(items) = &self.items {
            let column = |name: &str| TableColumn { name: name.to_owned(), wide: false, number: false };
            let rows = items
                .iter()
                .map(|item| row(kind, &item.metadata, vec![item.metadata.name.clone(), String::new()]));
            return (Some(vec![column("Name"), column("Age")]), rows.collect());
        }
        let columns = self.column_definitions.as_ref().map(|all| {
            let column = |definition: &Definition| TableColumn {
                name: definition.name.clone(),
                wide: definition.priority > 0,
                number: matches!(definition.kind.as_str(), "integer" | "number"),
            };
            all.iter().map(column).collect()
        });
        let rows = self.rows.iter().flatten();
        let rows = rows.map(|one| row(kind, &one.object.metadata, one.cells.iter().map(text).collect()));
        (columns, rows.collect())
    }
}

fn row(kind: &ServedKind, metadata: &RowMetadata, cells: Vec<String>) -> TableRow {
    TableRow {
        object_ref: ObjectRef {
            gvk: kind.gvk.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
            uid: metadata.uid.clone(),
        },
        created: metadata.creation_timestamp,
        deleting: metadata.deletion_timestamp.clone(),
        labels: metadata.labels.clone(),
        finalizers: metadata.finalizers.clone(),
        cells,
    }
}

/// A cell, as kubectl prints it.
fn text(cell: &Value) -> String {
    match cell {
        Value::Null => "<none>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => cell.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::meta::Gvk;
    use serde_json::json;

    fn pods() -> ServedKind {
        ServedKind {
            gvk: Gvk::new("", "v1", "Pod"),
            plural: "pods".to_owned(),
            singular: "pod".to_owned(),
            short_names: Vec::new(),
            namespaced: true,
            watched: true,
        }
    }

    #[test]
    fn a_table_and_a_plain_list_both_have_rows() {
        let metadata = json!({"name": "a", "namespace": "dev", "labels": {"app": "x"}, "finalizers": ["f"],
            "managedFields": [{"manager": "m"}], "creationTimestamp": "2026-03-01T17:00:00Z"});
        let table = json!({"kind": "Table", "metadata": {"continue": "t", "remainingItemCount": 7},
            "columnDefinitions": [{"name": "Name", "type": "string"}, {"name": "Count", "type": "integer"},
                {"name": "IP", "type": "string", "priority": 1}],
            "rows": [{"cells": ["a", 3, null], "object": {"metadata": metadata}}]});
        let table: Answer = serde_json::from_value(table).unwrap();
        assert_eq!(
            (table.metadata.next.as_deref(), table.metadata.remaining_item_count),
            (Some("t"), Some(7))
        );
        let (columns, rows) = table.table(&pods());
        let columns = columns.unwrap();
        assert_eq!((columns[1].number, columns[2].wide, columns[0].wide), (true, true, false));
        assert_eq!(rows[0].cells, ["a", "3", "<none>"]);
        assert_eq!(rows[0].object_ref.to_string(), "Pod dev/a");
        assert_eq!((rows[0].labels["app"].as_str(), rows[0].finalizers.len()), (Some("x"), 1));
        let list: Answer = serde_json::from_value(json!({"items": [{"metadata": metadata}]})).unwrap();
        let (columns, rows) = list.table(&pods());
        assert_eq!((columns.unwrap().len(), rows[0].cells[0].as_str()), (2, "a"));
        let later: Line = serde_json::from_value(
            json!({"type": "DELETED", "object": {"columnDefinitions": null, "rows": [{"cells": ["a"],
                "object": {"metadata": metadata}}]}}),
        )
        .unwrap();
        assert!(later.object.table(&pods()).0.is_none());
    }
}

//! Events of a kind's table.

use super::{at, object};
use opdev_event::{Body, Event, KindTable, ObjectSeen, ServedKind, TableColumn, TableQuery, TableRow};
use opdev_object::meta::Gvk;
use serde_json::json as value;
use std::sync::Arc;

/// What comes where the screen shows a table.
pub(super) fn of_tables() -> Vec<Event> {
    vec![
        Event::KindsServed { kinds: vec![served_kind()] },
        Event::TableChanged { table: Some(Arc::new(kind_table())) },
        Event::RowRead(ObjectSeen {
            at: at(),
            object_ref: object("A"),
            metadata_only: false,
            object: Body::new(&value!({"kind": "A"})),
        }),
    ]
}

fn served_kind() -> ServedKind {
    ServedKind {
        gvk: Gvk::new("", "v1", "Pod"),
        plural: "pods".to_owned(),
        singular: "pod".to_owned(),
        short_names: vec!["po".to_owned()],
        namespaced: true,
        watched: true,
    }
}

fn kind_table() -> KindTable {
    KindTable {
        query: TableQuery { kind: "po".to_owned(), namespace: Some("default".to_owned()) },
        at: at(),
        kind: Some(served_kind()),
        namespace: Some("default".to_owned()),
        columns: vec![TableColumn { name: "Name".to_owned(), wide: false, number: false }],
        rows: vec![Arc::new(TableRow {
            object_ref: object("A"),
            created: Some(at()),
            deleting: Some("2026-03-01T17:02:11Z".to_owned()),
            labels: value!({"app": "web"}),
            finalizers: vec!["example.com/a".to_owned()],
            cells: vec!["web".to_owned()],
        })],
        missing: 3,
        complete: false,
        problem: Some("pods cannot be listed".to_owned()),
        note: Some("only default".to_owned()),
    }
}

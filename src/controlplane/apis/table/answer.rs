//! Answers in another shape than the object's: a Table with its rows, or only the metadata.
//! Never reads the store and never encodes; give it what would have been answered.

use crate::table::Tables;
use jiff::Timestamp;
use opdev_apimachinery::resource::Resource;
use opdev_object::apply::compact;
use serde_json::{Map, Value, json};

/// The part of its object that a row carries, as `includeObject` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Include {
    /// Only the metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

impl Include {
    /// Reads the query parameter; `None` where the word is not known.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "Metadata" => Some(Include::Metadata),
            "Object" => Some(Include::Object),
            "None" => Some(Include::None),
            _ => None,
        }
    }
}

/// The form of a requested Table.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Version of `meta.k8s.io`.
    pub version: &'static str,
    /// The part of their objects that rows carry.
    pub include: Include,
    /// True if columns are described; in a watch only the first Table does.
    pub headers: bool,
    /// The time ages are counted to.
    pub now: Timestamp,
}

/// A Table of these objects. `metadata` is the list's; one object alone gives its own resourceVersion.
pub fn table<'a>(
    tables: &dyn Tables,
    resource: &Resource,
    objects: impl IntoIterator<Item = &'a Value>,
    metadata: &Value,
    wanted: Wanted,
) -> Value {
    let mut list = Map::new();
    for field in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(value) = metadata.get(field) {
            list.insert(field.to_owned(), value.clone());
        }
    }
    let rows: Vec<Value> = objects.into_iter().map(|object| row(tables, resource, object, wanted)).collect();
    let columns = if wanted.headers { tables.columns(resource).into() } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": format!("meta.k8s.io/{}", wanted.version),
        "metadata": list,
        "columnDefinitions": columns,
        "rows": rows,
    })
}

/// A row of a Table.
pub fn row(tables: &dyn Tables, resource: &Resource, object: &Value, wanted: Wanted) -> Value {
    let carried = match wanted.include {
        Include::Metadata => metadata_only(object, wanted.version),
        Include::Object => compact::expanded(object).into_owned(),
        Include::None => Value::Null,
    };
    let mut row = json!({"cells": tables.cells(resource, object, wanted.now), "object": carried});
    if let Some(conditions) = tables.conditions(resource, object) {
        row["conditions"] = conditions;
    }
    row
}

/// `PartialObjectMetadata` of an object.
pub fn metadata_only(object: &Value, version: &str) -> Value {
    let mut only = json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": object["metadata"],
    });
    compact::expand(&mut only);
    only
}

/// How the text of a `PartialObjectMetadataList` begins, up to its items.
pub fn metadata_list_head(metadata: &Value, version: &str) -> String {
    format!(
        "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/{version}\",\"metadata\":{metadata},\"items\":["
    )
}

/// How the text of a Table begins, up to its rows.
pub fn table_head(tables: &dyn Tables, resource: &Resource, metadata: &Value, wanted: Wanted) -> String {
    let empty = table(tables, resource, std::iter::empty(), metadata, wanted).to_string();
    // The rows stand last.
    empty.strip_suffix("]}").map(str::to_owned).unwrap_or(empty)
}

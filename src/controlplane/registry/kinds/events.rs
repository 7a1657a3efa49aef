//! Events: one table, two kinds with other names for the same fields.

use crate::strategy::{Conversion, Selectable, Strategy};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{END, Indexing, partial_record};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::ResourceRules;
use opdev_apis::table::{Printer, cluster};
use serde_json::Value;

const EVENT: Strategy = Strategy {
    indexing: Indexing {
        fields: Some(written),
        partial: partial_record,
        is_record: true,
        ..Indexing::COMMON
    },
    rules: ResourceRules { create_on_update: true, ..ResourceRules::COMMON },
    printer: Some(Printer::new(cluster::EVENT, cluster::event)),
    validate: |_, object, _, causes| event(object, causes),
    ..Strategy::COMMON
};

/// When an Event was written last. The server itself stamps these times; those of the Event a client may set
/// as it likes.
fn written(event: &Value) -> String {
    let metadata = &event["metadata"];
    let managers = metadata["managedFields"].as_array().into_iter().flatten();
    let times = managers.map(|manager| &manager["time"]).chain([&metadata["creationTimestamp"]]);
    let times = times.filter_map(|time| time.as_str()?.parse::<Timestamp>().ok());
    times.max().map_or_else(String::new, |last| format!("{}{END}", last.as_second()))
}

pub(super) static ALL: &[Strategy] = &[
    Strategy {
        id: "events",
        selectable: Selectable::fields(&[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ]),
        ..EVENT
    },
    Strategy {
        id: "events.k8s.io/events",
        table: Some("events"),
        storage_api_version: Some("v1"),
        selectable: Selectable::fields(&[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ]),
        conversion: Some(Conversion {
            to_served: |event| rename(event, false),
            to_stored: |event| rename(event, true),
        }),
        ..EVENT
    },
];

/// Core name, events.k8s.io name.
const FIELDS: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn rename(event: &mut Value, to_core: bool) {
    let Some(map) = event.as_object_mut() else { return };
    for (core, new) in FIELDS {
        let (from, to) = if to_core { (new, core) } else { (core, new) };
        if let Some(found) = map.remove(from) {
            map.insert(to.to_owned(), found);
        }
    }
}

fn event(object: &Value, causes: &mut Vec<Cause>) {
    let (field, regarding) = match object.get("regarding") {
        Some(found) => ("regarding", found),
        None => ("involvedObject", &object["involvedObject"]),
    };
    let about = regarding["namespace"].as_str().unwrap_or_default();
    let own = object["metadata"]["namespace"].as_str().unwrap_or_default();
    if !about.is_empty() && about != own {
        let detail = "does not match event.namespace";
        causes.push(Cause::invalid(format!("{field}.namespace"), &Value::from(about), detail));
    } else if about.is_empty() && !["default", "kube-system", ""].contains(&own) {
        let detail = "does not match event.namespace";
        causes.push(Cause::invalid(format!("{field}.namespace"), &Value::from(""), detail));
    }
}

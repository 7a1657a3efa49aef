//! Turns notes into Kubernetes Events, counting equal ones instead of repeating them and combining similar
//! ones, as client-go's correlator does. Never decides what is worth saying.

use super::fields::{stamp, text};
use crate::contract::{Note, View, Write};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Remembers which Event tells what.
#[derive(Default)]
pub(crate) struct Recorder {
    told: HashMap<String, String>,
    /// The messages of one reason about one object, and when the last one came.
    similar: HashMap<String, (BTreeSet<String>, Timestamp)>,
    newest: i128,
}

/// The number of different messages of one reason that get Events of their own; after that they are combined.
const TOLD_APART: usize = 10;
/// The seconds without an Event after which messages get Events of their own again.
const FORGOTTEN: i64 = 600;

/// More than this many remembered events and the memory starts afresh.
const REMEMBERED: usize = 4096;

impl Recorder {
    /// The write that records a note: a new Event, or one more on an existing one.
    pub(crate) fn record(&mut self, view: &dyn View, note: &Note, component: &str, now: Timestamp) -> Write {
        let component = note.component.unwrap_or(component);
        let namespace = match text(&note.regarding, "/namespace") {
            "" => "default",
            namespace => namespace,
        };
        let kin = format!(
            "{namespace}\n{component}\n{}\n{}\n{}\n{}\n{}\n{}",
            text(&note.regarding, "/kind"),
            text(&note.regarding, "/name"),
            text(&note.regarding, "/uid"),
            text(&note.regarding, "/fieldPath"),
            note.kind.text(),
            note.reason,
        );
        let combined = self.too_many(&kin, &note.message, now);
        let message = match combined {
            true => format!("(combined from similar events): {}", note.message),
            false => note.message.clone(),
        };
        let identity = if combined { kin } else { format!("{kin}\n{message}") };
        if let Some(name) = self.told.get(&identity)
            && let Some(event) = view.get("events", Some(namespace), name)
        {
            return more(&event, namespace, name, &message, now);
        }
        if self.told.len() >= REMEMBERED {
            self.told.clear();
        }
        // Names rise with time, so that events of one second list in the order in which they happened.
        self.newest = now.as_nanosecond().max(self.newest + 1);
        let name = format!("{}.{:x}", text(&note.regarding, "/name"), self.newest);
        self.told.insert(identity, name.clone());
        let mut source = json!({"component": component});
        if let Some(host) = &note.host {
            super::fields::put(&mut source, "/host", host.clone().into());
        }
        Write::Create {
            resource: "events".into(),
            object: json!({
                "apiVersion": "v1", "kind": "Event",
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": note.regarding,
                "reason": note.reason, "message": message, "type": note.kind.text(),
                "source": source,
                "firstTimestamp": stamp(now), "lastTimestamp": stamp(now), "count": 1,
                "eventTime": null,
                "reportingComponent": component, "reportingInstance": note.host.as_deref().unwrap_or_default(),
            }),
        }
    }

    /// Returns true if too many different messages of this reason have come already.
    fn too_many(&mut self, kin: &str, message: &str, now: Timestamp) -> bool {
        if self.similar.len() >= REMEMBERED {
            self.similar.clear();
        }
        let (messages, last) = self.similar.entry(kin.to_owned()).or_insert_with(|| (BTreeSet::new(), now));
        if super::fields::seconds_between(*last, now) > FORGOTTEN {
            messages.clear();
        }
        *last = now;
        messages.insert(message.to_owned());
        let many = messages.len() >= TOLD_APART;
        if many {
            messages.pop_first();
        }
        many
    }
}

fn more(event: &Arc<Value>, namespace: &str, name: &str, message: &str, now: Timestamp) -> Write {
    let count = super::fields::count(event, "/count") + 1;
    Write::Patch {
        resource: "events".into(),
        namespace: Some(namespace.to_owned()),
        name: name.to_owned(),
        patch: json!({"count": count, "lastTimestamp": stamp(now), "message": message}),
    }
}

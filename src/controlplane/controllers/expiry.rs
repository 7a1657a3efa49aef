//! Events live for an hour after they were written last, as on a real API server. Their own times do not count: a client
//! may set them as it likes.
//! Never touches anything else.

use super::fields::{list, name, seconds_between, time};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_object::meta;
use std::time::Duration;

/// See the module.
pub(crate) struct EventExpiry;

const LIFE: i64 = 3600;

impl Controller for EventExpiry {
    fn name(&self) -> &'static str {
        "event-expiry"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:apiserver", field_manager: "kube-apiserver" }
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        match (&change.after, change.resource.as_str()) {
            (Some(_), "events") => change.key().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(event) = key.read(view) else { return Sync::done() };
        // The server itself stamps these.
        let written = list(&event, "/metadata/managedFields").iter().filter_map(|entry| time(entry, "/time"));
        let last = written.chain(time(&event, "/metadata/creationTimestamp")).max().unwrap_or(now);
        let left = LIFE - seconds_between(last, now);
        let mut sync = Sync::done();
        if left > 0 {
            sync.again(Duration::from_secs(left as u64));
        } else {
            sync.writes.push(Write::Delete {
                resource: "events".into(),
                namespace: meta::namespace(&event).map(str::to_owned),
                name: name(&event).to_owned(),
                uid: meta::uid(&event).map(str::to_owned),
                propagation: None,
                grace: None,
            });
        }
        sync
    }
}

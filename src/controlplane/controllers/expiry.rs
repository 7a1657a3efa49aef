//! Events live for an hour after they were written last, as on a real API server. Their own times do not
//! count: a client may set them as it likes. All of them are looked at together, at most twice a minute:
//! there may be very many. Never touches anything else, and reads no Event.

use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Lookup, RecordField};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// See the module.
#[derive(Default)]
pub(crate) struct EventExpiry {
    /// True if a look at all of them is planned.
    planned: AtomicBool,
}

const EVENTS: &str = "events";
/// Seconds.
const LIFE: i64 = 3600;
/// Seconds from one look to the next, at least.
const PAUSE: i64 = 30;
/// How many go at once, so that other controllers get their turn in between.
const MOST: usize = 200;

impl Controller for EventExpiry {
    fn name(&self) -> &'static str {
        "event-expiry"
    }

    fn actor(&self) -> Actor {
        Actor { user: "system:apiserver", field_manager: "kube-apiserver" }
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        if change.after.is_none() || change.resource != EVENTS || self.planned.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        vec![Key::new(EVENTS, None, "")]
    }

    fn sync(&self, view: &dyn View, _key: &Key, now: Timestamp) -> Sync {
        // An object that comes from now on may not be among those that are looked at.
        self.planned.store(false, Ordering::Relaxed);
        let first = Cell::new(None);
        let over = view.select_keys(EVENTS, None, &Lookup::All, &|event| {
            let left = left(event, now);
            if left > 0 {
                first.set(Some(first.get().map_or(left, |first: i64| first.min(left))));
            }
            left <= 0
        });
        let mut sync = Sync::done();
        if over.len() > MOST {
            sync.again(Duration::ZERO);
        } else if let Some(left) = first.get() {
            sync.again(Duration::from_secs(left.max(PAUSE).cast_unsigned()));
        }
        if sync.requeue_after.is_some() {
            self.planned.store(true, Ordering::Relaxed);
        }
        sync.writes.extend(over.into_iter().take(MOST).map(|Key { resource, namespace, name }| {
            let known = view.attributes(&resource, namespace.as_deref(), &name);
            let uid = known.map(|known| known.uid().to_owned());
            Write::Delete { resource, namespace, name, uid, propagation: None, grace: None }
        }));
        sync
    }
}

/// How many seconds an Event has left.
fn left(event: &Attributes, now: Timestamp) -> i64 {
    let written = event.record(RecordField::Written).parse().unwrap_or_else(|_| now.as_second());
    LIFE - (now.as_second() - written)
}

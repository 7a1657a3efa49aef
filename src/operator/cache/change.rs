//! One change of an object of a stream, with its state before as a packed text that is read when it is asked
//! for. Pure.

use super::mapping::{PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE};
use super::watched_object::WatchedObject;
use opdev_event::WatchEvent;
use opdev_object::meta;
use opdev_object::pack::{Dictionaries, Kept};
use serde_json::Value;
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Happened {
    pub event: WatchEvent,
    /// Where only its metadata was kept, that: see `before`.
    pub old: Option<Before>,
    /// The newest state; for a deletion the last one.
    pub object: WatchedObject,
    /// True if the object was in the stream's first list.
    pub initial: bool,
}

impl Happened {
    /// An object is gone; nothing is said of its state before.
    pub(super) fn deleted(object: WatchedObject) -> Happened {
        Happened { event: WatchEvent::Deleted, old: None, object, initial: false }
    }

    /// The state before, where the object may have led to others than it does now.
    pub fn moved_from(&self) -> Option<&Value> {
        self.old.as_ref().filter(|old| old.leads_elsewhere()).map(|old| &**old)
    }

    /// The state before, as far as all of it is known.
    pub fn before(&self) -> Option<&Value> {
        self.old.as_ref().filter(|old| old.state.is_whole).map(|old| &**old)
    }
}

/// The state of an object before a change. It is read when it is asked for: nearly all changes concern
/// nobody.
#[derive(Clone, Debug)]
pub struct Before {
    state: Arc<State>,
    tree: OnceLock<Arc<Value>>,
    leads_elsewhere: bool,
}

impl Before {
    pub(super) fn new(state: State, now: &Value) -> Before {
        let leads_elsewhere = state.leads != leads(now);
        Before { state: Arc::new(state), tree: OnceLock::new(), leads_elsewhere }
    }

    /// Returns true if the change may have moved the object from one owner to another, or from one label to
    /// another. Told without reading the state.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        self.leads_elsewhere
    }
}

impl Deref for Before {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.tree.get_or_init(|| self.state.object())
    }
}

/// A number for all by which an object leads to others: its owners, its labels, its annotations for
/// dependents.
fn leads(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    for field in ["ownerReferences", "labels"] {
        meta::field(object, field).hash(&mut hasher);
    }
    for annotation in [PRIMARY_RESOURCE, PRIMARY_RESOURCE_TYPE] {
        meta::annotation(object, annotation).hash(&mut hasher);
    }
    hasher.finish()
}

/// An object, and what is compared without reading it.
#[derive(Debug)]
pub(super) struct State {
    text: Kept,
    /// True if the text is that of the whole object, not only of its identity.
    pub(super) is_whole: bool,
    pub(super) uid: Option<Box<str>>,
    version: Option<Box<str>>,
    leads: u64,
}

impl State {
    /// The kept part of an object, or its identity.
    pub(super) fn of(object: &Value, is_whole: bool, dictionaries: &Dictionaries) -> State {
        State {
            text: dictionaries.keep(object.to_string().as_bytes()),
            is_whole,
            uid: meta::uid(object).map(Box::from),
            version: meta::resource_version(object).map(Box::from),
            leads: leads(object),
        }
    }

    pub(super) fn object(&self) -> Arc<Value> {
        // The text was made of a value, in this process.
        serde_json::from_slice(&self.text.text()).map_or_else(
            |error| {
                tracing::error!(%error, "an object that was watched cannot be read");
                Arc::default()
            },
            Arc::new,
        )
    }

    pub(super) fn is_of(&self, object: &Value) -> bool {
        self.uid.as_deref() == meta::uid(object)
    }

    /// How old this state is beside another one. Resource versions are numbers that grow; where they are
    /// none, a different one is taken as newer.
    pub(super) fn order(&self, new: &Value) -> Ordering {
        let (old, new) = (self.version.as_deref(), meta::resource_version(new));
        let number = |version: Option<&str>| version?.parse::<u64>().ok();
        match (number(old), number(new)) {
            (Some(old), Some(new)) => old.cmp(&new),
            _ if old == new => Ordering::Equal,
            _ => Ordering::Less,
        }
    }
}

//! Remembers what opdev wrote, so that the watch events of its own writes are told apart from those of
//! others. Never decides what follows from that; `operator/queue` and `operator/watch` do.

use opdev_object::meta;
use serde_json::Value;
use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many writes are remembered: far more than can be on their way at once.
const LIMIT: usize = 8192;

/// The writes of this process, by uid and resource version; deletions by uid alone.
#[derive(Debug, Default)]
pub struct Echo {
    seen: Mutex<KnownWrites>,
}

#[derive(Debug, Default)]
struct KnownWrites {
    marks: HashSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

/// Stands for the resource version of a deletion.
const DELETED: &str = "deleted";

impl Echo {
    /// Remembers the object that a write returned.
    pub(crate) fn wrote(&self, object: &Value) {
        if let (Some(uid), Some(version)) = (meta::uid(object), meta::resource_version(object)) {
            self.remember((uid.to_owned(), version.to_owned()));
        }
    }

    /// Remembers that we deleted an object.
    pub fn deleted(&self, uid: &str) {
        self.remember((uid.to_owned(), DELETED.to_owned()));
    }

    /// Returns true if this state of an object is our own write.
    pub fn is_own(&self, mark: &(String, String)) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).marks.contains(mark)
    }

    fn remember(&self, mark: (String, String)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.marks.insert(mark.clone()) {
            seen.order.push_back(mark);
        }
        if seen.order.len() > LIMIT
            && let Some(oldest) = seen.order.pop_front()
        {
            seen.marks.remove(&oldest);
        }
    }
}

/// The mark of an object's state, as a watch shows it.
pub fn mark(object: &Value, deleted: bool) -> Option<(String, String)> {
    let uid = meta::uid(object)?.to_owned();
    let version = if deleted { DELETED } else { meta::resource_version(object)? };
    Some((uid, version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn own_writes_are_known_by_version_and_own_deletions_by_uid() {
        let object = |version: &str| json!({"metadata": {"uid": "u", "resourceVersion": version}});
        let echo = Echo::default();
        echo.wrote(&object("5"));
        assert!(echo.is_own(&mark(&object("5"), false).unwrap()));
        assert!(!echo.is_own(&mark(&object("6"), false).unwrap()));
        assert!(!echo.is_own(&mark(&object("5"), true).unwrap()));
        echo.deleted("u");
        assert!(echo.is_own(&mark(&object("9"), true).unwrap()));
    }

    #[test]
    fn old_writes_are_forgotten() {
        let echo = Echo::default();
        for i in 0..=LIMIT {
            echo.deleted(&i.to_string());
        }
        assert!(!echo.is_own(&("0".into(), DELETED.into())));
        assert!(echo.is_own(&("1".into(), DELETED.into())));
    }
}

//! Changes that were seen while reconciles ran. A reconcile says at its end what it has read; what changed
//! between such a read and the end has woken nobody, for nobody was known to read it. Here it is kept until
//! then. Pure.

use opdev_cache::change::Happened;
use opdev_object::meta::Gvk;
use std::collections::VecDeque;

/// How many changes are kept. A reconcile may wait for a hook for minutes.
const MOST: usize = 1024;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unread {
    /// The number of the newest change; each change has the next one.
    heard: u64,
    changes: VecDeque<(u64, Gvk, Happened)>,
    /// For each reconcile that runs: the number of the newest change when it began.
    reconciles: Vec<u64>,
}

/// Changes while a reconcile ran.
pub(super) enum During<'a> {
    /// All of it.
    All(Vec<(&'a Gvk, &'a Happened)>),
    /// More than is kept.
    Much,
}

impl Unread {
    /// A reconcile begins; what is returned is to be handed in at its end.
    pub(super) fn begin(&mut self) -> u64 {
        self.reconciles.push(self.heard);
        self.heard
    }

    /// Takes changes of a kind in.
    pub(super) fn hear(&mut self, gvk: &Gvk, happened: &[Happened]) {
        if self.reconciles.is_empty() {
            return;
        }
        for one in happened {
            self.heard += 1;
            self.changes.push_back((self.heard, gvk.clone(), one.clone()));
            if self.changes.len() > MOST {
                self.changes.pop_front();
            }
        }
    }

    /// Changes since a reconcile began.
    pub(super) fn during(&self, began: u64) -> During<'_> {
        let lost = self.changes.front().map_or(self.heard, |(first, ..)| first - 1);
        if lost > began {
            return During::Much;
        }
        let since = self.changes.iter().filter(|(number, ..)| *number > began);
        During::All(since.map(|(_, gvk, happened)| (gvk, happened)).collect())
    }

    /// A reconcile has ended: what no other reconcile that runs may ask for is dropped.
    pub(super) fn end(&mut self, began: u64) {
        if let Some(at) = self.reconciles.iter().position(|reconcile| *reconcile == began) {
            self.reconciles.swap_remove(at);
        }
        let first = self.reconciles.iter().min().copied().unwrap_or(self.heard);
        self.changes.retain(|(number, ..)| *number > first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_event::WatchEvent;
    use serde_json::json;
    use std::sync::Arc;

    fn added(name: &str) -> Happened {
        let object = Arc::new(json!({"metadata": {"name": name}})).into();
        Happened { event: WatchEvent::Added, old: None, object, initial: false }
    }

    fn names(unread: &Unread, began: u64) -> Option<Vec<String>> {
        let During::All(all) = unread.during(began) else { return None };
        Some(
            all.iter()
                .map(|(_, happened)| happened.object["metadata"]["name"].as_str().unwrap().into())
                .collect(),
        )
    }

    #[test]
    fn each_reconcile_finds_what_happened_since_it_began_and_nothing_is_kept_for_longer() {
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let mut unread = Unread::default();
        unread.hear(&gvk, &[added("before")]);
        let first = unread.begin();
        unread.hear(&gvk, &[added("a")]);
        let second = unread.begin();
        unread.hear(&gvk, &[added("b")]);
        assert_eq!(names(&unread, first).unwrap(), ["a", "b"]);
        assert_eq!(names(&unread, second).unwrap(), ["b"]);
        unread.end(first);
        assert_eq!((names(&unread, second).unwrap(), unread.changes.len()), (vec!["b".to_owned()], 1));
        unread.end(second);
        assert!(unread.changes.is_empty());
        let third = unread.begin();
        assert!(names(&unread, third).unwrap().is_empty());
    }

    #[test]
    fn more_than_is_kept_is_told() {
        let gvk = Gvk::new("", "v1", "ConfigMap");
        let mut unread = Unread::default();
        let long = unread.begin();
        (0..MOST).for_each(|_| unread.hear(&gvk, &[added("a")]));
        assert_eq!(names(&unread, long).unwrap().len(), MOST);
        unread.hear(&gvk, &[added("a")]);
        assert!(names(&unread, long).is_none());
        let short = unread.begin();
        unread.hear(&gvk, &[added("b")]);
        assert_eq!(names(&unread, short).unwrap(), ["b"]);
    }
}

//! A reload on its way to the cluster: which objects have still to be reconciled for it. No IO.

use jiff::Timestamp;
use opdev_event::{CauseKind, ReloadSettled};
use opdev_object::meta::ObjectKey;
use opdev_sources::Sources;
use std::collections::HashSet;
use std::time::Instant;

/// The newest reload and what it waits for.
#[derive(Debug)]
pub(super) struct Reload {
    sources: u64,
    files: Vec<String>,
    began: Instant,
    waiting: HashSet<ObjectKey>,
    /// The number that was waited for when gone objects were looked for last.
    looked_at: usize,
    objects: u32,
    failed: u32,
}

impl Reload {
    /// Starts one; what an unfinished one waited for is waited for as part of it.
    pub(super) fn begin(sources: &Sources, unfinished: Option<Reload>) -> Reload {
        let began = sources.saved_at.unwrap_or_else(Instant::now);
        let mut reload = Reload {
            sources: sources.number,
            files: sources.files.clone(),
            began,
            waiting: HashSet::new(),
            looked_at: usize::MAX,
            objects: 0,
            failed: 0,
        };
        if let Some(earlier) = unfinished {
            reload.waiting = earlier.waiting;
            reload.began = earlier.began.min(began);
            reload.objects = earlier.objects;
            reload.failed = earlier.failed;
            for file in earlier.files {
                if !reload.files.contains(&file) {
                    reload.files.push(file);
                }
            }
        }
        reload
    }

    /// One more object is reconciled for it.
    pub(super) fn wait_for(&mut self, key: ObjectKey) {
        self.waiting.insert(key);
    }

    /// A reconcile that had these causes and used this set of sources has ended.
    pub(super) fn ended(&mut self, key: &ObjectKey, sources: u64, causes: &[CauseKind], failed: bool) {
        let for_reload = causes.iter().any(|cause| matches!(cause, CauseKind::Reload { .. }));
        if (for_reload || sources >= self.sources) && self.waiting.remove(key) {
            self.objects += 1;
            self.failed += u32::from(failed);
        }
    }

    /// An object that is gone cannot be waited for. This is asked after each reconcile; of many objects, all
    /// are looked at only once half of them have ended.
    pub(super) fn forget(&mut self, keep: impl Fn(&ObjectKey) -> bool) {
        const FEW: usize = 16;
        if self.waiting.len() > FEW.max(self.looked_at / 2) {
            return;
        }
        self.waiting.retain(keep);
        self.looked_at = self.waiting.len();
    }

    /// The fact that it has reached the cluster, once nothing is waited for.
    pub(super) fn settled(&self) -> Option<ReloadSettled> {
        self.waiting.is_empty().then(|| ReloadSettled {
            at: Timestamp::now(),
            sources: self.sources,
            files: self.files.clone(),
            objects: self.objects,
            failed: self.failed,
            took: self.began.elapsed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(number: u64, file: &str) -> Sources {
        Sources { number, files: vec![file.to_owned()], ..Sources::default() }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey { name: name.to_owned(), ..ObjectKey::default() }
    }

    #[test]
    fn a_reload_settles_when_its_last_object_has() {
        let cause = [CauseKind::Reload { sources: 2, files: Vec::new() }];
        let mut reload = Reload::begin(&sources(2, "a"), None);
        reload.wait_for(key("x"));
        reload.wait_for(key("y"));
        reload.ended(&key("x"), 1, &[CauseKind::Period], false);
        assert!(reload.settled().is_none(), "a reconcile with the sources before does not count");
        reload.ended(&key("x"), 2, &cause, true);
        reload.ended(&key("x"), 2, &cause, true);
        assert!(reload.settled().is_none());
        reload.ended(&key("y"), 2, &cause, false);
        let settled = reload.settled().unwrap();
        assert_eq!((settled.objects, settled.failed), (2, 1));
    }

    #[test]
    fn many_objects_are_not_all_looked_at_after_each_reconcile() {
        let cause = [CauseKind::Reload { sources: 2, files: Vec::new() }];
        let mut reload = Reload::begin(&sources(2, "a"), None);
        let names: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
        names.iter().for_each(|name| reload.wait_for(key(name)));
        let looks = std::cell::Cell::new(0);
        for name in &names[..990] {
            reload.ended(&key(name), 2, &cause, false);
            reload.forget(|_| {
                looks.set(looks.get() + 1);
                true
            });
        }
        assert!(looks.get() < 3000, "{}", looks.get());
        reload.forget(|_| false);
        assert!(reload.settled().is_some(), "the rest is gone");
    }

    #[test]
    fn a_newer_reload_takes_over_what_the_one_before_waited_for() {
        let mut first = Reload::begin(&sources(2, "a"), None);
        first.wait_for(key("x"));
        let second = Reload::begin(&sources(3, "b"), Some(first));
        assert!(second.settled().is_none());
        assert_eq!(second.files, ["b", "a"]);
    }
}

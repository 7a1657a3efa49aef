//! Objects that are made for an owner that is already gone. A cache hears of two kinds in any order, so that
//! any operator may make such an object, and the garbage collector takes it away: that is no coming and going
//! of the operator's. An object that stays is seen at the end of the step.

use opdev_object::meta;
use serde_json::Value;
use std::collections::HashSet;

/// The uids of what has ended in a run, and of what was made too late.
#[derive(Default)]
pub(super) struct Orphans {
    ended: HashSet<String>,
    born: HashSet<String>,
}

impl Orphans {
    /// Takes in that an object was made or has gone; true if it was made for owners that were gone before.
    pub(super) fn see(&mut self, object: &Value, made: bool) -> bool {
        let uid = meta::uid(object).unwrap_or_default();
        if made {
            let owners = meta::owner_references(object);
            let late = !owners.is_empty() && owners.iter().all(|owner| self.ended.contains(&owner.uid));
            if late {
                self.born.insert(uid.to_owned());
            }
            return late;
        }
        self.ended.insert(uid.to_owned());
        self.born.remove(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(uid: &str, owners: &[&str]) -> Value {
        let owner = |uid: &&str| json!({"apiVersion": "g/v1", "kind": "Db", "name": "db", "uid": uid});
        let owners: Vec<Value> = owners.iter().map(owner).collect();
        json!({"metadata": {"name": uid, "uid": uid, "ownerReferences": owners}})
    }

    #[test]
    fn only_what_all_owners_have_left_before_it_was_made_is_late() {
        let mut orphans = Orphans::default();
        assert!(!orphans.see(&object("old", &[]), true));
        assert!(!orphans.see(&object("child", &["old"]), true), "its owner is there");
        assert!(!orphans.see(&object("old", &[]), false));
        assert!(!orphans.see(&object("child", &["old"]), false), "it was there with its owner");
        assert!(orphans.see(&object("late", &["old"]), true));
        assert!(!orphans.see(&object("shared", &["old", "new"]), true), "one owner is there");
        assert!(!orphans.see(&object("free", &[]), true), "nobody owns it");
        assert!(orphans.see(&object("late", &["old"]), false));
        assert!(!orphans.see(&object("late", &["old"]), false), "each counts once");
    }
}

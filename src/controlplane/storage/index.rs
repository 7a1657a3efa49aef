//! Finds the objects of a table by their controller or by their labels, without looking at each of them. The
//! tables in which controllers look that way, and those of release records, have an index; in the others
//! everything is looked at. What is found may hold a few objects more than were asked for, never one less:
//! who asks checks each.

use super::{Key, Stored};
use opdev_apimachinery::attributes::{Attributes, Indexed, Lookup};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// The index of one table.
#[derive(Debug)]
pub(super) struct Index {
    by: Indexed,
    hasher: RandomState,
    /// The objects with a term in a namespace, by key, under the hash of both. Two terms of one hash share an
    /// entry.
    entries: HashMap<u64, Vec<Arc<Stored>>>,
}

/// Something by which objects are found.
#[derive(Hash)]
enum Term<'a> {
    /// The uid of the controller; empty for objects without one.
    Controller(&'a str),
    /// A label of the object.
    Label(&'a str, &'a str),
    /// A label that a service's selector asks for.
    Selects(&'a str, &'a str),
}

impl Index {
    pub(crate) fn new(by: Indexed) -> Self {
        Index { by, hasher: RandomState::new(), entries: HashMap::new() }
    }

    /// Takes in that an object was created, replaced or removed.
    pub(crate) fn replace(&mut self, before: Option<&Arc<Stored>>, after: Option<&Arc<Stored>>) {
        if self.by == Indexed::Not {
            return;
        }
        let old = before.map(|object| self.terms(object)).unwrap_or_default();
        let new = after.map(|object| self.terms(object)).unwrap_or_default();
        if let Some(before) = before {
            for term in old.iter().filter(|term| !new.contains(term)) {
                self.remove(*term, before.key());
            }
        }
        let Some(after) = after else { return };
        if self.by == Indexed::Selectors {
            let at = match new.iter().copied().find(|term| self.holds(*term, after.key())) {
                Some(at) => at,
                // One label is enough to find a service by: the one that the fewest others are found by.
                None => match new.iter().copied().min_by_key(|term| self.len(*term)) {
                    Some(rarest) => rarest,
                    None => return,
                },
            };
            self.insert(at, after);
        } else {
            new.iter().for_each(|term| self.insert(*term, after));
        }
    }

    /// The objects of a namespace among which those are that are looked for, by key; `None` where there is no
    /// index of them.
    pub(crate) fn find(&self, namespace: &str, wanted: &Lookup<'_>) -> Option<Vec<Arc<Stored>>> {
        let controlled = |uid| self.hash(namespace, &Term::Controller(uid));
        let terms = match (self.by, wanted) {
            (Indexed::OwnersAndLabels, Lookup::ControlledBy(uid)) => vec![controlled(uid)],
            (Indexed::OwnersAndLabels, Lookup::ClaimableBy(uid)) => vec![controlled(uid), controlled("")],
            (Indexed::OwnersAndLabels | Indexed::Labels, Lookup::Labelled(labels)) => {
                let terms = labels.iter().map(|(key, value)| self.hash(namespace, &Term::Label(key, value)));
                vec![terms.min_by_key(|term| self.len(*term))?]
            }
            (Indexed::Selectors, Lookup::Selecting(labels)) => {
                let labels = labels.iter().filter_map(|(key, value)| Some((key, value.as_str()?)));
                labels.map(|(key, value)| self.hash(namespace, &Term::Selects(key, value))).collect()
            }
            _ => return None,
        };
        let mut found: Vec<_> =
            terms.iter().filter_map(|term| self.entries.get(term)).flatten().cloned().collect();
        if terms.len() > 1 {
            found.sort_by(|a, b| a.key().cmp(b.key()));
            found.dedup_by(|a, b| a.key() == b.key());
        }
        Some(found)
    }

    fn hash(&self, namespace: &str, term: &Term<'_>) -> u64 {
        self.hasher.hash_one((namespace, term))
    }

    fn terms(&self, object: &Stored) -> Vec<u64> {
        let (namespace, known): (&str, &Attributes) = (&object.key().namespace, object.attributes());
        match self.by {
            Indexed::Not => Vec::new(),
            Indexed::Labels | Indexed::OwnersAndLabels => {
                let owners = self.by == Indexed::OwnersAndLabels;
                let controller =
                    || Term::Controller(known.controller().map_or("", |owner| owner.uid.as_str()));
                let labels = known.labels().as_object().into_iter().flatten();
                let labels = labels.filter_map(|(key, value)| Some(Term::Label(key, value.as_str()?)));
                let terms = labels.chain(owners.then(controller));
                terms.map(|term| self.hash(namespace, &term)).collect()
            }
            Indexed::Selectors => {
                let pairs = known.service_selector();
                pairs.map(|(key, value)| self.hash(namespace, &Term::Selects(key, value))).collect()
            }
        }
    }

    fn len(&self, term: u64) -> usize {
        self.entries.get(&term).map_or(0, Vec::len)
    }

    fn holds(&self, term: u64, key: &Key) -> bool {
        self.entries.get(&term).is_some_and(|entry| position(entry, key).is_ok())
    }

    fn insert(&mut self, term: u64, object: &Arc<Stored>) {
        let entry = self.entries.entry(term).or_default();
        match position(entry, object.key()) {
            Ok(at) => entry[at] = object.clone(),
            Err(at) => entry.insert(at, object.clone()),
        }
    }

    fn remove(&mut self, term: u64, key: &Key) {
        let Some(entry) = self.entries.get_mut(&term) else { return };
        if let Ok(at) = position(entry, key) {
            entry.remove(at);
        }
        if entry.is_empty() {
            self.entries.remove(&term);
        } else if entry.capacity() > 2 * entry.len() + 16 {
            entry.shrink_to(entry.len());
        }
    }
}

fn position(entry: &[Arc<Stored>], key: &Key) -> Result<usize, usize> {
    entry.binary_search_by(|object| object.key().cmp(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expected, Store};
    use serde_json::{Value, json};

    /// A small generator: the same numbers each time.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
    }

    fn object(numbers: &mut Numbers, namespace: &str, name: &str) -> Value {
        let labels = json!({"all": "1", "few": numbers.below(3).to_string(), "own": name});
        let owner = match numbers.below(4) {
            0 => json!([]),
            uid => {
                json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": uid.to_string(), "controller": true}])
            }
        };
        let mut selector = json!({"all": "1", "few": numbers.below(3).to_string()});
        if numbers.below(5) == 0 {
            selector = json!({});
        }
        let metadata =
            json!({"namespace": namespace, "name": name, "labels": labels, "ownerReferences": owner});
        json!({"metadata": metadata, "spec": {"selector": selector}})
    }

    fn names(found: &[Arc<Stored>], wanted: &dyn Fn(&Attributes) -> bool) -> Vec<String> {
        let wanted = found.iter().filter(|object| wanted(object.attributes()));
        wanted.map(|object| format!("{} {}", object.key().name, object.revision)).collect()
    }

    fn write(store: &Store, numbers: &mut Numbers, table: &str, namespace: &str) {
        let name = format!("o{}", numbers.below(40));
        let key = Key::new(namespace, &name);
        let current = store.get(table, &key);
        match (&current, numbers.below(3)) {
            (Some(found), 0) => drop(store.remove(table, &key, found.revision, None).unwrap()),
            _ => {
                let expected = current.map_or(Expected::Absent, |found| Expected::Revision(found.revision));
                store.put(table, &key, expected, object(numbers, namespace, &name)).unwrap();
            }
        }
    }

    #[test]
    fn what_is_found_is_what_looking_at_each_finds() {
        let (store, mut numbers) = (Store::default(), Numbers(7));
        let pod = json!({"all": "1", "few": "2", "own": "o1"});
        let labels = pod.as_object().unwrap();
        let mut fewest = usize::MAX;
        for _ in 0..3000 {
            let namespace = ["x", "y"][numbers.below(2) as usize];
            let table = ["pods", "services", "secrets"][numbers.below(3) as usize];
            write(&store, &mut numbers, table, namespace);
            let same = |table, among: Lookup<'_>, wanted: &dyn Fn(&Attributes) -> bool| {
                let found = store.find(table, Some("x"), &among);
                assert_eq!(
                    names(&found, wanted),
                    names(&store.list(table, Some("x")).items, wanted),
                    "{among:?}"
                );
                found.len()
            };
            let controller = |known: &Attributes| known.controller().map(|owner| owner.uid.clone());
            same("pods", Lookup::All, &|_| true);
            same("pods", Lookup::ControlledBy("1"), &|known| controller(known).as_deref() == Some("1"));
            same("pods", Lookup::ClaimableBy("1"), &|known| controller(known).is_none_or(|uid| uid == "1"));
            let pairs = vec![("all", "1"), ("few", "2")];
            let labelled = |known: &Attributes| known.labels()["all"] == "1" && known.labels()["few"] == "2";
            same("pods", Lookup::Labelled(pairs.clone()), &labelled);
            same("secrets", Lookup::Labelled(pairs), &labelled);
            same("secrets", Lookup::ControlledBy("1"), &|known| controller(known).as_deref() == Some("1"));
            let selects = |known: &Attributes| known.service_selects(Some(labels));
            fewest = fewest.min(same("services", Lookup::Selecting(labels), &selects));
            for table in ["pods", "secrets"] {
                let own = |known: &Attributes| known.labels()["own"] == "o1";
                assert!(same(table, Lookup::Labelled(vec![("all", "1"), ("own", "o1")]), &own) <= 1);
            }
        }
        assert!(fewest < 20);
    }

    #[test]
    fn nothing_is_kept_of_what_is_gone() {
        let (store, mut numbers) = (Store::default(), Numbers(1));
        for table in ["pods", "secrets"] {
            for _ in 0..500 {
                write(&store, &mut numbers, table, "x");
            }
            assert!(!store.read().tables[table].index.entries.is_empty());
            for object in store.list(table, None).items {
                store.remove(table, object.key(), object.revision, None).unwrap();
            }
            assert!(store.read().tables[table].index.entries.is_empty());
        }
    }
}

//! How many objects there are of each kind, and in each namespace. Counted as they come and go: to look at
//! 100,000 of them takes several frames.

use opdev_object::meta::ObjectKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The numbers, unrelated objects included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// By group and kind.
    kinds: Arc<BTreeMap<(String, String), usize>>,
    namespaces: Arc<BTreeMap<String, usize>>,
}

impl Census {
    /// Group, kind and how many objects of it.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.kinds.iter().map(|((group, kind), count)| (group.as_str(), kind.as_str(), *count))
    }

    /// The namespaces that objects are in.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.namespaces.keys().map(String::as_str)
    }

    /// Returns true if an object is in this namespace.
    pub fn has_namespace(&self, name: &str) -> bool {
        self.namespaces.contains_key(name)
    }

    pub(super) fn came(&mut self, key: &ObjectKey) {
        *Arc::make_mut(&mut self.kinds).entry((key.group.clone(), key.kind.clone())).or_default() += 1;
        if let Some(namespace) = &key.namespace {
            *Arc::make_mut(&mut self.namespaces).entry(namespace.clone()).or_default() += 1;
        }
    }

    pub(super) fn went(&mut self, key: &ObjectKey) {
        one_less(Arc::make_mut(&mut self.kinds), &(key.group.clone(), key.kind.clone()));
        if let Some(namespace) = &key.namespace {
            one_less(Arc::make_mut(&mut self.namespaces), namespace);
        }
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_as_they_come_and_go() {
        let key = |kind: &str, namespace: Option<&str>| ObjectKey {
            kind: kind.to_owned(),
            namespace: namespace.map(str::to_owned),
            ..ObjectKey::default()
        };
        let mut census = Census::default();
        for (kind, namespace) in [("Pod", Some("a")), ("Pod", Some("b")), ("Node", None)] {
            census.came(&key(kind, namespace));
        }
        assert_eq!(census.kinds().collect::<Vec<_>>(), [("", "Node", 1), ("", "Pod", 2)]);
        let before = census.clone();
        census.went(&key("Pod", Some("b")));
        census.went(&key("Node", None));
        assert_eq!(census.kinds().collect::<Vec<_>>(), [("", "Pod", 1)]);
        assert_eq!(census.namespaces().collect::<Vec<_>>(), ["a"]);
        assert!(before.has_namespace("b") && !census.has_namespace("b"));
        census.went(&key("Pod", Some("a")));
        assert_eq!(census, Census::default());
    }
}

//! Values that a chart takes from its subcharts. Helm merges the tables themselves, not copies of them: what
//! two imports put at one place, the subchart of the first has afterwards, too. So tables are shared here as
//! they are there.

use opdev_template::Compat;
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value whose tables may stand in several places.
#[derive(Clone)]
enum Node {
    Leaf(Value),
    Table(Table),
}

/// A table of values; a clone is the same table.
#[derive(Clone)]
pub(crate) struct Table(Rc<RefCell<BTreeMap<String, Node>>>);

impl Table {
    pub(crate) fn new() -> Table {
        Table(Rc::default())
    }

    pub(crate) fn of(values: &Map<String, Value>) -> Table {
        let node = |value: &Value| match value {
            Value::Object(map) => Node::Table(Table::of(map)),
            other => Node::Leaf(other.clone()),
        };
        let entries = values.iter().map(|(key, value)| (key.clone(), node(value)));
        Table(Rc::new(RefCell::new(entries.collect())))
    }

    pub(crate) fn values(&self) -> Map<String, Value> {
        let value = |node: &Node| match node {
            Node::Leaf(value) => value.clone(),
            Node::Table(table) => Value::Object(table.values()),
        };
        self.0.borrow().iter().map(|(key, node)| (key.clone(), value(node))).collect()
    }

    /// The table at a dotted path.
    pub(crate) fn at(&self, path: &str) -> Option<Table> {
        path.split('.').try_fold(self.clone(), |table, key| match table.0.borrow().get(key)? {
            Node::Table(below) => Some(below.clone()),
            Node::Leaf(_) => None,
        })
    }

    /// A table that has this one at a dotted path.
    pub(crate) fn below(self, path: &str) -> Table {
        if path == "." {
            return self;
        }
        let inside = |inner: Table, key: &str| {
            let entries = BTreeMap::from([(key.to_owned(), Node::Table(inner))]);
            Table(Rc::new(RefCell::new(entries)))
        };
        path.rsplit('.').fold(self, inside)
    }

    /// Fills what this table lacks from another one. Helm 4 writes each null of this one into the other
    /// first.
    pub(crate) fn merge(&self, from: &Table, compat: Compat) {
        if Rc::ptr_eq(&self.0, &from.0) {
            return;
        }
        if compat.is_four() {
            let own = self.0.borrow();
            let nulls = own.iter().filter(|(_, node)| matches!(node, Node::Leaf(Value::Null)));
            from.0.borrow_mut().extend(nulls.map(|(key, node)| (key.clone(), node.clone())));
        }
        let entries: Vec<_> = from.0.borrow().iter().map(|(key, node)| (key.clone(), node.clone())).collect();
        for (key, node) in entries {
            let old = self.0.borrow().get(&key).cloned();
            match (old, node) {
                (None, node) => {
                    self.0.borrow_mut().insert(key, node);
                }
                (Some(Node::Table(old)), Node::Table(new)) => old.merge(&new, compat),
                (Some(_), _) => {}
            }
        }
    }
}

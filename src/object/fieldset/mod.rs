//! Sets of field paths, as `metadata.managedFields` keeps them: who owns what.
//! A set has members and children; a child need not be a member itself. Read `element` for path parts,
//! `typed` for how values and schemas give sets, `apply` for what is done with them.

mod element;
mod error;
mod serialize;
mod sorted;
mod typed;

pub use element::{Atom, Element, FieldPath};
pub use error::{FieldsV1Error, ItemError};
pub(crate) use typed::{Comparison, Shape, compare, field_schema, item_element, item_schema, shape};

use crate::schema::SchemaRef;
use serde_json::Value;
use sorted::Sorted;
use std::collections::BTreeSet;

/// A set of field paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    members: Sorted<()>,
    children: Sorted<FieldSet>,
}

impl FieldSet {
    /// The empty set.
    pub fn new() -> Self {
        FieldSet::default()
    }

    /// A set of paths of plain fields.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = FieldSet::new();
        for path in paths {
            let path: Vec<Element> = path.iter().map(|name| Element::Field((*name).to_owned())).collect();
            set.insert(&path);
        }
        set
    }

    /// All fields that `value` has, with the granularity of the schema.
    pub fn from_value(value: &Value, schema: &SchemaRef) -> Self {
        typed::collect(value, schema).unwrap_or_default()
    }

    /// The set as `fieldsV1`.
    pub fn to_fields_v1(&self) -> Value {
        serialize::to_fields_v1(self)
    }

    /// Reads `fieldsV1`; parts of a kind it does not know are left out.
    ///
    /// # Errors
    /// The element that cannot be read.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsV1Error> {
        serialize::from_fields_v1(fields)
    }

    /// The text of the set as `fieldsV1`.
    pub fn to_fields_v1_text(&self) -> String {
        serialize::to_fields_v1_text(self)
    }

    /// Reads the text of `fieldsV1`; `None` for what is none.
    pub fn from_fields_v1_text(text: &str) -> Option<Self> {
        serialize::from_fields_v1_text(text)
    }

    /// Returns true if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(FieldSet::is_empty)
    }

    /// Adds a path. The root itself cannot be in a set.
    pub fn insert(&mut self, path: &[Element]) {
        match path {
            [] => {}
            [last] => _ = self.members.at(last),
            [first, rest @ ..] => self.children.at(first).insert(rest),
        }
    }

    /// Adds what was found at a place: itself, and what lies below it. Without anything below, it is a field
    /// itself.
    fn put(&mut self, element: Element, own: bool, below: Option<FieldSet>) {
        match below {
            None => self.members.insert(element, ()),
            Some(below) if below.is_empty() => {
                if own {
                    self.members.insert(element, ());
                }
            }
            Some(below) => {
                if own {
                    self.members.insert(element.clone(), ());
                }
                self.children.insert(element, below);
            }
        }
    }

    /// Returns true if the path is in the set.
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [last] => self.members.contains(last),
            [first, rest @ ..] => self.children.get(first).is_some_and(|child| child.has(rest)),
        }
    }

    pub(crate) fn has_member(&self, element: &Element) -> bool {
        self.members.contains(element)
    }

    pub(crate) fn child(&self, element: &Element) -> Option<&FieldSet> {
        self.children.get(element).filter(|child| !child.is_empty())
    }

    /// The fields of either set.
    #[must_use]
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        self.clone().joined(other.clone())
    }

    /// The union, made of the two sets themselves.
    #[must_use]
    pub(crate) fn joined(mut self, other: FieldSet) -> FieldSet {
        if self.members.is_empty() && self.children.is_empty() {
            return other;
        }
        self.members.extend(other.members, |(), ()| ());
        self.children.extend(other.children, |ours, theirs| *ours = std::mem::take(ours).joined(theirs));
        self
    }

    /// Takes away what is in the other set; members only, what lies below a member stays.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        self.take_away(other, false);
    }

    /// Takes away what is in the other set, or below one of its members.
    pub(crate) fn subtract_whole(&mut self, other: &FieldSet) {
        self.take_away(other, true);
    }

    fn take_away(&mut self, other: &FieldSet, whole: bool) {
        if self.members.is_empty() && self.children.is_empty() {
            return;
        }
        self.members.remove_all(&other.members);
        if whole {
            self.children.remove_all(&other.members);
        }
        for (element, theirs) in other.children.iter() {
            if let Some(ours) = self.children.get_mut(element) {
                ours.take_away(theirs, whole);
            }
        }
        self.children.retain(|_, child| !child.is_empty());
    }

    /// Returns true if all of it is in the other set.
    pub(crate) fn is_within(&self, other: &FieldSet) -> bool {
        self.members.elements().all(|element| other.members.contains(element))
            && self.children.iter().all(|(element, ours)| match other.children.get(element) {
                Some(theirs) => ours.is_within(theirs),
                None => ours.is_empty(),
            })
    }

    /// The fields of both sets.
    #[must_use]
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        let both = self.members.elements().filter(|element| other.members.contains(element));
        let members = both.map(|element| (element.clone(), ())).collect();
        let children = self.children.iter().filter_map(|(element, ours)| {
            let both = ours.intersection(other.children.get(element)?);
            (!both.is_empty()).then(|| (element.clone(), both))
        });
        FieldSet { members, children: children.collect() }
    }

    /// The fields of this set that are not in the other; members only, fields below a member stay.
    #[must_use]
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        let mut rest = self.clone();
        rest.subtract(other);
        rest
    }

    /// All paths, in order: a member before what lies below it.
    pub fn paths(&self) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.walk(&mut Vec::new(), &mut paths);
        paths
    }

    /// All paths; at each place its own fields come before what is below them.
    pub fn leaves_first(&self) -> Vec<FieldPath> {
        let mut paths = Vec::new();
        self.walk_leaves(&mut Vec::new(), &mut paths);
        paths
    }

    fn walk_leaves(&self, at: &mut Vec<Element>, out: &mut Vec<FieldPath>) {
        for element in self.members.elements() {
            at.push(element.clone());
            out.push(FieldPath(at.clone()));
            at.pop();
        }
        for (element, child) in self.children.iter() {
            at.push(element.clone());
            child.walk_leaves(at, out);
            at.pop();
        }
    }

    fn walk(&self, at: &mut Vec<Element>, out: &mut Vec<FieldPath>) {
        let elements: BTreeSet<&Element> = self.members.elements().chain(self.children.elements()).collect();
        for element in elements {
            at.push(element.clone());
            if self.members.contains(element) {
                out.push(FieldPath(at.clone()));
            }
            if let Some(child) = self.children.get(element) {
                child.walk(at, out);
            }
            at.pop();
        }
    }

    /// Follows a schema that changed since the set was written: where a granular place became atomic, whoever
    /// owned a part of it now owns the whole.
    pub(crate) fn reconcile(&mut self, schema: &SchemaRef) {
        let members = &mut self.members;
        self.children.retain(|element, child| {
            let inner = match element {
                Element::Field(name) => schema.field(name),
                Element::Key(_) => schema.items.as_ref(),
                Element::Value(_) | Element::Index(_) => None,
            };
            match inner {
                _ if child.is_empty() => return false,
                Some(inner) if typed::is_atomic(inner) => {
                    members.insert(element.clone(), ());
                    return false;
                }
                Some(inner) => child.reconcile(inner),
                None => {}
            }
            true
        });
    }

    /// Adds the declared fields that lead to something in the set.
    pub(crate) fn with_named_fields(&self, schema: Option<&SchemaRef>) -> FieldSet {
        let mut result = FieldSet { members: self.members.clone(), children: Sorted::default() };
        for (element, child) in self.children.iter() {
            let inner = match element {
                Element::Field(name) => {
                    let declared = schema.and_then(|schema| schema.properties.get(name));
                    if declared.is_some() {
                        result.members.insert(element.clone(), ());
                    }
                    declared.or_else(|| schema?.field(name))
                }
                Element::Key(_) => schema.and_then(|schema| schema.items.as_ref()),
                Element::Value(_) | Element::Index(_) => None,
            };
            result.children.insert(element.clone(), child.with_named_fields(inner));
        }
        result
    }
}

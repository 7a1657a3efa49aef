//! Values seen through a schema: which fields they have and which of them differ.
//! What the schema does not know is deduced: maps are granular, lists atomic.

use super::{Atom, Element, FieldSet, ItemError};
use crate::schema::{Kind, ListType, MapType, SchemaRef, same};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The treatment of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Field by field.
    Map,
    /// As a whole.
    Leaf,
    /// Item by item.
    List,
}

/// The shape of `value` under `schema`.
pub(crate) fn shape(schema: &SchemaRef, value: &Value) -> Shape {
    let map = || match schema.map_type_here() {
        Some(MapType::Atomic) => Shape::Leaf,
        Some(MapType::Granular) | None => Shape::Map,
    };
    let list = || match &schema.list_type {
        Some(ListType::Set | ListType::Map(_)) => Shape::List,
        Some(ListType::Atomic) | None => Shape::Leaf,
    };
    match (schema.kind, value) {
        (Kind::Object, _) => map(),
        (Kind::Array, _) => list(),
        (Kind::Any | Kind::IntOrString, Value::Object(_) | Value::Null) => map(),
        (Kind::Any | Kind::IntOrString, Value::Array(_)) => list(),
        _ => Shape::Leaf,
    }
}

/// Returns true if the schema itself says that values are replaced as a whole.
pub(super) fn is_atomic(schema: &SchemaRef) -> bool {
    let list = matches!(schema.list_type, Some(ListType::Atomic) | None);
    match schema.kind {
        Kind::Object => schema.map_type_here() == Some(MapType::Atomic),
        Kind::Array => list,
        Kind::Any | Kind::IntOrString | Kind::String | Kind::Integer | Kind::Number | Kind::Boolean => false,
    }
}

/// The schema of a field, deduced where it is not known.
pub(crate) fn field_schema<'a>(schema: &'a SchemaRef, name: &str) -> &'a SchemaRef {
    schema.field(name).unwrap_or_else(|| SchemaRef::untyped())
}

/// The schema of a list's items.
pub(crate) fn item_schema(schema: &SchemaRef) -> &SchemaRef {
    schema.items.as_ref().unwrap_or_else(|| SchemaRef::untyped())
}

/// The element that identifies an item of a list of type set or map.
pub(crate) fn item_element(schema: &SchemaRef, item: &Value) -> Result<Element, ItemError> {
    let Some(ListType::Map(keys)) = &schema.list_type else {
        return match item {
            Value::Object(_) => Err(ItemError::MapInSet),
            Value::Array(_) => Err(ItemError::ListInSet),
            Value::Null => Err(ItemError::NullInSet),
            scalar => Ok(Element::Value(Atom(scalar.clone()))),
        };
    };
    let map = match item {
        Value::Object(map) => map,
        Value::Null => return Err(ItemError::Null),
        _ => return Err(ItemError::NotAMap),
    };
    let default = |key: &str| schema.items.as_ref()?.properties.get(key)?.default_value();
    let mut found: Vec<(String, Atom)> = keys
        .iter()
        .filter_map(|key| Some((key.clone(), Atom(map.get(key).or_else(|| default(key))?.clone()))))
        .collect();
    if found.is_empty() {
        return Err(ItemError::NoKeys { keys: keys.clone() });
    }
    found.sort();
    Ok(Element::Key(found))
}

/// The fields that lie below a place; `None` where the place is one itself.
pub(super) fn collect(value: &Value, schema: &SchemaRef) -> Option<FieldSet> {
    let mut set = FieldSet::new();
    match (shape(schema, value), value) {
        (Shape::Leaf, _) => return None,
        (Shape::Map, Value::Object(map)) => {
            for (name, inner) in map {
                let empty = inner.is_null() || inner.as_object().is_some_and(Map::is_empty);
                let own = empty || !schema.properties.contains_key(name);
                set.put(Element::Field(name.clone()), own, collect(inner, field_schema(schema, name)));
            }
        }
        (Shape::List, Value::Array(items)) => {
            let mut by_element: BTreeMap<Element, Option<&Value>> = BTreeMap::new();
            for item in items {
                let Ok(element) = item_element(schema, item) else { continue };
                // An item that comes twice is known by its place alone.
                by_element.entry(element).and_modify(|only| *only = None).or_insert(Some(item));
            }
            let inner = item_schema(schema);
            for (element, only) in by_element {
                set.put(
                    element,
                    true,
                    only.map_or_else(|| Some(FieldSet::new()), |item| collect(item, inner)),
                );
            }
        }
        (Shape::Map | Shape::List, _) => {}
    }
    Some(set)
}

/// The differences between two values.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
}

impl Comparison {
    /// Leaves out the fields of `ignored` and what lies below them.
    pub(crate) fn without(mut self, ignored: &FieldSet) -> Comparison {
        for set in [&mut self.added, &mut self.removed, &mut self.modified] {
            set.subtract_whole(ignored);
        }
        self
    }
}

/// The fields that were added, removed and modified from `old` to `new`.
pub(crate) fn compare(old: &Value, new: &Value, schema: &SchemaRef) -> Comparison {
    let mut out = Comparison::default();
    walk(Some(old), Some(new), schema, &mut Vec::new(), &mut out);
    out
}

fn walk(
    old: Option<&Value>,
    new: Option<&Value>,
    schema: &SchemaRef,
    at: &mut Vec<Element>,
    out: &mut Comparison,
) {
    let shapes = (old.map(|v| shape(schema, v)), new.map(|v| shape(schema, v)));
    let leaf = match shapes {
        (Some(before), None) => visit(before, old, new, schema, at, out),
        (None, Some(after)) => visit(after, old, new, schema, at, out),
        (Some(before), Some(after)) => {
            // A value that changed its nature is compared both ways.
            if before != after {
                visit(before, old, new, schema, at, out);
            }
            visit(after, old, new, schema, at, out)
        }
        (None, None) => return,
    };
    if !leaf {
        match (old, new) {
            (None, _) => out.added.insert(at),
            (_, None) => out.removed.insert(at),
            _ => {}
        }
    }
}

/// Returns whether the place was compared as a whole.
fn visit(
    shape: Shape,
    old: Option<&Value>,
    new: Option<&Value>,
    schema: &SchemaRef,
    at: &mut Vec<Element>,
    out: &mut Comparison,
) -> bool {
    let (empty_map, empty_list) = (Map::new(), Vec::new());
    match shape {
        Shape::Leaf => {
            leaf(old, new, at, out);
            true
        }
        Shape::Map => {
            let before = old.and_then(Value::as_object);
            let after = new.and_then(Value::as_object);
            let (before, after) = (before.unwrap_or(&empty_map), after.unwrap_or(&empty_map));
            if before.is_empty() && after.is_empty() {
                leaf(old, new, at, out);
                return true;
            }
            // Added and changed fields come first, then removed ones: sets have no order of their own.
            let gone = before.iter().filter(|(name, _)| !after.contains_key(*name));
            let pairs = after.iter().map(|(name, new)| (name, before.get(name), Some(new)));
            for (name, old, new) in pairs.chain(gone.map(|(name, old)| (name, Some(old), None))) {
                // Most of an object stays as it is.
                if old == new {
                    continue;
                }
                at.push(Element::Field(name.clone()));
                walk(old, new, field_schema(schema, name), at, out);
                at.pop();
            }
            false
        }
        Shape::List => {
            let before = old.and_then(Value::as_array).unwrap_or(&empty_list);
            let after = new.and_then(Value::as_array).unwrap_or(&empty_list);
            if before.is_empty() && after.is_empty() {
                leaf(old, new, at, out);
                return true;
            }
            items(before, after, schema, at, out);
            false
        }
    }
}

fn leaf(old: Option<&Value>, new: Option<&Value>, at: &[Element], out: &mut Comparison) {
    match (old, new) {
        (None, _) => out.added.insert(at),
        (_, None) => out.removed.insert(at),
        (Some(old), Some(new)) if !same(old, new) => out.modified.insert(at),
        _ => {}
    }
}

fn items(before: &[Value], after: &[Value], schema: &SchemaRef, at: &mut Vec<Element>, out: &mut Comparison) {
    let mut both: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
    for item in before {
        if let Ok(element) = item_element(schema, item) {
            both.entry(element).or_default().0.push(item);
        }
    }
    for item in after {
        if let Ok(element) = item_element(schema, item) {
            both.entry(element).or_default().1.push(item);
        }
    }
    let inner = item_schema(schema);
    for (element, (old, new)) in both {
        at.push(element);
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => walk(old.first().copied(), new.first().copied(), inner, at, out),
            ([_, _, ..], [_, _, ..]) => {
                if old.len() != new.len() || !old.iter().zip(&new).all(|(a, b)| same(a, b)) {
                    out.modified.insert(at);
                }
            }
            ([_, _, ..], rest) => {
                if let [only] = rest {
                    walk(None, Some(only), inner, at, out);
                }
                out.removed.insert(at);
            }
            (rest, _) => {
                if let [only] = rest {
                    walk(Some(only), None, inner, at, out);
                }
                out.added.insert(at);
            }
        }
        at.pop();
    }
}

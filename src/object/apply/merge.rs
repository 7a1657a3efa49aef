//! The typed merge of an applied configuration into an object, and the removal of owned fields.
//! Pure tree work; who owns what is `super`'s.

use super::error::MergeError;
use crate::fieldset::{Element, FieldSet, Shape, field_schema, item_element, item_schema, shape};
use crate::schema::SchemaRef;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// `live` with `applied` merged into it. Fails where items of `applied` cannot be told apart.
pub(super) fn merge(live: &Value, applied: &Value, schema: &SchemaRef) -> Result<Value, MergeError> {
    Ok(walk(Some(live), Some(applied), schema)?.unwrap_or(Value::Null))
}

fn walk(
    left: Option<&Value>,
    right: Option<&Value>,
    schema: &SchemaRef,
) -> Result<Option<Value>, MergeError> {
    let (left, right) = match (left, right) {
        (None, None) => return Ok(None),
        // Most of an object is not spoken of.
        (Some(only), None) | (None, Some(only)) => {
            alone(only, schema, left.is_some())?;
            return Ok(Some(only.clone()));
        }
        (Some(left), Some(right)) => (left, right),
    };
    match shape(schema, right) {
        Shape::Leaf => Ok(Some(right.clone())),
        Shape::Map => {
            let (before, after) = (left.as_object(), right.as_object());
            if before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty) {
                return Ok(Some(right.clone()));
            }
            let mut out = Map::new();
            for (name, left, right) in pairs(before, after) {
                let merged = walk(left, right, field_schema(schema, name));
                let merged = merged.map_err(|error| error.below(Element::Field(name.clone())))?;
                out.extend(merged.map(|value| (name.clone(), value)));
            }
            Ok((!out.is_empty()).then_some(Value::Object(out)))
        }
        Shape::List => {
            let (before, after) = (left.as_array(), right.as_array());
            if before.is_none_or(Vec::is_empty) && after.is_none_or(Vec::is_empty) {
                return Ok(Some(right.clone()));
            }
            let none = Vec::new();
            let out = items(before.unwrap_or(&none), after.unwrap_or(&none), schema)?;
            Ok((!out.is_empty()).then_some(Value::Array(out)))
        }
    }
}

/// Checks a value that only one of both has. It is taken as it is, provided that the items of its lists can
/// be told apart.
fn alone(value: &Value, schema: &SchemaRef, repeats: bool) -> Result<(), MergeError> {
    match (shape(schema, value), value) {
        (Shape::Map, Value::Object(map)) => map.iter().try_for_each(|(name, inner)| {
            let checked = alone(inner, field_schema(schema, name), repeats);
            checked.map_err(|error| error.below(Element::Field(name.clone())))
        }),
        (Shape::List, Value::Array(list)) => {
            let elements = index(list, schema, repeats)?.order;
            list.iter().zip(elements).try_for_each(|(item, element)| {
                alone(item, item_schema(schema), repeats).map_err(|error| error.below(element))
            })
        }
        _ => Ok(()),
    }
}

type Pair<'a> = (&'a String, Option<&'a Value>, Option<&'a Value>);

/// The fields of both, each once, in order.
fn pairs<'a>(
    left: Option<&'a Map<String, Value>>,
    right: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = Pair<'a>> {
    let (mut left, mut right) =
        (left.into_iter().flatten().peekable(), right.into_iter().flatten().peekable());
    std::iter::from_fn(move || {
        let order = match (left.peek(), right.peek()) {
            (Some((ours, _)), Some((theirs, _))) => ours.cmp(theirs),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let ours = order.is_le().then(|| left.next()).flatten();
        let theirs = order.is_ge().then(|| right.next()).flatten();
        let (name, _) = ours.or(theirs)?;
        Some((name, ours.map(|(_, value)| value), theirs.map(|(_, value)| value)))
    })
}

/// The items of a list in order, and by what tells them apart; repeated ones are `null`.
struct Indexed<'a> {
    order: Vec<Element>,
    by_element: BTreeMap<Element, &'a Value>,
}

static REPEATED: Value = Value::Null;

fn index<'a>(list: &'a [Value], schema: &SchemaRef, repeats: bool) -> Result<Indexed<'a>, MergeError> {
    let mut indexed = Indexed { order: Vec::new(), by_element: BTreeMap::new() };
    for (i, item) in list.iter().enumerate() {
        let element = item_element(schema, item).map_err(|source| MergeError::item(i, source))?;
        if indexed.by_element.contains_key(&element) {
            if !repeats {
                return Err(MergeError::duplicate(element));
            }
            indexed.by_element.insert(element.clone(), &REPEATED);
        } else {
            indexed.by_element.insert(element.clone(), item);
        }
        indexed.order.push(element);
    }
    Ok(indexed)
}

/// The order of the applied list wins; items that only the live list has keep their place beside the
/// neighbours they share with it.
fn items(before: &[Value], after: &[Value], schema: &SchemaRef) -> Result<Vec<Value>, MergeError> {
    let left = index(before, schema, true)?;
    let right = index(after, schema, false)?;
    let inner = item_schema(schema);
    let mut shared: VecDeque<&Element> =
        right.order.iter().filter(|element| left.by_element.contains_key(*element)).collect();
    let mut next_shared = shared.pop_front();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let mut out = Vec::new();
    let emit = |out: &mut Vec<Value>, element: &Element, left: Option<&Value>, right: Option<&Value>| {
        let merged = walk(left, right, inner).map_err(|error| error.below(element.clone()))?;
        out.extend(merged);
        Ok::<(), MergeError>(())
    };
    let (mut l, mut r) = (0, 0);
    while l < left.order.len() || r < right.order.len() {
        if let (Some(ours), Some(theirs)) = (left.order.get(l), right.order.get(r)) {
            if ours == theirs {
                done.insert(theirs);
                emit(
                    &mut out,
                    ours,
                    left.by_element.get(ours).copied(),
                    right.by_element.get(theirs).copied(),
                )?;
                (l, r) = (l + 1, r + 1);
                next_shared = shared.pop_front();
                continue;
            }
            if right.by_element.contains_key(ours) && next_shared.is_some_and(|next| next != ours) {
                // It comes later, where the applied list has it.
                l += 1;
                continue;
            }
        }
        if let Some(ours) = left.order.get(l) {
            if !right.by_element.contains_key(ours) {
                emit(&mut out, ours, Some(&before[l]), None)?;
                l += 1;
                continue;
            }
            if done.contains(ours) {
                l += 1;
            }
        }
        if let Some(theirs) = right.order.get(r) {
            done.insert(theirs);
            let (ours, new) = (left.by_element.get(theirs).copied(), right.by_element.get(theirs).copied());
            emit(&mut out, theirs, ours, new)?;
            r += 1;
            if next_shared == Some(theirs) {
                next_shared = shared.pop_front();
            }
        }
    }
    Ok(out)
}

/// Returns true if what an apply empties becomes `null`: since structured-merge-diff 6.3.3.
fn leaves_null() -> bool {
    crate::facts::minors::since(37)
}

/// `value` without the fields and items of `remove`. Of a list or map that loses everything `null` is left,
/// and somebody may own that: a built-in kind has no such field then, a custom resource has it. Before 1.37
/// it stays, and is empty.
pub(super) fn remove(value: &Value, remove_set: &FieldSet, schema: &SchemaRef) -> Value {
    match (shape(schema, value), value) {
        (Shape::Map, Value::Object(map)) if !map.is_empty() => {
            let mut out = Map::new();
            for (name, inner) in map {
                let element = Element::Field(name.clone());
                if remove_set.has_member(&element) {
                    continue;
                }
                let rest = match remove_set.child(&element) {
                    Some(child) => remove(inner, child, field_schema(schema, name)),
                    None => inner.clone(),
                };
                out.insert(name.clone(), rest);
            }
            if out.is_empty() && leaves_null() { Value::Null } else { Value::Object(out) }
        }
        (Shape::List, Value::Array(list)) if !list.is_empty() => {
            let inner = item_schema(schema);
            let mut out = Vec::new();
            for item in list {
                let element = item_element(schema, item).ok();
                if element.as_ref().is_some_and(|element| remove_set.has_member(element)) {
                    continue;
                }
                out.push(match element.as_ref().and_then(|element| remove_set.child(element)) {
                    Some(child) => remove(item, child, inner),
                    None => item.clone(),
                });
            }
            if out.is_empty() && leaves_null() { Value::Null } else { Value::Array(out) }
        }
        (Shape::Leaf, _) if !(value.is_object() || value.is_array()) => value.clone(),
        // Something was to be removed inside an atomic or empty place: the whole place goes.
        _ => Value::Null,
    }
}

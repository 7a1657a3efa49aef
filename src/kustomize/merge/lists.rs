//! Lists whose items a schema tells apart by keys. Kustomize's way is kept to the letter, for users see what
//! it gives: items that the patch names come first, and of items with the same keys the later one counts.

use super::{DIRECTIVE, MergeDirective, Outcome, read_directive, walk};
use crate::error::MergeError;
use crate::read::{text, untagged};
use opdev_object::schema::{ListType, SchemaRef};
use serde_json::Value;
use std::collections::BTreeSet;

/// Merges two lists, of which one may be missing.
pub(super) fn merge(
    target: Option<&mut Value>,
    patch: Option<&mut Value>,
    schema: Option<&SchemaRef>,
) -> Result<Outcome, MergeError> {
    let (mut mine, mut theirs) = match (target, patch) {
        (None, None) => return Ok(Outcome::Gone),
        (Some(_), Some(Value::Null)) => return Ok(Outcome::Gone),
        (None | Some(Value::Null), Some(patch)) => (patch.clone(), patch.clone()),
        (Some(target), None) => {
            let merged = merged(items(target), Vec::new(), schema)?;
            *target = Value::Array(merged);
            return Ok(Outcome::Kept);
        }
        (Some(target), Some(patch)) => match take_list_directive(patch)? {
            MergeDirective::Delete => return Ok(Outcome::Gone),
            MergeDirective::Replace => (patch.clone(), patch.clone()),
            MergeDirective::Merge => {
                let merged = merged(items(target), items(patch), schema)?;
                *target = Value::Array(merged);
                return Ok(Outcome::Kept);
            }
        },
    };
    let merged = merged(items(&mut mine), items(&mut theirs), schema)?;
    Ok(Outcome::Replaced(Value::Array(merged)))
}

fn items(list: &mut Value) -> Vec<Value> {
    list.as_array_mut().map(std::mem::take).unwrap_or_default()
}

/// Takes the directive out of the list of a patch: an item that is nothing but a directive.
fn take_list_directive(patch: &mut Value) -> Result<MergeDirective, MergeError> {
    let Some(list) = patch.as_array_mut() else { return Ok(MergeDirective::Merge) };
    let Some(first) = list.iter().find(|item| item.get(DIRECTIVE).is_some()) else {
        return Ok(MergeDirective::Merge);
    };
    if first.as_object().is_some_and(|map| map.len() > 1) {
        return Ok(MergeDirective::Merge);
    }
    let directive = first[DIRECTIVE].clone();
    let found = read_directive(&directive)?;
    list.retain(|item| item.get(DIRECTIVE) != Some(&directive));
    Ok(found)
}

/// Items are told apart by where they stand in `cells`, for an item of the result may be one of the list,
/// changed in place.
struct Cells(Vec<Value>);

type List = Vec<usize>;

impl Cells {
    fn add(&mut self, items: Vec<Value>) -> List {
        let from = self.0.len();
        self.0.extend(items);
        (from..self.0.len()).collect()
    }

    fn field(&self, cell: usize, key: &str) -> Option<&Value> {
        self.0[cell].as_object()?.get(key)
    }

    /// Returns true if an item has values under keys. An empty value stands for any; a key without a value
    /// counts as the one before.
    fn has(&self, cell: usize, keys: &[String], values: &[String]) -> bool {
        let mut has = false;
        for (at, key) in keys.iter().enumerate() {
            if let Some(value) = values.get(at) {
                has = if key.is_empty() {
                    text(&self.0[cell]) == *value
                } else {
                    self.field(cell, key).is_some_and(|field| value.is_empty() || text(field) == *value)
                };
            }
            if !has {
                return false;
            }
        }
        has
    }

    /// The first item with values under keys.
    fn find(&self, list: &List, keys: &[String], values: &[String]) -> Option<usize> {
        let is_plain = keys.first().is_none_or(String::is_empty);
        list.iter().copied().find(|cell| {
            if is_plain {
                return values.first().is_some_and(|value| text(&self.0[*cell]) == *value);
            }
            let mut pairs = keys.iter().zip(values);
            pairs.all(|(key, value)| self.field(*cell, key).is_some_and(|field| text(field) == *value))
        })
    }

    /// Puts `new` in the place of the items with values under keys, or at the end; without `new` they go
    /// away. Empty items always go.
    fn set(&self, list: &mut List, keys: &[String], values: &[String], new: Option<usize>) {
        let by_key = keys.first().is_some_and(|key| !key.is_empty())
            && values.first().is_some_and(|value| !value.is_empty());
        let mut is_there = false;
        let mut kept = Vec::with_capacity(list.len() + 1);
        for cell in std::mem::take(list) {
            if is_nothing(&self.0[cell]) {
                continue;
            }
            if by_key && !self.0[cell].is_object() {
                kept.push(cell);
                continue;
            }
            if !self.has(cell, keys, values) {
                // Without values kustomize drops what does not match.
                kept.extend((!values.is_empty()).then_some(cell));
                continue;
            }
            is_there = true;
            kept.extend(new);
        }
        *list = kept;
        if let Some(new) = new.filter(|new| !is_there && !self.0[*new].is_null()) {
            list.push(new);
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// The values that items have under keys, the patch's items first, each once.
fn key_values(cells: &Cells, lists: [&List; 2], keys: &[String]) -> Vec<Vec<String>> {
    let mut seen: Vec<Vec<String>> = Vec::new();
    for cell in lists.into_iter().flatten() {
        let values: Vec<String> = if keys.is_empty() {
            vec![text(&cells.0[*cell])]
        } else {
            let of = |key: &String| match cells.field(*cell, key) {
                None | Some(Value::Null) => String::new(),
                Some(value) => text(value),
            };
            keys.iter().map(of).collect()
        };
        if !seen.contains(&values) {
            seen.push(values);
        }
    }
    seen
}

/// Values that fit each other, for one lacks what the other has, become the same.
fn unite(all: &mut [Vec<String>]) {
    for one in 0..all.len() {
        for other in 0..all.len() {
            if let Some(both) = both(&all[one], &all[other]) {
                all[one].clone_from(&both);
                all[other] = both;
            }
        }
    }
}

fn both(one: &[String], other: &[String]) -> Option<Vec<String>> {
    let mut any = false;
    let mut found = Vec::new();
    for (a, b) in one.iter().zip(other) {
        if a == b {
            any = true;
        } else if !a.is_empty() && !b.is_empty() {
            return None;
        }
        found.push(if a.is_empty() { b.clone() } else { a.clone() });
    }
    any.then_some(found)
}

/// The keys that any of the items has a value for, and this item's values for them.
fn keys_in_use(all: &[Vec<String>], values: &[String], keys: &[String]) -> (Vec<String>, Vec<String>) {
    let used: BTreeSet<&String> = all
        .iter()
        .flat_map(|values| keys.iter().zip(values).filter(|(_, value)| !value.is_empty()).map(|(key, _)| key))
        .collect();
    if used.is_empty() {
        return (keys.to_vec(), values.to_vec());
    }
    let of = |pairs: Vec<(&String, &String)>| {
        pairs.into_iter().map(|(key, value)| (key.clone(), value.clone())).unzip()
    };
    of(keys.iter().zip(values).filter(|(key, _)| used.contains(key)).collect())
}

fn merged(
    target: Vec<Value>,
    patch: Vec<Value>,
    schema: Option<&SchemaRef>,
) -> Result<Vec<Value>, MergeError> {
    let declared: Vec<String> = match schema.and_then(|schema| schema.list_type.as_ref()) {
        Some(ListType::Map(keys)) => keys.clone(),
        Some(ListType::Atomic | ListType::Set) | None => {
            schema.and_then(|schema| schema.patch().merge_key.clone()).into_iter().collect()
        }
    };
    let mut cells = Cells(Vec::new());
    let mut mine = cells.add(target);
    let theirs = cells.add(patch);
    let mut all = key_values(&cells, [&theirs, &mine], &declared);
    let keys = if declared.is_empty() { vec![String::new()] } else { declared };
    if keys.len() > 1 {
        unite(&mut all);
    }
    let inner = schema.and_then(|schema| schema.items.as_ref());
    let mut added: List = Vec::new();
    let mut last_keys = Vec::new();
    for values in &all {
        let (keys, values) = keys_in_use(&all, values, &keys);
        last_keys.clone_from(&keys);
        let (some_keys, some_values) = keys_in_use(std::slice::from_ref(&values), &values, &keys);
        let place = [&mine, &theirs].map(|list| cells.find(list, &some_keys, &some_values));
        let merged = merge_items(&mut cells, place, inner)?;
        let merged = merged.filter(|cell| !is_nothing(&cells.0[*cell]));
        let Some(merged) = merged else {
            cells.set(&mut mine, &keys, &values, None);
            continue;
        };
        for (key, value) in keys.iter().zip(&values) {
            let Some(map) = cells.0[merged].as_object_mut() else { continue };
            if !value.is_empty() && !map.contains_key(key) {
                map.insert(key.clone(), untagged(value));
            }
        }
        cells.set(&mut added, &keys, &values, Some(merged));
    }
    let result = if all.is_empty() { mine } else { append(&cells, added, &mine, &last_keys) };
    Ok(result.into_iter().map(|cell| cells.0[cell].clone()).collect())
}

/// Merges an item with that of the patch; gives the cell of what comes out.
fn merge_items(
    cells: &mut Cells,
    [mine, theirs]: [Option<usize>; 2],
    schema: Option<&SchemaRef>,
) -> Result<Option<usize>, MergeError> {
    let take = |cells: &mut Cells, cell: Option<usize>| cell.map(|cell| std::mem::take(&mut cells.0[cell]));
    let (mut target, mut patch) = (take(cells, mine), take(cells, theirs));
    let outcome = walk(target.as_mut(), patch.as_mut(), schema);
    for (cell, value) in [(mine, target), (theirs, patch)] {
        if let (Some(cell), Some(value)) = (cell, value) {
            cells.0[cell] = value;
        }
    }
    Ok(match outcome? {
        Outcome::Kept => mine,
        Outcome::Replaced(value) => {
            cells.0.push(value);
            Some(cells.0.len() - 1)
        }
        Outcome::Gone => None,
    })
}

/// Adds what the list has beside; an item with the same keys takes the place of the one that is there.
fn append(cells: &Cells, mut list: List, more: &List, keys: &[String]) -> List {
    for cell in more {
        if keys.first().is_none_or(String::is_empty) {
            let value = text(&cells.0[*cell]);
            cells.set(&mut list, &[String::new()], &[value], Some(*cell));
            continue;
        }
        let mut values = Vec::new();
        for key in keys {
            match cells.field(*cell, key) {
                None => list.push(*cell),
                Some(value) => values.push(text(value)),
            }
        }
        if keys.len() > 1 {
            cells.set(&mut list, keys, &values, None);
        }
        cells.set(&mut list, keys, &values, Some(*cell));
    }
    list
}

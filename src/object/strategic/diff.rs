//! Making a strategic merge patch from two states of an object.

use super::order::arrange;
use super::terms::{
    DELETE_FROM, DIRECTIVE, Object, RETAIN_KEYS, SET_ORDER, StrategicError, fail, field, go_value, items,
    key_of,
};
use crate::schema::{PatchRule, SchemaRef};
use serde_json::{Value, json};

/// The changes that are of interest, and whether the order of lists is written down.
#[derive(Clone, Copy, Default)]
pub(super) struct DiffOptions {
    pub(super) ignore_changes: bool,
    pub(super) ignore_deletions: bool,
    pub(super) order: bool,
    pub(super) retain_keys: bool,
}

pub(super) fn diff_objects(
    original: &Object,
    modified: &Object,
    schema: &SchemaRef,
    options: DiffOptions,
) -> Result<Object, StrategicError> {
    let mut patch = Object::new();
    for (key, new) in modified {
        let Some(old) = original.get(key) else {
            if !options.ignore_changes {
                patch.insert(key.clone(), new.clone());
            }
            continue;
        };
        let (rule, inner) = field(schema, key);
        match (old, new) {
            (Value::Object(old), Value::Object(new)) if !rule.replace => {
                let options = DiffOptions { retain_keys: rule.retain_keys, ..options };
                let changes = diff_objects(old, new, &inner, options)?;
                if !changes.is_empty() {
                    patch.insert(key.clone(), Value::Object(changes));
                }
            }
            (Value::Array(old), Value::Array(new)) if rule.merge => {
                diff_lists(key, old, new, (&rule, &items(&inner)), options, &mut patch)?;
            }
            _ if options.ignore_changes => {}
            // A replaced object is sent even where it is the same, as upstream sends it.
            (Value::Object(_), Value::Object(_)) => _ = patch.insert(key.clone(), new.clone()),
            _ if old == new => {}
            _ => _ = patch.insert(key.clone(), new.clone()),
        }
    }
    if !options.ignore_deletions {
        for key in original.keys().filter(|key| !modified.contains_key(*key)) {
            patch.insert(key.clone(), Value::Null);
        }
    }
    if options.retain_keys {
        let kept: Vec<&String> =
            modified.iter().filter(|(_, value)| !value.is_null()).map(|(key, _)| key).collect();
        let lost = original.iter().any(|(key, value)| !value.is_null() && !modified.contains_key(key));
        if !kept.is_empty() && (!patch.is_empty() || lost) {
            patch.insert(RETAIN_KEYS.to_owned(), json!(kept));
        }
    }
    Ok(patch)
}

fn diff_lists(
    name: &str,
    original: &[Value],
    modified: &[Value],
    (rule, schema): (&PatchRule, &SchemaRef),
    options: DiffOptions,
    patch: &mut Object,
) -> Result<(), StrategicError> {
    if original.is_empty() {
        if !modified.is_empty() && !options.ignore_changes {
            patch.insert(name.to_owned(), json!(modified));
        }
        return Ok(());
    }
    let kinds: Vec<_> = original.iter().chain(modified).map(std::mem::discriminant).collect();
    if kinds.windows(2).any(|pair| pair[0] != pair[1]) {
        return fail(format!(
            "list element types are not identical: [{} {}]",
            go_value(&json!(original)),
            go_value(&json!(modified))
        ));
    }
    match &original[0] {
        Value::Array(_) => fail("lists of lists are not supported"),
        Value::Object(_) => {
            let Some(key) = rule.merge_key.as_deref() else {
                return fail(format!("cannot merge lists without merge key for {name}"));
            };
            let options = DiffOptions { retain_keys: rule.retain_keys, ..options };
            keyed_lists(name, original, modified, (key, schema), options, patch)
        }
        _ => {
            scalar_lists(name, original, modified, options, patch);
            Ok(())
        }
    }
}

fn keyed_lists(
    name: &str,
    original: &[Value],
    modified: &[Value],
    (key, schema): (&str, &SchemaRef),
    options: DiffOptions,
    patch: &mut Object,
) -> Result<(), StrategicError> {
    let mut changes = Vec::new();
    for (at, new) in modified.iter().enumerate() {
        let wanted = key_of(new, key)?;
        // Items with one key are compared in their order: the first with the first, the second with the
        // second.
        let old =
            original.iter().filter(|old| old.get(key) == Some(wanted)).nth(same_before(modified, at, key));
        match (old, new) {
            (Some(Value::Object(old)), Value::Object(fields)) => {
                let mut inner = diff_objects(old, fields, schema, options)?;
                if !inner.is_empty() {
                    inner.insert(key.to_owned(), wanted.clone());
                    changes.push(Value::Object(inner));
                }
            }
            _ if options.ignore_changes => {}
            _ => changes.push(new.clone()),
        }
    }
    changes = arrange(changes, modified, Some(key))?;
    let mut gone = Vec::new();
    for (at, old) in original.iter().enumerate() {
        let wanted = key_of(old, key)?;
        let left = modified.iter().filter(|new| new.get(key) == Some(wanted)).count();
        if !options.ignore_deletions && same_before(original, at, key) >= left {
            gone.push(json!({key: wanted, DIRECTIVE: "delete"}));
        }
    }
    gone.sort_by_key(|item| go_value(&item[key]));
    changes.extend(gone);
    let same_order = original.len() == modified.len()
        && original.iter().zip(modified).all(|(old, new)| old.get(key) == new.get(key));
    let changed = !changes.is_empty();
    if options.order
        && ((!options.ignore_changes && (changed || !same_order)) || (!options.ignore_deletions && changed))
    {
        let order: Vec<Value> = modified.iter().map(|item| json!({key: item[key]})).collect();
        if !order.is_empty() {
            patch.insert(format!("{SET_ORDER}/{name}"), Value::Array(order));
        }
    }
    if changed {
        patch.insert(name.to_owned(), Value::Array(changes));
    }
    Ok(())
}

/// How many items before this one have its key.
fn same_before(list: &[Value], at: usize, key: &str) -> usize {
    list[..at].iter().filter(|other| other.get(key) == list[at].get(key)).count()
}

fn scalar_lists(
    name: &str,
    original: &[Value],
    modified: &[Value],
    options: DiffOptions,
    patch: &mut Object,
) {
    // Repeated values are matched one by one.
    let mut left: Vec<&Value> = original.iter().collect();
    let mut added = Vec::new();
    for new in modified {
        match left.iter().position(|old| *old == new) {
            Some(place) => _ = left.remove(place),
            None if !options.ignore_changes => added.push(new.clone()),
            None => {}
        }
    }
    let mut gone: Vec<Value> = Vec::new();
    if !options.ignore_deletions {
        for old in left {
            if !gone.contains(old) {
                gone.push(old.clone());
            }
        }
        gone.sort_by_key(go_value);
    }
    let order =
        (!options.ignore_deletions && !gone.is_empty()) || (!options.ignore_changes && original != modified);
    if options.order && order && !modified.is_empty() {
        patch.insert(format!("{SET_ORDER}/{name}"), json!(modified));
    }
    if !gone.is_empty() {
        patch.insert(format!("{DELETE_FROM}/{name}"), Value::Array(gone));
    }
    if !added.is_empty() {
        patch.insert(name.to_owned(), Value::Array(added));
    }
}

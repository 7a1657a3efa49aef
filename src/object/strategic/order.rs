//! The order of merged lists: what the patch names in the patch's order, what only the server has
//! beside the neighbours it had there.

use super::terms::{DIRECTIVE, StrategicError, key_of};
use serde_json::Value;
use std::cmp::Ordering;

/// Items are the same by their merge key, scalars by themselves.
pub(super) fn alike(a: &Value, b: &Value, key: Option<&str>) -> bool {
    match key {
        Some(key) if a.is_object() && b.is_object() => a.get(key) == b.get(key),
        _ => a == b,
    }
}

fn position(list: &[Value], item: &Value, key: Option<&str>) -> Option<usize> {
    list.iter().position(|other| alike(other, item, key))
}

/// Sorts by the order of another list; items with a delete directive go last.
pub(super) fn arrange(
    list: Vec<Value>,
    order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let Some(key) = key.filter(|_| list.iter().any(Value::is_object)) else {
        return Ok(sorted(list, order, None));
    };
    for item in list.iter().chain(order) {
        key_of(item, key)?;
    }
    let (gone, mut kept): (Vec<Value>, Vec<Value>) =
        list.into_iter().partition(|item| item.get(DIRECTIVE).is_some_and(|value| value == "delete"));
    kept = sorted(kept, order, Some(key));
    kept.extend(gone);
    Ok(kept)
}

fn sorted(list: Vec<Value>, order: &[Value], key: Option<&str>) -> Vec<Value> {
    let mut placed: Vec<(Option<usize>, Value)> =
        list.into_iter().map(|item| (position(order, &item, key), item)).collect();
    placed.sort_by(|(a, _), (b, _)| match (a, b) {
        (Some(a), Some(b)) => a.cmp(b),
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    });
    placed.into_iter().map(|(_, item)| item).collect()
}

/// Weaves the items that only the server has into those of the patch.
pub(super) fn weave(
    patched: Vec<Value>,
    server_only: Vec<Value>,
    patch_order: &[Value],
    server_order: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, StrategicError> {
    let patched = arrange(patched, patch_order, key)?;
    let server_only = arrange(server_only, server_order, key)?;
    let mut out = Vec::with_capacity(patched.len() + server_only.len());
    let mut right = patched.into_iter().peekable();
    for left in server_only {
        let at = position(server_order, &left, key);
        while let Some(item) = right.peek() {
            let before = matches!((at, position(server_order, item, key)), (Some(l), Some(r)) if l < r);
            if before {
                break;
            }
            out.extend(right.next());
        }
        out.push(left);
    }
    out.extend(right);
    Ok(out)
}

/// Splits into the items that `named` names and the others.
pub(super) fn partition(list: Vec<Value>, named: &[Value], key: Option<&str>) -> (Vec<Value>, Vec<Value>) {
    list.into_iter().partition(|item| position(named, item, key).is_some())
}

/// Each value once, at its first place.
pub(super) fn distinct(list: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(list.len());
    for item in list {
        if !out.contains(&item) {
            out.push(item);
        }
    }
    out
}

//! Operators of expressions: arithmetic with its overflows, order, equality, membership and indexes.

use super::failures;
use super::runtime::Runtime;
use super::time::in_range;
use super::value::{Evaluated, Key, Listing, Stop, Val, failed, no_overload, same_keys};
use std::cmp::Ordering;
use std::sync::Arc;

/// Bytes compared or copied for one unit of cost.
const BYTES: u64 = 10;

/// Applies an operator such as `_+_`.
pub(super) fn apply(runtime: &mut Runtime<'_>, operator: &str, args: &[Val]) -> Evaluated {
    match (operator, args) {
        ("!_", [value]) => Ok(Val::Bool(!value.truth()?)),
        ("-_", [Val::Int(number)]) => number.checked_neg().map_or_else(int_overflow, |n| Ok(Val::Int(n))),
        ("-_", [Val::Double(float)]) => Ok(Val::Double(-float)),
        ("_==_" | "_!=_", [a, b]) => {
            runtime.charge(equality_cost(a, b))?;
            Ok(Val::Bool(a.equals(b) == (operator == "_==_")))
        }
        ("_<_" | "_<=_" | "_>_" | "_>=_", [a, b]) => {
            runtime.charge(a.size().min(b.size()) / BYTES)?;
            order(operator, a, b)
        }
        ("@in", [value, list]) => member(runtime, value, list),
        ("_[_]" | "_[?_]", [of, index]) => at(of, index, operator == "_[?_]"),
        ("_+_", [a, b]) => {
            runtime.charge(sum_cost(a, b))?;
            add(a, b)
        }
        ("_-_", [a, b]) => subtract(a, b),
        ("_*_", [a, b]) => match (a, b) {
            (Val::Int(a), Val::Int(b)) => a.checked_mul(*b).map_or_else(int_overflow, |n| Ok(Val::Int(n))),
            (Val::Uint(a), Val::Uint(b)) => {
                a.checked_mul(*b).map_or_else(uint_overflow, |n| Ok(Val::Uint(n)))
            }
            (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a * b)),
            _ => no_overload(),
        },
        ("_/_", [a, b]) => match (a, b) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => failed("division by zero"),
            (Val::Int(a), Val::Int(b)) => a.checked_div(*b).map_or_else(int_overflow, |n| Ok(Val::Int(n))),
            (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a / b)),
            (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a / b)),
            _ => no_overload(),
        },
        ("_%_", [a, b]) => match (a, b) {
            (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => failed("modulus by zero"),
            (Val::Int(a), Val::Int(b)) => a.checked_rem(*b).map_or_else(int_overflow, |n| Ok(Val::Int(n))),
            (Val::Uint(a), Val::Uint(b)) => Ok(Val::Uint(a % b)),
            _ => no_overload(),
        },
        _ => no_overload(),
    }
}

fn int_overflow() -> Evaluated {
    failed("integer overflow")
}

fn uint_overflow() -> Evaluated {
    failed("unsigned integer overflow")
}

/// Lists compared without order are compared pairwise.
pub(super) fn equality_cost(a: &Val, b: &Val) -> u64 {
    let deep = |value: &Val| weight(value, 0);
    match a {
        Val::List(items, Listing::Set | Listing::Map(_)) => (items.len() as u64 + 1).saturating_mul(deep(b)),
        _ => deep(a).min(deep(b)),
    }
}

/// The size of a value, in all its parts.
pub(super) fn weight(value: &Val, depth: usize) -> u64 {
    if depth > 64 {
        return 1;
    }
    match value {
        Val::Text(text) => 1 + text.len() as u64 / BYTES,
        Val::Bytes(bytes) => 1 + bytes.len() as u64 / BYTES,
        Val::List(items, _) => 1 + items.iter().map(|item| weight(item, depth + 1)).sum::<u64>(),
        Val::Map(map) => 1 + map.values().map(|item| weight(item, depth + 1)).sum::<u64>(),
        _ => 1,
    }
}

fn sum_cost(a: &Val, b: &Val) -> u64 {
    match (a, b) {
        (Val::List(x, Listing::Plain), Val::List(y, _)) => (x.len() + y.len()) as u64,
        (Val::List(x, _), Val::List(y, _)) => (x.len() as u64 + 1).saturating_mul(y.len() as u64 + 1),
        (a, b) => (a.size() + b.size()) / BYTES,
    }
}

fn order(operator: &str, a: &Val, b: &Val) -> Evaluated {
    let nan = |value: &Val| matches!(value, Val::Double(float) if float.is_nan());
    if nan(a) || nan(b) {
        return failed("NaN values cannot be ordered");
    }
    let Some(order) = a.order(b) else { return no_overload() };
    Ok(Val::Bool(match operator {
        "_<_" => order == Ordering::Less,
        "_<=_" => order != Ordering::Greater,
        "_>_" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }))
}

fn member(runtime: &mut Runtime<'_>, value: &Val, list: &Val) -> Evaluated {
    match list {
        Val::List(items, _) => {
            for item in items.iter() {
                runtime.charge(equality_cost(item, value))?;
                if item.equals(value) {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        Val::Map(map) => Ok(Val::Bool(value.key().is_some_and(|key| map.contains_key(&key)))),
        _ => no_overload(),
    }
}

fn at(of: &Val, index: &Val, optional: bool) -> Evaluated {
    let found = match of {
        Val::Optional(None) => return Ok(Val::Optional(None)),
        Val::Optional(Some(inner)) => return at(inner, index, true),
        Val::List(items, _) => match index.key() {
            Some(Key::Number(number)) => {
                let item = usize::try_from(number).ok().and_then(|index| items.get(index));
                item.cloned().ok_or_else(|| format!("index out of bounds: {number}"))
            }
            _ => return failures::no_key(of, ""),
        },
        Val::Map(map) => match index.key() {
            Some(key) => map.get(&key).cloned().ok_or_else(|| format!("no such key: {key}")),
            None => return no_overload(),
        },
        _ if optional => return Ok(Val::Optional(None)),
        _ => match index.key() {
            Some(key) => return failures::no_key(of, &key.to_string()),
            None => return no_overload(),
        },
    };
    match (found, optional) {
        (Ok(value), true) => Ok(Val::some(value)),
        (Err(_), true) => Ok(Val::Optional(None)),
        (Ok(value), false) => Ok(value),
        (Err(text), false) => Err(Stop::Failed(text)),
    }
}

fn duration(nanos: Option<i128>) -> Evaluated {
    match nanos.filter(|nanos| i64::try_from(*nanos).is_ok()) {
        Some(nanos) => Ok(Val::Duration(nanos)),
        None => int_overflow(),
    }
}

fn timestamp(nanos: i128) -> Evaluated {
    if in_range(nanos) { Ok(Val::Timestamp(nanos)) } else { failed("timestamp overflow") }
}

fn add(a: &Val, b: &Val) -> Evaluated {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_add(*b).map_or_else(int_overflow, |n| Ok(Val::Int(n))),
        (Val::Uint(a), Val::Uint(b)) => a.checked_add(*b).map_or_else(uint_overflow, |n| Ok(Val::Uint(n))),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a + b)),
        (Val::Text(a), Val::Text(b)) => Ok(Val::text(format!("{a}{b}"))),
        (Val::Bytes(a), Val::Bytes(b)) => Ok(Val::Bytes([&a[..], &b[..]].concat().into())),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_add(*b)),
        (Val::Timestamp(a), Val::Duration(b)) | (Val::Duration(b), Val::Timestamp(a)) => timestamp(a + b),
        (Val::List(a, kind), Val::List(b, _)) => Ok(Val::List(Arc::new(joined(a, b, kind)), kind.clone())),
        _ => no_overload(),
    }
}

fn joined(a: &[Val], b: &[Val], kind: &Listing) -> Vec<Val> {
    let mut all = a.to_vec();
    for item in b {
        match kind {
            Listing::Plain => all.push(item.clone()),
            Listing::Set => {
                if !all.iter().any(|known| known.equals(item)) {
                    all.push(item.clone());
                }
            }
            Listing::Map(keys) => match all.iter_mut().find(|known| same_keys(known, item, keys)) {
                Some(known) => *known = item.clone(),
                None => all.push(item.clone()),
            },
        }
    }
    all
}

fn subtract(a: &Val, b: &Val) -> Evaluated {
    match (a, b) {
        (Val::Int(a), Val::Int(b)) => a.checked_sub(*b).map_or_else(int_overflow, |n| Ok(Val::Int(n))),
        (Val::Uint(a), Val::Uint(b)) => a.checked_sub(*b).map_or_else(uint_overflow, |n| Ok(Val::Uint(n))),
        (Val::Double(a), Val::Double(b)) => Ok(Val::Double(a - b)),
        (Val::Duration(a), Val::Duration(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(a), Val::Timestamp(b)) => duration(a.checked_sub(*b)),
        (Val::Timestamp(a), Val::Duration(b)) => timestamp(a - b),
        _ => no_overload(),
    }
}

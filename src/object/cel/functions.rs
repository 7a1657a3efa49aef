//! The standard functions and those on lists, sets and optionals. Texts are in `texts`, conversions in
//! `convert`, quantities, addresses, versions and formats in `library`.

use super::operators::{equality_cost, weight};
use super::runtime::Runtime;
use super::time;
use super::value::{Evaluated, Stop, Val, failed, no_overload};
use super::{authorizer_calls, convert, library, texts};
use std::cmp::Ordering;
use std::sync::Arc;

/// Calls a function; a method's receiver is the first argument.
pub(super) fn call(runtime: &mut Runtime<'_>, name: &str, args: &[Val]) -> Evaluated {
    runtime.charge(args.iter().map(|arg| arg.size() / 10).sum::<u64>())?;
    if let Some(result) = texts::call(runtime, name, args) {
        return result;
    }
    match (name, args) {
        (_, [Val::Check(check), rest @ ..]) => authorizer_calls::call(runtime, name, check, rest),
        ("size", [Val::Text(text)]) => Ok(Val::Int(text.chars().count() as i64)),
        ("size", [Val::Bytes(bytes)]) => Ok(Val::Int(bytes.len() as i64)),
        ("size", [Val::List(items, _)]) => Ok(Val::Int(items.len() as i64)),
        ("size", [Val::Map(map)]) => Ok(Val::Int(map.len() as i64)),
        ("dyn", [value]) => Ok(value.clone()),
        ("type", [value]) => Ok(Val::Type(Arc::new(value.kind()))),
        ("int" | "uint" | "double" | "string" | "bytes" | "bool" | "timestamp" | "duration", [value]) => {
            convert::convert(runtime, name, value)
        }
        (
            "getFullYear" | "getMonth" | "getDayOfYear" | "getDayOfMonth" | "getDate" | "getDayOfWeek"
            | "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds",
            [value, zone @ ..],
        ) => part_of_time(name, value, zone.first()),
        ("optional.of", [value]) => Ok(Val::some(value.clone())),
        ("optional.ofNonZeroValue", [value]) => {
            Ok(if is_zero(value) { Val::Optional(None) } else { Val::some(value.clone()) })
        }
        ("optional.none", []) => Ok(Val::Optional(None)),
        ("optional.unwrap" | "unwrapOpt", [Val::List(items, _)]) => {
            let there = items.iter().filter_map(|item| match item {
                Val::Optional(inner) => inner.as_deref().cloned(),
                _ => None,
            });
            Ok(Val::list(there.collect()))
        }
        ("value", [Val::Optional(inner)]) => match inner {
            Some(value) => Ok((**value).clone()),
            None => failed("optional.none() dereference"),
        },
        ("hasValue", [Val::Optional(inner)]) => Ok(Val::Bool(inner.is_some())),
        (_, [Val::List(items, _), rest @ ..]) => match list(runtime, name, items, rest) {
            Some(result) => result,
            None => library::call(runtime, name, args),
        },
        ("lists.range", [Val::Int(count)]) => {
            runtime.charge(u64::try_from(*count).unwrap_or(0))?;
            Ok(Val::list((0..*count).map(Val::Int).collect()))
        }
        _ => library::call(runtime, name, args),
    }
}

fn is_zero(value: &Val) -> bool {
    match value {
        Val::Null
        | Val::Bool(false)
        | Val::Int(0)
        | Val::Uint(0)
        | Val::Duration(0)
        | Val::Optional(None) => true,
        Val::Double(float) => *float == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(items, _) => items.is_empty(),
        Val::Map(map) => map.is_empty(),
        _ => false,
    }
}

fn part_of_time(name: &str, value: &Val, zone: Option<&Val>) -> Evaluated {
    if let (Val::Duration(nanos), None) = (value, zone) {
        let per = match name {
            "getHours" => 3600 * time::SECOND,
            "getMinutes" => 60 * time::SECOND,
            "getSeconds" => time::SECOND,
            "getMilliseconds" => 1_000_000,
            _ => return no_overload(),
        };
        return Ok(Val::Int((nanos / per) as i64));
    }
    let Val::Timestamp(nanos) = value else { return no_overload() };
    let offset = match zone {
        None => 0,
        Some(Val::Text(name)) => match &**name {
            "" | "UTC" | "utc" => 0,
            name => match time::offset(name) {
                Some(offset) => offset,
                None => return failed(format!("unknown time zone {name}")),
            },
        },
        Some(_) => return no_overload(),
    };
    let parts = time::parts(*nanos, offset);
    Ok(Val::Int(match name {
        "getFullYear" => parts.year,
        "getMonth" => parts.month - 1,
        "getDayOfYear" => parts.day_of_year,
        "getDayOfMonth" => parts.day - 1,
        "getDate" => parts.day,
        "getDayOfWeek" => parts.weekday,
        "getHours" => parts.hour,
        "getMinutes" => parts.minute,
        "getSeconds" => parts.second,
        _ => parts.nanos / 1_000_000,
    }))
}

/// Functions whose first argument is a list; `None` where there is no such function.
fn list(runtime: &mut Runtime<'_>, name: &str, items: &[Val], rest: &[Val]) -> Option<Evaluated> {
    Some(match (name, rest) {
        ("isSorted", []) => pairs_ordered(items).map(Val::Bool),
        ("sum", []) => sum(items),
        ("min", []) => extreme(items, Ordering::Less, "min"),
        ("max", []) => extreme(items, Ordering::Greater, "max"),
        ("indexOf" | "lastIndexOf", [value]) => position(runtime, items, value, name == "lastIndexOf"),
        ("first", []) => Ok(Val::Optional(items.first().cloned().map(Arc::new))),
        ("last", []) => Ok(Val::Optional(items.last().cloned().map(Arc::new))),
        ("reverse", []) => Ok(Val::list(items.iter().rev().cloned().collect())),
        ("slice", [Val::Int(start), Val::Int(end)]) => slice(items, *start, *end),
        ("flatten", []) => flatten(runtime, items, 1),
        ("flatten", [Val::Int(depth)]) if *depth < 0 => failed("level must be non-negative"),
        ("flatten", [Val::Int(depth)]) => flatten(runtime, items, *depth),
        ("distinct", []) => distinct(runtime, items),
        ("sort", []) => {
            let mut pairs: Vec<(Val, Val)> = items.iter().map(|item| (item.clone(), item.clone())).collect();
            match runtime.charge(items.len() as u64 * 8).and_then(|()| sort_pairs(&mut pairs)) {
                Ok(()) => Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect())),
                Err(stop) => Err(stop),
            }
        }
        ("sets.contains", [Val::List(others, _)]) => set_contains(runtime, items, others).map(Val::Bool),
        ("sets.equivalent", [Val::List(others, _)]) => match set_contains(runtime, items, others) {
            Ok(true) => set_contains(runtime, others, items).map(Val::Bool),
            other => other.map(Val::Bool),
        },
        ("sets.intersects", [Val::List(others, _)]) => intersects(runtime, items, others).map(Val::Bool),
        _ => return None,
    })
}

fn compared(a: &Val, b: &Val) -> Result<Ordering, Stop> {
    if std::mem::discriminant(a) != std::mem::discriminant(b) {
        return no_overload();
    }
    a.order(b).map_or_else(no_overload, Ok)
}

fn pairs_ordered(items: &[Val]) -> Result<bool, Stop> {
    for pair in items.windows(2) {
        if compared(&pair[0], &pair[1])? == Ordering::Greater {
            return Ok(false);
        }
    }
    Ok(true)
}

fn sum(items: &[Val]) -> Evaluated {
    let mut total = match items.first() {
        None | Some(Val::Int(_)) => Val::Int(0),
        Some(Val::Uint(_)) => Val::Uint(0),
        Some(Val::Double(_)) => Val::Double(0.0),
        Some(Val::Duration(_)) => Val::Duration(0),
        Some(_) => return no_overload(),
    };
    for item in items {
        total = match (&total, item) {
            (Val::Int(a), Val::Int(b)) => match a.checked_add(*b) {
                Some(sum) => Val::Int(sum),
                None => return failed("integer overflow"),
            },
            (Val::Uint(a), Val::Uint(b)) => match a.checked_add(*b) {
                Some(sum) => Val::Uint(sum),
                None => return failed("unsigned integer overflow"),
            },
            (Val::Double(a), Val::Double(b)) => Val::Double(a + b),
            (Val::Duration(a), Val::Duration(b)) if i64::try_from(a + b).is_ok() => Val::Duration(a + b),
            (Val::Duration(_), Val::Duration(_)) => return failed("duration overflow"),
            _ => return no_overload(),
        };
    }
    Ok(total)
}

fn extreme(items: &[Val], wanted: Ordering, name: &str) -> Evaluated {
    let Some(first) = items.first() else { return failed(format!("{name} called on empty list")) };
    let mut best = first;
    for item in &items[1..] {
        if compared(item, best)? == wanted {
            best = item;
        }
    }
    Ok(best.clone())
}

fn position(runtime: &mut Runtime<'_>, items: &[Val], value: &Val, last: bool) -> Evaluated {
    runtime.charge(weight(value, 0).saturating_mul(items.len() as u64))?;
    let found = if last {
        items.iter().rposition(|item| item.equals(value))
    } else {
        items.iter().position(|item| item.equals(value))
    };
    Ok(Val::Int(found.map_or(-1, |index| index as i64)))
}

fn slice(items: &[Val], start: i64, end: i64) -> Evaluated {
    let length = items.len();
    if start < 0 || end < 0 {
        return failed(format!("cannot slice({start}, {end}), negative indexes not supported"));
    }
    if start > end {
        return failed(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        ));
    }
    match items.get(start as usize..end as usize) {
        Some(part) => Ok(Val::list(part.to_vec())),
        None => failed(format!("cannot slice({start}, {end}), list is length {length}")),
    }
}

fn flatten(runtime: &mut Runtime<'_>, items: &[Val], depth: i64) -> Evaluated {
    let mut out = Vec::new();
    let mut open: Vec<(Val, i64)> = items.iter().rev().map(|item| (item.clone(), depth)).collect();
    while let Some((item, depth)) = open.pop() {
        runtime.charge(1)?;
        match item {
            Val::List(inner, _) if depth > 0 => {
                open.extend(inner.iter().rev().map(|i| (i.clone(), depth - 1)));
            }
            other => out.push(other),
        }
    }
    Ok(Val::list(out))
}

fn distinct(runtime: &mut Runtime<'_>, items: &[Val]) -> Evaluated {
    let mut out: Vec<Val> = Vec::new();
    for item in items {
        runtime.charge(out.len() as u64)?;
        if !out.iter().any(|known| known.equals(item)) {
            out.push(item.clone());
        }
    }
    Ok(Val::list(out))
}

/// Sorts by the first of each pair.
pub(super) fn sort_pairs(pairs: &mut [(Val, Val)]) -> Result<(), Stop> {
    for pair in pairs.windows(2) {
        if std::mem::discriminant(&pair[0].0) != std::mem::discriminant(&pair[1].0) {
            return failed("list elements must have the same type");
        }
    }
    if pairs.first().is_some_and(|(key, _)| key.order(key).is_none()) {
        return failed("list elements must be comparable");
    }
    pairs.sort_by(|a, b| a.0.order(&b.0).unwrap_or(Ordering::Equal));
    Ok(())
}

fn found(runtime: &mut Runtime<'_>, items: &[Val], value: &Val) -> Result<bool, Stop> {
    for item in items {
        runtime.charge(equality_cost(item, value))?;
        if item.equals(value) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn set_contains(runtime: &mut Runtime<'_>, items: &[Val], others: &[Val]) -> Result<bool, Stop> {
    for other in others {
        if !found(runtime, items, other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn intersects(runtime: &mut Runtime<'_>, items: &[Val], others: &[Val]) -> Result<bool, Stop> {
    for other in others {
        if found(runtime, items, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

//! Sprig's dictionaries. `set`, `unset` and the merges change the map they are given, which others may hold
//! too.

use super::super::budget::ENTRY;
use super::super::error::FuncError;
use super::super::host::Ty;
use super::super::text::Str;
use super::super::value::{List, Map, Value};
use super::strings::text_of;
use super::{Call, Function, Outcome, bytes, empty, fixed, variadic};

const DICT: &[Ty] = &[Ty::Dict];

pub(super) const FUNCTIONS: &[Function] = &[
    variadic("dict", &[], Ty::Any, |call, args| {
        for key in args.iter().step_by(2).filter(|key| key.as_str().is_none()) {
            call.writes(key)?;
        }
        let pair =
            |pair: &[Value]| (text_of(&pair[0]), pair.get(1).cloned().unwrap_or_else(|| Value::str("")));
        Ok(Value::Map(Map::from_entries(args.chunks(2).map(pair))))
    }),
    fixed("get", &[Ty::Dict, Ty::Str], |_, args| {
        Ok(map(args, 0).get(bytes(args, 1)).unwrap_or_else(|| Value::str("")))
    }),
    fixed("set", &[Ty::Dict, Ty::Str, Ty::Any], |call, args| {
        call.keeps(ENTRY)?;
        let map = map(args, 0);
        if map.is_nil() {
            return Err("assignment to entry in nil map".into());
        }
        map.insert(bytes(args, 1).into(), args[2].clone());
        Ok(Value::Map(map))
    }),
    fixed("unset", &[Ty::Dict, Ty::Str], |_, args| {
        let map = map(args, 0);
        map.remove(bytes(args, 1));
        Ok(Value::Map(map))
    }),
    fixed("hasKey", &[Ty::Dict, Ty::Str], |_, args| Ok(Value::Bool(map(args, 0).contains(bytes(args, 1))))),
    variadic("pluck", &[Ty::Str], Ty::Dict, |_, args| {
        let found = (1..args.len()).filter_map(|i| map(args, i).get(bytes(args, 0)));
        Ok(Value::list(found.collect()))
    }),
    variadic("keys", &[], Ty::Dict, |_, args| {
        Ok(Value::strings((0..args.len()).flat_map(|i| map(args, i).keys())))
    }),
    fixed("values", DICT, |_, args| {
        Ok(Value::list(map(args, 0).snapshot().into_iter().map(|(_, value)| value).collect()))
    }),
    variadic("pick", DICT, Ty::Str, |_, args| {
        let from = map(args, 0);
        let keys = args[1..].iter().filter_map(Value::as_str);
        Ok(Value::Map(Map::from_entries(keys.filter_map(|k| Some((k.clone(), from.get(k)?))))))
    }),
    variadic("omit", DICT, Ty::Str, |_, args| {
        let omitted = |key: &Str| args[1..].iter().any(|k| k.as_str() == Some(key));
        let kept = map(args, 0).snapshot().into_iter().filter(|(key, _)| !omitted(key));
        Ok(Value::Map(Map::from_entries(kept)))
    }),
    variadic("merge", DICT, Ty::Dict, |call, args| merge_all(call, args, false)),
    variadic("mustMerge", DICT, Ty::Dict, |call, args| merge_all(call, args, false)),
    variadic("mergeOverwrite", DICT, Ty::Dict, |call, args| merge_all(call, args, true)),
    variadic("mustMergeOverwrite", DICT, Ty::Dict, |call, args| merge_all(call, args, true)),
    fixed("deepCopy", &[Ty::Any], copied),
    fixed("mustDeepCopy", &[Ty::Any], copied),
    variadic("dig", &[], Ty::Any, dig),
];

/// A map argument; nil is a nil map.
pub(super) fn map(args: &[Value], i: usize) -> Map {
    match args.get(i) {
        Some(Value::Map(map)) => map.clone(),
        _ => Map::nil(),
    }
}

fn merge_all(call: &mut Call<'_, '_>, args: &[Value], overwrite: bool) -> Outcome {
    let first = map(args, 0);
    let into = if first.is_nil() { Map::new() } else { first };
    for i in 1..args.len() {
        let added = merge(&into, &map(args, i), overwrite);
        call.keeps(ENTRY * added)?;
    }
    Ok(Value::Map(into))
}

/// Merges maps as mergo does: it fills empty values, or overwrites. Maps of the source become part of the
/// target. Returns the number of entries that were added.
fn merge(into: &Map, from: &Map, overwrite: bool) -> usize {
    if into.same(from) {
        return 0;
    }
    let mut added = 0;
    for (key, value) in from.snapshot() {
        let old = into.get(&key);
        if value.is_nil() {
            if overwrite {
                added += 1;
                into.insert(key, value);
            }
            continue;
        }
        if let (Value::Map(part), Some(Value::Map(old))) = (&value, &old) {
            if !old.is_nil() {
                added += merge(old, part, overwrite);
            }
            if !old.is_empty() {
                continue;
            }
        }
        if overwrite || old.as_ref().is_none_or(empty) {
            added += 1;
            into.insert(key, value);
        }
    }
    added
}

/// Maps and lists copied all the way down.
fn deep_copy(value: &Value) -> Value {
    match value {
        Value::Map(map) if map.is_nil() => value.clone(),
        Value::Map(map) => {
            let entries = map.snapshot().into_iter().map(|(key, value)| (key, deep_copy(&value))).collect();
            Value::Map(Map::typed(map.ty(), entries))
        }
        Value::List(list) if list.is_nil() => value.clone(),
        Value::List(list) => {
            Value::List(List::typed(list.elem(), list.items().iter().map(deep_copy).collect()))
        }
        // Unexported fields are not copied, and a version has no others.
        other if other.type_name() == "*semver.Version" => super::semver::nothing(),
        other => other.clone(),
    }
}

fn copied(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    match &args[0] {
        Value::Nil => Err("reflect: call of reflect.Value.Type on zero Value".into()),
        value => Ok(deep_copy(value)),
    }
}

fn dig(_: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let [keys @ .., default, dict] = args else { return Err("dig needs at least three arguments".into()) };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut value = dict.clone();
    let mut names = Vec::with_capacity(keys.len());
    as_dict(&value)?;
    for key in keys {
        names.push(key.as_str().ok_or_else(|| not_a(key, "string"))?);
    }
    for name in names {
        match as_dict(&value)?.get(name) {
            Some(next) => value = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

fn as_dict(value: &Value) -> Result<Map, FuncError> {
    match value {
        Value::Map(map) if map.type_name() == "map[string]interface {}" => Ok(map.clone()),
        other => Err(not_a(other, "map[string]interface {}")),
    }
}

fn not_a(value: &Value, wanted: &str) -> FuncError {
    let found = if value.is_nil() { "nil".to_owned() } else { value.type_name() };
    FuncError::new(format!("interface conversion: interface {{}} is {found}, not {wanted}"))
}

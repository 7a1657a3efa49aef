//! Applying a strategic merge patch, and merging two patches into one.

use super::order::{alike, distinct, partition, weave};
use super::terms::{
    DELETE_FROM, DIRECTIVE, Object, RETAIN_KEYS, SET_ORDER, StrategicError, bad_type, directive, fail, field,
    go_value, items, key_of,
};
use crate::schema::SchemaRef;
use serde_json::Value;

/// Applying resolves directives and drops nulls; merging two patches keeps both.
#[derive(Clone, Copy)]
pub(super) struct MergeOptions {
    pub(super) resolve_directives: bool,
    pub(super) drop_nulls: bool,
}

const BAD_ORDER: &str = "invalid patch format of setElementOrder list";

pub(super) fn merge_object(
    mut original: Object,
    mut patch: Object,
    schema: &SchemaRef,
    options: MergeOptions,
) -> Result<Object, StrategicError> {
    if let Some(how) = patch.get(DIRECTIVE) {
        return match how.as_str() {
            Some("replace") => {
                patch.remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Object::new()),
            _ => fail(format!(
                "unknown patch type: {} in map: {}",
                go_value(how),
                go_value(&Value::Object(patch.clone()))
            )),
        };
    }
    retain_keys(&mut original, &mut patch, options)?;
    ordered_lists(&mut original, &mut patch, schema, options)?;
    for (key, value) in patch {
        match key.strip_prefix(DELETE_FROM) {
            Some(_) if !options.resolve_directives => _ = original.insert(key, value),
            Some(rest) => {
                let Some(name) = rest.strip_prefix('/') else {
                    return fail("invalid patch format of primitive list");
                };
                delete_from(&mut original, name, &value)?;
            }
            None => merge_field(&mut original, key, value, schema, options)?,
        }
    }
    Ok(original)
}

fn merge_field(
    original: &mut Object,
    key: String,
    value: Value,
    schema: &SchemaRef,
    options: MergeOptions,
) -> Result<(), StrategicError> {
    if value.is_null() {
        original.remove(&key);
        if !options.drop_nulls {
            original.insert(key, Value::Null);
        }
        return Ok(());
    }
    let (rule, inner) = field(schema, &key);
    let merged = match (original.remove(&key), value) {
        (Some(Value::Object(before)), Value::Object(after)) => {
            if rule.replace {
                Some(Value::Object(after))
            } else {
                Some(Value::Object(merge_object(before, after, &inner, options)?))
            }
        }
        (Some(Value::Array(before)), Value::Array(after)) => {
            if rule.merge {
                let merged = merge_list(before, after, &items(&inner), rule.merge_key.as_deref(), options)?;
                Some(Value::Array(merged))
            } else {
                Some(Value::Array(after))
            }
        }
        (_, mut value) => {
            if options.drop_nulls {
                drop_nulls(&mut value);
            }
            without_directives(value)
        }
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

fn delete_from(original: &mut Object, name: &str, gone: &Value) -> Result<(), StrategicError> {
    let Some(gone) = gone.as_array() else { return bad_type("[]interface {}", gone) };
    if let Some(Value::Array(list)) = original.get_mut(name) {
        list.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// Fields of the original that the patch does not retain go away.
fn retain_keys(
    original: &mut Object,
    patch: &mut Object,
    options: MergeOptions,
) -> Result<(), StrategicError> {
    let Some(given) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    if !options.resolve_directives {
        match original.get(RETAIN_KEYS) {
            Some(before) if *before != given => {
                return fail(format!(
                    "{} and {} are not deep equal: this may happen when calculating the 3-way diff patch",
                    go_value(before),
                    go_value(&given)
                ));
            }
            _ => _ = original.insert(RETAIN_KEYS.to_owned(), given),
        }
        return Ok(());
    }
    let Some(retained) = given.as_array() else { return fail("invalid patch format of retainKeys") };
    let keeps = |key: &str| retained.iter().any(|kept| kept == key);
    let special = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !special(key) && !keeps(key)) {
        return fail("invalid patch format of retainKeys");
    }
    original.retain(|key, _| keeps(key));
    Ok(())
}

/// Merges the lists whose order the patch gives.
fn ordered_lists(
    original: &mut Object,
    patch: &mut Object,
    schema: &SchemaRef,
    options: MergeOptions,
) -> Result<(), StrategicError> {
    let keys: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for key in keys {
        let Some(given) = patch.remove(&key) else { continue };
        if !options.resolve_directives {
            match original.get(&key) {
                Some(before) if *before != given => return fail(BAD_ORDER),
                _ => _ = original.insert(key.clone(), given.clone()),
            }
        }
        let Value::Array(order) = given else { return bad_type("[]interface {}", &given) };
        let name = key.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let Some(name) = name else { return fail(BAD_ORDER) };
        let list = |from: &Object| match from.get(name) {
            None => Ok(None),
            Some(Value::Array(list)) => Ok(Some(list.clone())),
            Some(other) => bad_type("[]interface {}", other),
        };
        let (before, after) = (list(original)?, list(patch)?);
        let (rule, inner) = field(schema, name);
        let merge_key = rule.merge_key.as_deref();
        check_order(after.as_deref().unwrap_or_default(), &order, merge_key)?;
        let server_order = match (&before, &after, merge_key) {
            (Some(before), Some(after), Some(merge_key)) if rule.merge => {
                left_behind(before, after, merge_key)
            }
            _ => before.clone().unwrap_or_default(),
        };
        let merged = match (before, after) {
            (None, None) => continue,
            (Some(before), None) => before,
            (None, Some(after)) => after.into_iter().filter_map(without_directives).collect(),
            (Some(before), Some(after)) if rule.merge => {
                merge_list(before, after, &items(&inner), merge_key, options)?
            }
            (Some(_), Some(after)) => after,
        };
        if let Some(merge_key) = merge_key {
            for item in &merged {
                key_of(item, merge_key)?;
            }
        }
        let (named, server_only) = partition(merged, &order, merge_key);
        let woven = weave(named, server_only, &order, &server_order, merge_key)?;
        original.insert(name.to_owned(), Value::Array(woven));
        patch.remove(name);
    }
    Ok(())
}

/// The order that a real server finds in its own list once the patch is merged. It merges in place: what
/// follows a deleted item has moved up, what is new stands where others were, and no more is read than there
/// was before.
fn left_behind(before: &[Value], patch: &[Value], key: &str) -> Vec<Value> {
    let mut order = before.to_vec();
    let mut length = order.len();
    let place_of =
        |list: &[Value], item: &Value| list.iter().position(|other| other.get(key) == item.get(key));
    for item in patch.iter().filter(|item| directive(item).is_some_and(|how| how == "delete")) {
        while let Some(place) = place_of(&order[..length], item) {
            let moved = order[place + 1..length].to_vec();
            order[place..length - 1].clone_from_slice(&moved);
            length -= 1;
        }
    }
    if patch.iter().any(|item| directive(item).is_some_and(|how| how == "replace")) {
        return order;
    }
    for item in patch.iter().filter(|item| directive(item).is_none()) {
        if length < order.len() && place_of(&order[..length], item).is_none() {
            order[length] = item.clone();
            length += 1;
        }
    }
    order
}

/// The items of the patch come in the order that the patch gives.
fn check_order(list: &[Value], order: &[Value], key: Option<&str>) -> Result<(), StrategicError> {
    if list.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut places = order.iter();
    for item in list.iter().filter(|item| directive(item).is_none()) {
        if let Some(key) = key {
            key_of(item, key)?;
        }
        if !places.any(|place| alike(place, item, key)) {
            return fail(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                go_value(&Value::Array(list.to_vec())),
                go_value(&Value::Array(order.to_vec())),
            ));
        }
    }
    Ok(())
}

fn merge_list(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    schema: &SchemaRef,
    key: Option<&str>,
    options: MergeOptions,
) -> Result<Vec<Value>, StrategicError> {
    let Some(first) = original.first().or(patch.first()) else { return Ok(original) };
    if !first.is_object() {
        let before = original.clone();
        original.extend(patch.iter().cloned());
        let (named, server_only) = partition(distinct(original), &patch, None);
        return weave(named, server_only, &patch, &before, None);
    }
    let Some(key) = key else { return fail("cannot merge lists without merge key") };
    let mut replace = false;
    let mut plain = Vec::new();
    for item in patch {
        match directive(&item).map(|how| how.as_str().unwrap_or_default().to_owned()).as_deref() {
            None => plain.push(item),
            Some("delete") => {
                let gone = key_of(&item, key)?.clone();
                original.retain(|item| item.get(key) != Some(&gone));
            }
            Some("replace") => replace = true,
            Some("merge") => return fail("merging lists cannot yet be specified in the patch"),
            Some(how) => return fail(format!("unknown patch type: {how} in map: {}", go_value(&item))),
        }
    }
    if replace {
        return Ok(plain);
    }
    let server_order = original.clone();
    for item in &plain {
        let wanted = key_of(item, key)?;
        let place = original.iter().position(|other| other.get(key) == Some(wanted));
        match (place, item) {
            (Some(place), Value::Object(changes)) => {
                if let Value::Object(before) = std::mem::take(&mut original[place]) {
                    original[place] = Value::Object(merge_object(before, changes.clone(), schema, options)?);
                }
            }
            _ => original.push(item.clone()),
        }
    }
    for item in &original {
        key_of(item, key)?;
    }
    let (named, server_only) = partition(original, &plain, Some(key));
    weave(named, server_only, &plain, &server_order, Some(key))
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, inner| !inner.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The additions of the patch, without the objects that carry a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) if map.contains_key(DIRECTIVE) => None,
        Value::Object(map) => Some(Value::Object(
            map.into_iter().filter_map(|(key, inner)| Some((key, without_directives(inner)?))).collect(),
        )),
        Value::Array(list) => Some(Value::Array(list.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}

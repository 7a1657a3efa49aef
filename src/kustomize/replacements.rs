//! `replacements`: a value of one object, or of the file, is copied into fields of others.

use crate::error::{Error, ErrorKind, Limit, ReplacementError};
use crate::fields::split;
use crate::files::{Files, load_text};
use crate::kustomization::{
    FieldOptions, File, ReplacementEntry, ReplacementSource, ReplacementTarget, Selector,
};
use crate::read::{text, untagged};
use crate::resource::{Id, Resource};
use crate::selector::{Target, holds, is_selected, label_selector};
use opdev_object::depth::{MAX_LEVELS, levels};
use opdev_object::patch::size;
use opdev_object::yaml;
use regex::Regex;
use serde_json::{Map, Value};

/// About how many bytes of JSON one entry of `replacements` may copy. An API server takes no object that is
/// larger.
const MOST_COPIED: usize = 2 * 1024 * 1024;

/// One entry of `replacements`.
pub(crate) fn replace(
    files: &dyn Files,
    file: &File,
    at: usize,
    resources: &mut [Resource],
) -> Result<(), Error> {
    let mut left = MOST_COPIED;
    let left = &mut left;
    let entry = &file.content.replacements[at];
    let failed = |why: ErrorKind| file.error("replacements", Some(at), why);
    if entry.path.is_empty() {
        return apply(entry, resources, left).map_err(|why| failed(why.into()));
    }
    if entry.source.is_some() || !entry.targets.is_empty() {
        return Err(failed(ReplacementError::PathAndMore.into()));
    }
    let (path, text) = load_text(files, &file.root, &entry.path).map_err(|why| failed(why.into()))?;
    let value = yaml::from_str(&text).map_err(|error| Error::yaml(&path, error))?;
    let list = if value.is_array() { value } else { Value::Array(vec![value]) };
    let entries: Vec<ReplacementEntry> =
        serde_json::from_value(list).map_err(|error| Error::form(&path, &error))?;
    entries
        .iter()
        .try_for_each(|entry| apply(entry, resources, left).map_err(|why| Error::new(&path, 0, why)))
}

fn apply(
    entry: &ReplacementEntry,
    resources: &mut [Resource],
    left: &mut usize,
) -> Result<(), ReplacementError> {
    let value = match (&entry.source_value, &entry.source) {
        (None, None) => return Err(ReplacementError::NoSource),
        (Some(_), Some(_)) => return Err(ReplacementError::BothSources),
        (Some(value), None) => Value::from(value.as_str()),
        (None, Some(source)) => source_value(source, resources)?,
    };
    if entry.targets.is_empty() {
        return Err(ReplacementError::NoTargets);
    }
    entry.targets.iter().try_for_each(|target| into(target, &value, resources, left))
}

/// The ids of an object as replacements see them: the present one first.
fn ids(resource: &Resource) -> Vec<Id> {
    let mut now = resource.id();
    now.of_the_cluster = false;
    let mut ids = vec![now];
    ids.extend(resource.former_ids());
    ids
}

fn source_value(source: &ReplacementSource, resources: &[Resource]) -> Result<Value, ReplacementError> {
    let selector = Selector {
        group: source.group.clone(),
        version: source.version.clone(),
        kind: source.kind.clone(),
        name: source.name.clone(),
        namespace: source.namespace.clone(),
        ..Selector::default()
    };
    let shown = || {
        let parts = [&source.kind, &source.namespace, &source.name];
        parts.iter().filter(|part| !part.is_empty()).map(|part| part.as_str()).collect::<Vec<_>>().join(" ")
    };
    let mut found =
        resources.iter().filter(|resource| ids(resource).iter().any(|id| is_selected(id, &selector)));
    let (first, second) = (found.next(), found.next());
    let resource = match (first, second) {
        (Some(one), None) => one,
        (None, _) => {
            let kind = source.kind.clone();
            return Err(ReplacementError::NothingSelected { kind, selector: shown() });
        }
        (Some(_), Some(_)) => return Err(ReplacementError::SeveralSelected { selector: shown() }),
    };
    let path = or_name(&source.field_path);
    let found = lookup(&resource.object, &parts(path))?;
    let is_empty = |value: &&Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let Some(value) = found.filter(|value| !is_empty(value)) else {
        return Err(ReplacementError::NoSourceField { object: resource.id().show(), path: path.to_owned() });
    };
    refined(value, source.options.as_ref())
}

fn or_name(path: &str) -> &str {
    if path.is_empty() { "metadata.name" } else { path }
}

fn refined(value: &Value, options: Option<&FieldOptions>) -> Result<Value, ReplacementError> {
    let Some(options) = options.filter(|options| !options.delimiter.is_empty()) else {
        return Ok(value.clone());
    };
    if value.is_array() || value.is_object() {
        return Err(ReplacementError::Delimiter);
    }
    let whole = text(value);
    let part = usize::try_from(options.index).ok().and_then(|at| whole.split(&options.delimiter).nth(at));
    match part {
        Some(part) => Ok(Value::from(part)),
        None => Err(ReplacementError::NoPart { index: options.index, value: whole }),
    }
}

/// The parts of a path with dots; a dot in brackets, or behind a backslash, belongs to a name.
fn parts(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = split(path, '.').into_iter();
    while let Some(part) = rest.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            found.push(part);
            continue;
        }
        let mut whole = part;
        for next in rest.by_ref() {
            whole = format!("{whole}.{next}");
            if next.ends_with(']') {
                break;
            }
        }
        found.push(if whole.contains('=') { whole } else { whole.trim_matches(['[', ']']).to_owned() });
    }
    found
}

/// `[name=value]`.
fn condition(part: &str) -> Option<Result<(&str, &str), ReplacementError>> {
    let inner = part.strip_prefix('[')?.strip_suffix(']')?;
    Some(inner.split_once('=').ok_or_else(|| ReplacementError::Condition { part: part.to_owned() }))
}

fn lookup<'a>(value: &'a Value, path: &[String]) -> Result<Option<&'a Value>, ReplacementError> {
    let mut at = value;
    for part in path.iter().filter(|part| !part.trim().is_empty()) {
        let next = if let Some(condition) = condition(part) {
            let (field, wanted) = condition?;
            let items = at.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().find(|item| {
                let value = if field.is_empty() { Some(*item) } else { item.get(field) };
                value.is_some_and(|value| text(value) == wanted)
            })
        } else if let Ok(index) = part.parse::<usize>() {
            at.as_array().and_then(|items| items.get(index))
        } else if part == "-" {
            at.as_array().and_then(|items| items.last())
        } else if part == "*" {
            return Err(ReplacementError::Star);
        } else if at.is_object() || at.is_null() {
            at.get(part.as_str())
        } else {
            return Err(ReplacementError::NoMap { field: part.clone() });
        };
        let Some(next) = next else { return Ok(None) };
        at = next;
    }
    Ok(Some(at))
}

fn into(
    target: &ReplacementTarget,
    value: &Value,
    resources: &mut [Resource],
    left: &mut usize,
) -> Result<(), ReplacementError> {
    let Some(select) = &target.select else { return Err(ReplacementError::NoSelect) };
    let fits = |resource: &Resource, selector: &Selector| -> Result<bool, ReplacementError> {
        let labels = label_selector(&selector.label_selector)?;
        let annotations = label_selector(&selector.annotation_selector)?;
        Ok(holds(annotations.as_ref(), &resource.object, "annotations")
            && holds(labels.as_ref(), &resource.object, "labels"))
    };
    // Since kustomize 5.8 these are patterns.
    let pattern = Target::new(select)?;
    let names_something = |reject: &&Selector| {
        let all = [&reject.group, &reject.version, &reject.kind, &reject.name, &reject.namespace];
        all.iter().any(|text| !text.is_empty())
    };
    let rejects = target.reject.iter().filter(names_something).map(Target::new);
    let rejects: Vec<Target> = rejects.collect::<Result<_, _>>()?;
    let default = vec!["metadata.name".to_owned()];
    let paths = if target.field_paths.is_empty() { &default } else { &target.field_paths };
    'objects: for resource in resources.iter_mut() {
        if !fits(resource, select)? {
            continue;
        }
        for reject in &target.reject {
            let has_selector = !reject.annotation_selector.is_empty() || !reject.label_selector.is_empty();
            if has_selector && fits(resource, reject)? {
                continue 'objects;
            }
        }
        let ids = ids(resource);
        let is_rejected = rejects.iter().any(|reject| ids.iter().any(|id| reject.selects_id(id)));
        if is_rejected || !ids.iter().any(|id| pattern.selects_id(id)) {
            continue;
        }
        for path in paths {
            let shown = resource.id().show();
            copy(&mut resource.object, path, value, target.options.as_ref(), left).map_err(|error| {
                ReplacementError::InTarget { object: shown, path: path.clone(), source: Box::new(error) }
            })?;
        }
    }
    Ok(())
}

/// Copies a value to the places of a path; `left` is how many bytes of JSON the replacement may still copy.
fn copy(
    object: &mut Value,
    path: &str,
    value: &Value,
    options: Option<&FieldOptions>,
    left: &mut usize,
) -> Result<(), ReplacementError> {
    let create = options.is_some_and(|options| options.create).then_some(value);
    let path = parts(path);
    if path.len() + levels(value) > MAX_LEVELS {
        return Err(Limit::Depth.into());
    }
    if in_text(object, &path, value, create, left)? {
        return Ok(());
    }
    let mut count = 0;
    places(object, &path, create, &mut |place| {
        count += 1;
        set(place, value, options)?;
        *left = left.checked_sub(size(place)).ok_or(Limit::Copied(MOST_COPIED / 1024 / 1024))?;
        Ok(())
    })?;
    if count == 0 { Err(ReplacementError::NoTargetField) } else { Ok(()) }
}

/// Where a path leads into JSON that a string holds, sets the places in there, since kustomize 5.8. The
/// delimiter does not count there.
fn in_text(
    object: &mut Value,
    path: &[String],
    value: &Value,
    create: Option<&Value>,
    left: &mut usize,
) -> Result<bool, ReplacementError> {
    let is_text = |at: &usize| matches!(lookup(object, &path[..*at]), Ok(Some(Value::String(_))));
    let Some(at) = (1..path.len()).find(is_text) else { return Ok(false) };
    let (mut written, too_much) = (false, Limit::Copied(MOST_COPIED / 1024 / 1024));
    let mut in_place = |place: &mut Value| {
        let Value::String(text) = place else { return Ok(()) };
        let Ok(mut parsed) = yaml::from_str(text) else { return Ok(()) };
        if !parsed.is_object() && !parsed.is_array() {
            return Ok(());
        }
        if !text.trim_start().starts_with(['{', '[']) {
            return Err(ReplacementError::YamlInText);
        }
        let mut count = 0;
        places(&mut parsed, &path[at..], create, &mut |place| {
            count += 1;
            set(place, value, None)?;
            *left = left.checked_sub(size(place)).ok_or(too_much)?;
            Ok(())
        })?;
        if count == 0 {
            return Err(ReplacementError::NoTargetField);
        }
        let for_people = text.contains('\n') && text.contains("  ");
        *text = go_json(&parsed, for_people);
        *left = left.checked_sub(text.len()).ok_or(too_much)?;
        written = true;
        Ok(())
    };
    places(object, &path[..at], None, &mut in_place)?;
    Ok(written)
}

/// JSON as Go writes it.
fn go_json(value: &Value, for_people: bool) -> String {
    let text = if for_people { format!("{value:#}") } else { value.to_string() };
    let escaped = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    escaped.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Calls `set` with each place that a path leads to. With `create` places that are missing are made.
fn places(
    value: &mut Value,
    path: &[String],
    create: Option<&Value>,
    set: &mut dyn FnMut(&mut Value) -> Result<(), ReplacementError>,
) -> Result<(), ReplacementError> {
    let Some((part, rest)) = path.split_first() else { return set(value) };
    if let Ok(index) = part.parse::<usize>() {
        let Some(items) = list(value, create)? else { return Ok(()) };
        if items.len() == index && create.is_some() {
            items.push(fresh(rest));
        }
        let count = items.len();
        let item = items.get_mut(index).ok_or(ReplacementError::NoItem { index, count })?;
        return places(item, rest, create, set);
    }
    if let Some(condition) = condition(part) {
        let (field, wanted) = condition?;
        let regex = Regex::new(wanted).map_err(|error| ReplacementError::Pattern {
            pattern: wanted.to_owned(),
            message: error.to_string(),
        })?;
        let Some(items) = list(value, create)? else { return Ok(()) };
        let is_meant = |item: &Value| {
            let value = if field.is_empty() { Some(item) } else { item.get(field) };
            value.is_some_and(|value| regex.is_match(&text(value)))
        };
        let mut any = false;
        for item in items.iter_mut().filter(|item| is_meant(item)) {
            any = true;
            // As kustomize does it, the path ends at plain items.
            if field.is_empty() { set(item)? } else { places(item, rest, create, set)? }
        }
        if !any && create.is_some() {
            let mut item = untagged(wanted);
            if !field.is_empty() {
                item = Value::Object([(field.to_owned(), item)].into_iter().collect());
            }
            if field.is_empty() {
                set(&mut item)?;
            } else {
                places(&mut item, rest, create, set)?;
            }
            items.push(item);
        }
        return Ok(());
    }
    if part == "*" {
        let Some(items) = list(value, None)? else { return Ok(()) };
        return items.iter_mut().try_for_each(|item| places(item, rest, create, set));
    }
    if value.is_null() && create.is_some() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => {
            let field = if create.is_some() {
                map.entry(part.as_str()).or_insert_with(|| fresh(rest))
            } else {
                let Some(field) = map.get_mut(part) else { return Ok(()) };
                field
            };
            places(field, rest, create, set)
        }
        Value::Null => Ok(()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(ReplacementError::NoMap { field: part.clone() })
        }
    }
}

/// The value that is made on the way to a place.
fn fresh(rest: &[String]) -> Value {
    match rest.first() {
        None => Value::Null,
        Some(next) if next.starts_with('[') || next.parse::<usize>().is_ok() => Value::Array(Vec::new()),
        Some(_) => Value::Object(Map::new()),
    }
}

fn list<'a>(
    value: &'a mut Value,
    create: Option<&Value>,
) -> Result<Option<&'a mut Vec<Value>>, ReplacementError> {
    if value.is_null() {
        if create.is_none() {
            return Ok(None);
        }
        *value = Value::Array(Vec::new());
    }
    match value {
        Value::Array(items) => Ok(Some(items)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(ReplacementError::NoList)
        }
    }
}

/// Puts a value into its place. A plain value keeps the type that it has there.
fn set(place: &mut Value, value: &Value, options: Option<&FieldOptions>) -> Result<(), ReplacementError> {
    let mut new = value.clone();
    if let Some(options) = options.filter(|options| !options.delimiter.is_empty()) {
        if place.is_array() || place.is_object() {
            return Err(ReplacementError::Delimiter);
        }
        let there = if place.is_null() { String::new() } else { text(place) };
        let mut parts: Vec<&str> = there.split(&options.delimiter).collect();
        let part = text(value);
        match usize::try_from(options.index) {
            Err(_) => parts.insert(0, &part),
            Ok(at) if at >= parts.len() => parts.push(&part),
            Ok(at) => parts[at] = &part,
        }
        new = Value::from(parts.join(&options.delimiter));
    }
    *place = match place {
        Value::Array(_) | Value::Object(_) => new,
        Value::String(_) => Value::from(text(&new)),
        Value::Null if new.is_array() || new.is_object() => new,
        Value::Null => untagged(&text(&new)),
        Value::Bool(_) | Value::Number(_) => {
            let typed = untagged(&text(&new));
            let is_same =
                (place.is_boolean() && typed.is_boolean()) || (place.is_number() && typed.is_number());
            if !is_same {
                return Err(ReplacementError::Type { new: text(&new), there: place.clone() });
            }
            typed
        }
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_dots_outside_of_brackets() {
        let split = |path: &str| parts(path);
        assert_eq!(split("spec.a\\.b.0"), ["spec", "a.b", "0"]);
        assert_eq!(split("m.[cert-manager.io/x].y"), ["m", "cert-manager.io/x", "y"]);
        assert_eq!(split("l.[name=a.b].v"), ["l", "[name=a.b]", "v"]);
    }
}

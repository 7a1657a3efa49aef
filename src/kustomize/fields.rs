//! Field specs: places in objects of some kinds, such as `spec/template/metadata/labels` of Deployments. A
//! list on the way stands for all of its items.

use crate::error::{ErrorKind, FieldError, Limit};
use opdev_object::depth::MAX_LEVELS;
use opdev_object::meta::Gvk;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A place in objects of some kinds; an empty group, version or kind stands for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct FieldSpec {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) path: String,
    /// True if the place is made where it is missing.
    pub(crate) create: bool,
}

/// Returns true if a kind is among those that `group`, `version` and `kind` select.
pub(crate) fn selects(group: &str, version: &str, kind: &str, gvk: &Gvk) -> bool {
    let fits = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
    fits(group, &gvk.group) && fits(version, &gvk.version) && fits(kind, &gvk.kind)
}

impl FieldSpec {
    pub(crate) fn selects(&self, gvk: &Gvk) -> bool {
        selects(&self.group, &self.version, &self.kind, gvk)
    }

    /// The group, version and kind that it selects.
    pub(crate) fn gvk(&self) -> Gvk {
        Gvk::new(&self.group, &self.version, &self.kind)
    }
}

/// Adds a field spec that is not there yet.
pub(crate) fn add(specs: &mut Vec<FieldSpec>, new: &FieldSpec) -> Result<(), ErrorKind> {
    let same = |one: &&FieldSpec| one.path == new.path && new.selects(&one.gvk());
    match specs.iter().find(same) {
        Some(there) if there.create != new.create => {
            Err(FieldError::SpecTwice { path: new.path.clone(), create: new.create }.into())
        }
        Some(_) => Ok(()),
        None => {
            specs.push(new.clone());
            Ok(())
        }
    }
}

/// The value that is made where a place is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateMissing {
    Nothing,
    Scalar,
    Map,
}

/// The parts of a path; `\/` is a slash in a name.
pub(crate) fn split(path: &str, separator: char) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let path = path.strip_prefix(separator).filter(|rest| !rest.is_empty()).unwrap_or(path);
    for part in path.split(separator) {
        match parts.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(separator);
                last.push_str(part);
            }
            Some(_) | None => parts.push(part.to_owned()),
        }
    }
    parts
}

/// Calls `set` with each value at the place, in an object that the spec selects.
pub(crate) fn visit(
    object: &mut Value,
    spec: &FieldSpec,
    make: CreateMissing,
    set: &mut dyn FnMut(&mut Value) -> Result<(), ErrorKind>,
) -> Result<(), ErrorKind> {
    if !spec.selects(&crate::resource::gvk(object)) {
        return Ok(());
    }
    let make = if spec.create { make } else { CreateMissing::Nothing };
    let path = split(&spec.path, '/');
    if path.len() > MAX_LEVELS {
        return Err(Limit::PathParts(path.len()).into());
    }
    walk(object, &path, make, set).map_err(|why| why.in_field(&spec.path))
}

fn walk(
    value: &mut Value,
    path: &[String],
    make: CreateMissing,
    set: &mut dyn FnMut(&mut Value) -> Result<(), ErrorKind>,
) -> Result<(), ErrorKind> {
    let Some((name, rest)) = path.split_first() else { return set(value) };
    match value {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter_mut().try_for_each(|item| walk(item, path, make, set)),
        Value::Object(map) => {
            let (name, is_list) = match name.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (name.as_str(), false),
            };
            if name.is_empty() {
                return Err(FieldError::EmptyPart.into());
            }
            let field = if make == CreateMissing::Nothing || is_list {
                let Some(field) = map.get_mut(name) else { return Ok(()) };
                if is_list && field.is_null() {
                    *field = Value::Array(Vec::new());
                }
                field
            } else {
                let field = map.entry(name).or_insert(Value::Null);
                if field.is_null() && (!rest.is_empty() || make == CreateMissing::Map) {
                    *field = Value::Object(Map::new());
                } else if field.is_null() {
                    *field = Value::String(String::new());
                }
                field
            };
            walk(field, rest, make, set)
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(FieldError::Plain.into()),
    }
}

/// Puts a value where a plain one, or nothing, is.
pub(crate) fn put(place: &mut Value, value: Value) -> Result<(), ErrorKind> {
    if place.is_array() || place.is_object() {
        return Err(FieldError::NotPlain.into());
    }
    *place = value;
    Ok(())
}

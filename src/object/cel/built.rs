//! Values that the expressions of mutating policies build, as JSON: an object that is to be applied, or the
//! operations of a JSON patch. The texts of what is wrong with it are a server's.

use super::admission::Outcome;
use super::error::{BuildError, Misnamed, NotJson};
use super::value::Val;
use base64::Engine as _;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;

impl Outcome {
    /// The object that was built.
    ///
    /// # Errors
    /// It has parts whose types do not say where they are, or values that JSON does not have.
    pub fn object(&self) -> Result<Value, BuildError> {
        let Val::Message(_, fields) = &self.0 else {
            return Err(BuildError::NotAnObject { found: self.0.type_name() });
        };
        check_names(&self.0)?;
        of_fields(fields).map_err(BuildError::ObjectNotJson)
    }

    /// The operations of the patch that was built.
    ///
    /// # Errors
    /// As for an object.
    pub fn operations(&self) -> Result<Value, BuildError> {
        let Val::List(items, _) = &self.0 else {
            return Err(BuildError::NotAList);
        };
        items.iter().map(operation).collect::<Result<Vec<_>, _>>().map(Value::Array)
    }
}

fn operation(item: &Val) -> Result<Value, BuildError> {
    let Val::Message(_, fields) = item else {
        return Err(BuildError::NotAnOperation { found: item.type_name() });
    };
    let said = |field: &str| match fields.get(field) {
        Some(Val::Text(text)) => text.to_string(),
        _ => String::new(),
    };
    let mut operation = Map::new();
    operation.insert("op".to_owned(), Value::from(said("op")));
    operation.insert("path".to_owned(), Value::from(said("path")));
    if !said("from").is_empty() {
        operation.insert("from".to_owned(), Value::from(said("from")));
    }
    if let Some(value) = fields.get("value") {
        check_names(value)?;
        operation.insert("value".to_owned(), json(value).map_err(BuildError::OperationNotJson)?);
    }
    Ok(Value::Object(operation))
}

/// Types are named by where they are: below `Object` the type of `spec` is `Object.spec`.
fn check_names(value: &Val) -> Result<(), BuildError> {
    let Val::Message(name, _) = value else { return Ok(()) };
    let mut wrong = Vec::new();
    names(value, name, &mut wrong);
    if wrong.is_empty() { Ok(()) } else { Err(BuildError::Misnamed(wrong)) }
}

fn names(value: &Val, path: &str, wrong: &mut Vec<Misnamed>) {
    match value {
        Val::Message(name, fields) => {
            if &**name != path {
                wrong.push(Misnamed { name: name.to_string(), expected: path.to_owned() });
            }
            for (field, value) in fields.iter() {
                names(value, &format!("{path}.{field}"), wrong);
            }
        }
        Val::List(items, _) => items.iter().for_each(|item| names(item, path, wrong)),
        Val::Map(map) => map.values().for_each(|item| names(item, path, wrong)),
        _ => {}
    }
}

fn of_fields(fields: &BTreeMap<String, Val>) -> Result<Value, NotJson> {
    let fields = fields.iter().map(|(name, value)| Ok((name.clone(), json(value)?)));
    fields.collect::<Result<Map<_, _>, NotJson>>().map(Value::Object)
}

/// A value as JSON.
fn json(value: &Val) -> Result<Value, NotJson> {
    Ok(match value {
        Val::Null => Value::Null,
        Val::Bool(truth) => Value::Bool(*truth),
        Val::Int(number) => Value::from(*number),
        Val::Uint(number) => Value::from(*number),
        // A number that is whole is written as one.
        Val::Double(float) if float.fract() == 0.0 && float.abs() < 9e15 => Value::from(*float as i64),
        Val::Double(float) => Number::from_f64(*float).map(Value::Number).ok_or(NotJson::Number)?,
        Val::Text(text) => Value::from(&**text),
        Val::Bytes(bytes) => Value::from(base64::engine::general_purpose::STANDARD.encode(bytes)),
        Val::Duration(_) | Val::Timestamp(_) => Value::from(super::convert::text(value).unwrap_or_default()),
        Val::List(items, _) => items.iter().map(json).collect::<Result<Vec<_>, _>>().map(Value::Array)?,
        Val::Map(map) => {
            let entries = map.iter().map(|(key, value)| Ok((key.to_string(), json(value)?)));
            Value::Object(entries.collect::<Result<Map<_, _>, NotJson>>()?)
        }
        Val::Message(_, fields) => of_fields(fields)?,
        Val::Optional(Some(inner)) => json(inner)?,
        Val::Unknown(json) => Value::clone(json),
        Val::Optional(None) | Val::Type(_) | Val::Library(..) | Val::Check(_) => {
            return Err(NotJson::Type { name: value.type_name() });
        }
    })
}

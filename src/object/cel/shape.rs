//! Schemas as CEL sees them: which fields an expression can name and with what types, and how JSON becomes
//! values.

use super::kind::{Kind, Object};
use super::parse::is_reserved;
use super::time;
use super::value::{Key, Listing, Stop, Val, failed};
use opdev_object::facts::minors;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most letters of `metadata.name`.
const LONGEST_NAME: u64 = 253;

/// Deepest schema that is read.
const DEEPEST: usize = 64;

/// A schema as CEL sees it.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) form: Form,
    pub(super) nullable: bool,
    /// The largest size, for the estimate of costs.
    pub(super) most: u64,
    /// The bytes the smallest value takes.
    pub(super) least_size: u64,
    pub(super) kind: Option<Kind>,
}

#[derive(Debug, Default)]
pub(super) enum Form {
    Object(BTreeMap<String, Shape>),
    Map(Box<Shape>),
    List(Box<Shape>, Listing),
    Text(String),
    Integer,
    Number,
    Boolean,
    IntOrString,
    /// Kept, but not to be named.
    #[default]
    Hidden,
}

/// The largest request.
pub(super) const LARGEST: u64 = 3 * 1024 * 1024;

fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn count(schema: &Value, key: &str) -> Option<u64> {
    let number = schema.get(key)?.as_f64()?;
    Some(if number < 0.0 { 0 } else { number as u64 })
}

/// Reads a schema; `name` is where it stands, `root` whether it is a whole resource.
pub(super) fn shape(schema: &Value, name: &str, root: bool, depth: usize) -> Shape {
    let nullable = flag(schema, "nullable");
    if depth > DEEPEST {
        return Shape { nullable, ..Shape::default() };
    }
    let root = root || flag(schema, "x-kubernetes-embedded-resource");
    let mut shape = if flag(schema, "x-kubernetes-int-or-string") {
        let most = count(schema, "maxLength").map_or(LARGEST - 2, |most| most * 4);
        Shape { form: Form::IntOrString, most, least_size: 1, kind: Some(Kind::Dyn), ..Shape::default() }
    } else {
        match schema.get("type").and_then(Value::as_str).unwrap_or_default() {
            "object" => object(schema, name, root, depth),
            "array" => list(schema, name, depth),
            "string" => text(schema),
            "integer" => plain(Form::Integer, Kind::Int),
            "number" => plain(Form::Number, Kind::Double),
            "boolean" => plain(Form::Boolean, Kind::Bool),
            _ => Shape::default(),
        }
    };
    shape.nullable = nullable;
    shape
}

fn plain(form: Form, kind: Kind) -> Shape {
    let least_size = if kind == Kind::Bool { 4 } else { 1 };
    Shape { form, most: 1, least_size, kind: Some(kind), nullable: false }
}

fn list(schema: &Value, name: &str, depth: usize) -> Shape {
    let Some(items) = schema.get("items").filter(|items| items.is_object()) else { return Shape::default() };
    let item = shape(items, &format!("{name}.@idx"), false, depth + 1);
    let listing = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => Listing::Set,
        Some("map") => {
            let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            Listing::Map(Arc::new(keys.map(|key| escape(key).unwrap_or_else(|| key.to_owned())).collect()))
        }
        _ => Listing::Plain,
    };
    let most = count(schema, "maxItems").unwrap_or((LARGEST - 2) / (item.least_size + 1));
    let kind = item.kind.clone().map(Kind::list);
    Shape { form: Form::List(Box::new(item), listing), most, least_size: 2, kind, nullable: false }
}

fn object(schema: &Value, name: &str, root: bool, depth: usize) -> Shape {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty());
    if let Some(values) = schema.get("additionalProperties").filter(|more| more.is_object())
        && properties.is_none()
    {
        let value = shape(values, &format!("{name}.@elem"), false, depth + 1);
        let most = count(schema, "maxProperties").unwrap_or((LARGEST - 2) / (value.least_size + 6));
        let kind = value.kind.clone().map(|kind| Kind::map(Kind::Text, kind));
        return Shape { form: Form::Map(Box::new(value)), most, least_size: 2, kind, nullable: false };
    }
    let none = Map::new();
    let mut known: BTreeMap<String, Shape> = BTreeMap::new();
    for (field, schema) in properties.unwrap_or(&none) {
        known.insert(field.clone(), shape(schema, &format!("{name}.{field}"), false, depth + 1));
    }
    if root {
        let word = || text(&Value::Null);
        for field in ["apiVersion", "kind"] {
            known.entry(field.to_owned()).or_insert_with(word);
        }
        let of_metadata = schema.pointer("/properties/metadata");
        let named = [("name", LONGEST_NAME), ("generateName", LONGEST_NAME - 1)];
        let named = named.map(|(field, most)| (field.to_owned(), name_text(of_metadata, field, most)));
        let metadata = from_fields(BTreeMap::from(named), &format!("{name}.metadata"), of_metadata);
        known.insert("metadata".to_owned(), metadata);
    }
    from_fields(known, name, Some(schema))
}

/// A name of an object. Since 1.37 the API server knows its length, so that rules about it cost little.
fn name_text(metadata: Option<&Value>, field: &str, most: u64) -> Shape {
    if minors::number_of(minors::minor()) < 37 {
        return text(&Value::Null);
    }
    let own = metadata.and_then(|schema| count(schema.get("properties")?.get(field)?, "maxLength"));
    text(&json!({"maxLength": own.map_or(most, |own| own.min(most))}))
}

fn from_fields(known: BTreeMap<String, Shape>, name: &str, schema: Option<&Value>) -> Shape {
    let mut fields = BTreeMap::new();
    let mut least_size = 2;
    let required = schema.and_then(|schema| schema.get("required")).and_then(Value::as_array);
    let required: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    for (field, shape) in &known {
        let Some(kind) = &shape.kind else { continue };
        if let Some(escaped) = escape(field) {
            fields.insert(escaped, kind.clone());
        }
        let defaulted = schema.and_then(|schema| schema["properties"].get(field)?.get("default")).is_some();
        if required.contains(&field.as_str()) && !defaulted {
            least_size += field.len() as u64 + shape.least_size + 4;
        }
    }
    let kind = Kind::Object(Arc::new(Object { name: name.to_owned(), fields }));
    Shape { form: Form::Object(known), most: 1, least_size, kind: Some(kind), nullable: false }
}

fn text(schema: &Value) -> Shape {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let limit = count(schema, "maxLength");
    let (kind, most, least_size) = match format {
        "byte" => (Kind::Bytes, limit.unwrap_or(LARGEST - 2), 2),
        "duration" => (Kind::Duration, 32, 3),
        "date" => (Kind::Timestamp, 12, 12),
        "date-time" => (Kind::Timestamp, 42, 21),
        _ => {
            let values = schema.get("enum").and_then(Value::as_array).map(|values| {
                values.iter().filter_map(Value::as_str).map(|text| text.len() as u64).max().unwrap_or(0)
            });
            let most = limit.map(|most| most * 4).or(values).unwrap_or(LARGEST - 2);
            (Kind::Text, most, 2)
        }
    };
    Shape { form: Form::Text(format.to_owned()), most, least_size, kind: Some(kind), nullable: false }
}

/// The name in CEL of a field whose name is a reserved word.
pub(super) fn reserved(name: &str) -> Option<String> {
    is_reserved(name).then(|| format!("__{name}__"))
}

/// The name of a field in CEL; `None` where it cannot be named.
pub(super) fn escape(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Some(escaped) = reserved(name) {
        return Some(escaped);
    }
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-/".contains(c)) {
        return None;
    }
    let text = name
        .replace("__", "\u{0}")
        .replace('.', "__dot__")
        .replace('-', "__dash__")
        .replace('/', "__slash__");
    Some(text.replace('\u{0}', "__underscores__"))
}

/// A value of JSON as CEL sees it.
pub(super) fn value(json: &Value, shape: &Shape) -> Result<Val, Stop> {
    if json.is_null() {
        if shape.nullable {
            return Ok(Val::Null);
        }
        return failed("invalid data, got null for schema with nullable=false");
    }
    Ok(match (&shape.form, json) {
        (Form::IntOrString, Value::String(text)) => Val::text(text),
        (Form::IntOrString, json) => match json.as_i64() {
            Some(number) => Val::Int(number),
            None => {
                return failed("invalid data, expected XIntOrString value to be either a string or integer");
            }
        },
        (Form::Object(fields), Value::Object(map)) => {
            let mut out = BTreeMap::new();
            for (name, json) in map {
                let Some(shape) = fields.get(name).filter(|_| !json.is_null()) else {
                    // Nobody can name it, but it counts for equality.
                    let key = Key::Text(format!("\u{0}{name}").into());
                    out.insert(key, Val::Unknown(Arc::new(json.clone())));
                    continue;
                };
                let key = escape(name).unwrap_or_else(|| format!("\u{0}{name}"));
                out.insert(Key::Text(key.into()), value(json, shape)?);
            }
            Val::Map(Arc::new(out))
        }
        (Form::Object(_) | Form::Map(_), json) if !json.is_object() => {
            return failed("invalid data, expected a map for the provided schema with type=object");
        }
        (Form::Map(inner), Value::Object(map)) => {
            let entries =
                map.iter().map(|(name, json)| Ok((Key::Text(name.as_str().into()), value(json, inner)?)));
            Val::Map(Arc::new(entries.collect::<Result<_, Stop>>()?))
        }
        (Form::List(inner, listing), Value::Array(items)) => {
            let items = items.iter().map(|json| value(json, inner)).collect::<Result<Vec<Val>, Stop>>()?;
            Val::List(Arc::new(items), listing.clone())
        }
        (Form::List(..), _) => {
            return failed("invalid data, expected an array for the provided schema with type=array");
        }
        (Form::Text(format), Value::String(text)) => formatted(format, text)?,
        (Form::Text(_), other) => {
            return failed(format!("invalid data, expected string, got {}", go_type(other)));
        }
        (Form::Number, Value::Number(number)) => Val::Double(number.as_f64().unwrap_or_default()),
        (Form::Number, other) => {
            return failed(format!("invalid data, expected float, got {}", go_type(other)));
        }
        (Form::Integer, json) => match json.as_i64() {
            Some(number) => Val::Int(number),
            None => return failed(format!("invalid data, expected int, got {}", go_type(json))),
        },
        (Form::Boolean, Value::Bool(truth)) => Val::Bool(*truth),
        (Form::Boolean, other) => {
            return failed(format!("invalid data, expected bool, got {}", go_type(other)));
        }
        (Form::Hidden | Form::Object(_) | Form::Map(_), other) => Val::Unknown(Arc::new(other.clone())),
    })
}

fn go_type(json: &Value) -> &'static str {
    match json {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn formatted(format: &str, text: &str) -> Result<Val, Stop> {
    Ok(match format {
        "duration" => match opdev_object::schema::duration_nanos(text) {
            Some(nanos) => Val::Duration(nanos),
            None => return failed(format!("Invalid duration {text}: unable to parse {text:?} as duration")),
        },
        "date" => match time::date(text) {
            Some(days) => Val::Timestamp(i128::from(days) * 86_400 * time::SECOND),
            None => return failed(format!("Invalid date formatted string {text}: it is no date")),
        },
        "date-time" => match time::timestamp(text) {
            Some(nanos) => Val::Timestamp(nanos),
            None => return failed(format!("Invalid date-time formatted string {text}: it is no time")),
        },
        "byte" => {
            use base64::Engine as _;
            match base64::engine::general_purpose::STANDARD.decode(text) {
                Ok(bytes) => Val::Bytes(bytes.into()),
                Err(error) => return failed(format!("Invalid byte formatted string {text}: {error}")),
            }
        }
        _ => Val::text(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        for (name, escaped) in [
            ("plain_name", Some("plain_name")),
            ("a-b", Some("a__dash__b")),
            ("a__b.c/d", Some("a__underscores__b__dot__c__slash__d")),
            ("namespace", Some("__namespace__")),
            ("1a", None),
            ("a b", None),
            ("$ref", None),
        ] {
            assert_eq!(escape(name).as_deref(), escaped);
        }
    }
}

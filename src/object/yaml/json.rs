//! From nodes to JSON as sigs.k8s.io/yaml converts: keys become strings, infinities are refused.

use super::number;
use super::{Error, Kind, Node};
use serde_json::{Map, Number, Value};

/// Converts as a Kubernetes object is read: integers stay integers.
pub fn to_json(node: &Node) -> Result<Value, Error> {
    convert(node, false)
}

/// Converts as Helm reads values: every number becomes a float64.
pub fn to_values(node: &Node) -> Result<Value, Error> {
    convert(node, true)
}

/// Checks that `to_json` would convert it: the same errors, nothing built.
pub fn check(node: &Node) -> Result<(), Error> {
    match &node.kind {
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::String(_) => Ok(()),
        Kind::Float(value) => float(node, *value).map(drop),
        Kind::Sequence(items) => items.iter().try_for_each(check),
        Kind::Mapping(pairs) => pairs.iter().enumerate().try_for_each(|(i, (key, value))| {
            if !matches!(key.kind, Kind::String(_)) {
                key_text(key, value)?;
            }
            check(value).or_else(|error| unless_replaced(&pairs[i..], error))
        }),
    }
}

fn convert(node: &Node, floats: bool) -> Result<Value, Error> {
    Ok(match &node.kind {
        Kind::Null => Value::Null,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Int(value) if floats => float(node, *value as f64)?,
        Kind::Int(value) => Value::Number((*value).into()),
        Kind::Uint(value) if floats => float(node, *value as f64)?,
        Kind::Uint(value) => Value::Number((*value).into()),
        Kind::Float(value) if !floats && value.fract() == 0.0 && value.abs() < 9.2e18 => {
            Value::Number((*value as i64).into())
        }
        Kind::Float(value) => float(node, *value)?,
        Kind::String(text) => Value::String(text.clone()),
        Kind::Sequence(items) => {
            Value::Array(items.iter().map(|item| convert(item, floats)).collect::<Result<_, _>>()?)
        }
        Kind::Mapping(pairs) => {
            let mut map = Map::new();
            for (i, (key, value)) in pairs.iter().enumerate() {
                let text = key_text(key, value)?;
                match convert(value, floats) {
                    Ok(value) => drop(map.insert(text, value)),
                    Err(error) => unless_replaced(&pairs[i..], error)?,
                }
            }
            Value::Object(map)
        }
    })
}

/// The error of the first pair, which does not count where the same key comes again.
fn unless_replaced(pairs: &[(Node, Node)], error: Error) -> Result<(), Error> {
    let key = &pairs[0].0.kind;
    if pairs[1..].iter().any(|(later, _)| later.kind == *key) { Ok(()) } else { Err(error) }
}

fn float(node: &Node, value: f64) -> Result<Value, Error> {
    match Number::from_f64(value) {
        Some(number) => Ok(Value::Number(number)),
        None => Err(refuse(node, format!("json: unsupported value: {}", number::format_g(value)))),
    }
}

fn key_text(key: &Node, value: &Node) -> Result<String, Error> {
    Ok(match &key.kind {
        Kind::String(text) => text.clone(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::Float(value) if value.is_nan() => ".nan".to_owned(),
        Kind::Float(value) if short(*value).is_infinite() => {
            if *value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        // sigs.k8s.io/yaml prints keys with the digits of a float32.
        Kind::Float(value) => number::format_g(short(*value)),
        Kind::Null => {
            return Err(refuse(
                key,
                format!(
                    "unsupported map key of type: %!s(<nil>), key: <nil>, value: {}",
                    scalar_syntax(value)
                ),
            ));
        }
        Kind::Uint(number) => {
            return Err(refuse(
                key,
                format!(
                    "unsupported map key of type: uint64, key: {number:#x}, value: {}",
                    scalar_syntax(value)
                ),
            ));
        }
        Kind::Sequence(_) | Kind::Mapping(_) => {
            return Err(refuse(key, "yaml: invalid map key".to_owned()));
        }
    })
}

fn short(value: f64) -> f64 {
    (value as f32).to_string().parse().unwrap_or(value)
}

fn scalar_syntax(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "<nil>".to_owned(),
        _ => super::compose::go_syntax(node),
    }
}

fn refuse(node: &Node, message: String) -> Error {
    Error { line: node.line, column: node.column, message }
}

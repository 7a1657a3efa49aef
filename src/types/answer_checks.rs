//! What every engine checks in an answer, whichever way it was written: children, conditions, events and times.
//! Plain JSON in; what is wrong comes back as words that follow the path of the value.

use crate::contract::RequestedEvent;
use opdev_object::meta::{self, Gvk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A path below the value, each part with its dot, and what is wrong there.
pub(crate) type Fault = (Vec<String>, String);

/// A child: apiVersion, kind, and a name or generateName.
pub(crate) fn child(object: &Value) -> Result<(), Fault> {
    let Some(fields) = object.as_object() else {
        return Err((Vec::new(), "is not an object".to_owned()));
    };
    for key in ["apiVersion", "kind"] {
        let at = || vec![format!(".{key}")];
        match fields.get(key) {
            None | Some(Value::Null) => return Err((at(), "is missing".to_owned())),
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(_) => return Err((at(), "is not a text".to_owned())),
        }
    }
    if Gvk::of(object).is_none() {
        return Err((vec![".apiVersion".to_owned()], "is not a group and version".to_owned()));
    }
    let metadata = match fields.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => return Err((vec![".metadata".to_owned()], "is missing".to_owned())),
        Some(_) => return Err((vec![".metadata".to_owned()], "is not an object".to_owned())),
    };
    for key in ["name", "generateName", "namespace"] {
        if metadata.get(key).is_some_and(|value| !value.is_string()) {
            return Err((vec![".metadata".to_owned(), format!(".{key}")], "is not a text".to_owned()));
        }
    }
    let generated = metadata.get("generateName").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if meta::name(object).is_none() && !generated {
        return Err((vec![".metadata".to_owned(), ".name".to_owned()], "is missing".to_owned()));
    }
    Ok(())
}

/// Conditions by type, the last of each; with what is wrong and which one.
pub(crate) fn conditions(list: Vec<Value>) -> Result<Vec<Value>, (usize, String)> {
    let mut by_type: Vec<(String, Value)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (at, condition) in list.into_iter().enumerate() {
        let fault = |what: &str| (at, what.to_owned());
        let Value::Object(mut fields) = condition else { return Err(fault("is not an object")) };
        let Some(kind) =
            fields.get("type").and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
        else {
            return Err(fault("has no type"));
        };
        match fields.get("status") {
            Some(Value::Bool(true)) => drop(fields.insert("status".to_owned(), "True".into())),
            Some(Value::Bool(false)) => drop(fields.insert("status".to_owned(), "False".into())),
            Some(Value::String(text)) if matches!(text.as_str(), "True" | "False" | "Unknown") => {}
            _ => return Err((at, format!("of type {kind} has no status of True, False or Unknown"))),
        }
        if fields.get("reason").and_then(Value::as_str).is_none_or(str::is_empty) {
            fields.insert("reason".to_owned(), kind.clone().into());
        }
        if !fields.get("message").is_some_and(Value::is_string) {
            fields.insert("message".to_owned(), "".into());
        }
        match known.get(&kind) {
            Some(&index) => by_type[index].1 = Value::Object(fields),
            None => {
                known.insert(kind.clone(), by_type.len());
                by_type.push((kind, Value::Object(fields)));
            }
        }
    }
    Ok(by_type.into_iter().map(|(_, condition)| condition).collect())
}

/// An event: type, reason, message.
pub(crate) fn event(event: &Value) -> Result<RequestedEvent, String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let event_wanted = RequestedEvent {
        kind: if event.get("type").is_none() { "Normal".to_owned() } else { text("type") },
        reason: text("reason"),
        message: text("message"),
    };
    if !matches!(event_wanted.kind.as_str(), "Normal" | "Warning") {
        return Err("has a type that is neither Normal nor Warning".to_owned());
    }
    if event_wanted.reason.is_empty() {
        return Err("has no reason".to_owned());
    }
    Ok(event_wanted)
}

/// A time: seconds as a number, or a text such as `30s` or `1h30m`. Zero and less mean none.
pub(crate) fn after(value: &Value) -> Result<Option<Duration>, String> {
    let seconds = match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => {
            seconds(text).ok_or_else(|| format!("is \"{text}\", not a time such as \"30s\" or \"1h30m\""))?
        }
        _ => return Err("is neither seconds nor a text such as \"30s\"".to_owned()),
    };
    if seconds <= 0.0 {
        return Ok(None);
    }
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| "is longer than time goes".to_owned())
}

fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let units = [
            ("ms", 0.001),
            ("us", 1e-6),
            ("ns", 1e-9),
            ("s", 1.0),
            ("m", 60.0),
            ("h", 3600.0),
            ("d", 86400.0),
        ];
        let (unit, worth) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total += number * worth;
    }
    Some(total)
}

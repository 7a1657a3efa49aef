//! Checks of an answer that every engine makes, whichever way it was written: children, conditions, events
//! and times. Plain JSON in; the text of what is wrong follows the path of the value.

use crate::contract::RequestedEvent;
use opdev_object::meta::{self, Gvk};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A path below the value, each part with its dot, and what is wrong there.
pub(crate) type Fault = (Vec<String>, Wrong);

/// The error of a part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    Missing,
    NotAnObject,
    NotAText,
    /// An apiVersion that is not one.
    NotAVersion,
    /// A condition without a type.
    NoType,
    /// A condition of this type whose status is none.
    NoStatus {
        kind: String,
    },
    /// An event of another type than there are.
    EventType,
    /// An event without a reason.
    NoReason,
    /// A text that is no time.
    NotATime {
        text: String,
    },
    /// A time that is neither a number nor a text.
    NeitherSecondsNorText,
    TooLong,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wrong::Missing => f.write_str("is missing"),
            Wrong::NotAnObject => f.write_str("is not an object"),
            Wrong::NotAText => f.write_str("is not a text"),
            Wrong::NotAVersion => f.write_str("is not a group and version"),
            Wrong::NoType => f.write_str("has no type"),
            Wrong::NoStatus { kind } => write!(f, "of type {kind} has no status of True, False or Unknown"),
            Wrong::EventType => f.write_str("has a type that is neither Normal nor Warning"),
            Wrong::NoReason => f.write_str("has no reason"),
            Wrong::NotATime { text } => write!(f, "is \"{text}\", not a time such as \"30s\" or \"1h30m\""),
            Wrong::NeitherSecondsNorText => f.write_str("is neither seconds nor a text such as \"30s\""),
            Wrong::TooLong => f.write_str("is longer than time goes"),
        }
    }
}

impl std::error::Error for Wrong {}

/// A child: apiVersion, kind, and a name or generateName.
pub(crate) fn child(object: &Value) -> Result<(), Fault> {
    let Some(fields) = object.as_object() else {
        return Err((Vec::new(), Wrong::NotAnObject));
    };
    for key in ["apiVersion", "kind"] {
        let at = || vec![format!(".{key}")];
        match fields.get(key) {
            None | Some(Value::Null) => return Err((at(), Wrong::Missing)),
            Some(Value::String(text)) if !text.is_empty() => {}
            Some(_) => return Err((at(), Wrong::NotAText)),
        }
    }
    if Gvk::of(object).is_none() {
        return Err((vec![".apiVersion".to_owned()], Wrong::NotAVersion));
    }
    let metadata = match fields.get("metadata") {
        Some(Value::Object(metadata)) => metadata,
        None | Some(Value::Null) => return Err((vec![".metadata".to_owned()], Wrong::Missing)),
        Some(_) => return Err((vec![".metadata".to_owned()], Wrong::NotAnObject)),
    };
    for key in ["name", "generateName", "namespace"] {
        if metadata.get(key).is_some_and(|value| !value.is_string()) {
            return Err((vec![".metadata".to_owned(), format!(".{key}")], Wrong::NotAText));
        }
    }
    let generated = metadata.get("generateName").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if meta::name(object).is_none() && !generated {
        return Err((vec![".metadata".to_owned(), ".name".to_owned()], Wrong::Missing));
    }
    Ok(())
}

/// Conditions by type, the last of each; with what is wrong and which one.
pub(crate) fn conditions(list: Vec<Value>) -> Result<Vec<Value>, (usize, Wrong)> {
    let mut by_type: Vec<(String, Value)> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (at, condition) in list.into_iter().enumerate() {
        let Value::Object(mut fields) = condition else { return Err((at, Wrong::NotAnObject)) };
        let Some(kind) =
            fields.get("type").and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
        else {
            return Err((at, Wrong::NoType));
        };
        match fields.get("status") {
            Some(Value::Bool(true)) => drop(fields.insert("status".to_owned(), "True".into())),
            Some(Value::Bool(false)) => drop(fields.insert("status".to_owned(), "False".into())),
            Some(Value::String(text)) if matches!(text.as_str(), "True" | "False" | "Unknown") => {}
            _ => return Err((at, Wrong::NoStatus { kind })),
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
pub(crate) fn event(event: &Value) -> Result<RequestedEvent, Wrong> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let event_wanted = RequestedEvent {
        kind: if event.get("type").is_none() { "Normal".to_owned() } else { text("type") },
        reason: text("reason"),
        message: text("message"),
    };
    if !matches!(event_wanted.kind.as_str(), "Normal" | "Warning") {
        return Err(Wrong::EventType);
    }
    if event_wanted.reason.is_empty() {
        return Err(Wrong::NoReason);
    }
    Ok(event_wanted)
}

/// A time: seconds as a number, or a text such as `30s` or `1h30m`. Zero and less mean none.
pub(crate) fn after(value: &Value) -> Result<Option<Duration>, Wrong> {
    let seconds = match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::String(text) => seconds(text).ok_or_else(|| Wrong::NotATime { text: text.clone() })?,
        _ => return Err(Wrong::NeitherSecondsNorText),
    };
    if seconds <= 0.0 {
        return Ok(None);
    }
    Duration::try_from_secs_f64(seconds).map(Some).map_err(|_| Wrong::TooLong)
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

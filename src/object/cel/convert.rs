//! Conversions between the types of CEL: `int("1")`, `string(1.5)`, `timestamp("…")`.

use super::runtime::Runtime;
use super::time;
use super::value::{Evaluated, Stop, Val, failed};
use opdev_object::go::number::float as go_float;

fn wrong<T>(value: &Val, to: &str) -> Result<T, Stop> {
    let to = match to {
        "timestamp" => "google.protobuf.Timestamp",
        "duration" => "google.protobuf.Duration",
        other => other,
    };
    failed(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

/// Converts a value to the type of that name.
pub(super) fn convert(runtime: &mut Runtime<'_>, to: &str, value: &Val) -> Evaluated {
    match to {
        "int" => int(value),
        "uint" => uint(value),
        "double" => double(value),
        "string" => match value {
            Val::Library(..) => super::library::call(runtime, "string", std::slice::from_ref(value)),
            other => text(other).map(Val::text),
        },
        "bytes" => match value {
            Val::Bytes(_) => Ok(value.clone()),
            Val::Text(text) => Ok(Val::Bytes(text.as_bytes().into())),
            _ => wrong(value, to),
        },
        "bool" => match value {
            Val::Bool(_) => Ok(value.clone()),
            Val::Text(text) => match &**text {
                "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
                "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
                _ => wrong(value, to),
            },
            _ => wrong(value, to),
        },
        "timestamp" => match value {
            Val::Timestamp(_) => Ok(value.clone()),
            Val::Int(seconds) => {
                let nanos = i128::from(*seconds) * time::SECOND;
                if time::in_range(nanos) { Ok(Val::Timestamp(nanos)) } else { failed("timestamp overflow") }
            }
            Val::Text(text) => match time::timestamp(text).filter(|nanos| time::in_range(*nanos)) {
                Some(nanos) => Ok(Val::Timestamp(nanos)),
                None => wrong(value, to),
            },
            _ => wrong(value, to),
        },
        _ => match value {
            Val::Duration(_) => Ok(value.clone()),
            Val::Int(nanos) => Ok(Val::Duration(i128::from(*nanos))),
            Val::Text(text) => match time::duration(text) {
                Some(nanos) => Ok(Val::Duration(nanos)),
                None => wrong(value, to),
            },
            _ => wrong(value, to),
        },
    }
}

fn int(value: &Val) -> Evaluated {
    match value {
        Val::Int(_) => Ok(value.clone()),
        Val::Uint(number) => {
            i64::try_from(*number).map_or_else(|_| failed("integer overflow"), |n| Ok(Val::Int(n)))
        }
        Val::Double(float)
            if float.is_finite()
                && *float > -9.223_372_036_854_775e18
                && *float < 9.223_372_036_854_775e18 =>
        {
            Ok(Val::Int(*float as i64))
        }
        Val::Double(_) => failed("integer overflow"),
        Val::Text(text) => go_int(text).map_or_else(|| wrong(value, "int"), |n| Ok(Val::Int(n))),
        Val::Timestamp(nanos) => Ok(Val::Int(nanos.div_euclid(time::SECOND) as i64)),
        Val::Duration(nanos) => Ok(Val::Int(*nanos as i64)),
        _ => wrong(value, "int"),
    }
}

/// Digits with an optional sign, as Go's `ParseInt` with base 10 takes them.
fn go_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn uint(value: &Val) -> Evaluated {
    match value {
        Val::Uint(_) => Ok(value.clone()),
        Val::Int(number) => {
            u64::try_from(*number).map_or_else(|_| failed("unsigned integer overflow"), |n| Ok(Val::Uint(n)))
        }
        Val::Double(float) if *float >= 0.0 && *float < 1.844_674_407_370_955e19 => {
            Ok(Val::Uint(*float as u64))
        }
        Val::Double(_) => failed("unsigned integer overflow"),
        Val::Text(text) if !text.starts_with('+') => {
            text.parse().map_or_else(|_| wrong(value, "uint"), |n| Ok(Val::Uint(n)))
        }
        _ => wrong(value, "uint"),
    }
}

fn double(value: &Val) -> Evaluated {
    match value {
        Val::Double(_) => Ok(value.clone()),
        Val::Int(number) => Ok(Val::Double(*number as f64)),
        Val::Uint(number) => Ok(Val::Double(*number as f64)),
        Val::Text(text) => {
            let plain = text
                .parse::<f64>()
                .ok()
                .filter(|float| float.is_finite() || !text.contains(|c: char| c.is_ascii_digit()));
            plain.map_or_else(|| wrong(value, "double"), |float| Ok(Val::Double(float)))
        }
        _ => wrong(value, "double"),
    }
}

/// `string()`.
pub(super) fn text(value: &Val) -> Result<String, Stop> {
    Ok(match value {
        Val::Text(text) => text.to_string(),
        Val::Bool(truth) => truth.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(float) if float.is_nan() => "NaN".to_owned(),
        Val::Double(float) if float.is_infinite() => if *float > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        Val::Double(float) => go_float(*float),
        Val::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return failed("invalid UTF-8 in bytes, cannot convert to string"),
        },
        Val::Timestamp(nanos) => time::show_timestamp(*nanos),
        Val::Duration(nanos) => time::show_duration(*nanos),
        Val::Type(kind) => super::value::type_name(kind),
        _ => return wrong(value, "string"),
    })
}

//! Go's own template functions: logic, comparison, indexing, printing, escaping.

use super::super::context::Compat;
use super::super::error::FuncError;
use super::super::host::{Signature, Ty};
use super::super::value::{Kind, UintKind, Value};
use super::super::{print, printf};
use super::{Call, Function, Outcome, Run, fixed, variadic};
use opdev_object::go::quote::{decode, is_printable};

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "and", signature: Signature { fixed: &[Ty::Raw], rest: Some(Ty::Raw) }, run: Run::And },
    Function { name: "or", signature: Signature { fixed: &[Ty::Raw], rest: Some(Ty::Raw) }, run: Run::Or },
    Function { name: "len", signature: Signature::with_parameters(&[Ty::Raw]), run: Run::Len },
    fixed("not", &[Ty::Raw], |_, args| Ok(Value::Bool(!args[0].truth()))),
    variadic("index", &[Ty::Raw], Ty::Raw, |_, args| index(args)),
    Function {
        name: "call",
        signature: Signature { fixed: &[Ty::Raw], rest: Some(Ty::Raw) },
        run: Run::Call,
    },
    variadic("print", &[], Ty::Any, |_, args| Ok(print::sprint_all(args).into())),
    variadic("printf", &[Ty::Str], Ty::Any, |call, args| {
        let format = args[0].as_str().cloned().unwrap_or_default();
        Ok(printf::sprintf(&format, &args[1..], &mut |bytes| call.makes(bytes))?.into())
    }),
    variadic("println", &[], Ty::Any, |_, args| Ok(print::sprintln(args).into())),
    variadic("html", &[], Ty::Any, |_, args| Ok(html(&joined(args)).into())),
    variadic("js", &[], Ty::Any, |_, args| Ok(js(&joined(args)).into())),
    variadic("urlquery", &[], Ty::Any, |_, args| Ok(query_escape(&joined(args)).into())),
    variadic("eq", &[Ty::Raw], Ty::Raw, |call, args| {
        if args.len() < 2 {
            return Err("missing argument for comparison".into());
        }
        for other in &args[1..] {
            if equal(&args[0], other, call.context.compat)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
    fixed("ne", &[Ty::Raw, Ty::Raw], |call, args| {
        Ok(Value::Bool(!equal(&args[0], &args[1], call.context.compat)?))
    }),
    fixed("lt", &[Ty::Raw, Ty::Raw], |call, args| Ok(Value::Bool(less(call, args)?))),
    fixed("le", &[Ty::Raw, Ty::Raw], |call, args| Ok(Value::Bool(less_or_equal(call, args)?))),
    fixed("gt", &[Ty::Raw, Ty::Raw], |call, args| Ok(Value::Bool(!less_or_equal(call, args)?))),
    fixed("ge", &[Ty::Raw, Ty::Raw], |call, args| Ok(Value::Bool(!less(call, args)?))),
];

/// `len`.
pub(in super::super) fn length(value: &Value, interface: bool) -> Outcome {
    let n = match &value.underlying() {
        Value::Nil if interface => return Err("len of nil pointer".into()),
        Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::Str(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(FuncError::new(format!("len of type {}", pointed(other)))),
    };
    Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
}

/// The type of a value, or of what it points to.
fn pointed(value: &Value) -> String {
    let name = value.type_name();
    if value.kind() == Kind::Ptr { name.trim_start_matches('*').to_owned() } else { name }
}

fn index(args: &[Value]) -> Outcome {
    let mut item = args[0].clone();
    if item.is_nil() {
        return Err("index of untyped nil".into());
    }
    for at in &args[1..] {
        item = match item.underlying() {
            Value::Nil => return Err("index of nil pointer".into()),
            Value::List(list) => {
                let i = position(at, list.len())?;
                list.get(i).ok_or("reflect: slice index out of range")?
            }
            Value::Str(text) => {
                let i = position(at, text.len())?;
                let byte = *text.get(i).ok_or("reflect: string index out of range")?;
                Value::Uint(UintKind::U8, u64::from(byte))
            }
            Value::Map(map) => match at {
                Value::Str(key) => map.get(key).unwrap_or_else(|| map.zero()),
                Value::Nil => return Err("value is nil; should be of type string".into()),
                other => {
                    let found = other.type_name();
                    return Err(FuncError::new(format!("value has type {found}; should be string")));
                }
            },
            other => return Err(FuncError::new(format!("can't index item of type {}", pointed(&other)))),
        };
    }
    Ok(item)
}

fn position(at: &Value, length: usize) -> Result<usize, FuncError> {
    let n = match at {
        Value::Int(n) | Value::Int64(n) => *n,
        Value::Uint(_, n) => i64::try_from(*n).unwrap_or(-1),
        Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => {
            return Err(FuncError::new(format!("cannot index slice/array with type {}", other.type_name())));
        }
    };
    match usize::try_from(n) {
        Ok(i) if i <= length => Ok(i),
        _ => Err(FuncError::new(format!("index out of range: {n}"))),
    }
}

#[derive(PartialEq, Eq)]
enum Basic {
    Invalid,
    Bool,
    Int,
    Uint,
    Float,
    Str,
}

fn basic(value: &Value) -> Basic {
    match value.kind() {
        Kind::Bool => Basic::Bool,
        Kind::Int | Kind::Int64 => Basic::Int,
        Kind::Uint8 | Kind::Uint64 => Basic::Uint,
        Kind::Float64 => Basic::Float,
        Kind::String => Basic::Str,
        Kind::Invalid | Kind::Slice | Kind::Map | Kind::Struct | Kind::Ptr => Basic::Invalid,
    }
}

fn incompatible(a: &Value, b: &Value, compat: Compat) -> FuncError {
    let mut text = "incompatible types for comparison".to_owned();
    if compat != Compat::V3_19 {
        text.push_str(&format!(": {} and {}", a.type_name(), b.type_name()));
    }
    FuncError::new(text)
}

fn equal(a: &Value, b: &Value, compat: Compat) -> Result<bool, FuncError> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a) | Value::Int64(a), Value::Int(b) | Value::Int64(b)) => a == b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a == b,
        (Value::Int(a) | Value::Int64(a), Value::Uint(_, b))
        | (Value::Uint(_, b), Value::Int(a) | Value::Int64(a)) => u64::try_from(*a).is_ok_and(|a| a == *b),
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        _ if basic(a) != basic(b) => {
            if a.is_nil() || b.is_nil() {
                return Ok(false);
            }
            return Err(incompatible(a, b, compat));
        }
        (Value::Nil, Value::Nil) => true,
        (Value::Nil, other) | (other, Value::Nil) => nothing(other),
        _ if a.kind() != b.kind() => {
            let (ta, tb) = (a.type_name(), b.type_name());
            return Err(FuncError::new(format!(
                "non-comparable types {}: {ta}, {tb}: {}",
                printf::shown("%s", a),
                printf::shown("%v", b)
            )));
        }
        _ if nothing(a) || nothing(b) => nothing(a) == nothing(b),
        (Value::Host(x), Value::Host(y)) if x.underlying().is_none() && y.is_comparable() => {
            std::rc::Rc::ptr_eq(x, y) || (x.kind() != Kind::Ptr && a.deep_equal(b))
        }
        _ => {
            let shown = printf::shown("%s", b);
            return Err(FuncError::new(format!("non-comparable type {shown}: {}", b.type_name())));
        }
    })
}

/// Nil of some type.
fn nothing(value: &Value) -> bool {
    match value {
        Value::Nil => true,
        Value::Map(map) => map.is_nil(),
        Value::List(list) => list.is_nil(),
        _ => false,
    }
}

fn less(call: &Call<'_, '_>, args: &[Value]) -> Result<bool, FuncError> {
    let (a, b) = (&args[0], &args[1]);
    let (ka, kb) = (basic(a), basic(b));
    if ka == Basic::Invalid || kb == Basic::Invalid {
        return Err("invalid type for comparison".into());
    }
    Ok(match (a, b) {
        (Value::Int(a) | Value::Int64(a), Value::Int(b) | Value::Int64(b)) => a < b,
        (Value::Uint(_, a), Value::Uint(_, b)) => a < b,
        (Value::Int(a) | Value::Int64(a), Value::Uint(_, b)) => u64::try_from(*a).map_or(true, |a| a < *b),
        (Value::Uint(_, a), Value::Int(b) | Value::Int64(b)) => u64::try_from(*b).is_ok_and(|b| *a < b),
        (Value::Float(a), Value::Float(b)) => a < b,
        (Value::Str(a), Value::Str(b)) => a < b,
        _ if ka != kb => return Err(incompatible(a, b, call.context.compat)),
        _ => return Err("invalid type for comparison".into()),
    })
}

fn less_or_equal(call: &Call<'_, '_>, args: &[Value]) -> Result<bool, FuncError> {
    Ok(less(call, args)? || equal(&args[0], &args[1], call.context.compat)?)
}

/// The text of the arguments of an escaping function.
fn joined(args: &[Value]) -> Vec<u8> {
    let shown = |v: &Value| if v.is_nil() { Value::str("<no value>") } else { v.clone() };
    let args: Vec<Value> = args.iter().map(shown).collect();
    print::sprint_all(&args)
}

fn html(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            other => out.push(*other),
        }
    }
    out
}

fn js(mut text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    while !text.is_empty() {
        let (c, width) = decode(text);
        match c {
            Some('\\') => out.extend_from_slice(b"\\\\"),
            Some('\'') => out.extend_from_slice(b"\\'"),
            Some('"') => out.extend_from_slice(b"\\\""),
            Some(c @ ('<' | '>' | '&' | '=' | '\0'..='\u{1f}')) => {
                out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
            }
            Some(c) if c.is_ascii() || is_printable(c) => out.extend_from_slice(&text[..width]),
            Some(c) => out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes()),
            None => out.push(text[0]),
        }
        text = &text[width..];
    }
    out
}

/// Go's url.QueryEscape.
pub(super) fn query_escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(*byte),
            b' ' => out.push(b'+'),
            other => out.extend_from_slice(format!("%{other:02X}").as_bytes()),
        }
    }
    out
}

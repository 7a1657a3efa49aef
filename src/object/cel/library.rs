//! The functions of Kubernetes' own types, from the `kube-cel` crate: quantities, addresses, URLs, versions,
//! formats. One function at a time is called; arguments and results are plain values.

use super::runtime::Runtime;
use super::value::{Evaluated, Key, Val, failed, no_overload};
use crate::guard;
use kube_cel::KubeCelExt as _;
use kube_cel::cel::common::ast::{CallExpr, Expr, IdedExpr};
use kube_cel::cel::objects::{OptionalValue, Value};
use kube_cel::cel::{Context, ExecutionError};
use opdev_object::go::quote::quote;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The functions, made when the first one is called.
#[derive(Default)]
pub(super) struct Library {
    context: OnceCell<Context<'static>>,
}

/// The longest argument that is handed over.
const LONGEST: u64 = 100_000;

/// Calls a function of the library.
pub(super) fn call(runtime: &mut Runtime<'_>, name: &str, args: &[Val]) -> Evaluated {
    let size: u64 = args.iter().map(Val::size).sum();
    runtime.charge(4 + size / 10)?;
    if size > LONGEST {
        return failed(format!("{name}: the argument is too long"));
    }
    if let [Val::Text(text), ..] = args
        && is_huge(name, text)
    {
        return failed(format!("{name}: the number is too large"));
    }
    let root = runtime.library.context.get_or_init(|| Context::default().with_all());
    let mut context = root.new_inner_scope();
    let mut names = Vec::with_capacity(args.len());
    for (index, arg) in args.iter().enumerate() {
        let Some(value) = to_library(arg) else { return no_overload() };
        context.add_variable_from_value(format!("a{index}"), value);
        names.push(IdedExpr { id: index as u64, expr: Expr::Ident(format!("a{index}")) });
    }
    let global = matches!(
        name,
        "url"
            | "isURL"
            | "isIP"
            | "ip.isCanonical"
            | "cidr"
            | "isCIDR"
            | "quantity"
            | "isQuantity"
            | "semver"
            | "isSemver"
            | "string"
    ) || name.starts_with("format.")
        || (name == "ip" && matches!(args, [Val::Text(_)]));
    let mut rest = names.into_iter();
    let target = if global { None } else { rest.next().map(Box::new) };
    let call = CallExpr { func_name: name.to_owned(), target, args: rest.collect() };
    let expr = IdedExpr { id: 100, expr: Expr::Call(call) };
    if name == "isInteger" && matches!(args, [Val::Library("kubernetes.Quantity", _)]) {
        // A number that is whole but too large is none.
        return Ok(Val::Bool(self::call(runtime, "asInteger", args).is_ok()));
    }
    match guard::run(|| context.resolve(&expr)) {
        Ok(Ok(value)) if name == "format.named" => Ok(match from_library(value)? {
            Val::Null => Val::Optional(None),
            found => Val::some(found),
        }),
        Ok(Ok(value)) => from_library(value),
        Ok(Err(error)) => failed(words(name, args, &error)),
        Err(guard::Panicked) => failed(format!("{name}: the argument cannot be worked with")),
    }
}

/// An exponent or a row of zeros that would take for ever to work with.
fn is_huge(name: &str, text: &str) -> bool {
    if !matches!(name, "quantity" | "isQuantity") {
        return false;
    }
    let exponent = text.rsplit_once(['e', 'E']).and_then(|(_, digits)| digits.parse::<i64>().ok());
    text.len() > 64 || exponent.is_some_and(|exponent| exponent.abs() > 64)
}

/// A server's error where a function fails.
fn words(name: &str, args: &[Val], error: &ExecutionError) -> String {
    match (name, args) {
        ("ip", [Val::Text(text)]) => {
            let text = quote(text);
            return format!(
                "IP Address {text} parse error during conversion from string: ParseAddr({text}): unable to parse IP"
            );
        }
        ("cidr", [Val::Text(text)]) => {
            let why = if text.contains('/') { "it is no address and length" } else { "no '/'" };
            let text = quote(text);
            let twice = "network address parse error during conversion from string";
            return format!("{twice}: {twice}: netip.ParsePrefix({text}): {why}");
        }
        ("containsIP" | "containsCIDR", [_, Val::Text(_)]) => return "no such overload".to_owned(),
        ("url", [Val::Text(text)]) => {
            let text = quote(text);
            return format!(
                "URL parse error during conversion from string: parse {text}: invalid URI for request"
            );
        }
        ("asInteger", _) => return "cannot convert value to integer".to_owned(),
        ("semver", [Val::Text(text), ..]) if text.split('.').count() != 3 => {
            return "No Major.Minor.Patch elements found".to_owned();
        }
        _ => {}
    }
    match error {
        ExecutionError::FunctionError { message, .. } => message.clone(),
        ExecutionError::NoSuchOverload
        | ExecutionError::UnexpectedType { .. }
        | ExecutionError::UnsupportedTargetType { .. }
        | ExecutionError::NotSupportedAsMethod { .. } => "no such overload".to_owned(),
        other => other.to_string(),
    }
}

fn to_library(value: &Val) -> Option<Value> {
    Some(match value {
        Val::Bool(truth) => Value::Bool(*truth),
        Val::Int(number) => Value::Int(*number),
        Val::Uint(number) => Value::UInt(*number),
        Val::Double(float) => Value::Float(*float),
        Val::Text(text) => Value::String(Arc::new(text.to_string())),
        Val::Library(_, value) => value.clone(),
        _ => return None,
    })
}

fn from_library(value: Value) -> Evaluated {
    Ok(match value {
        Value::Null => Val::Null,
        Value::Bool(truth) => Val::Bool(truth),
        Value::Int(number) => Val::Int(number),
        Value::UInt(number) => Val::Uint(number),
        Value::Float(float) => Val::Double(float),
        Value::String(text) => Val::text(text.as_str()),
        Value::List(items) => {
            Val::list(items.iter().map(|item| from_library(item.clone())).collect::<Result<Vec<_>, _>>()?)
        }
        Value::Map(map) => {
            let mut out = BTreeMap::new();
            for (key, value) in map.map.iter() {
                out.insert(Key::Text(key.to_string().into()), from_library(value.clone())?);
            }
            Val::Map(Arc::new(out))
        }
        Value::Opaque(opaque) => {
            if let Some(optional) = opaque.downcast_ref::<OptionalValue>() {
                return match optional.value() {
                    Some(inner) => Ok(Val::some(from_library(inner.clone())?)),
                    None => Ok(Val::Optional(None)),
                };
            }
            let name = type_of(opaque.runtime_type_name());
            Val::Library(name, Value::Opaque(opaque))
        }
        _ => return no_overload(),
    })
}

fn type_of(name: &str) -> &'static str {
    const NAMES: [(&str, &str); 6] = [
        ("quantity", "kubernetes.Quantity"),
        ("semver", "kubernetes.Semver"),
        ("url", "kubernetes.URL"),
        ("cidr", "net.CIDR"),
        ("format", "kubernetes.NamedFormat"),
        ("ip", "net.IP"),
    ];
    let name = name.to_lowercase();
    NAMES.iter().find(|(part, _)| name.contains(part)).map_or("kubernetes.Unknown", |(_, name)| name)
}

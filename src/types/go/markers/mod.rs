//! Markers: comments such as `+kubebuilder:validation:Minimum=0`. Reads one, says what it is and what its
//! arguments are, and what is odd about those that nobody knows. Applies none of them.

mod argument;
mod inventory;
mod scanner;
mod suggest;
#[cfg(test)]
mod tests;

pub(crate) use inventory::Target;
pub(crate) use scanner::unquote;
pub(crate) use suggest::unknown;

use super::profile::{Level, Profile};
use argument::{Reader, expect};
use inventory::{Arguments, Definition};
use scanner::{Scanner, Token};
use serde_json::{Map, Value};

/// A marker that was read.
#[derive(Clone, Debug)]
pub(crate) struct Marker {
    /// Its whole name, such as `kubebuilder:validation:Minimum`.
    pub(crate) name: &'static str,
    /// `Null` without arguments, the value of an unnamed argument, or an object of the named ones.
    pub(crate) value: Value,
    /// Its byte in the file.
    pub(crate) at: usize,
}

impl Marker {
    /// A named text argument; empty where it is not given.
    pub(crate) fn text(&self, argument: &str) -> &str {
        self.value.get(argument).and_then(Value::as_str).unwrap_or_default()
    }

    /// A named list of texts.
    pub(crate) fn texts(&self, argument: &str) -> Vec<String> {
        strings(self.value.get(argument))
    }

    /// The unnamed argument as a list of texts.
    pub(crate) fn list(&self) -> Vec<String> {
        strings(Some(&self.value))
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The result of reading a marker.
#[derive(Debug)]
pub(crate) enum Reading {
    Known(Marker),
    /// Known, and of no interest to a CRD.
    Foreign,
    /// Known, with arguments that cannot be read; byte of the text and what is wrong.
    Bad(usize, String),
    Unknown,
}

/// The name with and without its last part, what follows the first `=`, and the byte where that starts.
fn split(text: &str) -> (&str, &str, &str, usize) {
    let body = text.strip_prefix('+').unwrap_or(text);
    let Some((full, rest)) = body.split_once('=') else { return (body, body, "", text.len()) };
    let short = full.rfind(':').map_or(full, |colon| &full[..colon]);
    (short, full, rest, text.len() - rest.len())
}

fn lookup(text: &str, target: Target) -> Option<(&'static str, Definition)> {
    let (short, full, _, _) = split(text);
    [full, short].into_iter().find_map(|name| {
        let (name, definition) = inventory::all().get_key_value(name)?;
        definition.on.contains(&target).then_some((name.as_str(), *definition))
    })
}

/// Returns true if a marker can describe a package and cannot describe a type.
pub(crate) fn only_of_package(text: &str) -> bool {
    lookup(text, Target::Type).is_none() && lookup(text, Target::Package).is_some()
}

/// Reads a marker that describes such a target.
pub(crate) fn read(text: &str, at: usize, target: Target, profile: &Profile) -> Reading {
    let Some((name, definition)) = lookup(text, target) else { return Reading::Unknown };
    if definition.arguments == Arguments::Foreign {
        return Reading::Foreign;
    }
    let since = match (name, target) {
        ("kubebuilder:title", Target::Type) => Level::V0_20,
        _ => definition.since,
    };
    if !profile.at_least(since) {
        return Reading::Unknown;
    }
    match arguments(text, &definition, profile) {
        Ok(value) => Reading::Known(Marker { name, value, at }),
        Err((offset, message)) => Reading::Bad(offset, message),
    }
}

/// Limits whose argument is the whole rest of the line since v0.23, so that declarative validation may share
/// it.
const LIMITS: [(&str, argument::Kind); 3] = [
    ("maximum", argument::Kind::Number),
    ("minimum", argument::Kind::Number),
    ("maxItems", argument::Kind::Int),
];

/// Returns true if a marker such as `k8s:maximum`, `Maximum` or `items:Maximum` sets this limit.
fn is_limit(marker: &str, limit: &str) -> bool {
    marker.rsplit(':').next().is_some_and(|name| name.eq_ignore_ascii_case(limit))
}

fn arguments(text: &str, definition: &Definition, profile: &Profile) -> Result<Value, (usize, String)> {
    let (short, full, rest, rest_at) = split(text);
    let reader = Reader { careful_numbers: profile.at_least(Level::V0_22) };
    if definition.arguments == Arguments::Json {
        return json(rest).map_err(|error| (rest_at, format!("not valid JSON: {error}")));
    }
    if profile.at_least(Level::V0_23)
        && let Some((limit, kind)) = LIMITS.iter().find(|(limit, _)| is_limit(definition.name, limit))
    {
        return argument::limit(limit, *kind, full, rest).map_err(|message| (rest_at, message));
    }
    let named = matches!(definition.arguments, Arguments::Named(_));
    let known = known_arguments(definition, profile);
    // `a:b:c=x`: `c` is the first argument's name.
    let fields = if named && full.len() > short.len() {
        text.get(rest_at - 1 - (full.len() - short.len() - 1)..).unwrap_or_default()
    } else {
        rest
    };
    let base = text.len() - fields.len();
    let mut scanner = Scanner::new(fields);
    let mut seen = Map::new();
    let mut value = Value::Null;
    let mut given = false;
    match definition.arguments {
        Arguments::One(kind) | Arguments::MaybeOne(kind) => {
            if scanner.peek().is_some() {
                value = reader.read(&mut scanner, kind);
                given = true;
            }
        }
        Arguments::Named(_) => {
            if scanner.peek().is_some() {
                read_named(&reader, &mut scanner, known, &mut seen);
            }
        }
        Arguments::None | Arguments::Json | Arguments::Foreign => {}
    }
    if scanner.scan() != Token::End {
        let extra = scanner.whole().get(scanner.start()..).unwrap_or_default().to_owned();
        scanner.fail(format!("extra arguments provided: {extra:?}"));
    }
    match definition.arguments {
        Arguments::One(_) if !given => scanner.fail("missing argument \"\""),
        Arguments::MaybeOne(_) if !given => value = Value::from(""),
        Arguments::Named(_) => {
            for (name, _, optional) in known {
                if !optional && !seen.contains_key(*name) {
                    scanner.fail(format!("missing argument {name:?}"));
                }
            }
            value = Value::Object(seen);
        }
        _ => {}
    }
    match scanner.error {
        Some((offset, message)) => Err((base + offset, message)),
        None => Ok(value),
    }
}

/// The named arguments that the pinned release knows.
fn known_arguments(
    definition: &Definition,
    profile: &Profile,
) -> &'static [(&'static str, argument::Kind, bool)] {
    let Arguments::Named(all) = definition.arguments else { return &[] };
    let since = |name: &str| match name {
        "messageExpression" => Level::V0_15,
        "reason" | "fieldPath" => Level::V0_16,
        "optionalOldSelf" => Level::V0_17,
        "roleName" => Level::V0_21,
        _ => Level::V0_14,
    };
    let known = all.iter().take_while(|(name, ..)| profile.at_least(since(name))).count();
    all.get(..known).unwrap_or(all)
}

fn read_named(
    reader: &Reader,
    scanner: &mut Scanner<'_>,
    known: &[(&str, argument::Kind, bool)],
    seen: &mut Map<String, Value>,
) {
    loop {
        if scanner.scan() != Token::Ident {
            let found = scanner.token().to_owned();
            return scanner.fail(format!("expected argument name, got {found:?}"));
        }
        let name = scanner.token().to_owned();
        let name_at = scanner.clone();
        if !expect(scanner, '=', "equals") {
            return;
        }
        let Some((_, kind, _)) = known.iter().find(|(known, _, _)| *known == name) else {
            *scanner = name_at;
            return scanner.fail(format!("unknown argument {name:?}"));
        };
        let value = reader.read(scanner, *kind);
        seen.insert(name, value);
        if scanner.error.is_some() || scanner.peek().is_none() || !expect(scanner, ',', "comma") {
            return;
        }
    }
}

/// A JSON literal; `ref(...)` cannot be evaluated without a compiler and counts as nothing.
fn json(text: &str) -> serde_json::Result<Value> {
    if text.trim_start().starts_with("ref(") {
        return Ok(Value::Null);
    }
    let mut value: Value = serde_json::from_str(text)?;
    whole_numbers(&mut value);
    Ok(value)
}

/// `1.0` is written as `1`.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = number.as_f64().filter(|_| number.is_f64()).and_then(argument::number) {
                *value = whole;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

//! The functions templates can call, by name: Go's built-ins, Sprig, and Helm's own.
//! Each file lists its functions with their parameter types; arguments arrive counted and checked.

pub(super) mod builtins;
mod case;
mod certs;
mod choices;
pub(super) mod cost;
mod crypto;
mod dates;
mod dicts;
mod encoding;
mod fromtoml;
pub(super) mod growth;
pub(super) mod helm;
mod json;
mod lists;
mod numbers;
pub(super) mod paths;
mod random;
mod regexes;
mod semver;
pub(super) mod strings;
mod toml;
mod url;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::budget::weigh;
use super::context::{Compat, Context};
use super::error::FuncError;
use super::host::{Signature, Ty};
use super::reads::Quickly;
use super::set::TemplateSet;
use super::value::Value;
use choices::is_empty as empty;

/// Everything that a function can reach beside its arguments.
pub(super) struct Call<'a, 'e> {
    pub(super) set: &'a TemplateSet,
    pub(super) context: &'a mut Context<'e>,
}

impl Call<'_, '_> {
    /// Charges what the function is about to make: so many bytes altogether.
    pub(super) fn makes(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.context.budget.makes(bytes).map_err(FuncError::from)
    }

    /// Charges what the function is about to put into a value that was there before.
    pub(super) fn keeps(&mut self, bytes: usize) -> Result<(), FuncError> {
        self.context.budget.keeps(bytes).map_err(FuncError::from)
    }

    /// Charges that all of a value is about to be written, or says why it cannot be.
    pub(super) fn writes(&mut self, value: &Value) -> Result<(), FuncError> {
        let bytes = weigh(value).map_err(FuncError::from)?;
        self.makes(bytes)
    }

    /// An error where the render is to break off: asked by what may take longer than a few milliseconds.
    pub(super) fn go_on(&self) -> Result<(), FuncError> {
        self.context.interrupted().map_or(Ok(()), |why| Err(why.into()))
    }
}

/// The result of a function.
pub(super) type Outcome = Result<Value, FuncError>;

/// The way a function runs.
#[derive(Clone, Copy)]
pub(super) enum Run {
    /// stops at the first false argument
    And,
    /// stops at the first true argument
    Or,
    /// tells a nil interface from nothing
    Len,
    /// names what it was asked to call, which is never a function here
    Call,
    /// what the environment brings along
    Environment,
    /// an ordinary function
    Plain(fn(&mut Call<'_, '_>, &[Value]) -> Outcome),
}

/// One function.
pub struct Function {
    pub(super) name: &'static str,
    pub(super) signature: Signature,
    pub(super) run: Run,
}

impl Function {
    /// A function of the environment: a call of it is `Environment::call`.
    #[must_use]
    pub const fn of_environment(name: &'static str, signature: Signature) -> Function {
        Function { name, signature, run: Run::Environment }
    }
}

type Body = fn(&mut Call<'_, '_>, &[Value]) -> Outcome;

/// A function with fixed parameters.
const fn fixed(name: &'static str, types: &'static [Ty], run: Body) -> Function {
    Function { name, signature: Signature::with_parameters(types), run: Run::Plain(run) }
}

/// A function with any number of further arguments.
const fn variadic(name: &'static str, types: &'static [Ty], rest: Ty, run: Body) -> Function {
    Function { name, signature: Signature { fixed: types, rest: Some(rest) }, run: Run::Plain(run) }
}

static TABLE: LazyLock<HashMap<&'static str, &'static Function, Quickly>> = LazyLock::new(|| {
    let all: [&'static [Function]; 19] = [
        builtins::FUNCTIONS,
        strings::FUNCTIONS,
        case::FUNCTIONS,
        numbers::FUNCTIONS,
        lists::FUNCTIONS,
        dicts::FUNCTIONS,
        choices::FUNCTIONS,
        encoding::FUNCTIONS,
        paths::FUNCTIONS,
        random::FUNCTIONS,
        json::FUNCTIONS,
        dates::FUNCTIONS,
        regexes::FUNCTIONS,
        semver::FUNCTIONS,
        url::FUNCTIONS,
        toml::FUNCTIONS,
        crypto::FUNCTIONS,
        certs::FUNCTIONS,
        // Helm's own come last: they replace Sprig's of the same name.
        helm::FUNCTIONS,
    ];
    let count = all.iter().map(|functions| functions.len()).sum();
    let mut table = HashMap::with_capacity_and_hasher(count, Quickly::default());
    table.extend(all.into_iter().flatten().map(|function| (function.name, function)));
    table
});

/// Functions Helm 3 does not have.
const SINCE_4: [&str; 1] = ["mustToYaml"];
/// Functions that came after Helm 4.1.
const SINCE_4_2: [&str; 12] = [
    "durationDays",
    "durationHours",
    "durationMicroseconds",
    "durationMilliseconds",
    "durationMinutes",
    "durationNanoseconds",
    "durationRoundTo",
    "durationSeconds",
    "durationTruncateTo",
    "durationWeeks",
    "mustToDuration",
    "mustToToml",
];

/// Returns true if a Helm has a function.
fn has(compat: Compat, name: &str) -> bool {
    (compat.is_four() || !SINCE_4.contains(&name)) && (compat == Compat::V4 || !SINCE_4_2.contains(&name))
}

/// The set of functions.
#[derive(Clone, Copy)]
pub(super) struct Language {
    pub(super) compat: Compat,
    /// Functions of the environment.
    pub(super) own: &'static [Function],
}

/// The function of that name.
pub(super) fn lookup(name: &str, language: Language) -> Option<&'static Function> {
    if let Some(function) = language.own.iter().find(|function| function.name == name) {
        return Some(function);
    }
    if !has(language.compat, name) {
        return None;
    }
    TABLE.get(name).copied()
}

/// The name of every function of a Helm.
#[must_use]
pub fn names(compat: Compat) -> Vec<&'static str> {
    TABLE.keys().copied().filter(|name| has(compat, name)).collect()
}

/// An argument that is a string, as text.
fn string(args: &[Value], i: usize) -> String {
    args.get(i).and_then(Value::as_str).map(|s| s.text().into_owned()).unwrap_or_default()
}

/// An argument that is a string, as bytes.
fn bytes(args: &[Value], i: usize) -> &[u8] {
    args.get(i).and_then(Value::as_str).map_or(&[], |s| s.as_bytes())
}

/// An argument that is an `int`.
fn int(args: &[Value], i: usize) -> i64 {
    match args.get(i) {
        Some(Value::Int(n)) => *n,
        _ => 0,
    }
}

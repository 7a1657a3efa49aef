//! The cost of evaluations. One count is a server's, to the point: it decides what is refused, in its words.
//! The other is our own, for steps that a server does not count: it keeps any evaluation short.

use super::ast::{Expr, Node};
use super::value::{Stop, Val};
use kube_cel::cel::objects::Value;

/// The largest cost of one expression.
const EACH: u64 = 1_000_000;
/// Steps of our own that one expression may take.
const STEPS: u64 = 10_000_000;
/// Steps of our own that all expressions about one object may take.
pub(super) const ALL_STEPS: u64 = 30_000_000;
/// Units of cost for each byte of a text.
const TEXT: f64 = 0.1;
/// Units of cost for each character of a regular expression.
const PATTERN: f64 = 0.25;
pub(super) const LIST: u64 = 10;
pub(super) const MAP: u64 = 30;
pub(super) const MESSAGE: u64 = 40;
/// The functions that turn a value into one of another type, which are called once where the value is written
/// out.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// The counts of one evaluation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// The cost so far.
    pub(super) cost: u64,
    limit: u64,
    /// How many steps are left.
    pub(super) steps: u64,
}

impl Meter {
    /// A meter for an expression, where `steps` are left of all.
    pub(super) fn new(steps: u64) -> Self {
        Meter { cost: 0, limit: EACH, steps: steps.min(STEPS) }
    }

    /// Takes steps of our own.
    pub(super) fn charge(&mut self, steps: u64) -> Result<(), Stop> {
        if self.steps < steps {
            self.steps = 0;
            return Err(Stop::Budget);
        }
        self.steps -= steps;
        Ok(())
    }

    /// Pays what a server counts.
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(Stop::Budget) } else { Ok(()) }
    }
}

/// Returns true if an expression is read from variables: a server counts the steps of the way, and one for
/// all.
pub(super) fn is_read(expr: &Expr) -> bool {
    match &expr.node {
        Node::Name(_) | Node::Select { .. } | Node::OptSelect { .. } => true,
        Node::Call { target: None, function, .. } => matches!(function.as_str(), "_[_]" | "_[?_]"),
        _ => false,
    }
}

/// Decides whether one more is counted where a part of it is read: not where the way goes on, or is chosen.
pub(super) fn begins(operand: &Expr) -> u64 {
    u64::from(!is_read(operand) && !matches!(operand.node, Node::Cond { .. }))
}

/// Returns true if an expression is written out: it is made once, and costs nothing.
pub(super) fn is_constant(expr: &Expr) -> bool {
    match &expr.node {
        Node::Null
        | Node::Bool(_)
        | Node::Int(_)
        | Node::Uint(_)
        | Node::Double(_)
        | Node::Text(_)
        | Node::Bytes(_) => true,
        Node::List(items) => items.iter().all(|(item, optional)| !optional && is_constant(item)),
        Node::Map(entries) => {
            entries.iter().all(|(key, value, optional)| !optional && is_constant(key) && is_constant(value))
        }
        Node::Call { target: None, function, args } => {
            CONVERSIONS.contains(&function.as_str()) && args.len() == 1 && args.iter().all(is_constant)
        }
        _ => false,
    }
}

/// Returns true if `in` looks into a list that is written out, which costs nothing; `Some(true)` where the
/// list is empty.
pub(super) fn looked_up(function: &str, args: &[Expr]) -> Option<bool> {
    let ("@in", [_, Expr { node: Node::List(items), .. }]) = (function, args) else { return None };
    let plain = |item: &Expr| {
        matches!(item.node, Node::Bool(_) | Node::Int(_) | Node::Uint(_) | Node::Double(_) | Node::Text(_))
    };
    items.iter().all(|(item, optional)| !optional && plain(item)).then_some(items.is_empty())
}

/// The size of a value, as costs count it.
fn size(value: &Val) -> u64 {
    match value {
        Val::Text(text) => text.chars().count() as u64,
        Val::Bytes(bytes) => bytes.len() as u64,
        Val::List(items, _) => items.len() as u64,
        Val::Map(map) => map.len() as u64,
        Val::Optional(Some(inner)) => size(inner),
        Val::Unknown(json) => match &**json {
            serde_json::Value::Array(items) => items.len() as u64,
            serde_json::Value::Object(map) => map.len() as u64,
            serde_json::Value::String(text) => text.chars().count() as u64,
            _ => 1,
        },
        Val::Library("net.CIDR", cidr) => prefix(cidr),
        Val::Library("net.IP", address) => {
            if shown(address).contains(':') {
                16
            } else {
                4
            }
        }
        _ => 1,
    }
}

fn shown(value: &Value) -> String {
    format!("{value:?}").to_lowercase()
}

/// The bytes of a network's prefix.
fn prefix(cidr: &Value) -> u64 {
    let text = shown(cidr);
    let digits = text.rsplit('/').next().unwrap_or_default().chars().take_while(char::is_ascii_digit);
    digits.collect::<String>().parse::<u64>().unwrap_or(0).div_ceil(8)
}

fn read(count: u64) -> u64 {
    (count as f64 * TEXT).ceil() as u64
}

fn read_twice(count: u64) -> u64 {
    (count as f64 * 2.0 * TEXT).ceil() as u64
}

/// The cost of a regular expression of this length on a text.
fn matched(text: u64, pattern: u64) -> u64 {
    let text = ((1.0 + text as f64) * TEXT).ceil() as u64;
    text.saturating_mul((pattern as f64 * PATTERN).ceil() as u64)
}

/// Going through all of a value.
fn traversed(value: &Val) -> u64 {
    match value {
        Val::Text(text) => (text.len() as f64 * TEXT) as u64,
        Val::Bytes(bytes) => (bytes.len() as f64 * TEXT) as u64,
        Val::List(items, _) => items.iter().map(traversed).sum(),
        Val::Map(map) => {
            map.iter().map(|(key, value)| traversed(&key.clone().into()) + traversed(value)).sum()
        }
        _ => 1,
    }
}

/// Comparing all items of a list with each other, and making another one.
pub(super) fn compared(items: &[Val]) -> u64 {
    let texts = matches!(items.first(), Some(Val::Text(_) | Val::Bytes(_)));
    let factor = if texts { 2.0 + TEXT } else { 2.0 };
    let count = items.len() as u64;
    allocated(factor, count.saturating_mul(count))
}

fn allocated(factor: f64, count: u64) -> u64 {
    (count as f64 * factor) as u64 + 1 + LIST
}

/// The length of the expression that a format stands for, or an upper bound of it.
fn format_length(format: &Val) -> u64 {
    const LENGTHS: [(&str, u64); 11] = [
        ("subdomain", 60),
        ("qualified", 60),
        ("labelvalue", 40),
        ("label_value", 40),
        ("label", 30),
        ("uri", 1103),
        ("uuid", 70),
        ("byte", 84),
        ("datetime", 71),
        ("date_time", 71),
        ("date", 71),
    ];
    let Val::Library(_, format) = format else { return 0 };
    let text = shown(format);
    let text = text.rsplit(['(', ' ']).next().unwrap_or_default();
    LENGTHS.iter().find(|(part, _)| text.contains(part)).map_or(0, |(_, length)| *length)
}

/// The cost of a call beside its arguments.
pub(super) fn call(function: &str, args: &[Val], result: Option<&Val>) -> u64 {
    let of = |index: usize| args.get(index).map_or(1, size);
    let is_text = |index: usize| matches!(args.get(index), Some(Val::Text(_)));
    match function {
        "_==_" | "_!=_" => match (function, args.first()) {
            ("_==_", Some(Val::Library(..) | Val::Check(_))) => 1,
            _ => read(of(0).min(of(1))),
        },
        "_<_" | "_<=_" | "_>_" | "_>=_" if matches!(args.first(), Some(Val::Text(_) | Val::Bytes(_))) => {
            read(of(0).min(of(1)))
        }
        "_+_" if matches!(args.first(), Some(Val::Text(_) | Val::Bytes(_))) => read(of(0) + of(1)),
        "@in" if matches!(args.get(1), Some(Val::List(..))) => of(1),
        "startsWith" | "endsWith" | "strings.quote" | "format" => read(of(0)),
        "bytes" if is_text(0) => read(of(0)),
        "string" if matches!(args.first(), Some(Val::Bytes(_))) => read(of(0)),
        "matches" | "find" | "findAll" => matched(of(0), of(1)),
        "contains" => read(of(0)).saturating_mul(read(of(1))),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => args.first().map_or(0, traversed),
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => read(of(0)),
        "ip" if is_text(0) => read(of(0)),
        "replace" | "split" | "ip.isCanonical" => read_twice(of(0)),
        "join" => read_twice(result.map_or(0, size)),
        "containsIP" | "containsCIDR" => {
            let prefix = of(0);
            let masked = if function == "containsCIDR" { read(prefix) + 1 } else { 0 };
            read(prefix + prefix) + masked + if is_text(1) { read(of(1)) } else { 0 }
        }
        "validate" => matched(of(1), args.first().map_or(0, format_length)),
        "sets.contains" | "sets.intersects" => 1 + of(0).saturating_mul(of(1)),
        "sets.equivalent" => 1 + of(0).saturating_mul(of(1)).saturating_mul(2),
        "slice" | "reverse" | "lists.range" => allocated(1.0, result.map_or(0, size)),
        "flatten" => match args.get(1) {
            Some(Val::Int(depth)) => allocated((*depth).max(0) as f64, of(0)),
            _ => allocated(1.0, of(0)),
        },
        "sort" | "distinct" => match args.first() {
            Some(Val::List(items, _)) => compared(items),
            _ => 1,
        },
        "or" | "orValue" => 0,
        _ => 1,
    }
}

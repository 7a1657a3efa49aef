//! A rough estimate of what rules may cost at worst, for lists, maps and texts as large as the schema lets them be:
//! enough to say where `maxItems` or `maxLength` is missing. A real server estimates more finely.

use super::ast::{Expr, Macro, MacroKind, Node};
use super::rules::{RuleFault, field};
use super::shape::{Form, LARGEST, Shape, shape};
use super::{parse::parse, shape::escape};
use crate::schema::FieldError;
use serde_json::Value;

/// What one rule may cost at worst.
const EACH: u64 = 10_000_000;
const KEY: &str = "x-kubernetes-validations";
/// Deepest schema that is looked at.
const DEEPEST: usize = 64;
/// Elements one unit of cost reads of a text.
const TEN: u64 = 10;

/// The rules of a schema at `path` that are likely to be refused for their cost.
pub fn expensive(path: &str, schema: &Value) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    walk(path, schema, 1, 0, &mut faults);
    faults
}

fn walk(path: &str, schema: &Value, times: u64, depth: usize, faults: &mut Vec<RuleFault>) {
    if depth > DEEPEST {
        return;
    }
    let rules = schema.get(KEY).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if !rules.is_empty() {
        let this = shape(schema, "self", depth == 0, 0);
        for (index, rule) in rules.iter().enumerate() {
            let Ok(expr) = parse(rule["rule"].as_str().unwrap_or_default()) else { continue };
            let cost = estimate(&expr, &this).saturating_mul(times);
            if cost > EACH {
                let factor = cost as f64 / EACH as f64;
                let factor =
                    if factor > 100.0 { "more than 100x".to_owned() } else { format!("{factor:.1}x") };
                let detail = format!(
                    "estimated rule cost exceeds budget by factor of {factor} (try simplifying the rule, or adding \
                     maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
                );
                let at = field(path, &format!("{KEY}[{index}].rule"));
                faults.push(RuleFault { error: FieldError::forbidden(at, &detail), hint: None });
            }
        }
    }
    for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        walk(&field(path, &format!("properties[{name}]")), part, times, depth + 1, faults);
    }
    for (key, limit) in [("items", "maxItems"), ("additionalProperties", "maxProperties")] {
        let Some(part) = schema.get(key).filter(|part| part.is_object()) else { continue };
        let inside = shape(part, "self", false, 0);
        let most = schema.get(limit).and_then(Value::as_u64).unwrap_or(LARGEST / (inside.least_size + 1));
        walk(&field(path, key), part, times.saturating_mul(most), depth + 1, faults);
    }
}

/// What an expression may cost.
pub(super) fn estimate(expr: &Expr, this: &Shape) -> u64 {
    let mut scope: Vec<(&str, Sized<'_>)> = vec![("self", Sized::of(this)), ("oldSelf", Sized::of(this))];
    cost(expr, &mut scope).0
}

/// A value whose size is known at worst.
#[derive(Clone, Copy, Debug)]
struct Sized<'a> {
    shape: Option<&'a Shape>,
    most: u64,
}

impl<'a> Sized<'a> {
    fn of(shape: &'a Shape) -> Sized<'a> {
        Sized { shape: Some(shape), most: shape.most }
    }

    const fn plain(most: u64) -> Sized<'a> {
        Sized { shape: None, most }
    }

    fn field(self, name: &str) -> Sized<'a> {
        match self.shape.map(|shape| &shape.form) {
            Some(Form::Object(fields)) => {
                let found = fields.iter().find(|(field, _)| escape(field).as_deref() == Some(name));
                found.map_or(Sized::plain(1), |(_, shape)| Sized::of(shape))
            }
            Some(Form::Map(values)) => Sized::of(values),
            _ => Sized::plain(self.most.max(1)),
        }
    }

    fn item(self) -> Sized<'a> {
        match self.shape.map(|shape| &shape.form) {
            Some(Form::List(item, _)) => Sized::of(item),
            Some(Form::Map(_)) => Sized::plain(LARGEST),
            _ => Sized::plain(1),
        }
    }
}

fn sum(parts: &[(u64, Sized<'_>)]) -> u64 {
    parts.iter().fold(0, |total, (cost, _)| total.saturating_add(*cost))
}

fn cost<'a>(expr: &'a Expr, scope: &mut Vec<(&'a str, Sized<'a>)>) -> (u64, Sized<'a>) {
    match &expr.node {
        Node::Null | Node::Bool(_) | Node::Int(_) | Node::Uint(_) | Node::Double(_) => (0, Sized::plain(1)),
        Node::Message { fields, .. } => {
            let parts: Vec<_> = fields.iter().map(|field| cost(&field.value, scope)).collect();
            (sum(&parts).saturating_add(40), Sized::plain(1))
        }
        Node::Text(text) => (0, Sized::plain(text.len() as u64)),
        Node::Bytes(bytes) => (0, Sized::plain(bytes.len() as u64)),
        Node::Name(name) => {
            let known = scope.iter().rev().find(|(known, _)| known == name);
            (1, known.map_or(Sized::plain(1), |(_, sized)| *sized))
        }
        Node::Select { operand, field } | Node::OptSelect { operand, field } => {
            let (spent, sized) = cost(operand, scope);
            (spent.saturating_add(1), sized.field(field))
        }
        Node::Has { operand, .. } => (cost(operand, scope).0, Sized::plain(1)),
        Node::Logic { terms, .. } => {
            let parts: Vec<_> = terms.iter().map(|term| cost(term, scope)).collect();
            (sum(&parts), Sized::plain(1))
        }
        Node::Cond { test, yes, no } => {
            let (test, yes, no) = (cost(test, scope), cost(yes, scope), cost(no, scope));
            let sized = if yes.1.most >= no.1.most { yes.1 } else { no.1 };
            (test.0.saturating_add(yes.0.max(no.0)), sized)
        }
        Node::List(items) => {
            let parts: Vec<_> = items.iter().map(|(item, _)| cost(item, scope)).collect();
            (sum(&parts).saturating_add(10), Sized::plain(items.len() as u64))
        }
        Node::Map(entries) => {
            let parts: Vec<_> =
                entries.iter().flat_map(|(key, value, _)| [cost(key, scope), cost(value, scope)]).collect();
            (sum(&parts).saturating_add(30), Sized::plain(entries.len() as u64))
        }
        Node::Call { target, function, args } => {
            let parts: Vec<_> =
                target.iter().map(|target| &**target).chain(args).map(|arg| cost(arg, scope)).collect();
            let (own, sized) = call(function, &parts);
            (sum(&parts).saturating_add(own), sized)
        }
        Node::Macro(inner) => fold(inner, scope),
    }
}

fn call<'a>(function: &str, parts: &[(u64, Sized<'a>)]) -> (u64, Sized<'a>) {
    let size = |index: usize| parts.get(index).map_or(1, |(_, sized)| sized.most);
    let first = parts.first().map_or(Sized::plain(1), |(_, sized)| *sized);
    let reading = |count: u64| count / TEN + 1;
    match function {
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => (reading(size(0).min(size(1))), Sized::plain(1)),
        "_+_" => {
            let both = size(0).saturating_add(size(1));
            (if both > 2 { reading(both) } else { 1 }, Sized::plain(both))
        }
        "@in" => (size(1).max(1), Sized::plain(1)),
        "_[_]" | "_[?_]" => (
            1,
            if let Some(Form::Map(values)) = first.shape.map(|s| &s.form) {
                Sized::of(values)
            } else {
                first.item()
            },
        ),
        "matches" | "find" | "findAll" => {
            (reading(size(0)).saturating_mul(size(1) / 4 + 1), Sized::plain(size(0)))
        }
        "contains" | "indexOf" | "lastIndexOf" => {
            (reading(size(0)).saturating_mul(reading(size(1))), Sized::plain(1))
        }
        "startsWith" | "endsWith" => (reading(size(1)), Sized::plain(1)),
        "sets.contains" | "sets.equivalent" | "sets.intersects" => {
            (size(0).saturating_mul(size(1)), Sized::plain(1))
        }
        "isSorted" | "sum" | "min" | "max" | "sort" | "distinct" | "flatten" | "slice" | "reverse" => {
            (size(0), first)
        }
        "replace" | "split" | "lowerAscii" | "upperAscii" | "trim" | "substring" | "join" | "format"
        | "string" | "bytes" | "quantity" | "isQuantity" | "url" | "isURL" | "ip" | "isIP" | "cidr"
        | "isCIDR" => (reading(size(0)), Sized::plain(size(0))),
        _ => (1, Sized::plain(1)),
    }
}

fn fold<'a>(inner: &'a Macro, scope: &mut Vec<(&'a str, Sized<'a>)>) -> (u64, Sized<'a>) {
    let (before, range) = cost(&inner.range, scope);
    let depth = scope.len();
    let (first, second) = match range.shape.map(|shape| &shape.form) {
        Some(Form::Map(values)) => (Sized::plain(LARGEST / 2), Sized::of(values)),
        _ if inner.second.is_some() => (Sized::plain(1), range.item()),
        _ => (range.item(), Sized::plain(1)),
    };
    scope.push((&inner.first, first));
    if let Some(name) = &inner.second {
        scope.push((name, second));
    }
    let filter = inner.filter.as_ref().map_or(0, |filter| cost(filter, scope).0);
    let (body, made) = cost(&inner.body, scope);
    scope.truncate(depth);
    // What a step costs beside its body: making lists is dear.
    let step = match inner.kind {
        MacroKind::All | MacroKind::Exists => 2,
        MacroKind::ExistsOne => 3,
        _ => 13,
    };
    let each = filter.saturating_add(body).saturating_add(step);
    let times = if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) { 1 } else { range.most };
    let result = match inner.kind {
        MacroKind::Filter | MacroKind::SortBy => range,
        MacroKind::OptMap | MacroKind::OptFlatMap => made,
        MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => Sized::plain(1),
        _ => Sized::plain(range.most),
    };
    (before.saturating_add(times.saturating_mul(each)).saturating_add(2), result)
}

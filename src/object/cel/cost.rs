//! The cost of the rules of a schema at worst, and a real server's words about rules that may cost too much:
//! each by itself, times how often its part of the schema may be there, and all of a schema together.

use super::estimate::estimate;
use super::kind::Kind;
use super::program::checked;
use super::rules::{RuleFault, field};
use super::shape::{LARGEST, Shape, shape};
use opdev_object::schema::FieldError;
use serde_json::Value;

/// The largest worst-case cost of one rule.
const EACH: u64 = 10_000_000;
/// The largest worst-case cost of all rules of a schema.
const ALL: u64 = 100_000_000;
/// How many of the most expensive rules are named.
const NAMED: usize = 4;
const KEY: &str = "x-kubernetes-validations";
/// Deepest schema that is looked at.
const DEEPEST: usize = 64;

/// The words about the rules of one schema.
#[derive(Default)]
struct Costs {
    faults: Vec<RuleFault>,
    total: u64,
    dearest: Vec<(u64, String)>,
}

/// The rules of a schema at `path` that a server refuses for what they may cost. `known` is whether it has
/// the schema already: it then looks at all rules together only.
pub fn expensive(path: &str, schema: &Value, known: bool) -> Vec<RuleFault> {
    let mut costs = Costs::default();
    costs.walk(path, schema, Some(1), known, 0);
    if costs.total > ALL {
        for (_, place) in std::mem::take(&mut costs.dearest) {
            let text =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            costs.refuse(place, text);
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        costs.refuse(path.to_owned(), &exceeds(what, costs.total, ALL));
    }
    costs.faults
}

/// By how much a limit is exceeded.
fn exceeds(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and \
         maxLength where arrays, maps, and strings are declared)"
    )
}

/// How many times the parts of a schema may be there for each time the whole is; `None` where nothing says.
fn most(schema: &Value) -> Option<u64> {
    let limit = |key: &str| schema.get(key)?.as_f64().map(|count| if count < 0.0 { 0 } else { count as u64 });
    match schema.get("type").and_then(Value::as_str) {
        Some("object")
            if schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) =>
        {
            limit("maxProperties")
        }
        Some("array") => limit("maxItems"),
        _ => Some(1),
    }
}

impl Costs {
    fn refuse(&mut self, place: String, text: &str) {
        self.faults.push(RuleFault { error: FieldError::forbidden(place, text), hint: None });
    }

    /// `times` is how often the schema may be there, where that is limited.
    fn walk(&mut self, path: &str, schema: &Value, times: Option<u64>, known: bool, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let rules = schema.get(KEY).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !rules.is_empty() {
            let this = shape(schema, "self", depth == 0, 0);
            // Where nothing limits it, as often as the smallest of it fits into a request.
            let times = times.unwrap_or(LARGEST / (this.least_size + 1));
            for (index, rule) in rules.iter().enumerate() {
                self.rule(&field(path, &format!("{KEY}[{index}]")), rule, &this, times, known);
            }
        }
        let inside = times.zip(most(schema)).map(|(times, most)| times.saturating_mul(most));
        for (name, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            self.walk(&field(path, &format!("properties[{name}]")), part, inside, known, depth + 1);
        }
        for key in ["items", "additionalProperties"] {
            if let Some(part) = schema.get(key).filter(|part| part.is_object()) {
                self.walk(&field(path, key), part, inside, known, depth + 1);
            }
        }
    }

    fn rule(&mut self, place: &str, rule: &Value, this: &Shape, times: u64, known: bool) {
        let optional = rule["optionalOldSelf"] == true;
        let cost = |key: &str| worst(rule[key].as_str().unwrap_or_default(), this, optional);
        let Some(own) = cost("rule") else { return };
        self.count(place, "rule", "estimated rule cost", own.saturating_mul(times), known);
        // How often a message is made is not counted.
        if let Some(words) = cost("messageExpression") {
            self.count(place, "messageExpression", "estimated messageExpression cost", words, known);
        }
    }

    fn count(&mut self, place: &str, key: &str, what: &str, cost: u64, known: bool) {
        let place = field(place, key);
        if cost > EACH && !known {
            self.refuse(place.clone(), &exceeds(what, cost, EACH));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= ALL / 100 {
            self.dearest.push((cost, place));
            self.dearest.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.dearest.truncate(NAMED);
        }
    }
}

/// The worst-case cost of an expression; `None` where it is none.
pub(super) fn worst(text: &str, this: &Shape, optional_old: bool) -> Option<u64> {
    let kind = this.kind.clone().filter(|_| !text.trim().is_empty())?;
    let old = if optional_old { Kind::optional(kind.clone()) } else { kind.clone() };
    let scope = vec![("self".to_owned(), kind), ("oldSelf".to_owned(), old)];
    let (expr, _) = checked(text, scope.clone(), false).ok()?;
    Some(estimate(&expr, this, scope))
}

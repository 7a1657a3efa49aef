//! The rules of a whole schema: compiled once, with the errors a server gives where one does not compile, and
//! evaluated against an object and the one it replaces.

use super::kind::Kind;
use super::library::Library;
use super::meter::{ALL_STEPS, Meter};
use super::program::{Program, Uncompiled, compile};
use super::shape::{Shape, shape, value};
use super::value::{Evaluated, Stop, Val};
use opdev_object::go::quote::quote;
use opdev_object::schema::{FieldError, Reason, SchemaRef, ValueRules, unchanged};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest cost of all rules of one object together.
const TOTAL: u64 = 10_000_000;
/// Deepest schema whose rules are read.
const DEEPEST: usize = 64;
const KEY: &str = "x-kubernetes-validations";

/// The rules of a schema.
#[derive(Debug)]
pub struct Rules {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    rules: Vec<Rule>,
    shape: Shape,
    /// The JSON type, as errors show it.
    type_name: String,
    keys: Option<Vec<String>>,
    properties: BTreeMap<String, Node>,
    additional: Option<Box<Node>>,
    items: Option<Box<Node>>,
}

#[derive(Debug)]
struct Rule {
    text: String,
    message: String,
    program: Program,
    /// The messageExpression and its text.
    words: Option<(Program, String)>,
    reason: Reason,
    field_path: String,
    optional_old: bool,
}

/// A rule that is refused, or will be too expensive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFault {
    /// The server's error.
    pub error: FieldError,
    /// The suggestion.
    pub hint: Option<String>,
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A field below a path.
pub(super) fn field(path: &str, name: &str) -> String {
    place(path, name)
}

fn place(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The state of compiling.
struct Compiling {
    faults: Vec<RuleFault>,
}

impl Rules {
    /// Compiles the rules of a CRD's schema, which stands at `path`; `None` where there are none.
    ///
    /// # Errors
    /// Every rule that does not compile, or that asks for an old value where there can be none.
    pub fn compile(path: &str, schema: &Value) -> Result<Option<Rules>, Vec<RuleFault>> {
        let mut compiling = Compiling { faults: Vec::new() };
        let root = compiling.node(schema, path, None, 0);
        if !compiling.faults.is_empty() {
            return Err(compiling.faults);
        }
        Ok(root.map(|root| Rules { root }))
    }
}

impl ValueRules for Rules {
    /// The errors of `value`, which may replace `old`, by the rules. `schema` is the schema they were
    /// compiled with.
    fn validate(&self, value: &Value, old: Option<&Value>, schema: &SchemaRef) -> Vec<FieldError> {
        let mut run =
            Run { budget: TOTAL, steps: ALL_STEPS, library: Library::default(), errors: Vec::new() };
        let same = old.is_some_and(|old| unchanged(value, old, schema));
        let ratchet = Ratchet { old, schema: Some(schema), same };
        let _ = run.node(&self.root, "", value, old, &ratchet);
        run.errors
    }
}

impl Compiling {
    fn fault(&mut self, error: FieldError, hint: Option<String>) {
        self.faults.push(RuleFault { error, hint });
    }

    /// `uncorrelated` is the nearest place above whose items cannot be told to be the old ones.
    fn node(&mut self, schema: &Value, path: &str, uncorrelated: Option<&str>, depth: usize) -> Option<Node> {
        if depth > DEEPEST {
            return None;
        }
        let mut node = Node { type_name: text(schema, "type").to_owned(), ..Node::default() };
        if text(schema, "x-kubernetes-list-type") == "map" {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
            node.keys = Some(keys.filter_map(Value::as_str).map(str::to_owned).collect());
        }
        let rules = schema.get(KEY).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if !rules.is_empty() {
            node.shape = shape(schema, "selfType", depth == 0, 0);
            for (index, rule) in rules.iter().enumerate() {
                let at = format!("{}[{index}]", place(path, KEY));
                self.rule(rule, schema, &mut node, &at, uncorrelated);
            }
        }
        for (field, part) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let at = format!("{}[{field}]", place(path, "properties"));
            let inner = self.node(part, &at, uncorrelated, depth + 1);
            node.properties.extend(inner.map(|inner| (field.clone(), inner)));
        }
        if let Some(part) = schema.get("additionalProperties").filter(|part| part.is_object()) {
            let at = place(path, "additionalProperties");
            node.additional = self.node(part, &at, uncorrelated, depth + 1).map(Box::new);
        }
        if let Some(part) = schema.get("items").filter(|part| part.is_object()) {
            let below = if node.keys.is_some() { uncorrelated } else { uncorrelated.or(Some(path)) };
            node.items = self.node(part, &place(path, "items"), below, depth + 1).map(Box::new);
        }
        let empty = node.rules.is_empty()
            && node.properties.is_empty()
            && node.additional.is_none()
            && node.items.is_none();
        (!empty).then_some(node)
    }

    fn rule(&mut self, rule: &Value, schema: &Value, node: &mut Node, at: &str, uncorrelated: Option<&str>) {
        let source = text(rule, "rule");
        if self.words(rule, schema, at) || source.trim().is_empty() {
            return;
        }
        let Some(kind) = node.shape.kind.clone() else {
            let detail = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations";
            let path = at.rsplit_once('[').map_or(at, |(path, _)| path);
            return self.fault(FieldError::internal(path, detail), None);
        };
        let optional_old = rule["optionalOldSelf"] == true;
        let program = match compile(source, &kind, optional_old, &Kind::Bool) {
            Ok(program) => program,
            Err(Uncompiled { message, hint }) => {
                let error = FieldError::invalid_shown(place(at, "rule"), &internal(rule), &message);
                self.fault(error, hint);
                return self.unused_optional(rule, at);
            }
        };
        let mut words = None;
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() {
            match compile(expression, &kind, optional_old, &Kind::Text) {
                Ok(program) => words = Some((program, expression.to_owned())),
                Err(Uncompiled { message, hint }) => {
                    let error =
                        FieldError::invalid_shown(place(at, "messageExpression"), &internal(rule), &message);
                    self.fault(error, hint);
                }
            }
        }
        if program.uses_old {
            if let Some(around) = uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {around}"
                );
                let error = FieldError::invalid(place(at, "rule"), &Value::from(source), &detail);
                self.fault(error, None);
            }
        } else {
            self.unused_optional(rule, at);
        }
        let reason = match text(rule, "reason") {
            "FieldValueForbidden" => Reason::Forbidden,
            "FieldValueRequired" => Reason::Required,
            "FieldValueDuplicate" => Reason::Duplicate,
            _ => Reason::Invalid,
        };
        node.rules.push(Rule {
            text: source.trim().to_owned(),
            message: text(rule, "message").trim().to_owned(),
            program,
            words,
            reason,
            field_path: field_path(schema, text(rule, "fieldPath")).unwrap_or_default(),
            optional_old,
        });
    }

    fn unused_optional(&mut self, rule: &Value, at: &str) {
        if let Some(given) = rule.get("optionalOldSelf").filter(|given| !given.is_null()) {
            let detail = "may not be set if oldSelf is not used in rule";
            self.fault(FieldError::invalid(place(at, "optionalOldSelf"), given, detail), None);
        }
    }

    /// Reports errors of a rule's text before it is compiled. Returns true if there are any.
    fn words(&mut self, rule: &Value, schema: &Value, at: &str) -> bool {
        let before = self.faults.len();
        let lines = |text: &str| text.contains(['\n', '\r']);
        let (source, message) = (text(rule, "rule"), text(rule, "message"));
        let value = |key: &str| rule.get(key).cloned().unwrap_or_default();
        if source.trim().is_empty() {
            self.fault(FieldError::required(place(at, "rule"), "rule is not specified"), None);
        } else if !message.is_empty() && message.trim().is_empty() {
            let detail = "must be non-empty if specified";
            self.fault(FieldError::invalid(place(at, "message"), &value("message"), detail), None);
        } else if lines(message.trim()) {
            let detail = "must not contain line breaks";
            self.fault(FieldError::invalid(place(at, "message"), &value("message"), detail), None);
        } else if lines(source.trim()) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.fault(FieldError::required(place(at, "message"), detail), None);
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.fault(FieldError::required(place(at, "messageExpression"), detail), None);
        }
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        if let Some(reason) =
            rule.get("reason").and_then(Value::as_str).filter(|reason| !REASONS.contains(reason))
        {
            let error = FieldError::not_supported(place(at, "reason"), &Value::from(reason), &REASONS);
            self.fault(error, None);
        }
        let wanted = text(rule, "fieldPath");
        if !wanted.is_empty() {
            let mut wrong = |detail| {
                self.fault(FieldError::invalid(place(at, "fieldPath"), &value("fieldPath"), detail), None);
            };
            if wanted.trim().is_empty() {
                wrong("must be non-empty if specified");
            }
            if lines(wanted) {
                wrong("must not contain line breaks");
            }
            if field_path(schema, wanted).is_none() {
                wrong("must be a valid path");
            }
        }
        self.faults.len() > before
    }
}

/// A rule as a server shows it in errors: Go's JSON of its own type.
fn internal(rule: &Value) -> String {
    let fields = [
        ("Rule", "rule"),
        ("Message", "message"),
        ("MessageExpression", "messageExpression"),
        ("Reason", "reason"),
        ("FieldPath", "fieldPath"),
        ("OptionalOldSelf", "optionalOldSelf"),
    ];
    let shown = fields.map(|(shown, key)| {
        let absent = if matches!(key, "reason" | "optionalOldSelf") { Value::Null } else { Value::from("") };
        let value = rule.get(key).unwrap_or(&absent).to_string();
        let value = value.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
        format!("\"{shown}\":{value}")
    });
    format!("{{{}}}", shown.join(","))
}

/// `.a.b['c']` as errors write it; `None` where it names nothing in the schema.
fn field_path(schema: &Value, path: &str) -> Option<String> {
    let mut at = schema;
    let mut out = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (name, tail) = if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']")?;
            (after[..end].replace("\\'", "'").replace("\\\\", "\\"), &after[end + 2..])
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            (after[..end].to_owned(), &after[end..])
        };
        if let Some(properties) =
            at.get("properties").and_then(Value::as_object).filter(|map| !map.is_empty())
        {
            at = properties.get(&name)?;
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
        } else {
            at = at.get("additionalProperties").filter(|more| more.is_object())?;
            out.push_str(&format!("[{name}]"));
        }
        rest = tail;
    }
    Some(out)
}

/// The comparison of a value with the one that stood here before.
struct Ratchet<'a> {
    old: Option<&'a Value>,
    schema: Option<&'a SchemaRef>,
    same: bool,
}

impl<'a> Ratchet<'a> {
    /// The ratchet of a part of the value; where nothing is known of that part, the ratchet of the whole
    /// counts.
    fn inside(&self, value: &Value, old: Option<&'a Value>, schema: Option<&'a SchemaRef>) -> Ratchet<'a> {
        match (old, schema, self.old) {
            (Some(old), Some(schema), Some(_)) => {
                Ratchet { old: Some(old), schema: Some(schema), same: unchanged(value, old, schema) }
            }
            _ => Ratchet { old: None, schema, same: self.same },
        }
    }
}

struct Run {
    budget: u64,
    steps: u64,
    library: Library,
    errors: Vec<FieldError>,
}

/// Nothing more is evaluated.
struct Spent;

impl Run {
    fn node(
        &mut self,
        node: &Node,
        path: &str,
        value: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
    ) -> Result<(), Spent> {
        if value.is_null() {
            return Ok(());
        }
        self.rules(node, path, value, old.filter(|old| !old.is_null()), ratchet)?;
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let (inner, at) = match (node.properties.get(key), &node.additional) {
                        (Some(inner), _) => (inner, place(path, key)),
                        (None, Some(inner)) => (&**inner, format!("{path}[{key}]")),
                        (None, None) => continue,
                    };
                    let before = old.and_then(|old| old.get(key));
                    let type_field = path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind");
                    let known = ratchet.old.filter(|_| !type_field).and_then(|old| old.get(key));
                    let schema = ratchet.schema.and_then(|schema| schema.field(key));
                    self.node(inner, &at, value, before, &ratchet.inside(value, known, schema))?;
                }
            }
            Value::Array(items) => {
                let Some(inner) = &node.items else { return Ok(()) };
                for (index, item) in items.iter().enumerate() {
                    let find = |old: Option<&'_ Value>| -> Option<usize> {
                        let keys = node.keys.as_ref()?;
                        let same = |other: &Value| keys.iter().all(|key| other.get(key) == item.get(key));
                        old?.as_array()?.iter().position(same)
                    };
                    let before = find(old).and_then(|at| old?.get(at));
                    let known = find(ratchet.old).and_then(|at| ratchet.old?.get(at));
                    let schema = ratchet.schema.and_then(|schema| schema.items.as_ref());
                    self.node(
                        inner,
                        &format!("{path}[{index}]"),
                        item,
                        before,
                        &ratchet.inside(item, known, schema),
                    )?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
        Ok(())
    }

    fn rules(
        &mut self,
        node: &Node,
        path: &str,
        json: &Value,
        old: Option<&Value>,
        ratchet: &Ratchet<'_>,
    ) -> Result<(), Spent> {
        if node.rules.is_empty() {
            return Ok(());
        }
        let path = if path.is_empty() { "<nil>" } else { path };
        let this = value(json, &node.shape);
        let old_uses = node.rules.iter().any(|rule| rule.program.uses_old);
        let old = old.filter(|_| old_uses).map(|old| value(old, &node.shape));
        for rule in &node.rules {
            if rule.program.uses_old && old.is_none() && !rule.optional_old {
                continue;
            }
            let plain = match old.clone().transpose() {
                Ok(plain) => plain,
                Err(stop) => {
                    self.stopped(node, rule, path, &stop)?;
                    continue;
                }
            };
            let given = if rule.optional_old {
                Some(Val::Optional(plain.clone().map(Arc::new)))
            } else {
                plain.clone()
            };
            let this = match &this {
                Ok(this) => this,
                Err(stop) => {
                    self.stopped(node, rule, path, stop)?;
                    continue;
                }
            };
            match self.run(&rule.program, this, given.as_ref()) {
                Ok(Val::Bool(true)) => {}
                Ok(_) => {
                    let (detail, over) = self.detail(rule, this, plain.as_ref());
                    if over {
                        let error = FieldError::invalid(path, &Value::from(node.type_name.as_str()), &detail);
                        self.errors.push(error);
                        return Err(Spent);
                    }
                    if !rule.program.uses_old && ratchet.same {
                        continue;
                    }
                    self.errors.push(broken(node, rule, path, json, &detail));
                }
                Err(stop) => self.stopped(node, rule, path, &stop)?,
            }
        }
        Ok(())
    }

    fn run(&mut self, program: &Program, this: &Val, old: Option<&Val>) -> Evaluated {
        let mut meter = Meter::new(self.steps);
        let before = meter.steps;
        let result = program.run(this, old, &mut meter, &self.library);
        self.steps -= before - meter.steps;
        match self.budget.checked_sub(meter.cost) {
            Some(left) => {
                self.budget = left;
                result
            }
            None => {
                self.budget = 0;
                Err(Stop::Budget)
            }
        }
    }

    /// Says why a rule could not be evaluated; `Err` where none can be any more.
    fn stopped(&mut self, node: &Node, rule: &Rule, path: &str, stop: &Stop) -> Result<(), Spent> {
        let words = if rule.message.is_empty() { &rule.text } else { &rule.message };
        let (detail, over) = match stop {
            Stop::Failed(text) if text.starts_with("no such overload") => (
                format!(
                    "'{text}': call arguments did not match a supported operator, function or macro signature for rule: {words}"
                ),
                false,
            ),
            Stop::Failed(text) => (format!("{text} evaluating rule: {words}"), false),
            Stop::Budget if self.budget == 0 => (
                "validation failed due to running out of cost budget, no further validation rules will be run"
                    .to_owned(),
                true,
            ),
            Stop::Budget => (
                format!(
                    "'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {words}"
                ),
                true,
            ),
        };
        self.errors.push(FieldError::invalid(path, &Value::from(node.type_name.as_str()), &detail));
        if over { Err(Spent) } else { Ok(()) }
    }

    /// The message of a rule that is not met; true if making it has cost too much.
    fn detail(&mut self, rule: &Rule, this: &Val, old: Option<&Val>) -> (String, bool) {
        const LONGEST: usize = 5 * 1024;
        match rule.words.as_ref().map(|(words, _)| self.run(words, this, old)) {
            Some(Ok(Val::Text(text))) => {
                let text = text.trim();
                if !text.is_empty() && !text.contains('\n') && text.len() <= LONGEST {
                    return (text.to_owned(), false);
                }
            }
            Some(Err(Stop::Budget)) if self.budget == 0 => {
                let text = "messageExpression evaluation failed due to running out of cost budget, no further \
                            validation rules will be run";
                return (text.to_owned(), true);
            }
            Some(Err(Stop::Budget)) => {
                let text = "no further validation rules will be run due to call cost exceeds limit for \
                            messageExpression: ";
                let words = rule.words.as_ref().map_or("", |(_, text)| text);
                return (format!("{text}{}", quote(words)), true);
            }
            _ => {}
        }
        let said = if rule.message.is_empty() {
            format!("failed rule: {}", rule.text)
        } else {
            rule.message.clone()
        };
        (said, false)
    }
}

fn broken(node: &Node, rule: &Rule, path: &str, json: &Value, detail: &str) -> FieldError {
    let at = match (path, rule.field_path.as_str()) {
        (path, "") => path.to_owned(),
        ("<nil>", field) => field.to_owned(),
        (path, field) if field.starts_with('[') => format!("{path}{field}"),
        (path, field) => format!("{path}.{field}"),
    };
    let whole = matches!(node.type_name.as_str(), "object" | "array");
    match rule.reason {
        Reason::Forbidden => FieldError::forbidden(at, detail),
        Reason::Required => FieldError::required(at, detail),
        Reason::Duplicate if whole => FieldError::duplicate_of_whole(at),
        Reason::Duplicate => FieldError::duplicate(at, json),
        _ if whole => FieldError::invalid_whole(at, detail),
        _ => FieldError::invalid(at, json, detail),
    }
}

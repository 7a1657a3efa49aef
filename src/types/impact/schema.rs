//! Two schemas compared keyword by keyword, each difference given its severity. What no rule here knows is a
//! warning with the keyword's name.

use super::finding::{Change, Finding, Severity};
use super::paths::{child, items, values};
use super::rename;
use super::words::{shape, shown};
use serde_json::Value;
use std::collections::BTreeSet;

/// Deeper than any schema the server takes.
const DEEPEST: usize = 128;

/// Every difference between two schemas of one version.
pub(super) fn compare(old: &Value, new: &Value) -> Vec<Finding> {
    let mut walk = Walk { findings: Vec::new() };
    walk.node(old, new, "", 0);
    rename::detect(&mut walk.findings, old, new);
    walk.findings
}

pub(super) struct Walk {
    findings: Vec<Finding>,
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The JSON types a schema takes; all of them where it says nothing.
fn types(schema: &Value) -> Vec<&str> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return vec!["integer", "string"];
    }
    match text(schema, "type") {
        "" => vec!["array", "boolean", "integer", "number", "object", "string"],
        "number" => vec!["integer", "number"],
        one => vec![one],
    }
}

fn is_map(schema: &Value) -> bool {
    schema.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false))
}

fn has_properties(schema: &Value) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|map| !map.is_empty())
}

impl Walk {
    fn add(&mut self, severity: Severity, kind: Change, path: &str, what: impl Into<String>) {
        self.findings.push(Finding::new(severity, kind, path, what));
    }

    /// The schemas of one place.
    fn node(&mut self, old: &Value, new: &Value, path: &str, depth: usize) {
        if old == new {
            return;
        }
        if depth > DEEPEST {
            return self.add(Severity::Warn, Change::Unknown, path, "the schema is too deep to be compared");
        }
        if !self.types(old, new, path) {
            return self.words(old, new, path);
        }
        let keys: BTreeSet<&str> = [old, new]
            .iter()
            .filter_map(|s| s.as_object())
            .flat_map(|map| map.keys().map(String::as_str))
            .collect();
        for key in keys {
            let (before, after) = (old.get(key), new.get(key));
            if before != after {
                self.keyword(key, old, new, path);
            }
        }
        self.words(old, new, path);
        self.properties(old, new, path, depth);
        match (old.get("items"), new.get("items")) {
            (Some(old), Some(new)) => self.node(old, new, &items(path), depth + 1),
            (None, None) => {}
            (None, Some(_)) => {
                self.add(Severity::Break, Change::Type, &items(path), "the items have a schema now");
            }
            (Some(_), None) => {
                self.add(Severity::Warn, Change::Relaxed, &items(path), "the items have no schema any more");
            }
        }
        self.additional(old, new, path, depth);
    }

    /// Returns true if the two can be compared further: they are of the same shape.
    fn types(&mut self, old: &Value, new: &Value, path: &str) -> bool {
        let (before, after) = (types(old), types(new));
        let (from, to) = (shape(old), shape(new));
        if before != after {
            if before.iter().all(|kind| after.contains(kind)) {
                let what = format!("takes {to} now, was {from}; clients that know only {from} may fail");
                self.add(Severity::Warn, Change::TypeWidened, path, what);
                return true;
            }
            if before.len() == 6 {
                let what = format!("was free-form and is {to} now: what does not fit is refused");
                self.add(Severity::Break, Change::Type, path, what);
                if flag(old, "x-kubernetes-preserve-unknown-fields") && after.contains(&"object") {
                    self.pruned(old, new, path);
                }
                return false;
            }
            let what = format!("was {from} and is {to} now: stored values do not fit");
            self.add(Severity::Break, Change::Type, path, what);
            return false;
        }
        let turned = (is_map(old) && has_properties(new) && !is_map(new))
            || (has_properties(old) && !is_map(old) && is_map(new));
        if turned {
            let what = format!("was {from} and is {to} now: stored values do not fit");
            self.add(Severity::Break, Change::Type, path, what);
        }
        !turned
    }

    fn pruned(&mut self, old: &Value, new: &Value, path: &str) {
        let typed = !has_properties(old) && has_properties(new);
        let what = if typed {
            "was free-form and has fields of its own now: every other field is pruned at the next write"
        } else {
            "unknown fields were kept and are pruned at the next write from now on"
        };
        self.add(Severity::Loss, Change::UnknownFieldsPruned, path, what);
    }

    fn properties(&mut self, old: &Value, new: &Value, path: &str, depth: usize) {
        let of = |schema: &'_ Value| {
            schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let (before, after) = (of(old), of(new));
        for (name, schema) in &before {
            let place = child(path, name);
            match after.get(name) {
                Some(now) => {
                    self.node(schema, now, &place, depth + 1);
                    let needed = |parent: &Value| list(parent, "required").iter().any(|n| n == name.as_str());
                    let lost = schema.get("default").is_some() && now.get("default").is_none();
                    if lost && needed(old) && needed(new) {
                        let what = "is required and has no default any more: who leaves it out is refused";
                        self.add(Severity::Break, Change::RequiredDefaultRemoved, &place, what);
                    }
                }
                None if flag(new, "x-kubernetes-preserve-unknown-fields") || is_map(new) => {
                    self.add(
                        Severity::Warn,
                        Change::Relaxed,
                        &place,
                        "has no schema any more: it is kept, not checked",
                    );
                }
                None => {
                    let what = format!(
                        "the field ({}) is gone: stored values are pruned at the next write",
                        shape(schema)
                    );
                    self.add(Severity::Loss, Change::PropertyRemoved, &place, what);
                }
            }
        }
        let required: Vec<&str> = list(new, "required").iter().filter_map(Value::as_str).collect();
        for (name, schema) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
            let place = child(path, name);
            let needed = required.contains(&name.as_str());
            // Whoever may have had the field already finds it checked now.
            let free = flag(old, "x-kubernetes-preserve-unknown-fields");
            let what = if needed { "new required field" } else { "new optional field" };
            let what = format!("{what} ({})", shape(schema));
            self.add(Severity::Info, Change::PropertyAdded, &place, what);
            if free && !flag(schema, "x-kubernetes-preserve-unknown-fields") {
                let what = format!("was not checked and is {} now: stored values may not fit", shape(schema));
                self.add(Severity::Break, Change::Type, &place, what);
            }
        }
    }

    fn additional(&mut self, old: &Value, new: &Value, path: &str, depth: usize) {
        let of = |schema: &Value| schema.get("additionalProperties").cloned();
        let place = values(path);
        match (of(old), of(new)) {
            (Some(before), Some(after)) if before.is_object() && after.is_object() => {
                self.node(&before, &after, &place, depth + 1);
            }
            (before, after) if before == after => {}
            (None, Some(_)) => {
                self.add(Severity::Warn, Change::Relaxed, &place, "any key is allowed now");
            }
            (Some(before), None) if before != Value::Bool(false) => {
                if flag(new, "x-kubernetes-preserve-unknown-fields") {
                    self.add(
                        Severity::Warn,
                        Change::Relaxed,
                        &place,
                        "values have no schema any more: they are kept, not checked",
                    );
                } else {
                    let what = "keys of the map are gone: stored values are pruned at the next write";
                    self.add(Severity::Loss, Change::PropertyRemoved, &place, what);
                }
            }
            (_, Some(after)) if after.is_object() => {
                let what = format!("values were free-form and are {} now", shape(&after));
                self.add(Severity::Break, Change::Type, &place, what);
            }
            _ => self.add(Severity::Warn, Change::Relaxed, &place, "values have no schema any more"),
        }
    }

    /// Words for people.
    fn words(&mut self, old: &Value, new: &Value, path: &str) {
        let changed: Vec<&str> = ["description", "title", "example", "externalDocs"]
            .into_iter()
            .filter(|key| old.get(key) != new.get(key))
            .collect();
        if !changed.is_empty() {
            let what = format!("{} changed", changed.join(", "));
            self.add(Severity::Info, Change::Documentation, path, what);
        }
    }

    fn keyword(&mut self, key: &str, old: &Value, new: &Value, path: &str) {
        match key {
            "type"
            | "x-kubernetes-int-or-string"
            | "properties"
            | "items"
            | "additionalProperties"
            | "description"
            | "title"
            | "example"
            | "externalDocs" => {}
            "required" => self.required(old, new, path),
            "default" => self.default(old, new, path),
            "enum" => self.enumeration(old, new, path),
            "pattern" => self.pattern(old, new, path),
            "format" => self.format(old, new, path),
            "minimum" | "minLength" | "minItems" | "minProperties" => self.bound(key, old, new, path, true),
            "maximum" | "maxLength" | "maxItems" | "maxProperties" => self.bound(key, old, new, path, false),
            "exclusiveMinimum" | "exclusiveMaximum" | "uniqueItems" => self.switch(key, new, path),
            "multipleOf" => self.multiple(old, new, path),
            "nullable" => self.nullable(new, path),
            "allOf" | "anyOf" | "oneOf" | "not" => self.composition(key, old, new, path),
            "x-kubernetes-validations" => self.rules(old, new, path),
            "x-kubernetes-list-type" => self.list_type(old, new, path),
            "x-kubernetes-list-map-keys" => self.map_keys(old, new, path),
            "x-kubernetes-map-type" => {
                let what = if text(new, key) == "atomic" {
                    "is replaced as a whole by server-side apply now, was merged field by field"
                } else {
                    "is merged field by field by server-side apply now, was replaced as a whole"
                };
                self.add(Severity::Warn, Change::Topology, path, what);
            }
            "x-kubernetes-preserve-unknown-fields" => {
                if flag(new, key) {
                    self.add(Severity::Warn, Change::Relaxed, path, "unknown fields are kept now");
                } else {
                    self.pruned(old, new, path);
                }
            }
            "x-kubernetes-embedded-resource" => self.embedded(new, path),
            other => {
                let words = match (old.get(other), new.get(other)) {
                    (None, _) => "was added",
                    (_, None) => "is gone",
                    _ => "changed",
                };
                let what = format!("{other} {words}; opdev does not know what that means for objects");
                self.add(Severity::Warn, Change::Unknown, path, what);
            }
        }
    }

    fn required(&mut self, old: &Value, new: &Value, path: &str) {
        let of = |schema: &'_ Value| -> BTreeSet<String> {
            list(schema, "required").iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let (before, after) = (of(old), of(new));
        for name in after.difference(&before) {
            let place = child(path, name);
            if new["properties"][name].get("default").is_some() {
                let what = "is required now; objects without it get the default";
                self.add(Severity::Warn, Change::Required, &place, what);
            } else if old["properties"].get(name).is_some() {
                let what = "is required now, was optional: objects without it are refused";
                self.add(Severity::Break, Change::Required, &place, what);
            } else {
                let what = "is new and required without a default: every object that is there lacks it";
                self.add(Severity::Break, Change::Required, &place, what);
            }
        }
        for name in before.difference(&after).filter(|name| new["properties"].get(name.as_str()).is_some()) {
            let what = "is optional now, was required; clients may not expect it to be missing";
            self.add(Severity::Warn, Change::Relaxed, &child(path, name), what);
        }
    }

    fn default(&mut self, old: &Value, new: &Value, path: &str) {
        match (old.get("default"), new.get("default")) {
            (None, Some(now)) => {
                let what = format!("has the default {} now", shown(now));
                self.add(Severity::Warn, Change::Default, path, what);
            }
            (Some(was), Some(now)) => {
                let what = format!("the default is {} now, was {}", shown(now), shown(was));
                self.add(Severity::Warn, Change::Default, path, what);
            }
            (Some(was), None) => {
                let what = format!("the default {} is gone", shown(was));
                self.add(Severity::Warn, Change::Default, path, what);
            }
            (None, None) => {}
        }
    }

    fn enumeration(&mut self, old: &Value, new: &Value, path: &str) {
        let (before, after) = (list(old, "enum"), list(new, "enum"));
        let names = |values: &[&Value]| values.iter().map(|v| shown(v)).collect::<Vec<_>>().join(", ");
        if before.is_empty() {
            let what = format!("only {} are allowed now", names(&after.iter().collect::<Vec<_>>()));
            return self.add(Severity::Break, Change::Enum, path, what);
        }
        if after.is_empty() {
            return self.add(
                Severity::Warn,
                Change::EnumWidened,
                path,
                "any value is allowed now; clients may not expect that",
            );
        }
        let gone: Vec<&Value> = before.iter().filter(|value| !after.contains(value)).collect();
        let come: Vec<&Value> = after.iter().filter(|value| !before.contains(value)).collect();
        if !gone.is_empty() {
            let what = format!("{} not allowed any more", plural(&names(&gone), gone.len()));
            self.add(Severity::Break, Change::Enum, path, what);
        }
        if !come.is_empty() {
            let what =
                format!("{} allowed now; clients may not expect that", plural(&names(&come), come.len()));
            self.add(Severity::Warn, Change::EnumWidened, path, what);
        }
        if gone.is_empty() && come.is_empty() {
            self.add(
                Severity::Info,
                Change::Documentation,
                path,
                "the allowed values stand in another order",
            );
        }
    }

    fn pattern(&mut self, old: &Value, new: &Value, path: &str) {
        match (text(old, "pattern"), text(new, "pattern")) {
            (_, "") => self.add(Severity::Warn, Change::Relaxed, path, "has no pattern any more"),
            ("", now) => {
                self.add(Severity::Break, Change::Pattern, path, format!("has to match {now} now"));
            }
            (was, now) => {
                let what = format!("has to match {now} now, was {was}");
                self.add(Severity::Break, Change::Pattern, path, what);
            }
        }
    }

    fn format(&mut self, old: &Value, new: &Value, path: &str) {
        let (was, now) = (text(old, "format"), text(new, "format"));
        let wide = |format: &str| matches!(format, "" | "int64" | "double");
        if wide(now) && matches!(was, "" | "int32" | "int64" | "float" | "double") {
            let (severity, what) = if wide(was) {
                (Severity::Info, "the format changed, the values that fit are the same")
            } else {
                (Severity::Warn, "takes larger numbers now; clients may not expect them")
            };
            return self.add(severity, Change::Relaxed, path, what);
        }
        match (was, now) {
            (_, "") => {
                self.add(Severity::Warn, Change::Relaxed, path, format!("is not checked as {was} any more"));
            }
            ("", now) => {
                self.add(
                    Severity::Break,
                    Change::Pattern,
                    path,
                    format!("has to be in the format {now} now"),
                );
            }
            (was, now) => {
                let what = format!("has to be in the format {now} now, was {was}");
                self.add(Severity::Break, Change::Pattern, path, what);
            }
        }
    }

    /// `least`: a larger bound is the tighter one.
    fn bound(&mut self, key: &str, old: &Value, new: &Value, path: &str, least: bool) {
        let of = |schema: &Value| schema.get(key).and_then(Value::as_f64);
        let (before, after) = (of(old), of(new));
        let shown = |schema: &Value| schema.get(key).map(shown).unwrap_or_default();
        let tighter = match (before, after) {
            (None, Some(_)) => true,
            (Some(before), Some(after)) if least => after > before,
            (Some(before), Some(after)) => after < before,
            (_, None) => false,
        };
        let what = match (before, after) {
            (None, _) => format!("{key} is {} now, there was none", shown(new)),
            (_, None) => format!("{key} is gone, was {}", shown(old)),
            _ => format!("{key} is {} now, was {}", shown(new), shown(old)),
        };
        if tighter {
            self.add(Severity::Break, Change::Bound, path, what);
        } else {
            self.add(Severity::Warn, Change::Relaxed, path, what);
        }
    }

    fn switch(&mut self, key: &str, new: &Value, path: &str) {
        if flag(new, key) {
            self.add(Severity::Break, Change::Bound, path, format!("{key} is set now"));
        } else {
            self.add(Severity::Warn, Change::Relaxed, path, format!("{key} is not set any more"));
        }
    }

    fn multiple(&mut self, old: &Value, new: &Value, path: &str) {
        let of = |schema: &Value| schema.get("multipleOf").and_then(Value::as_f64);
        match (of(old), of(new)) {
            (_, None) => self.add(Severity::Warn, Change::Relaxed, path, "multipleOf is gone"),
            (Some(was), Some(now)) if now != 0.0 && (was / now).fract() == 0.0 => {
                let what = format!("has to be a multiple of {now} now, was {was}");
                self.add(Severity::Warn, Change::Relaxed, path, what);
            }
            (_, Some(now)) => {
                let what = format!("has to be a multiple of {now} now");
                self.add(Severity::Break, Change::Bound, path, what);
            }
        }
    }

    fn nullable(&mut self, new: &Value, path: &str) {
        if flag(new, "nullable") {
            self.add(
                Severity::Warn,
                Change::NullableAdded,
                path,
                "may be null now; clients may not expect that",
            );
        } else {
            let what =
                "may not be null any more: null is dropped or takes the default, and is refused in lists";
            self.add(Severity::Break, Change::NullableRemoved, path, what);
        }
    }

    fn composition(&mut self, key: &str, old: &Value, new: &Value, path: &str) {
        let (before, after) = (list(old, key), list(new, key));
        let subset = |a: &[Value], b: &[Value]| a.iter().all(|part| b.contains(part));
        let gone = new.get(key).is_none();
        let relaxed = gone
            || match key {
                "allOf" => subset(after, before),
                "anyOf" => !before.is_empty() && subset(before, after),
                _ => false,
            };
        let what = match (old.get(key), gone) {
            (None, _) => format!("{key} was added"),
            (_, true) => format!("{key} is gone"),
            _ if relaxed => format!("{key} asks for less"),
            _ => format!("{key} changed; opdev cannot tell in which direction"),
        };
        if relaxed {
            self.add(Severity::Warn, Change::Relaxed, path, what);
        } else {
            self.add(Severity::Break, Change::Composition, path, what);
        }
    }

    fn rules(&mut self, old: &Value, new: &Value, path: &str) {
        const KEY: &str = "x-kubernetes-validations";
        let (before, after) = (list(old, KEY), list(new, KEY));
        let with = |rules: &'_ [Value], text: &str| rules.iter().any(|rule| rule["rule"] == text);
        let mut quiet = true;
        for rule in after {
            let text = rule["rule"].as_str().unwrap_or_default();
            let same = before.iter().find(|other| other["rule"] == text);
            let optional = |rule: &Value| flag(rule, "optionalOldSelf");
            if same.is_some_and(|same| optional(same) == optional(rule)) {
                continue;
            }
            quiet = false;
            let never = if text.contains("oldSelf") {
                "; a rule with oldSelf is checked at every update"
            } else {
                ""
            };
            let message = rule["message"].as_str().map(|message| format!(" ({message})")).unwrap_or_default();
            let changed = rule.get("message").is_some_and(|message| {
                before
                    .iter()
                    .any(|other| other.get("message") == Some(message) && !with(after, text_of(other)))
            });
            let words = if changed || same.is_some() { "the rule is now" } else { "has the new rule" };
            self.add(Severity::Break, Change::Rule, path, format!("{words} `{text}`{message}{never}"));
        }
        for rule in before.iter().filter(|rule| !with(after, text_of(rule))) {
            quiet = false;
            self.add(Severity::Warn, Change::Relaxed, path, format!("the rule `{}` is gone", text_of(rule)));
        }
        if quiet {
            self.add(
                Severity::Info,
                Change::Documentation,
                path,
                "what the rules say when they fail changed",
            );
        }
    }

    fn list_type(&mut self, old: &Value, new: &Value, path: &str) {
        let of = |schema: &'_ Value| match text(schema, "x-kubernetes-list-type") {
            "" => "atomic".to_owned(),
            kind => kind.to_owned(),
        };
        let (was, now) = (of(old), of(new));
        if now == "atomic" {
            let what = format!("is replaced as a whole by server-side apply now, was a {was}");
            return self.add(Severity::Warn, Change::Topology, path, what);
        }
        let what = format!(
            "is a {now} now, was {was}: repeated items are refused, and server-side apply merges it item by item"
        );
        self.add(Severity::Break, Change::ListType, path, what);
    }

    fn map_keys(&mut self, old: &Value, new: &Value, path: &str) {
        if text(old, "x-kubernetes-list-type") != text(new, "x-kubernetes-list-type") {
            return;
        }
        let keys = |schema: &Value| {
            let names: Vec<&str> =
                list(schema, "x-kubernetes-list-map-keys").iter().filter_map(Value::as_str).collect();
            names.join(", ")
        };
        let what = format!(
            "items are told apart by {} now, was {}: repeated ones are refused, and who owns which item is forgotten",
            keys(new),
            keys(old)
        );
        self.add(Severity::Break, Change::MapKeys, path, what);
    }

    fn embedded(&mut self, new: &Value, path: &str) {
        if flag(new, "x-kubernetes-embedded-resource") {
            let what = "is a whole object now and has to say its apiVersion and kind";
            self.add(Severity::Break, Change::Embedded, path, what);
        } else if flag(new, "x-kubernetes-preserve-unknown-fields") {
            let what = "is not checked as a whole object any more";
            self.add(Severity::Warn, Change::Relaxed, path, what);
        } else {
            let what =
                "is no whole object any more: apiVersion, kind and metadata without a schema are pruned";
            self.add(Severity::Loss, Change::UnknownFieldsPruned, path, what);
        }
    }
}

fn text_of(rule: &Value) -> &str {
    rule["rule"].as_str().unwrap_or_default()
}

fn plural(names: &str, count: usize) -> String {
    format!("{names} {}", if count == 1 { "is" } else { "are" })
}

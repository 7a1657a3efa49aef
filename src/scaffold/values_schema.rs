//! The schema of a chart's `spec` in a CRD: from `values.schema.json`, or guessed from `values.yaml`. A CRD
//! needs a structural schema, which cannot say all that JSON Schema can; each loss is named by its path. What
//! the chart's own schema forbids stays forbidden by Helm when the operator renders.

use anyhow::{Context as _, Result};
use opdev_helm::chart::Chart;
use serde_json::{Map, Value, json};

/// Deeper nodes are open: definitions may name themselves.
const MAX_DEPTH: usize = 24;
/// More nodes than these are open: definitions that name others twice grow with every level.
const MAX_NODES: usize = 20_000;
/// More losses than these are only counted.
const MOST_LOSSES: usize = 50;
const OPEN: &str = "x-kubernetes-preserve-unknown-fields";

/// Keywords that are the same in both.
const SAME: [&str; 14] = [
    "description",
    "title",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
];
/// Keywords that a structural schema does not have.
const LOST: [&str; 17] = [
    "allOf",
    "anyOf",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// A schema for a CRD.
#[derive(Debug)]
pub(super) struct SpecSchema {
    pub(super) schema: Value,
    /// A sentence for each rule that the CRD cannot hold.
    pub(super) losses: Vec<String>,
}

/// The schema of the values of a chart.
pub(super) fn spec(chart: &Chart) -> Result<SpecSchema> {
    let description = format!("The values of the chart {}.", chart.name());
    let (mut schema, mut losses) = match &chart.schema {
        Some(bytes) => {
            let root: Value = serde_json::from_slice(bytes)
                .with_context(|| format!("values.schema.json of the chart {}", chart.name()))?;
            let mut converter = Converter::new(&root);
            (converter.node(&root, ".spec", 0), converter.losses)
        }
        None => (guessed(&chart.values), Vec::new()),
    };
    let more = losses.len().saturating_sub(MOST_LOSSES);
    losses.truncate(MOST_LOSSES);
    if more > 0 {
        losses.push(format!("and {more} more rules that are checked by the chart only"));
    }
    // Charts read values that their schema does not name, those of subcharts among them.
    if let Some(map) = schema.as_object_mut() {
        map.insert("type".to_owned(), json!("object"));
        map.insert(OPEN.to_owned(), json!(true));
        map.insert("description".to_owned(), json!(description));
        map.remove("additionalProperties");
        if let Some(properties) = map.get_mut("properties").and_then(Value::as_object_mut)
            && properties.contains_key("global")
        {
            properties.insert("global".to_owned(), json!({"type": "object", OPEN: true}));
        }
    }
    Ok(SpecSchema { schema, losses })
}

/// The type that a default value suggests. Empty values and null suggest none.
fn guessed(value: &Value) -> Value {
    match value {
        Value::Null => json!({OPEN: true}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(number) => {
            let whole = number.as_i64().is_some() || number.as_f64().is_some_and(|n| n.fract() == 0.0);
            json!({"type": if whole { "integer" } else { "number" }})
        }
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => match items.first() {
            Some(first) if items.iter().all(|item| kind(item) == kind(first)) => {
                json!({"type": "array", "items": guessed(first)})
            }
            Some(_) | None => json!({"type": "array", "items": {OPEN: true}}),
        },
        Value::Object(map) if map.is_empty() => json!({"type": "object", OPEN: true}),
        Value::Object(map) => {
            let properties: Map<String, Value> =
                map.iter().map(|(key, value)| (key.clone(), guessed(value))).collect();
            json!({"type": "object", "properties": properties, OPEN: true})
        }
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

struct Converter<'a> {
    root: &'a Value,
    losses: Vec<String>,
    nodes: usize,
}

impl<'a> Converter<'a> {
    fn new(root: &'a Value) -> Converter<'a> {
        Converter { root, losses: Vec::new(), nodes: 0 }
    }

    fn lose(&mut self, path: &str, what: &str) {
        self.losses.push(format!("{path}: {what}"));
    }

    fn open(&mut self, path: &str, what: &str) -> Value {
        self.lose(path, what);
        json!({OPEN: true})
    }

    fn node(&mut self, node: &Value, path: &str, depth: usize) -> Value {
        let Some(map) = node.as_object() else { return json!({OPEN: true}) };
        self.nodes += 1;
        if self.nodes >= MAX_NODES {
            // Said once.
            if self.nodes == MAX_NODES {
                self.lose(path, "the schema is too large for a CRD; from here on any value is accepted");
            }
            return json!({OPEN: true});
        }
        if depth > MAX_DEPTH {
            return self.open(path, "nested too deep for a CRD; any value is accepted");
        }
        if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)).cloned();
            return match target {
                Some(target) => self.node(&target, path, depth + 1),
                None => {
                    self.open(path, &format!("`$ref: {reference}` is not in the file; any value is accepted"))
                }
            };
        }
        let mut out = Map::new();
        for word in SAME {
            if let Some(value) = map.get(word) {
                out.insert(word.to_owned(), value.clone());
            }
        }
        if let Some(value) = map.get("const") {
            out.insert("enum".to_owned(), json!([value]));
        }
        self.bounds(map, &mut out);
        for word in LOST.iter().filter(|word| map.contains_key(**word)) {
            self.lose(path, &format!("`{word}` is checked by the chart only"));
        }
        if map.get("uniqueItems") == Some(&Value::Bool(true)) {
            self.lose(path, "`uniqueItems` is checked by the chart only");
        }
        self.typed(map, &mut out, path, depth);
        Value::Object(out)
    }

    /// Exclusive bounds are numbers in newer drafts and a mark beside the bound in a CRD.
    fn bounds(&mut self, map: &Map<String, Value>, out: &mut Map<String, Value>) {
        for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
            match map.get(exclusive) {
                Some(Value::Bool(mark)) => {
                    out.insert(exclusive.to_owned(), json!(mark));
                }
                Some(number @ Value::Number(_)) => {
                    out.insert(bound.to_owned(), number.clone());
                    out.insert(exclusive.to_owned(), json!(true));
                }
                Some(_) | None => {}
            }
        }
    }

    fn typed(&mut self, map: &Map<String, Value>, out: &mut Map<String, Value>, path: &str, depth: usize) {
        let mut types: Vec<&str> = match map.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
            Some(_) | None if map.contains_key("properties") => vec!["object"],
            Some(_) | None => Vec::new(),
        };
        if let Some(at) = types.iter().position(|one| *one == "null") {
            types.remove(at);
            out.insert("nullable".to_owned(), json!(true));
        }
        types.sort_unstable();
        match types.as_slice() {
            ["object"] => self.object(map, out, path, depth),
            ["array"] => {
                out.insert("type".to_owned(), json!("array"));
                let items = match map.get("items") {
                    Some(items @ Value::Object(_)) => self.node(items, &format!("{path}[]"), depth + 1),
                    Some(Value::Array(_)) => self.open(
                        &format!("{path}[]"),
                        "a schema for each position is checked by the chart only",
                    ),
                    Some(_) | None => json!({OPEN: true}),
                };
                out.insert("items".to_owned(), items);
            }
            [one @ ("boolean" | "integer" | "number" | "string")] => {
                out.insert("type".to_owned(), json!(one));
            }
            ["integer", "string"] => {
                out.insert("x-kubernetes-int-or-string".to_owned(), json!(true));
            }
            ["integer", "number"] => {
                out.insert("type".to_owned(), json!("number"));
            }
            [] => {
                out.insert(OPEN.to_owned(), json!(true));
            }
            several => {
                self.lose(
                    path,
                    &format!(
                        "the types {} cannot be said together; any value is accepted",
                        several.join(", ")
                    ),
                );
                out.insert(OPEN.to_owned(), json!(true));
            }
        }
        // Without a type a CRD takes no rules for it.
        if !out.contains_key("type") {
            for word in SAME.iter().filter(|word| !matches!(**word, "description" | "title" | "enum")) {
                out.remove(*word);
            }
            out.remove("exclusiveMinimum");
            out.remove("exclusiveMaximum");
        }
    }

    fn object(&mut self, map: &Map<String, Value>, out: &mut Map<String, Value>, path: &str, depth: usize) {
        out.insert("type".to_owned(), json!("object"));
        let properties = map.get("properties").and_then(Value::as_object);
        if let Some(properties) = properties {
            let made = properties
                .iter()
                .map(|(key, value)| (key.clone(), self.node(value, &format!("{path}.{key}"), depth + 1)))
                .collect();
            out.insert("properties".to_owned(), Value::Object(made));
        }
        if let Some(required) = map.get("required").filter(|one| one.is_array()) {
            out.insert("required".to_owned(), required.clone());
        }
        match map.get("additionalProperties") {
            Some(Value::Bool(false)) => {
                self.lose(path, "unknown fields are removed by the API server, where Helm refuses them");
            }
            Some(values @ Value::Object(rules)) if !rules.is_empty() => {
                if properties.is_none_or(Map::is_empty) {
                    out.remove("properties");
                    let made = self.node(values, &format!("{path}.*"), depth + 1);
                    out.insert("additionalProperties".to_owned(), made);
                } else {
                    self.lose(path, "the schema of fields without a name is checked by the chart only");
                    out.insert(OPEN.to_owned(), json!(true));
                }
            }
            Some(_) | None => {
                out.insert(OPEN.to_owned(), json!(true));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn converted(schema: &Value) -> (Value, Vec<String>) {
        let mut converter = Converter::new(schema);
        (converter.node(schema, ".spec", 0), converter.losses)
    }

    #[test]
    fn what_a_structural_schema_can_say_is_kept() {
        let (made, losses) = converted(&json!({
            "definitions": {"port": {"type": "integer", "exclusiveMinimum": 0, "maximum": 65535}},
            "type": "object",
            "required": ["port"],
            "properties": {
                "port": {"$ref": "#/definitions/port"},
                "mode": {"const": "fast"},
                "tag": {"type": ["string", "null"], "minLength": 1},
                "size": {"type": ["integer", "string"], "minimum": 3},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        }));
        assert!(losses.is_empty(), "{losses:?}");
        assert_eq!(
            made,
            json!({
                "type": "object",
                "required": ["port"],
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {
                    "port": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "maximum": 65535},
                    "mode": {"enum": ["fast"], "x-kubernetes-preserve-unknown-fields": true},
                    "tag": {"type": "string", "nullable": true, "minLength": 1},
                    "size": {"x-kubernetes-int-or-string": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            })
        );
    }

    #[test]
    fn what_it_cannot_say_is_named_by_its_path() {
        let (_, losses) = converted(&json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "a": {"oneOf": [{"type": "string"}]},
                "b": {"type": "array", "items": [{"type": "string"}], "uniqueItems": true},
                "c": {"$ref": "other.json"},
                "d": {"$ref": "#/properties/d"},
            },
        }));
        let text = losses.join("\n");
        expect![[r#"
            .spec.a: `oneOf` is checked by the chart only
            .spec.b: `uniqueItems` is checked by the chart only
            .spec.b[]: a schema for each position is checked by the chart only
            .spec.c: `$ref: other.json` is not in the file; any value is accepted
            .spec.d: nested too deep for a CRD; any value is accepted
            .spec: unknown fields are removed by the API server, where Helm refuses them"#]]
        .assert_eq(&text);
    }

    #[test]
    fn definitions_that_multiply_come_to_an_end() {
        let mut definitions = Map::new();
        for level in 0..10 {
            let next = json!({"$ref": format!("#/definitions/d{}", level + 1)});
            let many: Map<String, Value> = (0..8).map(|at| (format!("p{at}"), next.clone())).collect();
            definitions.insert(format!("d{level}"), json!({"type": "object", "properties": many}));
        }
        definitions.insert("d10".to_owned(), json!({"type": "string"}));
        let (_, losses) = converted(&json!({"$ref": "#/definitions/d0", "definitions": definitions}));
        assert_eq!(losses.len(), 1, "{losses:?}");
        expect![".spec.p0.p0.p0.p0.p0.p2.p1.p0.p4.p6: the schema is too large for a CRD; from here on any value is accepted"]
        .assert_eq(&losses[0]);
    }

    #[test]
    fn without_a_schema_types_are_guessed_from_the_defaults() {
        assert_eq!(
            guessed(
                &json!({"n": 3.0, "f": 1.5, "on": true, "image": {"tag": "1"}, "list": [], "any": null, "names": ["a"]})
            ),
            json!({
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": true,
                "properties": {
                    "n": {"type": "integer"},
                    "f": {"type": "number"},
                    "on": {"type": "boolean"},
                    "image": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                        "properties": {"tag": {"type": "string"}},
                    },
                    "list": {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": true}},
                    "any": {"x-kubernetes-preserve-unknown-fields": true},
                    "names": {"type": "array", "items": {"type": "string"}},
                },
            })
        );
    }
}

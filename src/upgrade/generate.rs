//! Objects made from a schema: one for each field that holds a value, with the neighbours that have to be there. Values are inside
//! bounds and other than the default, so that one that is lost can be told from one that was filled in. Pure.

use regex::Regex;
use serde_json::{Map, Value, json};

/// Fields of one definition that are tried at most.
const MOST: usize = 3_000;
/// Schemas may name themselves; no value lies deeper.
const DEPTH: usize = 24;

/// A step to a field.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    /// The only item of a list.
    Item,
    /// The only entry of a map.
    Entry,
}

/// A generated object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Generated {
    path: Vec<Step>,
    /// Everything but apiVersion, kind and metadata.
    pub(super) content: Map<String, Value>,
}

/// The key of generated maps.
const KEY: &str = "k";

impl Generated {
    /// `spec.ports[*].name`.
    pub(super) fn field(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => text.push_str(&format!(".{name}")),
                Step::Item => text.push_str("[*]"),
                Step::Entry => text.push_str("{*}"),
            }
        }
        text
    }

    /// The value of its field in an object.
    pub(super) fn value<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        self.path.iter().try_fold(object, |value, step| match step {
            Step::Field(name) => value.get(name),
            Step::Item => value.get(0),
            Step::Entry => value.get(KEY),
        })
    }
}

/// One object for each field of a version's schema, status left out.
pub(super) fn generated(schema: &Value) -> Vec<Generated> {
    let mut paths = Vec::new();
    leaves(schema, &mut Vec::new(), &mut paths);
    let of_server = |name: &str| matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let wanted =
        paths.into_iter().filter(|path| !matches!(path.first(), Some(Step::Field(name)) if of_server(name)));
    let mut base = value(schema, 0);
    if let Some(fields) = base.as_object_mut() {
        fields.retain(|name, _| !of_server(name));
    }
    wanted
        .take(MOST)
        .filter_map(|path| match build(schema, base.clone(), &path, 0) {
            Value::Object(content) => Some(Generated { path, content }),
            _ => None,
        })
        .collect()
}

fn leaves(schema: &Value, path: &mut Vec<Step>, found: &mut Vec<Vec<Step>>) {
    if path.len() > DEPTH || found.len() > MOST {
        return;
    }
    let mut below = |step: Step, schema: &Value| {
        path.push(step);
        leaves(schema, path, found);
        path.pop();
    };
    let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
    match (properties, &schema["additionalProperties"], &schema["items"]) {
        (Some(properties), _, _) => {
            properties.iter().for_each(|(name, schema)| below(Step::Field(name.clone()), schema));
        }
        (None, of @ Value::Object(_), _) => below(Step::Entry, of),
        (None, _, of @ Value::Object(_)) => below(Step::Item, of),
        _ => found.push(path.clone()),
    }
}

/// The object with the field at `path`, and what has to be beside it on the way.
fn build(schema: &Value, base: Value, path: &[Step], depth: usize) -> Value {
    let Some((step, rest)) = path.split_first() else { return value(schema, depth) };
    match step {
        Step::Field(name) => {
            let mut map = match base {
                Value::Object(map) => map,
                _ => match value(schema, depth) {
                    Value::Object(map) => map,
                    _ => Map::new(),
                },
            };
            let inner = map.remove(name).unwrap_or(Value::Null);
            map.insert(name.clone(), build(&schema["properties"][name], inner, rest, depth + 1));
            Value::Object(map)
        }
        Step::Item => {
            json!([build(&schema["items"], base.get(0).cloned().unwrap_or(Value::Null), rest, depth + 1)])
        }
        Step::Entry => {
            let inner = base.get(KEY).cloned().unwrap_or(Value::Null);
            json!({ KEY: build(&schema["additionalProperties"], inner, rest, depth + 1) })
        }
    }
}

/// A value that the schema allows, other than its default.
fn value(schema: &Value, depth: usize) -> Value {
    if depth > DEPTH {
        return Value::Null;
    }
    let default = &schema["default"];
    if let Some(allowed) = schema["enum"].as_array() {
        let other = allowed.iter().rev().find(|one| *one != default && !one.is_null());
        return other.or_else(|| allowed.last()).cloned().unwrap_or_default();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(7);
    }
    match schema["type"].as_str() {
        Some("string") => text(schema, default),
        Some("integer") => number(schema, default).map_or_else(|| json!(7), |number| json!(number)),
        Some("number") => number(schema, default).map_or_else(|| json!(7.5), |number| json!(number)),
        Some("boolean") => json!(default.as_bool().is_none_or(|default| !default)),
        Some("array") => json!([value(&schema["items"], depth + 1)]),
        Some("object") => object(schema, depth),
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => json!({ KEY: "v" }),
        _ => json!("a"),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut map: Map<String, Value> = Map::new();
    for name in required {
        if let Some(of) = schema["properties"].get(name) {
            map.insert(name.to_owned(), value(of, depth + 1));
        }
    }
    if map.is_empty() && schema["additionalProperties"].is_object() {
        map.insert(KEY.to_owned(), value(&schema["additionalProperties"], depth + 1));
    } else if map.is_empty() && schema["x-kubernetes-preserve-unknown-fields"] == true {
        map.insert(KEY.to_owned(), json!("v"));
    }
    Value::Object(map)
}

fn text(schema: &Value, default: &Value) -> Value {
    const TRIED: [&str; 14] = [
        "abc",
        "a",
        "1",
        "1s",
        "1Gi",
        "a/b",
        "a:1",
        "http://a",
        "1.2",
        "sha256:abc",
        "A",
        "10.0.0.1",
        "a.b",
        "2026-01-02",
    ];
    match schema["format"].as_str() {
        Some("date-time") => return json!("2026-01-02T03:04:05Z"),
        Some("date") => return json!("2026-01-02"),
        Some("byte") => return json!("YWJj"),
        Some("duration") => return json!("7s"),
        _ => {}
    }
    let pattern = schema["pattern"].as_str().and_then(|pattern| Regex::new(pattern).ok());
    let least = schema["minLength"].as_u64().unwrap_or(0);
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    let fits = |text: &&str| {
        let length = text.chars().count() as u64;
        (least..=most).contains(&length)
            && default.as_str() != Some(text)
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    };
    TRIED.iter().copied().find(fits).map_or_else(
        || json!("a".repeat(usize::try_from(least.max(3).min(most)).unwrap_or(3))),
        |text| json!(text),
    )
}

/// A whole number inside the bounds.
fn number(schema: &Value, default: &Value) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "bounds of schemas are small, and others are cut to the largest number"
    )]
    let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
    let least = bound("minimum").map(|least| least + i64::from(schema["exclusiveMinimum"] == true));
    let most = bound("maximum").map(|most| most - i64::from(schema["exclusiveMaximum"] == true));
    let tried = [7, 1, 2].into_iter().chain(least).chain(least.map(|least| least + 1)).chain(most);
    let multiple = bound("multipleOf").filter(|of| *of > 0);
    let tried = tried.chain(multiple);
    let fits = |number: &i64| {
        least.is_none_or(|least| *number >= least)
            && most.is_none_or(|most| *number <= most)
            && multiple.is_none_or(|of| number % of == 0)
            && default.as_i64() != Some(*number)
    };
    let mut tried = tried;
    tried.find(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_an_object_with_its_neighbours() {
        let schema = json!({ "type": "object", "properties": { "status": { "type": "object", "properties": { "a": { "type": "string" } } },
            "spec": { "type": "object", "required": ["size"], "properties": {
                "size": { "type": "integer", "minimum": 1, "maximum": 5, "default": 1 },
                "mode": { "type": "string", "enum": ["On", "Off"], "default": "Off" },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "ports": { "type": "array", "items": { "type": "object", "required": ["port"], "properties": {
                    "port": { "type": "integer" }, "name": { "type": "string", "pattern": "^[0-9.]+$" } } } },
            } } } });
        let made = generated(&schema);
        let fields: Vec<String> = made.iter().map(Generated::field).collect();
        assert_eq!(
            fields,
            ["spec.labels{*}", "spec.mode", "spec.ports[*].name", "spec.ports[*].port", "spec.size"]
        );
        let content = |at: usize| Value::Object(made[at].content.clone());
        assert_eq!(content(0), json!({ "spec": { "size": 2, "labels": { "k": "abc" } } }));
        assert_eq!(content(1), json!({ "spec": { "size": 2, "mode": "On" } }));
        assert_eq!(content(2), json!({ "spec": { "size": 2, "ports": [{ "port": 7, "name": "1" }] } }));
        assert_eq!(made[2].value(&content(2)), Some(&json!("1")));
        let crd = opdev_cel::structural(&schema).unwrap();
        for one in &made {
            let errors = opdev_object::schema::admit(&Value::Object(one.content.clone()), None, &crd);
            assert!(errors.is_empty(), "{}: {errors:?}", one.field());
        }
    }
}

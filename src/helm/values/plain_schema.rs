//! Schemas made of everyday keywords only, and values that surely fit them. What it is not sure about it
//! leaves alone, and the library in `schema` decides and finds the words; compiling a schema there takes
//! longer than the whole render of a small chart. A test compares both.

use serde_json::{Map, Value};

/// Deeper values, and references that lead on and on, are for the library.
const MAX_DEPTH: usize = 100;

/// The drafts whose everyday keywords mean the same.
const DRAFTS: [&str; 4] = [
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

/// Returns true if the whole schema is well formed, as its own schema wants it, and has nothing but everyday
/// keywords.
pub(super) fn is_plain(root: &Value) -> bool {
    let draft = |uri: &Value| uri.as_str().is_some_and(|uri| DRAFTS.contains(&uri.trim_end_matches('#')));
    root.get("$schema").is_none_or(draft) && plain(root, root, 0)
}

fn plain(root: &Value, schema: &Value, depth: usize) -> bool {
    let Value::Object(keywords) = schema else { return false };
    let each = |schemas: &Value| {
        schemas.as_object().is_some_and(|all| all.values().all(|one| plain(root, one, depth + 1)))
    };
    let fits = |(keyword, value): (&String, &Value)| match keyword.as_str() {
        "$schema" => depth == 0,
        "$ref" => target(root, value).is_some() && keywords.keys().all(|key| says_nothing(key)),
        "title" | "description" | "$comment" => value.is_string(),
        "default" => true,
        "type" => match value {
            Value::Array(names) => !names.is_empty() && distinct(names) && names.iter().all(is_type),
            one => is_type(one),
        },
        "properties" | "$defs" | "definitions" => each(value),
        "items" => plain(root, value, depth + 1),
        "additionalProperties" => value.is_boolean() || plain(root, value, depth + 1),
        "required" => value.as_array().is_some_and(|all| distinct(all) && all.iter().all(Value::is_string)),
        "enum" => value.as_array().is_some_and(|all| !all.is_empty() && distinct(all)),
        "minimum" | "maximum" => value.is_number(),
        _ => false,
    };
    depth < MAX_DEPTH && keywords.iter().all(fits)
}

/// Keywords that may stand beside a reference, as they ask nothing of a value.
fn says_nothing(keyword: &str) -> bool {
    matches!(
        keyword,
        "$ref" | "$schema" | "$defs" | "definitions" | "title" | "description" | "$comment" | "default"
    )
}

fn is_type(name: &Value) -> bool {
    let names = ["object", "array", "string", "number", "integer", "boolean", "null"];
    name.as_str().is_some_and(|name| names.contains(&name))
}

/// Returns true if a short list has no two of the same; longer ones are not looked at.
fn distinct(items: &[Value]) -> bool {
    items.len() <= 64 && (1..items.len()).all(|i| items[..i].iter().all(|before| !same(before, &items[i])))
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    }
}

/// The schema a reference names, where it is one of the definitions at hand.
fn target<'s>(root: &'s Value, reference: &Value) -> Option<&'s Value> {
    let path = reference.as_str()?.strip_prefix("#/")?;
    let (under, name) = path.split_once('/')?;
    let simple = matches!(under, "$defs" | "definitions") && !name.contains(['/', '~', '%']);
    if simple { root.get(under)?.get(name) } else { None }
}

/// Returns true if a value surely fits a plain schema.
pub(super) fn surely_fits(root: &Value, value: &Value) -> bool {
    fits(root, root, value, 0)
}

fn fits(root: &Value, schema: &Value, value: &Value, depth: usize) -> bool {
    let Value::Object(keywords) = schema else { return false };
    if depth > MAX_DEPTH {
        return false;
    }
    if let Some(reference) = keywords.get("$ref") {
        return target(root, reference).is_some_and(|schema| fits(root, schema, value, depth + 1));
    }
    let typed = |wanted: &Value| match wanted {
        Value::Array(names) => names.iter().any(|name| is_a(value, name)),
        name => is_a(value, name),
    };
    keywords.get("type").is_none_or(typed)
        && keywords
            .get("enum")
            .and_then(Value::as_array)
            .is_none_or(|all| all.iter().any(|one| same(one, value)))
        && within(keywords, value)
        && match value {
            Value::Object(fields) => fields_fit(root, keywords, fields, depth),
            Value::Array(items) => keywords
                .get("items")
                .is_none_or(|schema| items.iter().all(|item| fits(root, schema, item, depth + 1))),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
}

fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("null") => value.is_null(),
        Some("number") => value.is_number(),
        Some("integer") => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => false,
    }
}

fn within(keywords: &Map<String, Value>, value: &Value) -> bool {
    let Some(number) = value.as_f64() else { return true };
    let limit = |name: &str| keywords.get(name).and_then(Value::as_f64);
    limit("minimum").is_none_or(|least| number >= least) && limit("maximum").is_none_or(|most| number <= most)
}

fn fields_fit(
    root: &Value,
    keywords: &Map<String, Value>,
    fields: &Map<String, Value>,
    depth: usize,
) -> bool {
    let required = keywords.get("required").and_then(Value::as_array);
    let there = |name: &Value| name.as_str().is_some_and(|name| fields.contains_key(name));
    let properties = keywords.get("properties").and_then(Value::as_object);
    let others = keywords.get("additionalProperties");
    required.is_none_or(|names| names.iter().all(there))
        && fields.iter().all(|(name, value)| match properties.and_then(|known| known.get(name)) {
            Some(schema) => fits(root, schema, value, depth + 1),
            None => match others {
                None | Some(Value::Bool(true)) => true,
                Some(schema) => fits(root, schema, value, depth + 1),
            },
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Draw(u64);

    impl Draw {
        fn below(&mut self, below: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            usize::try_from(self.0 % below as u64).unwrap()
        }

        fn of(&mut self, all: &[Value]) -> Value {
            all[self.below(all.len())].clone()
        }

        fn value(&mut self, depth: usize) -> Value {
            let scalars = [json!(1), json!(1.0), json!(2.5), json!("a"), json!(true), json!(null), json!(-3)];
            match self.below(if depth > 3 { 3 } else { 7 }) {
                0..3 => self.of(&scalars),
                3 => (0..self.below(3)).map(|_| self.value(depth + 1)).collect(),
                _ => {
                    let mut fields = Map::new();
                    for _ in 0..self.below(4) {
                        fields.insert(["a", "b", "c"][self.below(3)].to_owned(), self.value(depth + 1));
                    }
                    Value::Object(fields)
                }
            }
        }

        fn schema(&mut self, depth: usize) -> Value {
            let types = [json!("object"), json!("string"), json!("integer"), json!("number"), json!("array")];
            let mut schema = Map::new();
            for _ in 0..self.below(4) {
                let (keyword, value) = match self.below(if depth > 3 { 6 } else { 11 }) {
                    0 => ("type", self.of(&types)),
                    1 => ("type", json!([self.of(&types), self.of(&types), "null"])),
                    2 => ("enum", json!([self.value(3), self.value(3), "a"])),
                    3 => ("required", json!([(["a", "b"][self.below(2)]), (["b", "c"][self.below(2)])])),
                    4 => {
                        (["minimum", "maximum"][self.below(2)], self.of(&[json!(1), json!(1.5), json!("1")]))
                    }
                    5 => ("$ref", self.of(&[json!("#/$defs/a"), json!("#/$defs/b"), json!("#/$defs/c")])),
                    6 => ("items", self.schema(depth + 1)),
                    7 => (
                        "additionalProperties",
                        self.of(&[json!(true), json!(false), json!({"type": "string"})]),
                    ),
                    8 => (["pattern", "default", "title"][self.below(3)], json!("a")),
                    _ => ("properties", json!({"a": self.schema(depth + 1), "b": self.schema(depth + 1)})),
                };
                schema.insert(keyword.to_owned(), value);
            }
            Value::Object(schema)
        }
    }

    /// Values that surely fit do so by the library, too, for every draft.
    #[test]
    fn never_says_that_something_fits_which_does_not() {
        let mut draw = Draw(88_172_645_463_325_252);
        let mut sure = 0;
        for turn in 0..6_000 {
            let mut schema = draw.schema(0);
            schema["$defs"] = json!({"a": draw.schema(1), "b": draw.schema(2)});
            schema["$schema"] = json!(format!("{}{}", DRAFTS[turn % 4], if turn % 8 < 4 { "" } else { "#" }));
            if !is_plain(&schema) {
                continue;
            }
            let text = schema.to_string();
            for _ in 0..8 {
                let value = draw.value(0);
                if surely_fits(&schema, &value) {
                    assert_eq!(
                        super::super::schema::by_library(text.as_bytes(), &value),
                        Ok(()),
                        "{schema} {value}"
                    );
                    sure += 1;
                }
            }
        }
        assert!(sure > 1000, "{sure} values surely fit");
    }

    #[test]
    fn takes_what_charts_are_checked_with() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$ref": "#/$defs/values",
            "$defs": {
                "values": {
                    "type": "object",
                    "additionalProperties": false,
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string", "description": "x", "default": ""},
                        "replicas": {"type": ["integer", "null"], "minimum": 1},
                        "mode": {"enum": ["a", 3]},
                        "args": {"items": {"$ref": "#/$defs/arg"}},
                    }
                },
                "arg": {"type": "string"}
            }
        });
        assert!(is_plain(&schema));
        for fitting in [
            json!({"name": "x", "replicas": 2.0, "mode": 3.0, "args": ["a"]}),
            json!({"name": "x", "replicas": null}),
        ] {
            assert!(surely_fits(&schema, &fitting), "{fitting}");
        }
        for unfit in [json!({}), json!({"name": "x", "replicas": 0}), json!({"name": "x", "args": [1]})] {
            assert!(!surely_fits(&schema, &unfit), "{unfit}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_library() {
        for schema in [
            json!({"type": "text"}),
            json!({"properties": {"a": {"pattern": "["}}}),
            json!({"$ref": "#/$defs/none"}),
            json!({"$ref": "http://example.com/a"}),
            json!({"$schema": "http://json-schema.org/draft-04/schema#"}),
            json!({"required": ["a", "a"]}),
            json!({"minimum": "1"}),
            json!({"items": [{}]}),
            json!(true),
        ] {
            assert!(!is_plain(&schema), "{schema}");
        }
        let round = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert!(is_plain(&round) && !surely_fits(&round, &json!({})));
    }
}

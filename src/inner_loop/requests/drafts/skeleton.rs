//! A commented text of what a kind's schema says: required fields with a value, all others as comments, with
//! what is allowed and what is the default. Pure; what it makes of required fields passes the schema where
//! the schema tells how.

use opdev_object::meta::Gvk;
use opdev_object::yaml;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Deeper fields are not shown.
const DEEPEST: usize = 6;
/// Optional fields deeper than this are named only.
const DEEPEST_OPTIONAL: usize = 3;
/// More lines of one description are not shown.
const DESCRIPTION: usize = 3;
const WIDTH: usize = 96;

/// The text for a new object of a kind.
pub(crate) fn skeleton(gvk: &Gvk, namespace: Option<&str>, root: &Value, definitions: &Value) -> String {
    let mut out = format!("apiVersion: {}\nkind: {}\nmetadata:\n", gvk.api_version(), gvk.kind);
    let _ = writeln!(out, "  name: {}-sample", gvk.kind.to_lowercase());
    if let Some(namespace) = namespace {
        let _ = writeln!(out, "  namespace: {namespace}");
    }
    let mut sketch = Sketch { definitions, out };
    let root = sketch.resolved(root);
    let required = names(&root, "required");
    for (name, field) in fields(&root) {
        if ["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()) {
            continue;
        }
        let wanted = required.contains(name) || name == "spec";
        let around = Around { indent: 0, depth: 0, comment: false };
        sketch.field(name, field, wanted, required.contains(name), &around);
    }
    sketch.out
}

/// The text for a kind whose spec is open and that a chart feeds: the chart's values as comments, as the
/// Operator SDK writes them into its samples.
pub(crate) fn with_values(skeleton: &str, chart: &str, values: &str) -> String {
    let open = skeleton.strip_suffix("spec: {}\n");
    let Some(above) = open.map(|above| above.strip_suffix("# object\n").unwrap_or(above)) else {
        return skeleton.to_owned();
    };
    let mut out = format!("{above}# Values of the chart {chart}; uncomment what is to differ.\nspec:\n");
    for line in values.lines() {
        let line = line.trim_end();
        // A comment there stays one when the sign is taken away from the lines around it.
        let sign = if line.is_empty() || line.trim_start().starts_with('#') { "" } else { "# " };
        let _ = writeln!(out, "{}", format!("  {sign}{line}").trim_end());
    }
    out
}

/// Where a field stands.
struct Around {
    indent: usize,
    depth: usize,
    /// Inside of something that is a comment itself.
    comment: bool,
}

struct Sketch<'a> {
    definitions: &'a Value,
    out: String,
}

impl Sketch<'_> {
    /// `shown`: not as a comment; `required`: the schema says so.
    fn field(&mut self, name: &str, field: &Value, shown: bool, required: bool, around: &Around) {
        let field = self.resolved(field);
        let comment = around.comment || !shown;
        self.describe(&field, required, around.indent);
        let value = example(&field);
        let inner = fields(&field);
        let nested = !inner.is_empty() && value.is_none();
        let deepest = if comment { DEEPEST_OPTIONAL } else { DEEPEST };
        if nested && around.depth < deepest {
            self.line(&format!("{name}:"), comment, around.indent);
            self.children(&field, &Around { indent: around.indent + 2, depth: around.depth + 1, comment });
            return;
        }
        let item = field.get("items").map(|items| self.resolved(items));
        let min_items = field["minItems"].as_u64().unwrap_or(0);
        if let Some(item) = item.filter(|_| value.is_none() && (min_items > 0 || comment))
            && !fields(&item).is_empty()
            && around.depth < deepest
        {
            self.line(&format!("{name}:"), comment, around.indent);
            self.item(&item, &Around { indent: around.indent, depth: around.depth + 1, comment });
            return;
        }
        let value = value.unwrap_or_else(|| plain(&field));
        let text = yaml::to_string(&json!({ name: value }));
        for line in text.lines() {
            self.line(line, comment, around.indent);
        }
    }

    fn children(&mut self, field: &Value, around: &Around) {
        let required = names(field, "required");
        let all = fields(field);
        let (first, then): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| required.contains(name));
        let only = first.len();
        for (at, (name, child)) in first.into_iter().chain(then).enumerate() {
            self.field(name, child, at < only, at < only, around);
        }
    }

    /// The one item of a list of objects: its first line carries the dash.
    fn item(&mut self, item: &Value, around: &Around) {
        let mut inner = Sketch { definitions: self.definitions, out: String::new() };
        inner.children(item, &Around { indent: 0, depth: around.depth, comment: false });
        let mut dashed = false;
        for line in inner.out.lines() {
            let remark = line.starts_with('#');
            let text = if remark || dashed { format!("  {line}") } else { format!("- {line}") };
            dashed |= !remark;
            self.line(&text, around.comment, around.indent);
        }
        if !dashed {
            self.line("- {}", around.comment, around.indent);
        }
    }

    fn line(&mut self, text: &str, comment: bool, indent: usize) {
        let sign = if comment { "# " } else { "" };
        let _ = writeln!(self.out, "{:indent$}{sign}{text}", "");
    }

    fn describe(&mut self, field: &Value, required: bool, indent: usize) {
        let description = field["description"].as_str().unwrap_or_default();
        let words: Vec<&str> = description.split_whitespace().collect();
        let mut lines: Vec<String> = Vec::new();
        for word in words {
            match lines.last_mut() {
                Some(line) if line.chars().count() + word.chars().count() < WIDTH => {
                    line.push(' ');
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        if lines.len() > DESCRIPTION {
            lines.truncate(DESCRIPTION);
            if let Some(last) = lines.last_mut() {
                last.push_str(" …");
            }
        }
        lines.push(limits(field, required));
        for line in lines.iter().filter(|line| !line.is_empty()) {
            let _ = writeln!(self.out, "{:indent$}# {line}", "");
        }
    }

    /// A schema without its reference.
    fn resolved(&self, field: &Value) -> Value {
        let all = field.get("allOf").and_then(Value::as_array).and_then(|all| all.first());
        let reference = field.get("$ref").or_else(|| all?.get("$ref")).and_then(Value::as_str);
        let Some(name) = reference.and_then(|text| text.rsplit('/').next()) else { return field.clone() };
        let mut found = self.definitions.get(name).cloned().unwrap_or_default();
        for key in ["description", "default"] {
            if let (Some(own), Some(fields)) = (field.get(key), found.as_object_mut()) {
                fields.insert(key.to_owned(), own.clone());
            }
        }
        found
    }
}

fn fields(schema: &Value) -> Vec<(&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten().collect()
}

fn names(schema: &Value, key: &str) -> Vec<String> {
    let all = schema[key].as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The value that the schema itself gives.
fn example(field: &Value) -> Option<Value> {
    let first = || field["enum"].as_array()?.first().cloned();
    let given = |key: &str| field.get(key).filter(|value| !value.is_null()).cloned();
    given("default").or_else(|| given("example")).or_else(first)
}

/// A value of the right type where the schema gives none.
fn plain(field: &Value) -> Value {
    let number = |key: &str| field[key].as_f64();
    match field["type"].as_str() {
        Some("integer" | "number") => {
            let least = number("minimum")
                .map(|least| if field["exclusiveMinimum"] == true { least + 1.0 } else { least });
            let most = number("maximum");
            let value = least.unwrap_or(0.0).max(most.map_or(f64::MIN, |most| most.min(0.0)));
            if value.fract() == 0.0 { json!(value as i64) } else { json!(value) }
        }
        Some("boolean") => json!(false),
        Some("array") => {
            let count = field["minItems"].as_u64().unwrap_or(0).min(16);
            let item = example(&field["items"]).unwrap_or_else(|| plain(&field["items"]));
            Value::Array((0..count).map(|_| item.clone()).collect())
        }
        Some("string") => {
            let least = usize::try_from(field["minLength"].as_u64().unwrap_or(0)).unwrap_or(0).min(64);
            Value::from("x".repeat(least))
        }
        _ if field["x-kubernetes-int-or-string"] == true => json!(0),
        _ => json!({}),
    }
}

/// The limits of a field, in one line.
fn limits(field: &Value, required: bool) -> String {
    let mut parts: Vec<String> = Vec::new();
    if required {
        parts.push("required".to_owned());
    }
    if let Some(kind) = field["type"].as_str() {
        let format = field["format"].as_str().map_or_else(String::new, |format| format!(" ({format})"));
        parts.push(format!("{kind}{format}"));
    }
    if let Some(values) = field["enum"].as_array() {
        let values = values.iter().map(brief).collect::<Vec<_>>().join(", ");
        parts.push(format!("one of {values}"));
    }
    for (key, word) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("minItems", "items at least"),
        ("maxItems", "items at most"),
        ("pattern", "matches"),
    ] {
        if let Some(value) = field.get(key) {
            parts.push(format!("{word} {}", brief(value)));
        }
    }
    if let Some(default) = field.get("default") {
        parts.push(format!("default {}", brief(default)));
    }
    if let Some(rules) = field["x-kubernetes-validations"].as_array() {
        parts.extend(
            rules
                .iter()
                .filter_map(|rule| rule["message"].as_str().or(rule["rule"].as_str()).map(str::to_owned)),
        );
    }
    parts.join(", ")
}

fn brief(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "spec": {"type": "object", "required": ["size", "tier", "pods"], "properties": {
                "size": {"type": "integer", "format": "int32", "minimum": 1, "description": "How many pods run."},
                "tier": {"type": "string", "enum": ["bronze", "silver"], "default": "silver"},
                "note": {"type": "string", "maxLength": 10},
                "limits": {"type": "object", "required": ["cpu"], "properties": {
                    "cpu": {"x-kubernetes-int-or-string": true}, "memory": {"type": "string"}}},
                "pods": {"type": "array", "minItems": 1, "items": {"type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string", "minLength": 2}, "port": {"type": "integer"}}}},
            }},
            "status": {"type": "object"}}})
    }

    #[test]
    fn required_fields_have_values_and_the_others_are_comments() {
        let text = skeleton(&Gvk::new("g.io", "v1", "Web"), Some("default"), &schema(), &Value::Null);
        let object = yaml::from_str(&text).unwrap();
        assert_eq!(
            object,
            json!({"apiVersion": "g.io/v1", "kind": "Web",
                "metadata": {"name": "web-sample", "namespace": "default"},
                "spec": {"size": 1, "tier": "silver", "pods": [{"name": "xx"}]}}),
            "{text}"
        );
        expect![[r#"
            apiVersion: g.io/v1
            kind: Web
            metadata:
              name: web-sample
              namespace: default
            # object
            spec:
              # required, array, items at least 1
              pods:
                # required, string, characters at least 2
              - name: xx
                # integer
                # port: 0
              # How many pods run.
              # required, integer (int32), at least 1
              size: 1
              # required, string, one of bronze, silver, default silver
              tier: silver
              # object
              # limits:
                # required
                # cpu: 0
                # string
                # memory: ""
              # string, characters at most 10
              # note: ""
        "#]]
        .assert_eq(&text);
        // Without the sign of a comment, an optional field is one that can be read.
        let all: String = text
            .lines()
            .map(|line| {
                let bare = line.trim_start().strip_prefix("# ").filter(|rest| {
                    rest.split_once(':').is_some_and(|(name, _)| !name.trim_start_matches("- ").contains(' '))
                });
                match bare {
                    Some(rest) => format!("{}{rest}\n", " ".repeat(line.len() - line.trim_start().len())),
                    None => format!("{line}\n"),
                }
            })
            .collect();
        let object = yaml::from_str(&all).unwrap_or_else(|error| panic!("{error}:\n{all}"));
        assert_eq!(object["spec"]["note"], "", "{all}");
    }

    #[test]
    fn references_are_followed_and_an_open_schema_is_an_empty_spec() {
        let definitions = json!({"Spec": {"type": "object", "required": ["size"],
            "properties": {"size": {"type": "integer"}}}});
        let root = json!({"properties": {"spec": {"allOf": [{"$ref": "#/components/schemas/Spec"}]}}});
        let text = skeleton(&Gvk::new("", "v1", "Web"), None, &root, &definitions);
        assert_eq!(yaml::from_str(&text).unwrap()["spec"], json!({"size": 0}), "{text}");
        let open =
            json!({"properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
        let text = skeleton(&Gvk::new("", "v1", "Web"), None, &open, &Value::Null);
        assert_eq!(yaml::from_str(&text).unwrap()["spec"], json!({}), "{text}");
        // What a chart takes is there to be uncommented; a spec with fields of its own is left as it is.
        let values = "# How many.\nreplicas: 1\n\nimage:\n  # From where.\n  tag: \"1\"\n";
        let text = with_values(&text, "charts/web", values);
        assert_eq!(yaml::from_str(&text).unwrap()["spec"], Value::Null, "{text}");
        let all = text.replace("  # replicas", "  replicas").replace("  # image", "  image");
        let all = yaml::from_str(&all.replace("  #   tag", "    tag")).unwrap();
        assert_eq!(all["spec"], json!({"replicas": 1, "image": {"tag": "1"}}), "{text}");
        let text = skeleton(&Gvk::new("", "v1", "Web"), None, &root, &definitions);
        assert_eq!(with_values(&text, "charts/web", values), text);
    }
}

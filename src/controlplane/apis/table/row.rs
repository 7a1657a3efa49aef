//! One object on its way to becoming a row: short accessors that never fail, and the texts printers share.

use super::age;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// An object and the time it is.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    pub object: &'a Value,
    pub now: Timestamp,
}

impl<'a> Row<'a> {
    /// The value at a JSON pointer, null where there is nothing.
    pub fn at(self, pointer: &str) -> &'a Value {
        self.object.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub fn text(self, pointer: &str) -> &'a str {
        self.at(pointer).as_str().unwrap_or_default()
    }

    /// A text, or what to print where it is missing or empty.
    pub(crate) fn text_or(self, pointer: &str, missing: &'a str) -> &'a str {
        Some(self.text(pointer)).filter(|text| !text.is_empty()).unwrap_or(missing)
    }

    pub fn number(self, pointer: &str) -> i64 {
        self.at(pointer).as_i64().unwrap_or(0)
    }

    pub fn list(self, pointer: &str) -> &'a [Value] {
        self.at(pointer).as_array().map_or(&[], Vec::as_slice)
    }

    pub fn fields(self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.at(pointer).as_object()
    }

    pub(crate) fn is_set(self, pointer: &str) -> bool {
        !self.at(pointer).is_null()
    }

    pub fn name(self) -> Value {
        self.text("/metadata/name").into()
    }

    pub(crate) fn age(self) -> Value {
        self.since("/metadata/creationTimestamp").into()
    }

    pub fn since(self, pointer: &str) -> String {
        age::since(self.at(pointer), self.now)
    }

    /// Returns true if `status.conditions` has this type with status True.
    pub(crate) fn condition(self, kind: &str) -> bool {
        self.list("/status/conditions").iter().any(|at| at["type"] == kind && at["status"] == "True")
    }

    /// Names and images of the containers below a pod template, comma separated.
    pub fn containers(self, pod: &str) -> [Value; 2] {
        let containers = self.list(&format!("{pod}/spec/containers"));
        let join = |field: &str| {
            containers.iter().filter_map(|at| at[field].as_str()).collect::<Vec<_>>().join(",").into()
        };
        [join("name"), join("image")]
    }
}

/// `a=b,c=d`, or `<none>`.
pub(crate) fn labels(labels: Option<&Map<String, Value>>) -> String {
    match labels.filter(|labels| !labels.is_empty()) {
        Some(labels) => labels
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect::<Vec<_>>()
            .join(","),
        None => "<none>".to_owned(),
    }
}

/// A label selector as kubectl writes it, or `<none>`.
pub(crate) fn selector(selector: &Value) -> String {
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    if parts.is_empty() {
        return "<none>".to_owned();
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// The first few, and how many more there are.
pub(crate) fn first<S: AsRef<str>>(texts: &[S], most: usize, none: &str) -> String {
    if texts.is_empty() {
        return none.to_owned();
    }
    let shown: Vec<&str> = texts.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(",");
    if texts.len() > most { format!("{shown} + {} more...", texts.len() - most) } else { shown }
}

/// An int-or-string field as text.
pub(crate) fn either(value: &Value, missing: &str) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => missing.to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_read_like_kubectls() {
        let wanted = json!({
            "matchLabels": {"b": "2", "a": "1"},
            "matchExpressions": [
                {"key": "c", "operator": "In", "values": ["y", "x"]},
                {"key": "d", "operator": "Exists"},
                {"key": "e", "operator": "DoesNotExist"},
            ],
        });
        assert_eq!(selector(&wanted), "a=1,b=2,c in (x,y),d,!e");
        assert_eq!(selector(&Value::Null), "<none>");
        assert_eq!(first(&["a", "b", "c", "d"], 3, "<none>"), "a,b,c + 1 more...");
    }
}

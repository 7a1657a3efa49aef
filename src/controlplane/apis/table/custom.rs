//! The columns a custom resource definition gives its kind: name, then the definition's own, or the age.

use super::age;
use super::column::Column;
use jiff::Timestamp;
use opdev_object::jsonpath::JsonPath;
use serde_json::Value;

/// The column definitions.
pub(super) fn columns(own: &[Value]) -> Vec<Column> {
    let mut columns = vec![Column::name()];
    if own.is_empty() {
        columns.push(Column::age());
    }
    for column in own {
        let text = |field: &str| column[field].as_str().unwrap_or_default().to_owned();
        let description = match text("description") {
            empty if empty.is_empty() => {
                format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath"))
            }
            said => said,
        };
        columns.push(Column {
            name: text("name").into(),
            kind: text("type").into(),
            format: text("format").into(),
            description: description.into(),
            priority: column["priority"].as_i64().unwrap_or(0),
        });
    }
    columns
}

/// The cells of one object.
pub(super) fn cells(own: &[Value], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    if own.is_empty() {
        cells.push(age::since(&object["metadata"]["creationTimestamp"], now).into());
    }
    for column in own {
        let path = column["jsonPath"].as_str().and_then(JsonPath::parse);
        let found = path.and_then(|path| path.find(object).first().map(|value| (*value).clone()));
        let kind = column["type"].as_str().unwrap_or_default();
        cells.push(found.map_or(Value::Null, |value| cell(kind, &value, now)));
    }
    cells
}

/// A value as a cell of a column of this type; null where it does not fit.
fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::String(_)) => value.clone(),
        ("string", Value::Null) => "<nil>".into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            #[allow(clippy::cast_possible_truncation)]
            (None, Some(float)) => (float as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(_)) => match age::instant(value) {
            Some(_) => age::since(value, now).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_follow_the_type_of_their_column() {
        let own = json!([
            {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
            {"name": "Hosts", "type": "string", "jsonPath": ".spec.hosts", "priority": 1},
            {"name": "Since", "type": "date", "jsonPath": ".status.since"},
            {"name": "None", "type": "string", "jsonPath": ".none"},
        ]);
        let own = own.as_array().unwrap();
        let object = json!({
            "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"replicas": 3, "hosts": ["x"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}], "since": "2026-01-01T00:00:00Z"},
        });
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
        assert_eq!(Value::from(cells(own, &object, now)), json!(["a", 3, "True", "[\"x\"]", "60m", null]));
        let columns = columns(own);
        assert_eq!((columns[0].format.as_ref(), columns[3].priority), ("name", 1));
        assert_eq!(Value::from(cells(&[], &object, now)), json!(["a", "60m"]));
    }
}

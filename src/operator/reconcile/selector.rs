//! The selector of a watch as the text the API server takes. Whether it picks an object is `Watch::picks`. Pure.

use serde_json::Value;

/// The selector in its query form, empty for all.
pub(in crate::operator) fn text(selector: &Value) -> String {
    let labels = selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten();
    let equal = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    let expressions = selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten();
    let others = expressions.map(|expression| {
        let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
        let values = expression.get("values").and_then(Value::as_array).into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let (key, values) = (text("key"), values.join(","));
        match text("operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        }
    });
    equal.chain(others).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::selector::LabelSelector;
    use serde_json::json;

    #[test]
    fn a_selector_reads_the_same_on_both_sides() {
        let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
            {"key": "x", "operator": "NotIn", "values": ["y"]},
            {"key": "old", "operator": "DoesNotExist"}, {"key": "new", "operator": "Exists"}]});
        assert_eq!(text(&selector), "app=web,tier in (a,b),x notin (y),!old,new");
        let read = LabelSelector::from_json(&selector).unwrap();
        let labels = |tier: &str| json!({"app": "web", "tier": tier, "new": ""}).as_object().unwrap().clone();
        assert!(read.matches(&labels("b")) && !read.matches(&labels("c")));
        assert_eq!(text(&Value::Null), "");
    }
}

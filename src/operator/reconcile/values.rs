//! The values a chart gets: the custom resource's spec with the operator's overrides on top. Pure.

use anyhow::{Context, anyhow};
use opdev_helm::values;
use opdev_object::meta;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The spec of a custom resource.
pub(super) fn spec(object: &Value) -> anyhow::Result<Value> {
    match object.get("spec") {
        Some(spec @ Value::Object(_)) => Ok(spec.clone()),
        _ => Err(anyhow!(
            "failed to get spec: expected map[string]interface{{}}; {} has no spec that is an object",
            meta::name(object).unwrap_or_default()
        )),
    }
}

/// The spec with each override set as a string.
pub(super) fn with_overrides(spec: &Value, overrides: &BTreeMap<String, String>) -> anyhow::Result<Value> {
    let mut forced = Value::Object(Map::new());
    for (key, value) in overrides {
        values::parse_set_string(&mut forced, &format!("{key}={value}"))
            .map_err(|error| anyhow!(error))
            .with_context(|| format!("failed to parse override {key:?}"))?;
    }
    Ok(merge(spec, &forced))
}

/// Objects merge field by field, everything else is replaced.
fn merge(base: &Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut merged = base.clone();
            for (key, value) in over {
                let value = base.get(key).map_or_else(|| value.clone(), |base| merge(base, value));
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        (_, over) => over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn overrides_win_as_strings_and_lists_are_replaced() {
        let spec = json!({"image": {"tag": "1", "name": "web"}, "list": [1, 2], "replicas": 3});
        let overrides = BTreeMap::from([
            ("image.tag".to_owned(), "2".to_owned()),
            ("replicas".to_owned(), "5".to_owned()),
            ("list".to_owned(), "{a}".to_owned()),
        ]);
        assert_eq!(
            with_overrides(&spec, &overrides).unwrap(),
            json!({"image": {"tag": "2", "name": "web"}, "list": ["a"], "replicas": "5"})
        );
    }

    #[test]
    fn a_missing_spec_is_an_error_in_the_engines_words() {
        assert!(
            spec(&json!({"metadata": {"name": "a"}}))
                .unwrap_err()
                .to_string()
                .starts_with("failed to get spec: expected map[string]interface{}")
        );
        assert!(spec(&json!({"spec": []})).is_err());
        assert_eq!(spec(&json!({"spec": {}})).unwrap(), json!({}));
    }
}

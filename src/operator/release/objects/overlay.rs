//! The object that an apply would leave.

use serde_json::{Map, Value};

/// Applies `wanted` to an object, as far as that can be done without its schema: maps merge, lists of the
/// same length merge item by item, everything else is replaced.
pub(crate) fn overlay(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (name, wanted) in wanted {
                overlay(live.entry(name.as_str()).or_insert(Value::Null), wanted);
            }
        }
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            live.iter_mut().zip(wanted).for_each(|(live, wanted)| overlay(live, wanted));
        }
        (live @ Value::Null, Value::Object(wanted)) => {
            let mut fields = Value::Object(Map::new());
            overlay(&mut fields, &Value::Object(wanted.clone()));
            *live = fields;
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_would_be_applied_lies_over_what_is_there() {
        let mut live =
            json!({"spec": {"replicas": 1, "c": [{"name": "a", "image": "x", "pull": "Always"}]}, "s": 1});
        overlay(
            &mut live,
            &json!({"spec": {"replicas": 2, "c": [{"name": "a", "image": "y"}]}, "m": {"n": 1}}),
        );
        assert_eq!(
            live,
            json!({"spec": {"replicas": 2, "c": [{"name": "a", "image": "y", "pull": "Always"}]}, "s": 1, "m": {"n": 1}})
        );
    }
}

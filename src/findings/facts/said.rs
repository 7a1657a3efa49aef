//! The state of a custom resource in the words of its own status: ready, or in trouble.

use opdev_object::meta;
use serde_json::Value;

/// Words of fields, reasons and phases that tell of trouble.
const TROUBLE: [&str; 12] = [
    "error",
    "fail",
    "invalid",
    "degraded",
    "unhealthy",
    "crash",
    "reject",
    "denied",
    "missing",
    "not found",
    "refused",
    "unable",
];

/// The state that a status tells of.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatusWords {
    /// True if a condition Ready or Available is true, as far as known for the newest generation.
    pub ready: bool,
    /// True if anything in it may tell of a failure.
    pub trouble: bool,
}

impl StatusWords {
    pub(crate) fn of(object: &Value) -> StatusWords {
        let (status, generation) = (&object["status"], meta::generation(object));
        let conditions = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
        let newest =
            |value: &Value| value["observedGeneration"].as_i64().is_none_or(|seen| seen == generation);
        let ready = conditions.iter().any(|condition| {
            matches!(condition["type"].as_str(), Some("Ready" | "Available"))
                && condition["status"] == "True"
                && newest(condition)
        });
        let doubt = |condition: &Value| matches!(condition["status"].as_str(), Some("False" | "Unknown"));
        let trouble = conditions.iter().any(doubt) || tells_of_trouble(status);
        StatusWords { ready: ready && newest(status), trouble }
    }
}

fn tells_of_trouble(value: &Value) -> bool {
    let has = |text: &str| {
        let text = text.to_lowercase();
        TROUBLE.iter().any(|word| text.contains(word))
    };
    match value {
        Value::String(text) => has(text),
        Value::Array(items) => items.iter().any(tells_of_trouble),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let filled = value.as_str().is_some_and(|text| !text.is_empty())
                || value.as_i64().is_some_and(|number| number > 0)
                || value == true;
            filled && has(name) || tells_of_trouble(value)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::StatusWords;
    use serde_json::{Value, json};

    #[test]
    fn a_status_may_tell_of_trouble_in_many_ways() {
        let said = |status: Value| {
            let said = StatusWords::of(&json!({"metadata": {"generation": 2}, "status": status}));
            (said.ready, said.trouble)
        };
        let condition = |name: &str, status: &str| json!({"conditions": [{"type": name, "status": status}]});
        assert_eq!(said(condition("Ready", "True")), (true, false));
        assert_eq!(said(condition("Ready", "False")), (false, true));
        assert_eq!(said(condition("ReconcileError", "True")), (false, true));
        assert_eq!(said(json!({"phase": "Running"})), (false, false));
        assert_eq!(said(json!({"phase": "Failed"})), (false, true));
        assert_eq!(said(json!({"lastError": "the Secret is not there"})), (false, true));
        assert_eq!(said(json!({"lastError": ""})), (false, false));
        let old = json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]});
        assert_eq!(said(old), (false, false));
    }
}

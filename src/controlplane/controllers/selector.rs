//! Label selectors of workloads: `matchLabels` and `matchExpressions`, or a Service's plain map.
//! Never parses the text form of requests; `opdev_object::selector` does.

use super::fields::{list, map, text};
use serde_json::{Map, Value};

/// A selector read off an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    labels: Map<String, Value>,
    expressions: Vec<Value>,
}

impl Selector {
    /// `spec.selector` of a workload; `None` where there is none.
    pub(crate) fn of(value: Option<&Value>) -> Option<Self> {
        let value = value?.as_object()?;
        let whole = Value::Object(value.clone());
        Some(Selector {
            labels: map(&whole, "/matchLabels").cloned().unwrap_or_default(),
            expressions: list(&whole, "/matchExpressions").to_vec(),
        })
    }

    /// A plain map of labels, as Services have.
    pub(crate) fn of_map(labels: &Map<String, Value>) -> Self {
        Selector { labels: labels.clone(), expressions: Vec::new() }
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// Whether an object's labels match.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.matches_labels(map(object, "/metadata/labels"))
    }

    /// Whether a set of labels matches.
    pub(crate) fn matches_labels(&self, labels: Option<&Map<String, Value>>) -> bool {
        let value_of = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.labels
            .iter()
            .all(|(key, wanted)| value_of(key).is_some_and(|have| Some(have) == wanted.as_str()))
            && self.expressions.iter().all(|expression| {
                let have = value_of(text(expression, "/key"));
                let listed = || {
                    have.is_some_and(|have| {
                        list(expression, "/values").iter().any(|v| v.as_str() == Some(have))
                    })
                };
                match text(expression, "/operator") {
                    "In" => listed(),
                    "NotIn" => !listed(),
                    "Exists" => have.is_some(),
                    "DoesNotExist" => have.is_none(),
                    "Gt" => compare(have, expression).is_some_and(|(have, bound)| have > bound),
                    "Lt" => compare(have, expression).is_some_and(|(have, bound)| have < bound),
                    _ => false,
                }
            })
    }
}

fn compare(have: Option<&str>, expression: &Value) -> Option<(i64, i64)> {
    Some((have?.parse().ok()?, list(expression, "/values").first()?.as_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::Selector;
    use serde_json::json;

    #[test]
    fn expressions_and_labels_all_have_to_match() {
        let selector = Selector::of(Some(&json!({
            "matchLabels": {"app": "a"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["x", "y"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        })))
        .unwrap();
        let labelled = |labels| json!({"metadata": {"labels": labels}});
        assert!(selector.matches(&labelled(json!({"app": "a", "tier": "y"}))));
        assert!(!selector.matches(&labelled(json!({"app": "a", "tier": "z"}))));
        assert!(!selector.matches(&labelled(json!({"app": "a", "tier": "x", "old": ""}))));
        assert!(!selector.matches(&json!({})));
        assert!(Selector::of(None).is_none());
    }
}

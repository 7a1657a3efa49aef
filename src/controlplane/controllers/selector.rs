//! Selectors as controllers meet them: of workloads, as the plain map of a Service, as terms of node
//! affinity. Never parses the text form of requests; `opdev_object::selector` does that and the matching of
//! labels.

use super::fields::{list, map, text};
use opdev_apimachinery::attributes::{Attributes, Lookup};
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value, json};

/// A selector read off an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector(LabelSelector);

impl Selector {
    /// `spec.selector` of a workload; `None` where there is none or it makes no sense.
    pub(crate) fn parse(value: Option<&Value>) -> Option<Self> {
        LabelSelector::from_json(value.filter(|value| value.is_object())?).ok().map(Selector)
    }

    /// A plain map of labels, as Services have; one that makes no sense selects nothing.
    pub(crate) fn of_map(labels: &Map<String, Value>) -> Self {
        let selector = json!({"matchLabels": labels});
        Selector::parse(Some(&selector))
            .unwrap_or_else(|| Selector(LabelSelector::from_json(&Value::Null).unwrap_or_default()))
    }

    /// Returns true if it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the objects are found that it selects.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup::selected_by(&self.0)
    }

    /// Returns true if the labels match of an object that is not read.
    pub(crate) fn selects(&self, known: &Attributes) -> bool {
        self.0.matches(known.labels())
    }

    /// Returns true if an object's labels match.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        match map(object, "/metadata/labels") {
            Some(labels) => self.0.matches(labels),
            None => self.0.matches(&Map::new()),
        }
    }
}

/// One requirement of a node affinity term on a label or a field of the node.
pub(crate) fn requirement_holds(requirement: &Value, have: Option<&str>) -> bool {
    let values = list(requirement, "/values");
    let listed = || have.is_some_and(|have| values.iter().any(|value| value.as_str() == Some(have)));
    let numbers = || {
        let bound = values.first()?.as_str()?.parse::<i64>().ok()?;
        Some((have?.parse::<i64>().ok()?, bound))
    };
    match text(requirement, "/operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => have.is_some(),
        "DoesNotExist" => have.is_none(),
        "Gt" => numbers().is_some_and(|(have, bound)| have > bound),
        "Lt" => numbers().is_some_and(|(have, bound)| have < bound),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Selector, requirement_holds};
    use serde_json::json;

    #[test]
    fn expressions_and_labels_all_have_to_match() {
        let selector = Selector::parse(Some(&json!({
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
        assert!(Selector::parse(None).is_none());
        assert!(Selector::parse(Some(&json!({}))).unwrap().is_empty());
    }

    #[test]
    fn node_requirements_compare_numbers() {
        let more = json!({"key": "cores", "operator": "Gt", "values": ["4"]});
        assert!(requirement_holds(&more, Some("8")));
        assert!(!requirement_holds(&more, Some("4")));
        assert!(!requirement_holds(&more, None));
        assert!(requirement_holds(&json!({"operator": "NotIn", "values": ["a"]}), None));
    }
}

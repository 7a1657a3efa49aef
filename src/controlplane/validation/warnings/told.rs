//! The warnings that were found so far, and what several kinds are warned of.

use opdev_apimachinery::resource::{names, quantity};
use serde_json::Value;

/// A real server sends no more than this many characters of warnings, and of each at most `LONGEST`.
const ALL: usize = 4096;
const LONGEST: usize = 256;

/// Warnings, as many as a real server sends: pairs of a list could make millions of them.
#[derive(Debug, Default)]
pub struct Warnings {
    found: Vec<String>,
    characters: usize,
}

impl Warnings {
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.is_full() && !self.found.contains(&text) {
            self.characters += text.chars().count().min(LONGEST);
            self.found.push(text);
        }
    }

    /// Returns true if nobody hears of further warnings.
    pub(super) fn is_full(&self) -> bool {
        self.characters >= ALL
    }
}

impl IntoIterator for Warnings {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

/// Labels of nodes that have newer names.
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

/// The advice of a server about an old label of nodes.
pub(super) fn old_label(label: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == label).map(|(_, advice)| *advice)
}

/// The labels of a selector with what a server says of them.
pub(super) fn old_labels(labels: &Value) -> impl Iterator<Item = (&String, &'static str)> {
    let names = labels.as_object().into_iter().flat_map(|map| map.keys());
    names.filter_map(|name| Some((name, old_label(name)?)))
}

/// Annotations that mean nothing any more, or that have a field instead.
pub(super) fn annotations(told: &mut Warnings, place: &str, object: &Value, deprecated: &[(&str, &str)]) {
    for (name, advice) in deprecated {
        if !object["annotations"][*name].is_null() {
            told.warn(format!("{place}[{name}]: {advice}"));
        }
    }
}

/// The name of something that makes pods becomes part of host names.
pub(super) fn named_as_host(told: &mut Warnings, object: &Value, of: &str) {
    let wrong = names::label(opdev_object::meta::name(object).unwrap_or_default());
    if !wrong.is_empty() {
        told.warn(format!(
            "metadata.name: this is used in {of}, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

/// An amount of bytes that is no whole number.
pub(super) fn fraction(told: &mut Warnings, place: &str, part: &Value, name: &str) {
    let Some(text) = part[name].as_str() else { return };
    if quantity::nano(text).is_some_and(|amount| amount % 1_000_000_000 != 0) {
        told.warn(format!("{place}[{name}]: fractional byte value {text:?} is invalid, must be an integer"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_end_where_a_real_server_sends_no_more() {
        let mut told = Warnings::default();
        for number in 0..10_000 {
            told.warn(format!("{number:1000}"));
            told.warn("the same");
        }
        assert!(told.is_full());
        assert_eq!(told.into_iter().count(), 1 + ALL.div_ceil(LONGEST));
    }
}

//! The objects that a patch or a replacement is about.

use crate::error::SelectorError;
use crate::fields::selects;
use crate::kustomization::Selector;
use crate::resource::{Id, Resource};
use opdev_object::selector::LabelSelector;
use regex::Regex;
use serde_json::Value;

/// A selector of a patch, ready to be used.
pub(crate) struct Target {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: Option<LabelSelector>,
    annotations: Option<LabelSelector>,
}

fn anchored(pattern: &str) -> Result<Option<Regex>, SelectorError> {
    if pattern.is_empty() {
        return Ok(None);
    }
    let regex = Regex::new(&format!("^(?:{pattern})$"));
    let wrong = |error: regex::Error| SelectorError::Pattern {
        pattern: pattern.to_owned(),
        message: error.to_string(),
    };
    regex.map(Some).map_err(wrong)
}

/// A label selector; none where nothing is written.
pub(crate) fn label_selector(text: &str) -> Result<Option<LabelSelector>, SelectorError> {
    if text.is_empty() {
        return Ok(None);
    }
    LabelSelector::parse(text).map(Some).map_err(SelectorError::Labels)
}

/// Returns true if labels, or annotations, of an object are what a selector wants.
pub(crate) fn holds(selector: Option<&LabelSelector>, object: &Value, field: &str) -> bool {
    selector.is_none_or(|selector| selector.matches(&object["metadata"][field]))
}

impl Target {
    pub(crate) fn new(selector: &Selector) -> Result<Target, SelectorError> {
        Ok(Target {
            group: anchored(&selector.group)?,
            version: anchored(&selector.version)?,
            kind: anchored(&selector.kind)?,
            name: anchored(&selector.name)?,
            namespace: anchored(&selector.namespace)?,
            labels: label_selector(&selector.label_selector)?,
            annotations: label_selector(&selector.annotation_selector)?,
        })
    }

    /// Returns true if the object is meant, by the names that it has now or had at first.
    pub(crate) fn selects(&self, resource: &Resource) -> bool {
        let (now, first) = (resource.id(), resource.original_id());
        (fits(&self.namespace, first.effective_namespace())
            || fits(&self.namespace, now.effective_namespace()))
            && (fits(&self.name, &first.name) || fits(&self.name, &now.name))
            && fits(&self.group, &now.gvk.group)
            && fits(&self.version, &now.gvk.version)
            && fits(&self.kind, &now.gvk.kind)
            && holds(self.labels.as_ref(), &resource.object, "labels")
            && holds(self.annotations.as_ref(), &resource.object, "annotations")
    }

    /// Returns true if an id fits, whatever labels and annotations its object has.
    pub(crate) fn selects_id(&self, id: &Id) -> bool {
        fits(&self.group, &id.gvk.group)
            && fits(&self.version, &id.gvk.version)
            && fits(&self.kind, &id.gvk.kind)
            && fits(&self.name, &id.name)
            && fits(&self.namespace, &id.namespace)
    }
}

fn fits(pattern: &Option<Regex>, text: &str) -> bool {
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Returns true if an id is what the source of a replacement selects; nothing is a pattern here.
pub(crate) fn is_selected(id: &Id, selector: &Selector) -> bool {
    let namespace = |text: &str| if text.is_empty() { "default".to_owned() } else { text.to_owned() };
    (selector.name.is_empty() || selector.name == id.name)
        && (selector.namespace.is_empty() || namespace(&selector.namespace) == namespace(&id.namespace))
        && selects(&selector.group, &selector.version, &selector.kind, &id.gvk)
}

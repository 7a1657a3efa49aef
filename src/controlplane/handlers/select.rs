//! Label and field selectors of a request, and which fields each kind can be selected by.

use super::path::Query;
use super::respond::Shape;
use opdev_apimachinery::attributes::Lookup;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::Resource;
use opdev_object::selector::{FieldSelector, LabelSelector};
use opdev_registry::strategy_of;
use opdev_storage::Stored;
use serde_json::Value;

/// The selectors of a list or watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

/// The text of a field, as selectors compare it.
fn text(object: &Value, field: &str) -> String {
    let field = match field {
        // Events of `events.k8s.io` have no source.
        "source" => match object["source"]["component"].as_str() {
            Some(component) if !component.is_empty() => return component.to_owned(),
            _ => "reportingComponent",
        },
        "spec.host" => "spec.nodeName",
        "status.successful" => "status.succeeded",
        // A selector may name it, but the real server never compares it with the object.
        "status.podIPs" => return String::new(),
        other => other,
    };
    let value = field.split('.').filter(|name| !name.is_empty()).fold(object, |at, name| &at[name]);
    match value {
        Value::String(text) => text.clone(),
        Value::Null if matches!(field, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        Value::Null if matches!(field, "status.replicas" | "status.succeeded") => "0".to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

impl Selection {
    /// Reads `labelSelector` and `fieldSelector`; `name` narrows to one object.
    pub(crate) fn parse(resource: &Resource, query: &Query, name: Option<&str>) -> Result<Self, Status> {
        let bad = |error: opdev_object::selector::SelectorError| Status::bad_request(error.to_string());
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default());
        let labels = labels.map_err(|error| {
            let mut status = bad(error);
            let text = &status.message;
            if !text.starts_with("unable to parse requirement") {
                status.message = format!("unable to parse requirement: {text}");
            }
            status
        })?;
        let mut fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default()).map_err(bad)?;
        for term in &fields.terms {
            check(resource, &term.field)?;
        }
        if let Some(name) = name {
            if fields.exact("metadata.name").is_some_and(|other| other != name) {
                let message = format!("fieldSelector metadata.name doesn't match requested name {name:?}");
                return Err(Status::bad_request(message));
            }
            let narrowed = FieldSelector::parse(&format!("metadata.name={name}")).map_err(bad)?;
            fields.terms.extend(narrowed.terms);
        }
        Ok(Selection { labels, fields })
    }

    /// Returns true if everything is selected.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Among which objects those are that can match.
    pub(crate) fn lookup(&self) -> Lookup<'_> {
        Lookup::selected_by(&self.labels)
    }

    /// The one name that can match, if there is only one.
    pub(crate) fn only_name(&self) -> Option<&str> {
        self.fields.exact("metadata.name")
    }

    /// The one namespace that can match, if there is only one.
    pub(crate) fn only_namespace(&self) -> Option<&str> {
        self.fields.exact("metadata.namespace")
    }

    /// Returns true if a stored object is selected; it is read only where what is known of it does not tell.
    pub(crate) fn selects(&self, shape: &Shape, stored: &Stored) -> bool {
        let known = stored.attributes();
        if !self.labels.matches(known.labels()) {
            return false;
        }
        let selectable = &strategy_of(&shape.resource).selectable;
        let mut unknown = false;
        for term in &self.fields.terms {
            let value = match term.field.as_str() {
                "metadata.name" => &*stored.key().name,
                "metadata.namespace" => &*stored.key().namespace,
                field => match (selectable.known)(known, field) {
                    Some(value) => value,
                    None => {
                        unknown = true;
                        continue;
                    }
                },
            };
            if (value == term.value) != term.equal {
                return false;
            }
        }
        !unknown || self.matches(&shape.registry.served(&shape.resource, stored))
    }

    /// Returns true if an object is selected.
    fn matches(&self, object: &Value) -> bool {
        self.labels.matches(&object["metadata"]["labels"])
            && self.fields.terms.iter().all(|term| (text(object, &term.field) == term.value) == term.equal)
    }
}

fn check(resource: &Resource, field: &str) -> Result<(), Status> {
    if field == "metadata.name" || (field == "metadata.namespace" && resource.namespaced) {
        return Ok(());
    }
    let unsupported = || Err(Status::bad_request(format!("field label not supported: {field}")));
    if let Some(custom) = &resource.custom {
        let known = custom.selectable_fields.iter().any(|path| path.trim_start_matches('.') == field);
        return if known { Ok(()) } else { unsupported() };
    }
    let selectable = &strategy_of(resource).selectable;
    match selectable.fields {
        Some(known) if known.contains(&field) => Ok(()),
        // Kinds without fields of their own know both, whether or not they have a namespace.
        None if field == "metadata.namespace" => Ok(()),
        _ => Err(Status::bad_request((selectable.refusal)(field))),
    }
}

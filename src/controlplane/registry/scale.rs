//! The scale subresource: an `autoscaling/v1` Scale read off an object, and its replicas written back.

use super::context::Context;
use super::strategy::Part;
use super::update::Change;
use super::{Registry, Resource, defaults, metadata};
use crate::error::{Cause, Status};
use crate::storage::{Key, Stored};
use serde_json::{Map, Value, json};
use std::sync::Arc;

fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').filter(|name| !name.is_empty()).fold(object, |value, name| &value[name])
}

fn text_of_selector(selector: &Value) -> String {
    let labels = selector
        .get("matchLabels")
        .or_else(|| selector.get("matchExpressions").is_none().then_some(selector));
    let mut parts: Vec<(String, String)> = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        parts.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for rule in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = rule["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            rule["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match rule["operator"].as_str().unwrap_or_default() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        };
        parts.push((key.to_owned(), text));
    }
    parts.sort();
    parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(",")
}

/// The Scale of an object.
pub(crate) fn read(resource: &Resource, object: &Value) -> Result<Value, Status> {
    let mut meta = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            meta.insert(field.to_owned(), value.clone());
        }
    }
    let (wanted, is, selector) = match resource.custom.as_ref() {
        None => {
            let selector = text_of_selector(&object["spec"]["selector"]);
            (object["spec"]["replicas"].as_i64(), object["status"]["replicas"].as_i64(), selector)
        }
        Some(custom) => {
            let Some(paths) = &custom.scale else {
                return Err(Status::new(404, "NotFound", "the server could not find the requested resource"));
            };
            let selector = paths.label_selector.as_deref().and_then(|path| at(object, path).as_str());
            (
                at(object, &paths.spec_replicas).as_i64(),
                at(object, &paths.status_replicas).as_i64(),
                selector.unwrap_or_default().to_owned(),
            )
        }
    };
    let mut spec = Map::new();
    if let Some(wanted) = wanted.filter(|n| *n != 0) {
        spec.insert("replicas".to_owned(), Value::from(wanted));
    }
    let mut status = json!({"replicas": is.unwrap_or(0)});
    if !selector.is_empty() {
        status["selector"] = Value::from(selector);
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}),
    )
}

fn write(resource: &Resource, object: &mut Value, replicas: i64) {
    let path = resource.custom.as_ref().and_then(|c| c.scale.as_ref());
    let path = path.map_or(".spec.replicas", |paths| paths.spec_replicas.as_str());
    let mut names: Vec<&str> = path.split('.').filter(|name| !name.is_empty()).collect();
    let Some(last) = names.pop() else { return };
    let parent = names.into_iter().fold(object, |value, name| defaults::sub(value, name));
    if parent.is_object() {
        parent[last] = Value::from(replicas);
    }
}

impl Registry {
    /// Writes the Scale that `make` makes of the current one; answers with the object.
    pub fn update_scale(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        key: &Key,
        make: &mut dyn FnMut(&Value) -> Result<Value, Status>,
    ) -> Result<Arc<Stored>, Status> {
        let change = Change { resource, key, part: Part::Scale, applied: false };
        self.update(ctx, change, &mut |_, current| {
            let scale = make(&read(resource, current)?)?;
            let replicas = &scale["spec"]["replicas"];
            let number = replicas.as_i64().unwrap_or(0);
            if number < 0 || !(replicas.is_null() || replicas.is_i64()) {
                let detail = "must be greater than or equal to 0";
                let cause = Cause::invalid("spec.replicas", replicas, detail);
                return Err(Status::invalid("autoscaling", "Scale", &key.name, vec![cause]));
            }
            let mut object = current.clone();
            write(resource, &mut object, number);
            // An empty resourceVersion in a Scale means any, for every kind.
            let version = metadata::text(&scale, "resourceVersion").to_owned();
            if !version.is_empty() {
                metadata::of(&mut object).insert("resourceVersion".to_owned(), Value::from(version));
            }
            for field in ["name", "uid"] {
                let value = metadata::text(&scale, field).to_owned();
                if !value.is_empty() {
                    metadata::of(&mut object).insert(field.to_owned(), Value::from(value));
                }
            }
            Ok(object)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_as_text() {
        let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]});
        assert_eq!(text_of_selector(&selector), "a=1,b=2,c in (x,y),!d");
        assert_eq!(text_of_selector(&json!({"app": "web"})), "app=web");
    }
}

//! Reads the `autoscaling/v1` Scale of an object: where its numbers stand, the kind or its definition says.
//! Never writes anything back.

use opdev_apimachinery::error::Status;
use opdev_apimachinery::resource::Resource;
use serde_json::{Map, Value, json};

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
pub fn read(resource: &Resource, object: &Value) -> Result<Value, Status> {
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

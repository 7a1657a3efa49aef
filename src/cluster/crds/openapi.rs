//! A kind as the API server serves it, for users who may not read CustomResourceDefinitions: discovery says
//! whether it is there, OpenAPI with which schema.

use anyhow::Result;
use http::Method;
use kube::Client;
use opdev_client::{ApiError, resource_of, send};
use opdev_object::meta::Gvk;
use serde_json::Value;

/// The cluster's answer about a kind.
pub(super) enum Served {
    No,
    /// With this schema, where OpenAPI has one.
    As(Option<Value>),
}

/// Asks discovery, then OpenAPI.
///
/// # Errors
/// Where the API server does not answer.
pub(super) async fn served(client: &Client, gvk: &Gvk) -> Result<Served> {
    if let Err(error) = resource_of(client, gvk).await {
        return match error {
            ApiError::NotServed(_) => Ok(Served::No),
            error => Err(error.into()),
        };
    }
    let path = format!("/openapi/v3/apis/{}/{}", gvk.group, gvk.version);
    let Ok((document, _)) = send(client, Method::GET, &path, "application/json", None).await else {
        return Ok(Served::As(None));
    };
    let schemas = document.pointer("/components/schemas").and_then(Value::as_object);
    let is = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.into_iter().flatten().any(|one| one["kind"] == gvk.kind && one["group"] == gvk.group)
    };
    Ok(Served::As(schemas.and_then(|schemas| schemas.values().find(is).cloned())))
}

/// Differences that are worth naming.
const MOST: usize = 5;

/// Where the schema of a definition and the one that is served differ, such as `.spec.size`. What the API
/// server adds by itself (apiVersion, kind, metadata) and what says nothing about values (descriptions) does
/// not count. None where nothing is served that could be compared.
pub(super) fn differences(crd: &Value, gvk: &Gvk, served: Option<&Value>) -> Vec<String> {
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    let version = versions.into_iter().flatten().find(|version| version["name"] == gvk.version);
    let own = version.and_then(|version| version.pointer("/schema/openAPIV3Schema"));
    let (Some(own), Some(served)) = (own, served) else { return Vec::new() };
    let mut found = Vec::new();
    compare("", own, served, &mut found);
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(at: &str, own: &Value, served: &Value, found: &mut Vec<String>) {
    let differs = [
        "type",
        "enum",
        "format",
        "minimum",
        "maximum",
        "pattern",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    ]
    .iter()
    .any(|word| own.get(word) != served.get(word));
    let names = |schema: &Value| -> Vec<String> {
        let required = schema["required"].as_array().into_iter().flatten();
        let mut names: Vec<String> = required.filter_map(Value::as_str).map(str::to_owned).collect();
        names.sort();
        names
    };
    if differs || names(own) != names(served) {
        found.push(if at.is_empty() { "its root".to_owned() } else { at.to_owned() });
    }
    let fields = |schema: &Value| schema["properties"].as_object().cloned().unwrap_or_default();
    let (own_fields, served_fields) = (fields(own), fields(served));
    for (name, schema) in &own_fields {
        let path = format!("{at}.{name}");
        if at.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        match served_fields.get(name) {
            Some(served) => compare(&path, schema, served, found),
            None => found.push(format!("{path} is missing")),
        }
    }
    for name in served_fields.keys().filter(|name| !own_fields.contains_key(*name)) {
        if !(at.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")) {
            found.push(format!("{at}.{name} is not in your files"));
        }
    }
    for part in ["items", "additionalProperties"] {
        if let (Some(own), Some(served)) = (own.get(part), served.get(part))
            && own.is_object()
            && served.is_object()
        {
            compare(&format!("{at}[]"), own, served, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_served_schema_is_compared_by_what_it_takes() {
        let gvk = Gvk::new("a.b", "v1", "One");
        let crd = |spec: Value| {
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object",
                "description": "Ours.", "properties": {"spec": spec}}}}]}})
        };
        let served = |spec: Value| {
            json!({"type": "object", "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"},
                "metadata": {"allOf": []}, "spec": spec}})
        };
        let size = |maximum: i32| json!({"type": "object", "properties": {"size": {"type": "integer", "maximum": maximum}}});
        assert!(differences(&crd(size(3)), &gvk, Some(&served(size(3)))).is_empty());
        assert_eq!(differences(&crd(size(3)), &gvk, Some(&served(size(4)))), [".spec.size"]);
        let empty = json!({"type": "object"});
        assert_eq!(differences(&crd(size(3)), &gvk, Some(&served(empty.clone()))), [".spec.size is missing"]);
        assert_eq!(
            differences(&crd(empty), &gvk, Some(&served(size(4)))),
            [".spec.size is not in your files"]
        );
        assert!(differences(&crd(size(3)), &gvk, None).is_empty());
    }
}

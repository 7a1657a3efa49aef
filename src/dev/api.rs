//! The way to the API server for what the user asks: one call, its answer, its warnings. Knows no request.

use crate::event::mask;
use crate::tap::warning_text;
use anyhow::{Result, bail};
use http::header::{CONTENT_TYPE, WARNING};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Status};
use opdev_object::meta::Gvk;
use serde_json::Value;

/// The field manager of everything the user writes through opdev.
pub(in crate::dev) const MANAGER: &str = "opdev";

/// A kind that the API server does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotServed(pub(crate) Gvk);

impl std::fmt::Display for NotServed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the API server does not serve {}: its CustomResourceDefinition is missing", self.0)
    }
}

impl std::error::Error for NotServed {}

/// The resource that serves a kind, and whether it is namespaced.
///
/// # Errors
/// `NotServed` where discovery answers and does not name the kind; else why it does not answer.
pub(crate) async fn resource_of(client: &Client, gvk: &Gvk) -> Result<(ApiResource, bool)> {
    let wanted = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let (resource, capabilities) = match kube::discovery::pinned_kind(client, &wanted).await {
        Ok(found) => found,
        // A group without a version, and a version without the kind; neither answer says more than these words.
        Err(kube::Error::Api(status)) if status.code == 404 => bail!(NotServed(gvk.clone())),
        Err(kube::Error::Discovery(_)) => bail!(NotServed(gvk.clone())),
        Err(error) => return Err(error.into()),
    };
    Ok((resource, capabilities.scope == kube::discovery::Scope::Namespaced))
}

/// The path of one object.
pub(in crate::dev) fn object_path(resource: &ApiResource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", plural_path(resource, namespace))
}

/// The path of all objects of a resource.
pub(in crate::dev) fn plural_path(resource: &ApiResource, namespace: Option<&str>) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let (version, plural) = (&resource.api_version, &resource.plural);
    match namespace {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    }
}

/// Sends one request and reads its answer and its warnings.
///
/// # Errors
/// The API server's refusal as `kube::Error::Api`, or the transport's error.
pub(in crate::dev) async fn send(
    client: &Client,
    verb: &str,
    uri: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<(Value, Vec<String>)> {
    let body = match body {
        Some(value) => Body::from(serde_json::to_vec(value)?),
        None => Body::empty(),
    };
    let request = http::Request::builder()
        .method(verb)
        .uri(uri)
        .header(CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, "application/json")
        .body(body)?;
    let response = client.send(request).await?;
    let status = response.status();
    let warnings = response.headers().get_all(WARNING).iter().filter_map(warning_text).collect();
    let bytes = response.into_body().collect().await?.to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if !status.is_success() {
        let refusal: Status = serde_json::from_value(value).unwrap_or_else(|_| {
            Status::failure("the answer is not one of a Kubernetes API server", status.as_str())
        });
        return Err(kube::Error::Api(refusal.boxed()).into());
    }
    Ok((value, warnings))
}

/// A refusal repeats values of the object; those under secret names, and all of a Secret's, are masked.
pub(crate) fn without_secrets(error: anyhow::Error, object: &Value) -> anyhow::Error {
    let mut secrets = mask::secrets(object);
    if object["kind"] == "Secret" {
        let values = ["data", "stringData"].into_iter().filter_map(|field| object.get(field)?.as_object());
        secrets.extend(values.flat_map(serde_json::Map::values).filter_map(Value::as_str).map(str::to_owned));
    }
    match error.downcast::<kube::Error>() {
        Ok(kube::Error::Api(mut status)) => {
            status.message = mask::text(&status.message, &secrets);
            kube::Error::Api(status).into()
        }
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

/// A value of a query.
pub(in crate::dev) fn escaped(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(in crate::dev) fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 404)
}

pub(in crate::dev) fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 403)
}

/// Whether an object has changed since the revision that a write was made for.
pub(in crate::dev) fn is_conflict(error: &anyhow::Error) -> bool {
    let reason = "Conflict";
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.reason == reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        let warning = |text| warning_text(&http::HeaderValue::from_static(text));
        assert_eq!(warning(r#"299 - "unknown field \"spec.foo\"""#).unwrap(), "unknown field \"spec.foo\"");
        assert_eq!(warning("nonsense"), None);
    }
}

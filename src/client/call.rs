//! One call to the API server: its JSON, its warnings, its refusal as an error. Knows paths, and no object.

use super::error::ApiError;
use crate::recorder::Tap;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request};
use kube::core::{ApiResource, GroupVersionKind};
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::sync::Arc;

/// The field manager of everything that opdev writes, but for charts' objects.
pub const OWN_MANAGER: &str = "opdev";

/// The content type of an object.
pub(crate) const JSON: &str = "application/json";
/// The content type of a merge patch.
pub const MERGE: &str = "application/merge-patch+json";
/// The content type of a JSON patch.
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
/// The content type of a strategic merge patch, which built-in kinds have.
pub const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// The content type of a server-side apply.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

/// A client of one API server. Its calls are recorded where a reconcile makes them.
#[derive(Clone)]
pub struct ApiClient {
    tap: Tap,
    /// Whom calls are made as, where not as ourselves.
    user: Option<Arc<str>>,
}

impl ApiClient {
    /// Calls through kube's own client, as ourselves.
    pub fn of(client: &kube::Client) -> ApiClient {
        ApiClient { tap: Tap::new(client.clone()), user: None }
    }

    /// Calls as a user.
    pub(crate) fn acting_as(&self, user: Option<Arc<str>>) -> ApiClient {
        ApiClient { tap: self.tap.clone(), user }
    }

    /// kube's own client, for streams.
    pub fn streams(&self) -> &kube::Client {
        self.tap.client()
    }

    /// Sends one request; the answer is its JSON and the API server's warnings.
    ///
    /// # Errors
    /// The API server's refusal, or why no answer came.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        content: &str,
        body: Option<&Value>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let mut request = Request::builder().method(method).uri(path).header(ACCEPT, JSON);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, content);
        }
        if let Some(user) = &self.user {
            request = request.header("impersonate-user", &**user);
        }
        let body = body.map(ToString::to_string).unwrap_or_default();
        self.answer_to(request.body(body.into_bytes())).await
    }

    /// Reads a path in a form of its own.
    pub(super) async fn read_as(&self, path: &str, accept: &str) -> Result<Value, ApiError> {
        Ok(self.answer_to(Request::get(path).header(ACCEPT, accept).body(Vec::new())).await?.0)
    }

    async fn answer_to(
        &self,
        request: http::Result<Request<Vec<u8>>>,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let request = request.map_err(|error| ApiError::Unreachable(error.to_string()))?;
        let answer = self.tap.send(request).await?;
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_else(|_| {
            Value::String(String::from_utf8_lossy(&answer.body).chars().take(500).collect())
        });
        match answer.status.is_success() {
            true => Ok((body, answer.warnings)),
            false => Err(ApiError::refusal(answer.status, &body)),
        }
    }
}

/// Makes one call for a caller that holds kube's own client, and adds words to errors.
///
/// # Errors
/// An `ApiError`.
pub async fn send(
    client: &kube::Client,
    method: Method,
    path: &str,
    content: &str,
    body: Option<&Value>,
) -> anyhow::Result<(Value, Vec<String>)> {
    Ok(ApiClient::of(client).send(method, path, content, body).await?)
}

/// The resource that serves a kind, and whether it is namespaced. Nothing is cached.
///
/// # Errors
/// `ApiError::NotServed` where discovery answers and does not name the kind; else why it does not answer.
pub async fn resource_of(client: &kube::Client, gvk: &Gvk) -> Result<(ApiResource, bool), ApiError> {
    let wanted = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    match kube::discovery::pinned_kind(client, &wanted).await {
        Ok((resource, capabilities)) => {
            Ok((resource, capabilities.scope == kube::discovery::Scope::Namespaced))
        }
        // A group without a version, and a version without the kind; neither answer says more than these
        // words.
        Err(kube::Error::Api(status)) if status.code == 404 => Err(ApiError::NotServed(gvk.clone())),
        Err(kube::Error::Discovery(_)) => Err(ApiError::NotServed(gvk.clone())),
        Err(error) => Err(error.into()),
    }
}

/// The path of one object.
pub fn object_path(resource: &ApiResource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", plural_path(resource, namespace))
}

/// The path of all objects of a resource.
pub fn plural_path(resource: &ApiResource, namespace: Option<&str>) -> String {
    collection_path(&resource.api_version, &resource.plural, namespace)
}

/// The path of all objects with this plural name; all namespaces without one.
pub(super) fn collection_path(api_version: &str, plural: &str, namespace: Option<&str>) -> String {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    match namespace {
        Some(namespace) => format!("{root}/{api_version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{api_version}/{plural}"),
    }
}

/// Percent-encodes what may not stand in a path or query.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

//! Questions that are asked by creating something that is not kept: access reviews, who am I, tokens.
//! Nothing is enforced yet, so everybody known may do everything and the answers say so.

use super::body;
use super::respond;
use super::write::{Answer, Call};
use crate::error::Status;
use crate::registry::metadata;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use serde_json::{Value, json};

const REASON: &str = "the embedded control plane does not enforce RBAC yet";

/// Whether creating this resource asks a question.
pub(crate) fn is_review(group: &str, plural: &str) -> bool {
    matches!(group, "authorization.k8s.io" | "authentication.k8s.io") && plural.ends_with("reviews")
}

impl Call<'_> {
    /// POST of a review.
    pub(crate) fn review(&self) -> Answer {
        let mut object = body::object(self.headers, self.body)?;
        super::write::check_kind(self.resource(), &object)?;
        object["apiVersion"] = Value::from(self.resource().api_version());
        object["kind"] = Value::from(self.resource().kind.as_str());
        metadata::of(&mut object);
        object["status"] = match self.resource().plural.as_str() {
            "selfsubjectrulesreviews" => json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            }),
            "selfsubjectreviews" => json!({"userInfo": self.user_info()}),
            "tokenreviews" => json!({"authenticated": false, "error": "tokens are not known to this server"}),
            _ => json!({"allowed": true, "reason": REASON}),
        };
        Ok((respond::document(StatusCode::CREATED, &object, self.shape.agreed.encoding), Vec::new()))
    }

    fn user_info(&self) -> Value {
        json!({"username": self.user.name, "groups": self.user.groups})
    }

    /// POST of a token request: a token of the right shape, good for nothing on this server.
    pub(crate) fn token(&self) -> Answer {
        let key = self.key();
        let accounts = self.resource();
        let Some(account) = self.shape.registry.store.get(&accounts.table, &key) else {
            return Err(Status::not_found("", "serviceaccounts", &key.name));
        };
        let mut object = body::object(self.headers, self.body)?;
        let seconds = object["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
        let now = self.shape.registry.now();
        let expires = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
        let subject = format!("system:serviceaccount:{}:{}", key.namespace, key.name);
        let claims = json!({"iss": "https://kubernetes.default.svc", "sub": subject, "iat": now.as_second(),
            "exp": expires.as_second(), "kubernetes.io": {"namespace": &*key.namespace,
                "serviceaccount": {"name": &*key.name, "uid": account.value["metadata"]["uid"]}}});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut seal = [0; 32];
        // A seal that nobody checks may be all zeros where the system has no randomness.
        let _ = getrandom::fill(&mut seal);
        let head = json!({"alg": "none", "typ": "JWT"});
        let token = format!("{}.{}.{}", part(&head), part(&claims), URL_SAFE_NO_PAD.encode(seal));
        object["apiVersion"] = Value::from("authentication.k8s.io/v1");
        object["kind"] = Value::from("TokenRequest");
        object["metadata"] = json!({"name": &*key.name, "namespace": &*key.namespace,
            "creationTimestamp": metadata::seconds(now)});
        object["status"] = json!({"token": token, "expirationTimestamp": metadata::seconds(expires)});
        Ok((respond::document(StatusCode::CREATED, &object, self.shape.agreed.encoding), Vec::new()))
    }
}

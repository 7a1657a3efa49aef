//! Questions that are asked by creating something that is not kept: access reviews, who am I, tokens.
//! The answers come from `authorization` and `tokens`; this is only their form.

use super::respond;
use super::write::{Answer, Call};
use crate::tokens::{ISSUER, Wanted};
use http::StatusCode;
use opdev_admission::authorization::{Attributes, rules_review};
use opdev_apimachinery::contract::View;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::identity::User;
use opdev_apimachinery::resource::metadata;
use opdev_object::meta::Gvk;
use serde_json::{Value, json};

const AUTHORIZATION: &str = "authorization.k8s.io";
const AUTHENTICATION: &str = "authentication.k8s.io";
/// Seconds that a token is valid, unless the request names another number.
const HOUR: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// Returns true if creating this resource asks a question.
pub(crate) fn is_review(group: &str, plural: &str) -> bool {
    matches!(group, AUTHORIZATION | AUTHENTICATION) && plural.ends_with("reviews")
}

impl Call<'_> {
    /// POST of a review.
    pub(crate) fn review(&self) -> Answer {
        let mut object = super::kind::read(self.headers, self.body, &self.resource().kind)?.value;
        super::kind::of_body(self.resource(), &object, self.body)?;
        object["apiVersion"] = Value::from(self.resource().api_version());
        object["kind"] = Value::from(self.resource().kind.as_str());
        metadata::map_mut(&mut object);
        let mut ctx = self.context("CreateOptions", false)?;
        self.asked_below(&mut ctx, &self.key(), self.resource().gvk(), &mut object)?;
        object["status"] = match self.resource().plural.as_str() {
            "selfsubjectrulesreviews" => {
                let status = self.rules(&object["spec"])?;
                object["spec"] = json!({});
                status
            }
            "selfsubjectreviews" => {
                metadata::stamp_time(&mut object, self.shape.registry.now());
                json!({"userInfo": self.user.info()})
            }
            "tokenreviews" => self.token_review(&object["spec"])?,
            plural => {
                let who = if plural == "selfsubjectaccessreviews" { Some(self.user) } else { None };
                self.access(&object, who)?
            }
        };
        Ok((respond::document(StatusCode::CREATED, &object, self.shape.agreed.encoding), ctx.warnings))
    }

    /// The rights of the caller in a namespace.
    fn rules(&self, spec: &Value) -> Result<Value, Status> {
        let namespace = spec["namespace"].as_str().unwrap_or_default();
        if namespace.is_empty() {
            return Err(Status::bad_request("no namespace on request"));
        }
        let registry = &self.shape.registry;
        if registry.enforces_roles() {
            return Ok(rules_review(&**registry, self.user, namespace));
        }
        Ok(json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }))
    }

    /// The decision whether somebody may do something; `who` unless the review itself names him.
    fn access(&self, review: &Value, who: Option<&User>) -> Result<Value, Status> {
        let spec = &review["spec"];
        let causes = self.unfit(spec, who.is_none());
        if !causes.is_empty() {
            // The real server leaves the kind out here.
            return Err(Status::invalid(AUTHORIZATION, "", "", causes));
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect::<Vec<_>>();
        let named;
        let user = match who {
            Some(user) => user,
            None => {
                named = User { name: text(&spec["user"]), groups: texts(&spec["groups"]), ..User::default() };
                &named
            }
        };
        let resource = &spec["resourceAttributes"];
        let wanted = if resource.is_object() {
            let part = |field: &str| text(&resource[field]);
            let mut wanted = Attributes::on(
                &part("verb"),
                &part("group"),
                &part("resource"),
                &part("namespace"),
                &part("name"),
            );
            wanted.subresource = part("subresource");
            wanted
        } else {
            let path = &spec["nonResourceAttributes"];
            let (verb, path) = (text(&path["verb"]), Some(text(&path["path"])));
            Attributes { verb, path, ..Attributes::default() }
        };
        let registry = &self.shape.registry;
        let decision = match registry.enforces_roles() || who.is_some() {
            true => registry.decide(user, &wanted),
            // Somebody who is only named counts as known, whichever groups the review lists.
            false => registry.decide(&User::authenticated(user.name.as_str(), user.groups.clone()), &wanted),
        };
        let mut status = json!({"allowed": decision.allowed});
        if !decision.reason.is_empty() {
            status["reason"] = Value::from(decision.reason);
        }
        Ok(status)
    }

    /// Errors of the question.
    fn unfit(&self, spec: &Value, about_somebody: bool) -> Vec<Cause> {
        let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
        let local = self.resource().namespaced;
        let mut causes = Vec::new();
        let shown = || {
            let text = |field: &str| path[field].as_str().unwrap_or_default();
            json!({"Path": text("path"), "Verb": text("verb")})
        };
        if path.is_object() && (resource.is_object() || local) {
            let detail = if local {
                "disallowed on this kind of request"
            } else {
                "cannot be specified in combination with resourceAttributes"
            };
            causes.push(Cause::invalid("spec.nonResourceAttributes", &shown(), detail));
        } else if !path.is_object() && !resource.is_object() {
            let detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, detail));
        }
        let empty = |field: &str| match &spec[field] {
            Value::String(text) => text.is_empty(),
            Value::Array(list) => list.is_empty(),
            _ => true,
        };
        if about_somebody && empty("user") && empty("groups") {
            let detail = "at least one of user or group must be specified";
            causes.push(Cause::invalid("spec.user", &json!(""), detail));
        }
        let own = self.target.namespace.as_deref().unwrap_or_default();
        let asked = resource["namespace"].as_str().unwrap_or_default();
        if local && resource.is_object() && asked != own {
            let field = "spec.resourceAttributes.namespace";
            causes.push(Cause::invalid(field, &json!(asked), "must match metadata.namespace"));
        }
        causes
    }

    /// The user that a token is for.
    fn token_review(&self, spec: &Value) -> Result<Value, Status> {
        let token = spec["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(Status::bad_request("token is required for TokenReview in authentication"));
        }
        let registry = &self.shape.registry;
        let found = self.tokens.user(&**registry, registry.now(), token, &texts(&spec["audiences"]));
        Ok(match found {
            Ok((user, audiences)) => {
                json!({"authenticated": true, "user": user.info(), "audiences": audiences})
            }
            Err(error) => json!({"user": {}, "error": error.to_string()}),
        })
    }

    /// POST of a token request.
    pub(crate) fn token(&self) -> Answer {
        let (key, accounts, registry) = (self.key(), self.resource(), &self.shape.registry);
        let Some(account) = registry.store.get(&accounts.table, &key) else {
            return Err(Status::not_found("", "serviceaccounts", &key.name));
        };
        let mut object = self.body_of("TokenRequest")?;
        let mut ctx = self.context("CreateOptions", false)?;
        let kind = Gvk::new(AUTHENTICATION, "v1", "TokenRequest");
        self.asked_below(&mut ctx, &key, kind, &mut object)?;
        let seconds = object["spec"]["expirationSeconds"].as_i64().unwrap_or(HOUR);
        let why = match seconds {
            ..SHORTEST => "may not specify a duration less than 10 minutes",
            LONGEST.. => "may not specify a duration larger than 2^32 seconds",
            _ => "",
        };
        if !why.is_empty() {
            let cause = Cause::invalid("spec.expirationSeconds", &json!(seconds), why);
            return Err(Status::invalid(AUTHENTICATION, "TokenRequest", "", vec![cause]));
        }
        let mut audiences = texts(&object["spec"]["audiences"]);
        if audiences.is_empty() {
            audiences.push(ISSUER.to_owned());
        }
        let reference = object["spec"]["boundObjectRef"].clone();
        let bound = self.bound(&reference)?;
        let bound = bound.as_ref().map(|(claim, object)| (*claim, &**object));
        let now = registry.now();
        let wanted = Wanted { account: &account.value(), audiences: &audiences, seconds, bound };
        let token = self.tokens.issue(now, &wanted).map_err(|error| Status::internal(&error.to_string()))?;
        let expires = now.checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
        object["apiVersion"] = Value::from("authentication.k8s.io/v1");
        object["kind"] = Value::from("TokenRequest");
        object["metadata"] = json!({"name": &*key.name, "namespace": &*key.namespace,
            "uid": account.value()["metadata"]["uid"], "creationTimestamp": metadata::seconds(now)});
        object["spec"] =
            json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference});
        object["status"] = json!({"token": token, "expirationTimestamp": metadata::seconds(expires)});
        Ok((respond::document(StatusCode::CREATED, &object, self.shape.agreed.encoding), ctx.warnings))
    }

    /// The object that a token is bound to, with the name of its claim: the token ends with the object.
    fn bound(&self, reference: &Value) -> Result<Option<(&'static str, std::sync::Arc<Value>)>, Status> {
        if reference.is_null() {
            return Ok(None);
        }
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let namespace = self.target.namespace.as_deref();
        let (claim, resource, space) = match (text("apiVersion"), text("kind")) {
            ("v1", "Pod") => ("pod", "pods", namespace),
            ("v1", "Secret") => ("secret", "secrets", namespace),
            ("v1", "Node") => ("node", "nodes", None),
            (version, kind) => {
                let (group, version) = version.split_once('/').unwrap_or(("", version));
                let text = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                return Err(Status::bad_request(text));
            }
        };
        let missing = || Status::not_found("", resource, text("name"));
        let object = self.shape.registry.get(resource, space, text("name")).ok_or_else(missing)?;
        let uid = text("uid");
        if !uid.is_empty() && object["metadata"]["uid"] != uid {
            let why = format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            return Err(Status::conflict("", resource, text("name"), &why));
        }
        Ok(Some((claim, object)))
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

//! Reviews: requests that are answered at once and never stored. Who am I, may I, is this token good.
//! There is no authorization yet, so whoever is known may do everything, and the answer says why.

use crate::error::Status;
use crate::identity::User;
use serde_json::{Value, json};

const WHY: &str = "this control plane does not enforce RBAC";

/// Whether a path is one of a review, which only takes POST.
pub(crate) fn serves(path: &str) -> bool {
    kind(path).is_some()
}

/// The group and kind that a path reviews.
fn kind(path: &str) -> Option<(&'static str, &'static str)> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    match parts.as_slice() {
        ["apis", "authentication.k8s.io", "v1", name] => match *name {
            "selfsubjectreviews" => Some(("authentication.k8s.io", "SelfSubjectReview")),
            "tokenreviews" => Some(("authentication.k8s.io", "TokenReview")),
            _ => None,
        },
        ["apis", "authorization.k8s.io", "v1", rest @ ..] => match rest {
            ["selfsubjectaccessreviews"] => Some(("authorization.k8s.io", "SelfSubjectAccessReview")),
            ["selfsubjectrulesreviews"] => Some(("authorization.k8s.io", "SelfSubjectRulesReview")),
            ["subjectaccessreviews"] => Some(("authorization.k8s.io", "SubjectAccessReview")),
            ["namespaces", _, "localsubjectaccessreviews"] => {
                Some(("authorization.k8s.io", "LocalSubjectAccessReview"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The review with its status.
pub(crate) fn answer(user: &User, path: &str, body: &[u8]) -> Result<Value, Status> {
    let Some((group, kind)) = kind(path) else { return Err(Status::internal("no review")) };
    let mut review: Value = serde_json::from_slice(body).map_err(|error| {
        Status::bad_request(format!("a {kind} is read as JSON only, and this is none: {error}"))
    })?;
    if !review.is_object() {
        return Err(Status::bad_request(format!("a {kind} is an object")));
    }
    review["apiVersion"] = format!("{group}/v1").into();
    review["kind"] = kind.into();
    review["status"] = match kind {
        "SelfSubjectReview" => json!({"userInfo": {"username": user.name, "groups": user.groups}}),
        "TokenReview" => {
            json!({"user": {}, "error": "this control plane issues no tokens for service accounts"})
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"allowed": true, "reason": WHY}),
    };
    Ok(review)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_known_may() {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let answer = answer(&User::admin(), path, br#"{"spec": {"resourceAttributes": {"verb": "get"}}}"#);
        let answer = answer.unwrap();
        assert_eq!(answer["status"]["allowed"], true);
        assert_eq!(answer["spec"]["resourceAttributes"]["verb"], "get");
        assert_eq!(answer["kind"], "SelfSubjectAccessReview");
    }

    #[test]
    fn who_am_i() {
        let answer = answer(&User::admin(), "/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}");
        assert_eq!(answer.unwrap()["status"]["userInfo"]["username"], "kubernetes-admin");
    }

    #[test]
    fn bodies_that_are_no_objects_are_refused() {
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        assert_eq!(answer(&User::admin(), path, b"[]").unwrap_err().code, 400);
        assert_eq!(answer(&User::admin(), path, b"k8s\0").unwrap_err().code, 400);
        assert!(!serves("/apis/authentication.k8s.io/v1"));
        assert!(serves("/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews"));
    }
}

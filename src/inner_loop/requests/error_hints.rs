//! Errors of requests in words, and what to do about them.

use crate::client::ApiError;
use crate::event::{ObjectTask, Task};

/// An error with its causes. A refusal is told in the API server's own words: kube's own client prints the whole of its
/// Status, with causes that repeat values.
pub(crate) fn told(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            let bare = || format!("the API server answered {} {}", status.code, status.reason);
            parts.push(if status.message.is_empty() { bare() } else { status.message.clone() });
            break;
        }
        parts.push(cause.to_string());
    }
    parts.join(": ")
}

/// What to do about an error.
pub(super) fn hint(task: &Task, error: &anyhow::Error) -> Option<String> {
    match (task, ApiError::of(error)?.code()?) {
        (Task::Object(ObjectTask::Scale { .. }), 422) => {
            Some("the schema of the kind refuses this number".to_owned())
        }
        (Task::Object(ObjectTask::Apply { .. }), 422) => {
            Some("correct the file and apply it again".to_owned())
        }
        (_, 403) => Some("the kubeconfig's user may not do this; see `kubectl auth can-i --list`".to_owned()),
        (_, 404) => Some("it is gone already".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_told_once_and_without_its_details() {
        let status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "no such size",
            "details": {"causes": [{"field": "spec.password", "message": "Invalid value: hunter2"}]}});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let error =
            anyhow::Error::new(kube::Error::Api(status.boxed())).context("Web default/site is refused");
        assert_eq!(told(&error), "Web default/site is refused: no such size");
        assert_eq!(told(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}

//! Errors of calls in words.

/// An error with its causes. A refusal is told in the API server's own words: kube's own client prints the whole of its
/// Status, with causes that repeat values.
pub fn told(error: &anyhow::Error) -> String {
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

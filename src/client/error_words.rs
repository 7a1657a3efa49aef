//! Errors of calls in words.

/// Values of more bytes than this say less than they hide.
const LONGEST_VALUE: usize = 100;

/// A message of an API server without the long values that it quotes, such as the whole object where a field
/// is unknown: the reason stands behind them. Nothing of a value that is left out stays, for it may be
/// secret.
pub fn without_long_values(message: &str) -> String {
    let (mut out, mut rest) = (String::new(), message);
    while let Some(at) = rest.find("value: \"") {
        let begin = at + "value: ".len();
        let Some(end) = quoted(&rest[begin..]) else { break };
        let (value, after) = rest[begin..].split_at(end);
        let is_object = value.starts_with("\"{");
        if value.len() <= LONGEST_VALUE {
            out.push_str(&rest[..begin + end]);
        } else if let (true, Some(reason)) = (is_object, after.strip_prefix(": ")) {
            out.push_str(rest[..at].strip_suffix("Invalid ").unwrap_or(&rest[..at]));
            rest = reason;
            continue;
        } else {
            out.push_str(&rest[..begin]);
            out.push_str("\"…\"");
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// The bytes of a quoted text, from its first quote to its last; Go writes a quote inside as `\\"`.
fn quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// An error with its causes. A refusal is told in the API server's own words: kube's own client prints the
/// whole of its Status, with causes that repeat values.
pub fn told(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            let bare = || format!("the API server answered {} {}", status.code, status.reason);
            parts.push(if status.message.is_empty() { bare() } else { without_long_values(&status.message) });
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
    fn the_whole_object_is_no_part_of_a_reason() {
        let object = format!("{{\\\"apiVersion\\\":\\\"v1\\\",\\\"x\\\":\\\"{}\\\"}}", "secret, ".repeat(40));
        let message = format!(
            "Web \"a\" is invalid: patch: Invalid value: \"{object}\": strict decoding error: unknown field \"spec.replicacount\""
        );
        assert_eq!(
            without_long_values(&message),
            "Web \"a\" is invalid: patch: strict decoding error: unknown field \"spec.replicacount\""
        );
        let long = format!(
            "spec.a: Invalid value: \"{}\": too long, spec.b: Invalid value: \"x\": no",
            "y".repeat(200)
        );
        assert_eq!(
            without_long_values(&long),
            "spec.a: Invalid value: \"…\": too long, spec.b: Invalid value: \"x\": no"
        );
        for same in ["no such size", "Invalid value: 3: no", "Invalid value: \"cut"] {
            assert_eq!(without_long_values(same), same);
        }
    }

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

//! Rules of names, labels and annotations, with the texts that explain what is wrong.

use crate::version::since;

/// Names as hosts have them: labels joined by dots.
pub(crate) const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const SEARCH_PATH: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const NAME_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} bytes")
}

fn too_many_characters(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

fn lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    text.starts_with(lower) && text.ends_with(lower) && text.chars().all(|c| lower(c) || c == '-')
}

/// Errors of a port's name.
pub fn port(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 15 {
        wrong.push(too_many_characters(15));
    }
    if !text.chars().all(|c| lower(c) || c == '-') || text.is_empty() {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !text.contains(|c: char| c.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if text.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if text.starts_with('-') || text.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Errors of a host name whose first label is a star.
pub fn wildcard(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_many_characters(253));
    }
    if !text.strip_prefix("*.").is_some_and(|rest| rest.split('.').all(is_label)) {
        wrong.push(WILDCARD.to_owned());
    }
    wrong
}

fn is_qualified_part(text: &str) -> bool {
    let ends = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(ends) && text.ends_with(ends) && text.chars().all(|c| ends(c) || "-_.".contains(c))
}

/// Errors of a DNS-1123 label.
pub fn label(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_many_characters(63));
    }
    if !is_label(text) {
        let dotted = text.split('.').all(is_label);
        wrong.push(if dotted { "must not contain dots".to_owned() } else { LABEL.to_owned() });
    }
    wrong
}

/// Errors of a DNS-1123 subdomain.
pub fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_many_characters(253));
    }
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// Errors of a domain in which a resolver searches: a subdomain whose labels may have underscores.
pub fn search_path(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_many_characters(253));
    }
    let part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part);
        part.starts_with(lower) && part.ends_with(lower) && part.chars().all(|c| lower(c) || "-_".contains(c))
    };
    if !text.split('.').all(part) {
        wrong.push(SEARCH_PATH.to_owned());
    }
    wrong
}

/// Why a configuration of admission may not have a name.
pub fn kept_for_files(text: &str) -> Option<&'static str> {
    text.ends_with(".static.k8s.io").then_some(
        "names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API",
    )
}

/// Errors of the name of a configuration of admission.
pub fn admission(text: &str) -> Vec<String> {
    let mut wrong = subdomain(text);
    wrong.extend(kept_for_files(text).filter(|_| since(37)).map(str::to_owned));
    wrong
}

/// Errors of a name that becomes part of a path.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"].iter().filter(|c| text.contains(**c)).map(|c| format!("may not contain '{c}'")).collect()
}

/// The errors of a label key, an annotation key or a finalizer.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let parts: Vec<&str> = text.split('/').collect();
    let name = match parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                wrong.push("prefix part must be non-empty".to_owned());
            } else {
                wrong.extend(subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a qualified name {NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        wrong.push(format!("name part {}", too_long(63)));
    }
    if !is_qualified_part(name) {
        wrong.push(format!("name part {NAME_PART}"));
    }
    wrong
}

/// Errors of a label's value.
pub fn label_value(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 63 {
        wrong.push(too_long(63));
    }
    if !text.is_empty() && !is_qualified_part(text) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// Errors of a key of a ConfigMap or Secret.
pub fn config_key(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.len() > 253 {
        wrong.push(too_long(253));
    }
    if text.is_empty() || !text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) {
        wrong.push(CONFIG_KEY.to_owned());
    } else if text == "." {
        wrong.push("must not be '.'".to_owned());
    } else if text == ".." {
        wrong.push("must not be '..'".to_owned());
    } else if text.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_keys() {
        assert!(subdomain("a.b-c.d").is_empty());
        assert_eq!(subdomain("Invalid_Name"), [SUBDOMAIN]);
        assert!(subdomain("a..b").len() == 1);
        assert!(qualified_name("app.kubernetes.io/name").is_empty());
        assert_eq!(qualified_name("/name"), ["prefix part must be non-empty"]);
        assert!(label_value("").is_empty());
        assert_eq!(label_value(&"a".repeat(64)), ["must be no more than 63 bytes"]);
        assert!(config_key("..a")[0].starts_with("must not start"));
    }
}

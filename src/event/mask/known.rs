//! Known secrets: gathers the strings that are secret and replaces them in free text, such as errors and
//! notes. Pure; where a secret is found by its place in an object, read the parent module.

use super::{MASK, beneath, is_secret, is_secret_name};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_object::diff::Change;
use opdev_object::yaml;
use serde_json::Value;
use std::collections::BTreeSet;

/// Shorter strings would be found in everything.
const SHORTEST: usize = 4;
/// A line of a longer secret, such as a key file, that an error may quote alone.
const SHORTEST_LINE: usize = 8;

/// The secret strings of a tree of values, by the names of their fields: what `text` looks for.
pub fn secrets(values: &Value) -> Vec<String> {
    let mut found = Vec::new();
    named("", values, &mut found);
    known(found)
}

/// Keys that say where a service is, beside the keys with its secrets (Service Binding Specification for Kubernetes 1.1,
/// well-known secret entries). Their values are words of every log line, such as the port 5672. They count only in a Secret
/// that says what it binds to, with `type`, and only where the value is a plain name: an address may hold a password.
const PLAIN_KEYS: [&str; 5] = ["type", "provider", "host", "port", "database"];

/// The values of a Secret.
pub fn secrets_of_object(secret: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for field in ["data", "stringData"] {
        let Some(values) = secret.get(field).and_then(Value::as_object) else { continue };
        let is_binding = values.contains_key("type");
        for (key, value) in values {
            let is_known = is_binding && PLAIN_KEYS.contains(&key.as_str());
            if !(is_known && is_name(value, field == "data")) {
                all(value, &mut found);
            }
        }
    }
    known(found)
}

/// Returns true if a value, in base64 or not, is a host, a port or another plain name.
fn is_name(value: &Value, in_base64: bool) -> bool {
    let Some(text) = value.as_str() else { return false };
    let decoded = if in_base64 { STANDARD.decode(text).ok() } else { Some(text.as_bytes().to_vec()) };
    decoded
        .is_some_and(|bytes| bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(byte)))
}

/// The values of all Secrets in a manifest. Documents that cannot be read have none.
pub fn manifest_secrets(manifest: &str) -> Vec<String> {
    fn walk(object: &Value, found: &mut Vec<String>) {
        if is_secret(object) {
            for field in ["data", "stringData"] {
                object.get(field).into_iter().for_each(|data| all(data, found));
            }
        }
        object
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .for_each(|item| walk(item, found));
    }
    let mut found = Vec::new();
    for text in manifest.split("\n---").filter(|text| text.contains("Secret")) {
        // The rest of the separating line.
        let text = text.strip_prefix("---").unwrap_or(text);
        for document in yaml::documents(text).unwrap_or_default() {
            if let Ok(object) = yaml::to_json(&document) {
                walk(&object, &mut found);
            }
        }
    }
    known(found)
}

/// The list that `text` wants: also in base64 and out of it, without what is too short to be told from other
/// words, longer ones first, as one may hold another.
pub fn known(strings: impl IntoIterator<Item = String>) -> Vec<String> {
    let given: BTreeSet<String> = strings.into_iter().collect();
    let mut list: Vec<String> = Vec::new();
    for secret in &given {
        let decoded = STANDARD.decode(secret.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        // A value that a list before has encoded already is not encoded again: such lists would double each
        // time.
        let is_encoded = decoded.as_ref().is_some_and(|decoded| given.contains(decoded));
        if secret.len() >= SHORTEST && !is_encoded {
            list.push(STANDARD.encode(secret));
        }
        list.extend(decoded.filter(|text| !text.contains(|c: char| c.is_control() && !c.is_whitespace())));
        list.push(secret.clone());
    }
    let lines: Vec<String> = list
        .iter()
        .filter(|secret| secret.contains('\n'))
        .flat_map(|secret| secret.lines().map(str::trim))
        .filter(|line| line.len() >= SHORTEST_LINE)
        .map(str::to_owned)
        .collect();
    let trimmed: Vec<String> = list.iter().map(|secret| secret.trim().to_owned()).collect();
    list.extend(lines);
    list.extend(trimmed);
    list.retain(|secret| secret.len() >= SHORTEST && !["true", "false", "null"].contains(&secret.as_str()));
    list.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    list.dedup();
    list
}

/// Free text, such as an error or an excerpt of a template, with known secrets masked.
pub fn text(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| {
        if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
    })
}

/// Masks known secrets in every string of a value.
pub fn value(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(string) => *string = text(string, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| self::value(item, secrets)),
        Value::Object(fields) => fields.values_mut().for_each(|field| self::value(field, secrets)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Masks known secrets in the values of changes.
pub fn values_of(changes: &mut [Change], secrets: &[String]) {
    for change in changes {
        for side in [&mut change.old, &mut change.new].into_iter().flatten() {
            value(side, secrets);
        }
    }
}

fn named(name: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(_) | Value::Number(_) if is_secret_name(name) => all(value, found),
        Value::Object(fields) => {
            let env = fields.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
            let all_below = is_secret_name(name);
            for (field, value) in fields {
                if env && field == "value" || all_below && beneath(fields, field) {
                    all(value, found);
                } else {
                    named(field, value, found);
                }
            }
        }
        Value::Array(items) if is_secret_name(name) => {
            items
                .iter()
                .for_each(|item| if item.is_object() { named(name, item, found) } else { all(item, found) });
        }
        Value::Array(items) => items.iter().for_each(|item| named("", item, found)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn all(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Number(number) => found.push(number.to_string()),
        Value::Object(fields) => fields.values().for_each(|field| all(field, found)),
        Value::Array(items) => items.iter().for_each(|item| all(item, found)),
        Value::Bool(_) | Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn free_text_loses_the_values_it_quotes() {
        let values = json!({"auth": {"password": "hunter2", "pin": "1"}, "image": "memcached"});
        let masked = text("executing \"a\": wrong type for hunter2 in memcached", &secrets(&values));
        assert_eq!(masked, format!("executing \"a\": wrong type for {MASK} in memcached"));
        assert_eq!(text("data aHVudGVyMg== is bad", &secrets(&values)), format!("data {MASK} is bad"));
    }

    #[test]
    fn everything_below_a_secret_name_is_known_but_not_what_only_refers() {
        let values = json!({"credentials": {"user": "somebody", "key": "hunter2"}, "password": ["swordfish"],
            "secret": {"secretName": "web-auth", "items": [{"key": "tls.crt"}]}, "token": 123456});
        let known = secrets(&values);
        for secret in ["somebody", "hunter2", "swordfish", "123456"] {
            assert!(known.iter().any(|known| known == secret), "{secret} is not in {known:?}");
        }
        for reference in ["web-auth", "tls.crt"] {
            assert_eq!(text(reference, &known), reference);
        }
    }

    #[test]
    fn a_list_that_is_made_again_and_again_does_not_grow() {
        let secret = json!({"kind": "Secret", "data": {"password": "aHVudGVyMg==", "port": "NTY3Mg==", "type": "cmFiYml0"},
            "stringData": {"key": "first line of it\nsecond line of it"}});
        let mut list = known(secrets_of_object(&secret));
        list = known(list);
        let settled = list.clone();
        for _ in 0..3 {
            list.extend(secrets_of_object(&secret));
            list = known(list);
        }
        assert_eq!(list, settled);
        assert!(settled.len() < 20, "{settled:?}");
        assert_eq!(text("hunter2 and aHVudGVyMg== at 15672", &list), format!("{MASK} and {MASK} at 15672"));
    }

    #[test]
    fn only_plain_names_of_a_binding_are_no_secrets() {
        let shown = |secret: Value| text("4711 at db.local, amqp://a:b@db", &secrets_of_object(&secret));
        let binding = json!({"stringData": {"type": "postgresql", "port": "4711", "host": "db.local"}});
        assert_eq!(shown(binding), "4711 at db.local, amqp://a:b@db");
        let address = json!({"stringData": {"type": "rabbitmq", "host": "amqp://a:b@db"}});
        assert_eq!(shown(address), format!("4711 at db.local, {MASK}"));
        let other = json!({"stringData": {"port": "4711", "host": "db.local"}});
        assert_eq!(shown(other), format!("{MASK} at {MASK}, amqp://a:b@db"));
    }

    #[test]
    fn a_manifest_tells_the_values_of_its_secrets() {
        let text = "---\n# Source: a\napiVersion: v1\nkind: Secret\ndata:\n  a: aHVudGVyMg==\n---\nkind: List\napiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  stringData: {b: swordfish}\n---\nkind: ConfigMap\ndata:\n  c: visible\n";
        let known = manifest_secrets(text);
        for secret in ["hunter2", "aHVudGVyMg==", "swordfish", "c3dvcmRmaXNo"] {
            assert!(known.iter().any(|known| known == secret), "{secret} is not in {known:?}");
        }
        assert!(!known.iter().any(|known| known == "visible"));
    }
}

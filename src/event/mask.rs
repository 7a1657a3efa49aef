//! Masks secrets at the moment something becomes an event. Pure; never decides what is shown, only what is not.
//! What counts: data of Secrets (also inside manifests and last-applied annotations) and scalar fields whose
//! name says that they hold a secret. Diff the real values first, then mask the changes: `changes`.

use opdev_object::diff::Change;
use opdev_object::path::Segment;
use serde_json::Value;

/// What stands in place of a secret.
pub const MASK: &str = "••••••";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a field of this name holds a secret: `password`, `apiKey`, `client-secret`, `AUTH_TOKEN`.
/// Names of references (`secretName`, `existingSecret`) and lists of names do not.
pub fn is_secret_name(name: &str) -> bool {
    const ENDINGS: [&str; 16] = [
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "token",
        "secret",
        "apikey",
        "accesskey",
        "secretkey",
        "privatekey",
        "encryptionkey",
        "signingkey",
        "credential",
        "credentials",
        "connectionstring",
        "dsn",
    ];
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    ENDINGS.iter().any(|ending| plain.ends_with(ending)) && !plain.starts_with("existing")
}

/// A copy of `object` with secret values masked.
pub fn object(object: &Value) -> Value {
    let mut copy = object.clone();
    mask_object(&mut copy);
    copy
}

fn is_secret(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str).is_none_or(|version| version == "v1")
}

fn mask_object(object: &mut Value) {
    if let Some(Value::Array(items)) = object.get_mut("items") {
        items.iter_mut().for_each(mask_object);
    }
    if let Some(Value::String(applied)) =
        object.pointer_mut("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration")
    {
        *applied = json_text(applied);
    }
    let secret = is_secret(object);
    let Value::Object(fields) = object else { return };
    for (name, value) in fields.iter_mut() {
        match name.as_str() {
            "apiVersion" | "kind" | "metadata" | "items" => {}
            "data" | "stringData" if secret => mask_everything(value),
            _ => mask_named(name, value),
        }
    }
}

/// Masks an object that is kept as JSON text.
fn json_text(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            mask_object(&mut value);
            value.to_string()
        }
        Err(_) => MASK.to_owned(),
    }
}

fn mask_everything(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(mask_everything),
        Value::Array(items) => items.iter_mut().for_each(mask_everything),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => *value = Value::from(MASK),
    }
}

/// Masks what is below a field, by the names of the fields.
fn mask_named(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(_) | Value::Number(_) if is_secret_name(name) => *value = Value::from(MASK),
        Value::String(text) if name == "manifest" => *text = manifest(text),
        Value::Object(fields) => {
            // An item of `env`: the name is in one field, the value in another.
            let named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
            for (name, value) in fields.iter_mut() {
                if named && name == "value" && value.as_str().is_some_and(|text| !text.is_empty()) {
                    *value = Value::from(MASK);
                } else {
                    mask_named(name, value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask_named(name, item)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Masks the changes between two versions of an object. Take the diff of the real values, so that a changed
/// secret still shows as a change.
pub fn changes(kind: &str, changes: Vec<Change>) -> Vec<Change> {
    changes.into_iter().map(|change| self::change(kind, change)).collect()
}

fn change(kind: &str, mut change: Change) -> Change {
    let fields: Vec<&str> = change
        .path
        .0
        .iter()
        .filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Index(_) | Segment::Key(_) => None,
        })
        .collect();
    let data = kind == "Secret" && matches!(fields.first(), Some(&("data" | "stringData")));
    let applied = fields.last() == Some(&LAST_APPLIED);
    let named_item = matches!(change.path.0.as_slice(), [.., Segment::Key(keys), Segment::Field(last)]
        if last == "value" && keys.iter().any(|(key, name)| key == "name" && name.as_str().is_some_and(is_secret_name)));
    let last = fields.last().copied().unwrap_or_default().to_owned();
    let root = change.path.0.is_empty();
    for side in [&mut change.old, &mut change.new] {
        match side {
            Some(value) if data || named_item => mask_everything(value),
            Some(Value::String(text)) if applied => *text = json_text(text),
            Some(value) if root => mask_object(value),
            Some(value) => mask_named(&last, value),
            None => {}
        }
    }
    change
}

/// Masks the Secret documents of a manifest and the secret-named fields of the others; everything else, comments
/// and blank lines included, stays as it is. Works on the text, so that a broken document is masked, too.
pub fn manifest(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut document: Vec<&str> = Vec::new();
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            mask_document(&document, &mut out);
            document.clear();
            out.push_str(line);
        } else {
            document.push(line);
        }
    }
    mask_document(&document, &mut out);
    out
}

fn mask_document(lines: &[&str], out: &mut String) {
    let first = lines.iter().map(|line| line.trim()).find(|line| !line.is_empty() && !line.starts_with('#'));
    if first.is_some_and(|line| line.starts_with('{')) {
        out.push_str(&json_text(&lines.concat()));
        out.push('\n');
        return;
    }
    let secret = lines.iter().any(|line| {
        line.strip_prefix("kind:").is_some_and(|kind| {
            kind.split('#').next().unwrap_or("").trim().trim_matches(['"', '\'']) == "Secret"
        })
    });
    let mut in_data = false;
    // Lines deeper than this belong to a masked value.
    let mut below: Option<usize> = None;
    let mut env_secret = false;
    for line in lines {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let blank = content.trim_end().is_empty();
        if let Some(at) = below {
            if blank || indent > at {
                continue;
            }
            below = None;
        }
        if indent == 0 && !blank && !content.starts_with('#') {
            in_data = secret && (content.starts_with("data:") || content.starts_with("stringData:"));
            if in_data && !after_colon(content).is_empty() {
                out.push_str(&masked_line(line));
                below = Some(0);
                continue;
            }
        }
        let name = key(content);
        if name == "name" {
            env_secret = is_secret_name(after_colon(content).trim_matches(['"', '\'']));
        }
        let hide = match name {
            "" => false,
            _ if in_data && indent > 0 => true,
            "value" => env_secret,
            name => is_secret_name(name) && !after_colon(content).is_empty(),
        };
        if hide {
            out.push_str(&masked_line(line));
            below = Some(indent);
        } else {
            out.push_str(line);
        }
    }
}

/// The key of a `key: value` line, a list's dash left out; empty where there is none.
fn key(content: &str) -> &str {
    let content = content.strip_prefix("- ").map_or(content, str::trim_start);
    match content.split_once(':') {
        Some((key, rest)) if rest.is_empty() || rest.starts_with([' ', '\n', '\r']) => {
            key.trim_matches(['"', '\''])
        }
        _ => "",
    }
}

fn after_colon(content: &str) -> &str {
    content.split_once(':').map_or("", |(_, value)| value.trim())
}

fn masked_line(line: &str) -> String {
    let head = line.split_once(':').map_or(line.trim_end(), |(head, _)| head);
    let end = if line.ends_with('\n') { "\n" } else { "" };
    format!("{head}: {MASK}{end}")
}

/// The secret strings of a tree of values, by the names of their fields: what `text` looks for.
pub fn secrets(values: &Value) -> Vec<String> {
    fn walk(name: &str, value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) if is_secret_name(name) && text.len() >= 4 => out.push(text.clone()),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| walk(name, value, out)),
            Value::Array(items) => items.iter().for_each(|item| walk(name, item, out)),
            Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
    let mut out = Vec::new();
    walk("", values, &mut out);
    // Longer ones first: one may hold another.
    out.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
    out.dedup();
    out
}

/// Free text, such as an error or an excerpt of a template, with known secrets masked.
pub fn text(text: &str, secrets: &[String]) -> String {
    secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::diff::diff;
    use serde_json::json;

    #[test]
    fn names_that_hold_secrets_and_names_that_only_name_them() {
        for name in [
            "password",
            "adminPassword",
            "DB_PASSWORD",
            "apiKey",
            "api-key",
            "clientSecret",
            "authToken",
            "privateKey",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "secretName",
            "existingSecret",
            "imagePullSecrets",
            "tokenExpirationSeconds",
            "passwordLength",
            "key",
            "secretKeyRef",
            "monkey",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn data_of_secrets_goes_wherever_it_is() {
        let applied =
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="}}).to_string();
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "x", "annotations": {LAST_APPLIED: applied}},
            "data": {"a": "aHVudGVyMg==", "ca.crt": "aHVudGVyMg=="}, "stringData": {"b": "aHVudGVyMg=="}, "type": "Opaque"});
        let masked = object(&secret);
        assert!(!masked.to_string().contains("aHVudGVyMg"), "{masked}");
        assert_eq!(masked["type"], "Opaque");
        assert_eq!(masked["data"]["ca.crt"], MASK);
        let list = object(&json!({"kind": "SecretList", "apiVersion": "v1", "items": [secret]}));
        assert!(!list.to_string().contains("aHVudGVyMg"), "{list}");
    }

    #[test]
    fn named_fields_of_any_object() {
        let masked = object(&json!({"kind": "Memcached", "spec": {
            "auth": {"password": "hunter2", "existingSecret": "mine", "enabled": true, "pin": {"secret": 1234}},
            "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "MODE", "value": "fast"}],
            "automountServiceAccountToken": false, "emptyPassword": ""}}));
        assert_eq!(
            masked["spec"],
            json!({
            "auth": {"password": MASK, "existingSecret": "mine", "enabled": true, "pin": {"secret": MASK}},
            "env": [{"name": "DB_PASSWORD", "value": MASK}, {"name": "MODE", "value": "fast"}],
            "automountServiceAccountToken": false, "emptyPassword": ""})
        );
    }

    #[test]
    fn secrets_inside_a_deployed_manifest() {
        let text = "---\n# Source: a/secret.yaml\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\ndata:\n  a: aHVudGVyMg==\n  b: |\n    hunter2\n\n    hunter2\ntype: Opaque\n---\n# Source: a/cm.yaml\nkind: ConfigMap\ndata:\n  mode: fast\n  password: hunter2\n  env:\n  - name: TOKEN\n    value: hunter2\n";
        let status = object(&json!({"kind": "Memcached", "status": {"deployedRelease": {"manifest": text}}}));
        let masked = status["status"]["deployedRelease"]["manifest"].as_str().unwrap();
        assert!(!masked.contains("hunter2") && !masked.contains("aHVudGVyMg"), "{masked}");
        for kept in [
            "# Source: a/secret.yaml\n",
            "  name: s\n",
            "type: Opaque\n",
            "  mode: fast\n",
            "kind: ConfigMap\n",
        ] {
            assert!(masked.contains(kept), "{kept:?} is gone from:\n{masked}");
        }
        let json = "---\n{\"kind\": \"Secret\", \"data\": {\"a\": \"aHVudGVyMg==\"}}\n";
        assert!(!manifest(json).contains("aHVudGVyMg"));
        assert_eq!(manifest("a: b\n"), "a: b\n");
    }

    #[test]
    fn a_changed_secret_still_shows_as_a_change() {
        let old = json!({"kind": "Secret", "data": {"a": "b25l", "c": "ZHVv"}});
        let new = json!({"kind": "Secret", "data": {"a": "dHdv", "c": "ZHVv"}});
        let masked = changes("Secret", diff(&old, &new));
        assert_eq!(masked.len(), 1);
        assert_eq!(masked[0].path.to_string(), ".data.a");
        assert_eq!((masked[0].old.clone(), masked[0].new.clone()), (Some(json!(MASK)), Some(json!(MASK))));
        let env = |v: &str| json!({"spec": {"env": [{"name": "API_TOKEN", "value": v}]}});
        let masked = changes("Deployment", diff(&env("one1"), &env("two2")));
        assert_eq!(masked[0].new, Some(json!(MASK)));
    }

    #[test]
    fn free_text_loses_the_values_it_quotes() {
        let values = json!({"auth": {"password": "hunter2", "pin": "1"}, "image": "memcached"});
        let masked = text("executing \"a\": wrong type for hunter2 in memcached", &secrets(&values));
        assert_eq!(masked, format!("executing \"a\": wrong type for {MASK} in memcached"));
    }
}

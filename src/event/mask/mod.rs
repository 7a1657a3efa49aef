//! Masks secrets at the moment something becomes an event. Pure; never decides what is shown, only what is
//! not. What counts: data of Secrets (also inside manifests and last-applied annotations) and scalar fields
//! whose name says that they hold a secret. Diff the real values first, then mask the changes: `changes`.

mod known;
mod manifest;

pub use known::{known, manifest_secrets, secrets, secrets_of_object, text, value, values_of};
pub use manifest::manifest;

use manifest::{assignment, lines};
use opdev_object::diff::Change;
use opdev_object::path::Segment;
use serde_json::{Map, Value};

/// The text in place of a secret.
pub const MASK: &str = "••••••";

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns true if a field of this name holds a secret: `password`, `apiKey`, `client-secret`, `AUTH_TOKEN`.
/// Names of references (`secretName`, `existingSecret`) and lists of names do not.
pub fn is_secret_name(name: &str) -> bool {
    /// The length of `connectionstring`.
    const LONGEST: usize = 16;
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
    // Every line of a manifest asks this: the end of the name is read once, into a place without allocation.
    let mut end = [0; LONGEST];
    let mut from = LONGEST;
    for letter in name.bytes().rev().filter(u8::is_ascii_alphanumeric).take(LONGEST) {
        from -= 1;
        end[from] = letter.to_ascii_lowercase();
    }
    let end = &end[from..];
    // Few endings share their last letter with a name, so few are compared.
    let is_ending =
        |ending: &&str| ending.as_bytes().last() == end.last() && end.ends_with(ending.as_bytes());
    ENDINGS.iter().any(is_ending) && !starts_with(name, "existing")
}

/// Returns true if the letters and digits of a name begin with `start`, in any case.
fn starts_with(name: &str, start: &str) -> bool {
    let mut letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    start.bytes().all(|letter| letters.next().is_some_and(|first| first.eq_ignore_ascii_case(&letter)))
}

/// Returns true if a dotted path of values, such as `auth.password`, leads to a secret.
pub fn is_secret_path(path: &str) -> bool {
    let fields: Vec<&str> = path.split('.').map(|field| field.split('[').next().unwrap_or(field)).collect();
    is_secret_place(&fields)
}

fn is_secret_place(fields: &[&str]) -> bool {
    let Some((last, above)) = fields.split_last() else { return false };
    is_secret_name(last) || (above.iter().any(|name| is_secret_name(name)) && !REFERENCE.contains(last))
}

/// Fields that tell where a secret is, not what it is.
const REFERENCE: [&str; 16] = [
    "name",
    "namespace",
    "secretName",
    "existingSecret",
    "kind",
    "apiVersion",
    "apiGroup",
    "path",
    "audience",
    "expirationSeconds",
    "defaultMode",
    "optional",
    "enabled",
    "create",
    "annotations",
    "labels",
];

/// Returns true if a field of an object that stands under a secret name is secret, too.
fn beneath(fields: &Map<String, Value>, field: &str) -> bool {
    let elsewhere = ["secretName", "existingSecret"]
        .iter()
        .any(|name| fields.get(*name).and_then(Value::as_str).is_some_and(|name| !name.is_empty()));
    !elsewhere && !REFERENCE.contains(&field)
}

/// A copy of `object` with secret values masked.
pub fn object(object: &Value) -> Value {
    let mut copy = object.clone();
    mask_object(&mut copy);
    copy
}

/// Masks the secret values of an object where it stands.
pub fn in_place(object: &mut Value) {
    mask_object(object);
}

fn is_secret(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
        && object.get("apiVersion").and_then(Value::as_str).is_none_or(|version| version == "v1")
}

fn mask_object(object: &mut Value) {
    if let Some(Value::Array(items)) = object.get_mut("items") {
        items.iter_mut().for_each(mask_object);
    }
    if let Some(metadata) = object.get_mut("metadata") {
        mask_metadata(metadata);
    }
    let told = told(object);
    let secret = is_secret(object);
    let texts = object.get("kind").and_then(Value::as_str) == Some("ConfigMap");
    let Value::Object(fields) = object else { return };
    for (name, value) in fields.iter_mut() {
        match name.as_str() {
            "apiVersion" | "kind" | "metadata" | "items" => {}
            "data" | "stringData" if secret => mask_everything(value),
            "data" if texts => mask_texts(value),
            _ => mask_named(name, value),
        }
        if name == "status" && !told.is_empty() {
            self::value(value, &told);
        }
    }
}

/// Secrets that a custom resource's status may quote: those of its spec and those of its release's manifest.
fn told(object: &Value) -> Vec<String> {
    let Some(spec) = object.get("spec").filter(|_| object.pointer("/status/conditions").is_some()) else {
        return Vec::new();
    };
    let mut told = secrets(spec);
    if let Some(text) = object.pointer("/status/deployedRelease/manifest").and_then(Value::as_str) {
        told.extend(manifest_secrets(text));
        told = known(told);
    }
    told
}

fn mask_metadata(metadata: &mut Value) {
    if let Some(annotations) = metadata.get_mut("annotations") {
        mask_annotations(annotations);
    }
}

fn mask_annotations(annotations: &mut Value) {
    let Value::Object(annotations) = annotations else { return };
    annotations.iter_mut().for_each(|(name, value)| mask_annotation(name, value));
}

/// An annotation may hold a whole object, as what was last applied.
fn mask_annotation(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if name == LAST_APPLIED => *text = json_text(text).unwrap_or(MASK.to_owned()),
        Value::String(text) if text.starts_with('{') => {
            if let Some(masked) = json_text(text) {
                *text = masked;
            }
        }
        value => mask_named(name, value),
    }
}

/// Masks an object that is kept as JSON text; `None` where it is none.
fn json_text(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let masked = object(&value);
    Some(if masked == value { text.to_owned() } else { masked.to_string() })
}

/// The texts of a ConfigMap: whole files, or single values.
fn mask_texts(data: &mut Value) {
    let Value::Object(data) = data else { return };
    data.iter_mut().for_each(|(name, value)| mask_text(name, value));
}

fn mask_text(name: &str, value: &mut Value) {
    match value {
        Value::String(text) if !is_secret_name(name) => {
            let json = text.trim_start().starts_with('{').then(|| json_text(text)).flatten();
            *text = json.unwrap_or_else(|| lines(text));
        }
        value => mask_named(name, value),
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
    // It says what values may be, not what they are.
    if name == "openAPIV3Schema" {
        return;
    }
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(_) | Value::Number(_) if is_secret_name(name) => *value = Value::from(MASK),
        Value::String(text) if name == "manifest" => *text = manifest(text),
        Value::String(text) if text.contains('\n') && name != "message" => *text = lines(text),
        Value::String(text) => {
            if let Some(masked) = assignment(text) {
                *text = masked;
            }
        }
        Value::Object(fields) => mask_fields(name, fields),
        Value::Array(items) => items.iter_mut().for_each(|item| mask_named(name, item)),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn mask_fields(name: &str, fields: &mut Map<String, Value>) {
    // An item of `env`: the name is in one field, the value in another.
    let env = fields.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
    let below: Vec<String> = match is_secret_name(name) {
        true => fields.keys().filter(|field| beneath(fields, field)).cloned().collect(),
        false => Vec::new(),
    };
    for (field, value) in fields.iter_mut() {
        if env && field == "value" || below.contains(field) {
            mask_below(value);
        } else {
            mask_named(field, value);
        }
    }
}

/// Masks what says something: switches and empty strings may stay.
fn mask_below(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(mask_below),
        Value::Array(items) => items.iter_mut().for_each(mask_below),
        Value::String(text) if text.is_empty() => {}
        Value::Number(_) | Value::String(_) => *value = Value::from(MASK),
        Value::Bool(_) | Value::Null => {}
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
    let named_item = matches!(change.path.0.as_slice(), [.., Segment::Key(keys), Segment::Field(last)]
        if last == "value" && keys.iter().any(|(key, name)| key == "name" && name.as_str().is_some_and(is_secret_name)));
    let mask = |value: &mut Value| match fields.as_slice() {
        [] if change.path.0.is_empty() => mask_object(value),
        ["metadata"] => mask_metadata(value),
        ["metadata", "annotations"] => mask_annotations(value),
        ["metadata", "annotations", name] => mask_annotation(name, value),
        ["data" | "stringData", ..] if kind == "Secret" => mask_everything(value),
        ["data"] if kind == "ConfigMap" => mask_texts(value),
        ["data", name] if kind == "ConfigMap" => mask_text(name, value),
        _ if named_item || fields.contains(&"openAPIV3Schema") => {
            if named_item {
                mask_everything(value);
            }
        }
        [.., last] if is_secret_name(last) => mask_named(last, value),
        fields if is_secret_place(fields) => mask_below(value),
        fields => mask_named(fields.last().copied().unwrap_or_default(), value),
    };
    [&mut change.old, &mut change.new].into_iter().flatten().for_each(mask);
    change
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
            "connection_string",
            "mainDatabaseConnectionString",
            "clé-TOKEN-",
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
            "existing-admin-password",
            "nnectionstring",
            "",
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
    fn annotations_are_masked_however_they_change() {
        let applied = json!({"kind": "Secret", "data": {"a": "aHVudGVyMg=="}}).to_string();
        let with = json!({"kind": "Web", "metadata": {"name": "a", "annotations": {
            LAST_APPLIED: applied, "example.com/api-token": "swordfish", "other/copy": applied, "plain": "kept"}}});
        let without = json!({"kind": "Web", "metadata": {"name": "a"}});
        let empty = json!({"kind": "Web"});
        for (old, new) in [(&without, &with), (&empty, &with), (&with, &without)] {
            let masked = serde_json::to_string(
                &changes("Web", diff(old, new))
                    .iter()
                    .map(|c| (c.old.clone(), c.new.clone()))
                    .collect::<Vec<_>>(),
            )
            .unwrap();
            assert!(!masked.contains("aHVudGVyMg") && !masked.contains("swordfish"), "{masked}");
            assert!(masked.contains("kept"), "{masked}");
        }
        let masked = object(&with).to_string();
        assert!(!masked.contains("aHVudGVyMg") && !masked.contains("swordfish"), "{masked}");
    }

    #[test]
    fn what_is_below_a_secret_name_is_masked_whole() {
        let spec = json!({"credentials": {"user": "somebody", "key": "hunter2", "enabled": true},
            "adminPassword": ["hunter2"], "volumes": [{"secret": {"secretName": "web-auth", "items": [{"key": "k"}]}}]});
        let masked = object(&json!({"kind": "Web", "spec": spec}));
        assert_eq!(masked["spec"]["credentials"], json!({"user": MASK, "key": MASK, "enabled": true}));
        assert_eq!(masked["spec"]["adminPassword"], json!([MASK]));
        assert_eq!(masked["spec"]["volumes"], spec["volumes"]);
        let of = |key: &str| json!({"spec": {"credentials": {"key": key, "name": key}}});
        let masked = changes("Web", diff(&of("one1"), &of("two2")));
        assert_eq!((masked[0].new.clone(), masked[1].new.clone()), (Some(json!(MASK)), Some(json!("two2"))));
        assert!(is_secret_path("auth.users[0].password") && is_secret_path("credentials.key"));
        assert!(!is_secret_path("image.tag") && !is_secret_path("auth.secret.name"));
    }

    #[test]
    fn files_in_a_configmap_lose_their_secrets() {
        let map = json!({"kind": "ConfigMap", "data": {"application.yaml": "password: hunter2", "mode": "fast",
            "app.properties": "a=b\ndb.password=hunter2\n", "app.json": "{\"password\": \"hunter2\", \"a\": 1}",
            "nginx.conf": "{ a: b"}});
        let masked = object(&map);
        assert!(!masked.to_string().contains("hunter2"), "{masked}");
        assert_eq!(
            (&masked["data"]["mode"], &masked["data"]["nginx.conf"]),
            (&json!("fast"), &json!("{ a: b"))
        );
        let masked = changes("ConfigMap", diff(&json!({"kind": "ConfigMap"}), &map));
        assert!(!format!("{masked:?}").contains("hunter2"), "{masked:?}");
    }

    #[test]
    fn a_status_does_not_quote_what_the_spec_and_the_release_keep_secret() {
        let manifest = "---\nkind: Secret\nstringData:\n  a: swordfish\n---\nkind: ConfigMap\ndata:\n  url: //u:hunter2@db\n";
        let masked = object(&json!({"kind": "Web", "spec": {"auth": {"password": "hunter2"}}, "status": {
            "conditions": [{"type": "Deployed", "message": "Log in with hunter2 or\nswordfish at web"}],
            "deployedRelease": {"manifest": manifest}}}));
        let text = masked.to_string();
        assert!(!text.contains("hunter2") && !text.contains("swordfish"), "{text}");
        assert!(text.contains("at web") && text.contains("//u:"), "{text}");
    }
}

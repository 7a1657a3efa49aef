//! Refusals of config maps, secrets and claims.

use super::checks::{absent, amount, entries, immutable, items, named, optional, selector};
use base64::Engine;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::resource::quantity;
use serde_json::{Value, json};

/// The most that a config map or secret may hold, in bytes.
const LIMIT: usize = 1024 * 1024;

/// A config map.
pub fn config_map(object: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (key, value) in entries(&object["data"]) {
        config_key("data", key, causes);
        if object["binaryData"].get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            causes.push(Cause::invalid(format!("data[{key}]"), &json!(key), detail));
        }
        size += value.as_str().map_or(0, str::len);
    }
    for (key, value) in entries(&object["binaryData"]) {
        config_key("binaryData", key, causes);
        size += value.as_str().map_or(0, str::len) / 4 * 3;
    }
    if size > LIMIT {
        causes.push(Cause::too_long("", LIMIT));
    }
}

fn config_key(field: &str, key: &str, causes: &mut Vec<Cause>) {
    named(&format!("{field}[{key}]"), &json!(key), names::config_key, causes);
}

/// A secret: its keys, and what its type asks for.
pub fn secret(object: &Value, causes: &mut Vec<Cause>) {
    let data = &object["data"];
    let mut size = 0;
    for (key, value) in entries(data) {
        config_key("data", key, causes);
        size += value.as_str().map_or(0, str::len) / 4 * 3;
    }
    if size > LIMIT {
        causes.push(Cause::too_long("data", LIMIT));
    }
    let missing = |key: &str| Cause::required(format!("data[{key}]"), "");
    let has = |key: &str| data.get(key).is_some();
    match object["type"].as_str().unwrap_or_default() {
        "kubernetes.io/service-account-token" => {
            const ACCOUNT: &str = "kubernetes.io/service-account.name";
            if absent(&object["metadata"]["annotations"][ACCOUNT]) {
                causes.push(Cause::required(format!("metadata.annotations[{ACCOUNT}]"), ""));
            }
        }
        "kubernetes.io/dockercfg" => docker(data, ".dockercfg", causes),
        "kubernetes.io/dockerconfigjson" => docker(data, ".dockerconfigjson", causes),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            causes.extend([missing("username"), missing("password")]);
        }
        "kubernetes.io/ssh-auth" if absent(&data["ssh-privatekey"]) => causes.push(missing("ssh-privatekey")),
        "kubernetes.io/tls" => {
            causes.extend(["tls.crt", "tls.key"].into_iter().filter(|key| !has(key)).map(missing));
        }
        _ => {}
    }
}

/// The credentials of a registry are JSON.
fn docker(data: &Value, key: &str, causes: &mut Vec<Cause>) {
    let field = format!("data[{key}]");
    let Some(text) = data[key].as_str() else { return causes.push(Cause::required(field, "")) };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(_) => "json: cannot unmarshal the value into Go value of type map[string]interface {}".to_owned(),
        Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(error) => error.to_string(),
    };
    causes.push(Cause::invalid(field, &json!("<secret contents redacted>"), &why));
}

/// Data and the flag itself do not change once `immutable` is set.
pub fn frozen(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    if current["immutable"] != true {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if object["immutable"] != true {
        causes.push(Cause::forbidden("immutable", detail));
    }
    for field in ["data", "binaryData"] {
        if object[field] != current[field] {
            causes.push(Cause::forbidden(field, detail));
        }
    }
}

/// A claim's spec at `path`.
pub fn claim(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    const MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    let modes = items(&spec["accessModes"]);
    let field = format!("{path}.accessModes");
    if modes.is_empty() {
        causes.push(Cause::required(field.as_str(), "at least 1 access mode is required"));
    }
    selector(&format!("{path}.selector"), &spec["selector"], causes);
    for mode in modes {
        optional(&field, mode, &MODES, causes);
    }
    let alone = modes.iter().any(|mode| mode == "ReadWriteOncePod");
    if alone && modes.iter().any(|mode| mode != "ReadWriteOncePod") {
        causes.push(Cause::forbidden(field, "may not use ReadWriteOncePod with other access modes"));
    }
    let size = &spec["resources"]["requests"]["storage"];
    let field = format!("{path}.resources[storage]");
    if size.is_null() {
        causes.push(Cause::required(field, ""));
    } else if amount(size).is_some_and(|amount| amount <= 0) {
        causes.push(Cause::invalid(field, size, "must be greater than zero"));
    }
    for field in ["storageClassName", "volumeAttributesClassName"] {
        if !absent(&spec[field]) {
            named(&format!("{path}.{field}"), &spec[field], names::subdomain, causes);
        }
        if field == "storageClassName" {
            let modes = ["Block", "Filesystem"];
            optional(&format!("{path}.volumeMode"), &spec["volumeMode"], &modes, causes);
        }
    }
}

/// Most of a claim never changes.
pub fn claim_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let bare = |object: &Value| {
        let mut spec = object["spec"].clone();
        if let Some(map) = spec.as_object_mut() {
            // A claim grows and changes its class only once it is bound.
            if current["status"]["phase"] == "Bound" {
                map.remove("resources");
                map.remove("volumeAttributesClassName");
            }
            // The volume controller fills the name in.
            if current["spec"]["volumeName"].is_null() {
                map.remove("volumeName");
            }
            // So may the default class, as long as none was chosen.
            if current["spec"]["storageClassName"].is_null() {
                map.remove("storageClassName");
            }
        }
        spec
    };
    if bare(object) != bare(current) {
        let detail = "spec is immutable after creation except resources.requests and \
                      volumeAttributesClassName for bound claims";
        causes.push(Cause::forbidden("spec", detail));
    }
    let stored = |amount: &Value| amount.as_str().and_then(quantity::nano).unwrap_or(0);
    let storage = |object: &Value| stored(&object["spec"]["resources"]["requests"]["storage"]);
    let shrinks = storage(object) < storage(current);
    if shrinks && storage(object) <= stored(&current["status"]["capacity"]["storage"]) {
        let detail = "field can not be less than status.capacity";
        causes.push(Cause::forbidden("spec.resources.requests.storage", detail));
    }
    // The real server leaves `spec` out of this path.
    immutable("volumeMode", &object["spec"]["volumeMode"], &current["spec"]["volumeMode"], causes);
}

/// The resource whose objects are to be stored anew.
pub fn migration(of: &Value, causes: &mut Vec<Cause>) {
    const DNS_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
    let (plural, group) = (&of["resource"], &of["group"]);
    let begins_with_letter =
        plural.as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_lowercase()));
    if absent(plural) {
        causes.push(Cause::required("spec.resource.resource", "resource is required to be set"));
    } else if !begins_with_letter || !names::label(plural.as_str().unwrap_or_default()).is_empty() {
        causes.push(Cause::invalid("spec.resource.resource", plural, DNS_1035));
    }
    if !absent(group) {
        named("spec.resource.group", group, names::subdomain, causes);
    }
}

/// A migration that has come to its end stays there.
pub fn migration_update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let is = |of: &Value, kind: &str| {
        let told = |one: &Value| one["type"] == kind && one["status"] == "True";
        items(&of["status"]["conditions"]).iter().any(told)
    };
    let version = |of: &Value| of["status"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    if !version(current).is_empty() && version(current) != version(object) {
        let field = "status.resourceVersion";
        causes.push(Cause::invalid(field, &version(object).into(), "field is immutable"));
    }
    let mut refuse = |detail: &str| {
        causes.push(Cause::invalid("status.conditions", &object["status"]["conditions"], detail));
    };
    if is(object, "Succeeded") && is(object, "Failed") {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    for (kind, name) in [("Succeeded", "Success"), ("Failed", "Failed")] {
        if is(current, kind) && !is(object, kind) {
            refuse(&format!("{name} condition cannot be set to false once it is true"));
        }
    }
}

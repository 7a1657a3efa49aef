//! The files controller-gen writes, byte for byte: a header, then each object after `---` in go-yaml v2's
//! manner. Never decides what is in an object, never writes to disk.

use anyhow::{Result, bail};
use opdev_object::yaml;
use serde_json::Value;
use std::borrow::Cow;

/// A file as it should stand on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    /// Its name, without a folder.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// The header of generated files: the text of `headerFile` with the year put in (controller-gen replaces `
/// YEAR` even where no year was given).
pub fn header(text: &str, year: &str) -> String {
    text.replace(" YEAR", &format!(" {year}"))
}

/// The file of a CRD: `<group>_<plural>.yaml`.
///
/// # Errors
/// Where a text in it holds characters that YAML cannot hold.
pub fn crd(object: &Value, header: &str) -> Result<Artifact> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let name = format!("{}_{}.yaml", text("/spec/group"), text("/spec/names/plural"));
    artifact(name, std::slice::from_ref(object), header)
}

/// A file with some objects.
///
/// # Errors
/// Where a text in one of them holds characters that YAML cannot hold.
pub fn artifact(name: String, objects: &[Value], header: &str) -> Result<Artifact> {
    let mut text = header.to_owned();
    for object in objects {
        if let Some(place) = unwritable(object) {
            bail!(
                "{name} cannot be written: the text at {place} holds a control character, which YAML cannot; remove it"
            );
        }
        text.push_str("---\n");
        text.push_str(&yaml::to_string(&written(object)));
    }
    Ok(Artifact { name, text })
}

/// An object without what the generators leave out: the status and the time of creation.
fn written(object: &Value) -> Cow<'_, Value> {
    if object.get("status").is_none() && object.pointer("/metadata/creationTimestamp").is_none() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("creationTimestamp");
        }
    }
    Cow::Owned(object)
}

/// Where a text stands that go-yaml refuses to read back.
fn unwritable(value: &Value) -> Option<String> {
    let refused = |text: &str| {
        text.chars().any(|c| matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}'))
    };
    match value {
        Value::String(text) => refused(text).then(String::new),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(at, item)| unwritable(item).map(|rest| format!("[{at}]{rest}"))),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            if refused(key) {
                Some(String::new())
            } else {
                unwritable(item).map(|rest| format!(".{key}{rest}"))
            }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn memcached() -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "memcacheds.cache.my.domain", "creationTimestamp": null,
                "annotations": {"controller-gen.kubebuilder.io/version": "v0.18.0"}},
            "spec": {"group": "cache.my.domain", "names": {"kind": "Memcached", "plural": "memcacheds"}, "versions": [{
                "name": "v1alpha1",
                "schema": {"openAPIV3Schema": {
                    "description": "Memcached is the Schema for the memcacheds API, and this sentence is long enough to be folded.",
                    "properties": {"spec": {"description": "Two\n  lines: one", "pattern": "^[0-9]+$", "type": "object", "default": {}}},
                }},
            }]},
            "status": {"conditions": []},
        })
    }

    #[test]
    fn a_crd_is_written_as_controller_gen_writes_it() {
        let artifact = crd(&memcached(), &header("# Copyright YEAR The Owners\n", "2024")).unwrap();
        assert_eq!(artifact.name, "cache.my.domain_memcacheds.yaml");
        let wanted = r#"# Copyright 2024 The Owners
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.18.0
  name: memcacheds.cache.my.domain
spec:
  group: cache.my.domain
  names:
    kind: Memcached
    plural: memcacheds
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        description: Memcached is the Schema for the memcacheds API, and this sentence
          is long enough to be folded.
        properties:
          spec:
            default: {}
            description: |-
              Two
                lines: one
            pattern: ^[0-9]+$
            type: object
"#;
        assert_eq!(artifact.text, wanted);
    }

    #[test]
    fn what_yaml_cannot_hold_is_named() {
        let mut object = memcached();
        object["spec"]["versions"][0]["name"] = json!("v1\u{7f}");
        let error = crd(&object, "").unwrap_err().to_string();
        assert_eq!(
            error,
            "cache.my.domain_memcacheds.yaml cannot be written: the text at .spec.versions[0].name holds a control \
             character, which YAML cannot; remove it"
        );
    }
}

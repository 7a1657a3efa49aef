//! Bodies built by hand as client-go builds them: every field that is no pointer is there, zero or not.

mod difference;
mod kinds;
mod testdata;

use super::*;
use difference::difference;
use expect_test::expect;
use messages::{POINTER, served, serves, unserved};
use opdev_object::facts::{SHOWN_FROM_ONE, facts};
use serde_json::json;
use std::collections::BTreeSet;

/// A length-delimited field.
fn bytes(number: u8, inside: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = inside.len();
    while length >= 0x80 {
        out.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    out.push(u8::try_from(length).unwrap());
    out.extend(inside);
    out
}

fn text(number: u8, inside: &str) -> Vec<u8> {
    bytes(number, inside.as_bytes())
}

fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = bytes(1, &[text(1, api_version), text(2, kind)].concat());
    [MAGIC, &type_meta, &bytes(2, object), &text(3, ""), &text(4, "")].concat()
}

#[test]
fn a_secret_as_helm_writes_one() {
    // Name, generateName "", a zero creation time, a label.
    let label = bytes(11, &[text(1, "owner"), text(2, "helm")].concat());
    let meta = [text(1, "sh.helm.release.v1.a.v1"), text(2, ""), bytes(8, &[]), label].concat();
    let data = bytes(2, &[text(1, "release"), bytes(2, b"H4s")].concat());
    let object = [bytes(1, &meta), data, text(3, "helm.sh/release.v1")].concat();
    assert_eq!(
        decode(&body("v1", "Secret", &object)).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "sh.helm.release.v1.a.v1", "labels": {"owner": "helm"}},
            "data": {"release": "SDRz"}, "type": "helm.sh/release.v1",
        })
    );
}

/// opdev-object has a list of these numbers of its own, since it cannot look here.
#[test]
fn numbers_with_a_default_that_are_left_out_as_zero_are_known() {
    let mut found = BTreeSet::new();
    for name in facts().raw_definitions().into_keys() {
        let schema = facts().definition(name).unwrap();
        for (field, inner) in &schema.properties {
            let zero = inner.default_value().is_some_and(|value| *value == 0 || *value == false);
            if zero && leaves_zero_out(name, field) {
                found.insert((name.to_owned(), field.clone()));
            }
        }
    }
    let known = SHOWN_FROM_ONE.map(|(name, field)| (name.to_owned(), field.to_owned()));
    assert_eq!(found, BTreeSet::from(known));
}

#[test]
fn zero_stays_where_it_means_something() {
    // replicas is a pointer, minReadySeconds and paused are not.
    let spec = [vec![0x08, 0x00], vec![0x28, 0x00], vec![0x38, 0x00]].concat();
    let object = decode(&body("apps/v1", "Deployment", &bytes(2, &spec))).unwrap();
    assert_eq!(object["spec"], json!({"replicas": 0}));
}

#[test]
fn inlined_messages_and_either_or_types() {
    // Volume: name, inline source with a Secret; port targetPort as number and as name.
    let source = bytes(6, &text(1, "certs"));
    let volume = [text(1, "v"), bytes(2, &source)].concat();
    let object = decode(&body("v1", "Pod", &bytes(2, &bytes(1, &volume)))).unwrap();
    assert_eq!(object["spec"]["volumes"], json!([{"name": "v", "secret": {"secretName": "certs"}}]));
    let port = |target: &[u8]| bytes(1, &[vec![0x18, 80], bytes(4, target)].concat());
    let named = [vec![0x08, 1], text(3, "http")].concat();
    let spec = [port(&[0x08, 0, 0x10, 80]), port(&named)].concat();
    let object = decode(&body("v1", "Service", &bytes(2, &spec))).unwrap();
    assert_eq!(
        object["spec"]["ports"],
        json!([{"port": 80, "targetPort": 80}, {"port": 80, "targetPort": "http"}])
    );
}

#[test]
fn negative_numbers_quantities_and_times() {
    let seconds = bytes(8, &[0x08, 0x80, 0xf2, 0xd6, 0xca, 0x06]);
    let object = decode(&body("v1", "Namespace", &bytes(1, &seconds))).unwrap();
    assert_eq!(object["metadata"]["creationTimestamp"], "2026-01-01T00:00:00Z");
    let minus = [0x20, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let object = decode(&body("v1", "Pod", &bytes(2, &minus))).unwrap();
    assert_eq!(object["spec"]["terminationGracePeriodSeconds"], -1);
    let limit = bytes(1, &[text(1, "cpu"), bytes(2, &text(1, "500m"))].concat());
    let container = [text(1, "a"), bytes(8, &limit)].concat();
    let object = decode(&body("v1", "Pod", &bytes(2, &bytes(2, &container)))).unwrap();
    assert_eq!(object["spec"]["containers"][0]["resources"], json!({"limits": {"cpu": "500m"}}));
}

#[test]
fn delete_options_of_any_group() {
    let object = decode(&body("example.com/v1", "DeleteOptions", &text(4, "Foreground"))).unwrap();
    assert_eq!(object["propagationPolicy"], "Foreground");
}

#[test]
fn rubbish_is_refused_and_never_panics() {
    expect!["provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"]
        .assert_eq(&decode(b"{}").unwrap_err().to_string());
    expect![[r#"no kind "Nothing" is registered for version "v1" in protobuf"#]]
        .assert_eq(&decode(&body("v1", "Nothing", &[])).unwrap_err().to_string());
    let whole = body("v1", "Pod", &bytes(2, &bytes(2, &[text(1, "a"), text(2, "b")].concat())));
    for end in 0..whole.len() {
        let _ = decode(&whole[..end]);
    }
    for at in MAGIC.len()..whole.len() {
        for byte in [0, 0x7f, 0x80, 0xff] {
            let mut bent = whole.clone();
            bent[at] = byte;
            let _ = decode(&bent);
        }
    }
}

#[test]
fn every_definition_in_the_table_is_complete() {
    for (definition, fields) in served().iter().chain(&unserved().messages) {
        assert!(fields.is_sorted_by_key(|field| field.0), "{definition}");
        for (_, name, kind, flags) in fields {
            let known =
                kind.len() == 1 || messages::fields(kind).is_some() || special::reader(kind).is_some();
            assert!(known, "{definition}.{name} holds {kind}");
            assert!(*flags & !(KEPT | POINTER) <= MAP, "{definition}.{name}");
            // A field that is not in the schema would be refused as unknown.
            if let Some(properties) = facts().raw(definition).and_then(|raw| raw.get("properties"))
                && !name.is_empty()
                && *name != "*"
            {
                assert!(properties.get(name).is_some(), "{definition}.{name} is not in the schema");
            }
        }
    }
}

/// Objects of our own with the bytes that apimachinery 0.36's serializer makes of them, as hexadecimal lines.
#[test]
fn answers_are_the_bytes_of_the_real_serializer() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/protobuf");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let given: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let made = match given["type"].as_str().filter(|_| given["object"].is_object()) {
            Some(kind) => frame(kind, &given["object"]),
            None => encode(&given),
        };
        let made: String = made.unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        let real = std::fs::read_to_string(path.with_extension("hex")).unwrap().replace('\n', "");
        assert_eq!(made, real, "{}", path.display());
        count += 1;
    }
    assert!(count > 10, "{}", folder.display());
}

#[test]
fn what_does_not_fit_its_message_is_said() {
    let replicas = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "many"}});
    assert_eq!(
        encode(&replicas).unwrap_err().to_string(),
        "spec: replicas: proto: \"many\" where an integer was expected"
    );
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Widget"});
    expect![[r#"no kind "Widget" is registered for version "example.com/v1" in protobuf"#]]
        .assert_eq(&encode(&unknown).unwrap_err().to_string());
    assert!(!serves("example.com/v1", "Widget") && serves("v1", "Pod"));
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "array", "items": deep});
    }
    let schema = json!({"openAPIV3Schema": deep});
    let deep = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {"versions": [{"name": "v1", "schema": schema}]}});
    assert!(encode(&deep).unwrap_err().to_string().ends_with("nested too deeply"));
}

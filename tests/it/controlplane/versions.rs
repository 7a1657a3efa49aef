//! Owners of the fields of a custom resource that is written at several versions of its definition, beside
//! what the real server (1.37.2) answered to the same requests: `tests/golden/managers/versions.txt`.

use super::webhooks::{ask, ask_as, bare_plane};
use opdev_controlplane::ControlPlane;
use serde_json::{Value, json};
use std::fmt::Write as _;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "mf.example.com";
const MEASURED: &str = include_str!("../../golden/managers/versions.txt");

/// A list is a map at `v1` and replaced as a whole at `v1beta1`, and each has a field that the other has not.
fn version(name: &str) -> Value {
    let item = json!({"type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}});
    let mut spec = json!({"a": {"type": "integer"}, "b": {"type": "integer"},
        "items": {"type": "array", "items": item}});
    if name == "v1" {
        spec["items"]["x-kubernetes-list-type"] = json!("map");
        spec["items"]["x-kubernetes-list-map-keys"] = json!(["name"]);
        spec["extra"] = json!({"type": "string"});
    } else {
        spec["old"] = json!({"type": "string"});
    }
    json!({"name": name, "served": true, "storage": name == "v1", "schema": {"openAPIV3Schema":
        {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}}})
}

fn definition(versions: &[Value]) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("mfs.{GROUP}")},
        "spec": {"group": GROUP, "scope": "Namespaced", "versions": versions,
            "names": {"plural": "mfs", "singular": "mf", "kind": "Mf", "listKind": "MfList"}}})
}

/// The definition with other versions.
async fn redefine(plane: &ControlPlane, versions: &[Value]) -> u16 {
    let path = format!("{DEFINITIONS}/mfs.{GROUP}");
    let (_, _, now) = ask(plane, "GET", &path, Value::Null).await;
    let mut new = definition(versions);
    new["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
    ask(plane, "PUT", &path, new).await.0
}

/// One request of the file, and the answer as the file has it.
async fn step(plane: &ControlPlane, line: &str) -> String {
    let words: Vec<&str> = line.splitn(5, ' ').collect();
    let [how, version_name, name, manager, spec] = words[..] else {
        let mut old = version("v1beta1");
        old["served"] = json!(false);
        let kept = if line == "unserved" { vec![version("v1"), old] } else { vec![version("v1")] };
        return format!("{}\n", redefine(plane, &kept).await);
    };
    let path = format!("/apis/{GROUP}/{version_name}/namespaces/default/mfs/{name}?fieldManager={manager}");
    let spec: Value = serde_json::from_str(spec).unwrap();
    let (code, _, answer) = match how {
        "merge" => ask_as(plane, "PATCH", &path, "application/merge-patch+json", json!({"spec": spec})).await,
        _ => {
            let force = if how == "force" { "&force=true" } else { "" };
            let config = json!({"apiVersion": format!("{GROUP}/{version_name}"), "kind": "Mf",
                "metadata": {"name": name}, "spec": spec});
            ask_as(plane, "PATCH", &format!("{path}{force}"), "application/apply-patch+yaml", config).await
        }
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if code >= 300 {
        let mut told = format!("{code} {}\n", text(&answer["message"]));
        for cause in answer["details"]["causes"].as_array().into_iter().flatten() {
            writeln!(told, "  {}: {}", text(&cause["field"]), text(&cause["message"])).unwrap();
        }
        return told;
    }
    let mut told = format!("{code} {}\n", answer["spec"]);
    let mut entries = answer["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.sort_by_key(|entry| (text(&entry["manager"]), text(&entry["apiVersion"])));
    for entry in entries {
        let at = text(&entry["apiVersion"]).replace(&format!("{GROUP}/"), "");
        let (manager, operation) = (text(&entry["manager"]), text(&entry["operation"]));
        writeln!(told, "  {manager} {operation} {at} {}", entry["fieldsV1"]).unwrap();
    }
    told
}

#[tokio::test]
async fn managers_at_several_versions_are_as_on_the_real_server() {
    let plane = bare_plane().await;
    let both = definition(&[version("v1"), version("v1beta1")]);
    assert_eq!(ask(&plane, "POST", DEFINITIONS, both).await.0, 201);
    let mut told = String::new();
    for line in MEASURED.lines().filter_map(|line| line.strip_prefix("> ")) {
        told.push_str(&format!("> {line}\n{}", step(&plane, line).await));
    }
    assert_eq!(told, MEASURED);
    plane.stop().await;
}

/// The definition of today holds for objects that were stored before: in get, list, watch, Tables and
/// selections.
#[tokio::test]
async fn what_is_read_fits_the_schema_of_today() {
    let plane = super::webhooks::bare_plane().await;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let path = "/apis/read.io/v1/namespaces/default/things";
    let definition = |properties: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.read.io"},
            "spec": {"group": "read.io", "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": ".spec.size"}],
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                        "spec": {"type": "object", "default": {}, "properties": properties},
                        "status": {"type": "object", "properties": {"seen": {"type": "boolean"}}}}}}}]}})
    };
    let ask = super::webhooks::ask;
    let text = json!({"type": "string"});
    let first = definition(json!({"old": text, "kept": text, "size": text}));
    assert_eq!(ask(&plane, "POST", definitions, first).await.0, 201);
    let thing = json!({"apiVersion": "read.io/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"old": "goes", "kept": "stays"}});
    let (code, _, made) = ask(&plane, "POST", path, thing).await;
    assert_eq!((code, &made["spec"]), (201, &json!({"old": "goes", "kept": "stays"})));
    let version = made["metadata"]["resourceVersion"].as_str().unwrap().to_owned();

    let one = format!("{definitions}/things.read.io");
    let mut second = ask(&plane, "GET", &one, Value::Null).await.2;
    let properties = json!({"kept": text, "size": {"type": "string", "default": "big"}});
    second["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        properties;
    assert_eq!(ask(&plane, "PUT", &one, second).await.0, 200);

    let expected = json!({"kept": "stays", "size": "big"});
    for _ in 0..2 {
        let read = ask(&plane, "GET", &format!("{path}/a"), Value::Null).await.2;
        assert_eq!(read["spec"], expected);
        assert_eq!(read["metadata"]["resourceVersion"], version.as_str(), "reading writes nothing");
        let list = ask(&plane, "GET", path, Value::Null).await.2;
        assert_eq!(list["items"][0]["spec"], expected);
    }
    let selected = ask(&plane, "GET", &format!("{path}?fieldSelector=spec.size%3Dbig"), Value::Null).await.2;
    assert_eq!(selected["items"].as_array().unwrap().len(), 1);

    // A watch that begins before the change shows what was written then as it is read now.
    let before: u64 = version.parse::<u64>().unwrap() - 1;
    for query in [
        format!("resourceVersion={before}"),
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned(),
    ] {
        let watched =
            ask(&plane, "GET", &format!("{path}?watch=1&timeoutSeconds=1&{query}"), Value::Null).await.2;
        assert_eq!((&watched["type"], &watched["object"]["spec"]), (&json!("ADDED"), &expected));
    }

    // A change of the status alone takes the rest in as well.
    let seen = json!({"status": {"seen": true}});
    let merge = "application/merge-patch+json";
    let patched = super::webhooks::ask_as(&plane, "PATCH", &format!("{path}/a/status"), merge, seen).await.2;
    assert_eq!((&patched["spec"], &patched["status"]["seen"]), (&expected, &json!(true)));
}

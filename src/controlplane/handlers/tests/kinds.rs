//! An object of every kind that can be kept: sent as a message it becomes what it becomes as JSON, and it is
//! read alike in all three encodings.

use super::difference::difference;
use super::*;
use opdev_apimachinery::protobuf;
use opdev_registry::builtin_resources;
use std::collections::BTreeSet;

const TYPED: &str = "application/vnd.kubernetes.protobuf";

async fn bytes(api: &Api, method: &str, uri: &str, accept: &str, body: Vec<u8>) -> (u16, Bytes) {
    let request = Request::builder().method(method).uri(uri).header("accept", accept);
    let request = request.header("content-type", TYPED).header("user-agent", "tester/1.0");
    let response = api.call(&User::admin(), request.body(Full::new(Bytes::from(body))).unwrap()).await;
    let code = response.status().as_u16();
    if code < 300 {
        assert_eq!(response.headers()["content-type"], accept, "{uri}");
    }
    (code, response.into_body().collect().await.unwrap().to_bytes())
}

/// Without what no two objects share.
fn shared(mut object: Value) -> Value {
    let meta = object["metadata"].as_object_mut().unwrap();
    meta.remove("uid");
    meta.remove("resourceVersion");
    object
}

/// The first place where something that was asked for is not there.
fn missing(wanted: &Value, found: &Value, path: &str) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            // A zero value that is no pointer is left out.
            let zero = [json!(false), json!(""), json!({})].contains(value);
            match found.get(key) {
                Some(found) => missing(value, found, &path),
                None => (!zero).then_some(path),
            }
        }),
        (Value::Array(wanted), Value::Array(found)) if wanted.len() == found.len() => wanted
            .iter()
            .zip(found)
            .enumerate()
            .find_map(|(at, (a, b))| missing(a, b, &format!("{path}[{at}]"))),
        _ => (wanted != found).then(|| format!("{path}: {found}")),
    }
}

#[tokio::test]
async fn every_kind_that_is_kept_goes_round_in_every_encoding() {
    let mut kinds: BTreeSet<(String, String)> = BTreeSet::new();
    for line in include_str!("kinds.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (path, object) = (case["path"].as_str().unwrap(), &case["object"]);
        let kind = object["kind"].as_str().unwrap();
        let one = format!("{path}/{}", object["metadata"]["name"].as_str().unwrap());
        kinds.insert((object["apiVersion"].as_str().unwrap().to_owned(), kind.to_owned()));

        let typed = api();
        let body = protobuf::encode(object).unwrap();
        let (code, made) = bytes(&typed, "POST", path, TYPED, body).await;
        assert_eq!(code, 201, "{kind}: {:#}", protobuf::decode(&made).unwrap());
        let (_, json) = bytes(&typed, "GET", &one, "application/json", Vec::new()).await;
        let json: Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(missing(object, &json, ""), None, "{kind}");

        let (_, yaml) = bytes(&typed, "GET", &one, "application/yaml", Vec::new()).await;
        let yaml = opdev_object::yaml::from_str(std::str::from_utf8(&yaml).unwrap()).unwrap();
        assert_eq!(difference(&yaml, &json, ""), "", "{kind}");
        let (_, message) = bytes(&typed, "GET", &one, TYPED, Vec::new()).await;
        assert_eq!(message, made, "{kind}");
        assert_eq!(message, protobuf::encode(&json).unwrap(), "{kind}");
        let mut sent = json.clone();
        if kind == "StatefulSet" {
            // Kind and version of an object inside another one are not in its message.
            let claim = sent.pointer_mut("/spec/volumeClaimTemplates/0").and_then(Value::as_object_mut);
            claim.unwrap().retain(|key, _| key != "apiVersion" && key != "kind");
        }
        assert_eq!(difference(&protobuf::decode(&message).unwrap(), &sent, ""), "", "{kind}");

        let plain = api();
        post(&plain, path, object.clone()).await.expect(StatusCode::CREATED);
        let plain = shared(get(&plain, &one).await.expect(StatusCode::OK));
        assert_eq!(difference(&plain, &shared(json), ""), "", "{kind}");
    }
    let kept: BTreeSet<(String, String)> = builtin_resources()
        .iter()
        .filter(|resource| resource.has_verb("create") && resource.has_verb("get"))
        .map(|resource| (resource.api_version().to_owned(), resource.kind.clone()))
        .collect();
    assert_eq!(kinds, kept);
}

/// Numbers that clients read as integers are written as integers, whatever the body said. Others stay.
#[tokio::test]
async fn whole_numbers_have_no_fraction() {
    let api = api();
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema =
        json!({"type": "object", "properties": {"spec": open, "size": {"type": "number", "minimum": 1.0}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Cluster",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = post(&api, definitions, definition).await.expect(StatusCode::CREATED);
    let size = &made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["size"];
    assert_eq!(size["minimum"].to_string(), "1");

    let gadget = json!({"apiVersion": "ex.io/v1", "kind": "Gadget", "metadata": {"name": "a"},
        "size": 2.0, "spec": {"list": [3.0, 0.5], "minus": -0.0, "large": 1e21}});
    let made = post(&api, "/apis/ex.io/v1/gadgets", gadget).await.expect(StatusCode::CREATED);
    assert_eq!(made["size"].to_string(), "2");
    assert_eq!(made["spec"].to_string(), r#"{"large":1e+21,"list":[3,0.5],"minus":0}"#);
    let one = "/apis/ex.io/v1/gadgets/a";
    let patch = json!({"spec": {"list": null, "more": 4.0}});
    let patched = ask_as(&api, "PATCH", one, "application/merge-patch+json", patch).await;
    assert_eq!(patched.json["spec"].to_string(), r#"{"large":1e+21,"minus":0,"more":4}"#);
    // As on a real server, what is sent as another number is a change, though it is kept as the same one.
    for (size, generation) in [("2", 2), ("2.0", 3), ("2", 3)] {
        let patch: Value = serde_json::from_str(&format!(r#"{{"size":{size}}}"#)).unwrap();
        let patched = ask_as(&api, "PATCH", one, "application/merge-patch+json", patch).await.json;
        assert_eq!(
            (patched["size"].to_string().as_str(), &patched["metadata"]["generation"]),
            ("2", &json!(generation))
        );
    }
}

/// Paths where a real server answers otherwise, because it does more than keep the object.
const OTHERWISE: [(&str, &str); 13] = [
    // Admission and controllers: taints, the token of the ServiceAccount, a finalizer, who asks with which
    // credential.
    ("Node", ".spec.taints"),
    ("Pod", ".spec.volumes"),
    ("Pod", ".spec.containers[0].volumeMounts"),
    ("VolumeAttributesClass", ".metadata.finalizers"),
    ("CertificateSigningRequest", ".spec.extra"),
    // Here a definition is served at once.
    ("CustomResourceDefinition", ".status"),
    // An annotation that only says how often the template changed.
    ("DaemonSet", ".metadata.annotations"),
    ("DaemonSet", ".metadata.managedFields[0].fieldsV1.f:metadata.f:annotations"),
    // Owners of places that Go's types leave out though they are required, that hold any JSON, or that nobody
    // may set.
    ("ValidatingAdmissionPolicyBinding", ".metadata.managedFields[0].fieldsV1.f:spec.f:validationActions.."),
    ("IPAddress", ".metadata.managedFields[0].fieldsV1.f:spec.f:parentRef.."),
    ("ControllerRevision", ".metadata.managedFields[0].fieldsV1.f:data"),
    ("CSINode", ".metadata.managedFields[0].fieldsV1.f:spec.f:drivers"),
    ("CertificateSigningRequest", ".metadata.managedFields[0].fieldsV1.f:spec"),
];

/// All places at which two values differ; null and absent are the same.
fn differences(ours: &Value, real: &Value, path: &str, out: &mut Vec<String>) {
    match (ours, real) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            keys.iter().for_each(|key| {
                differences(&ours[key.as_str()], &real[key.as_str()], &format!("{path}.{key}"), out);
            });
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{path}[{at}]"), out);
            }
        }
        _ if ours == real => {}
        _ => out.push(format!("{path} is {ours}, not {real}")),
    }
}

/// The golden file holds the answers of a kube-apiserver 1.36.0 to the creation of each kind, as a dry run by
/// the manager `tester`. They are without uids, versions and times.
#[tokio::test]
async fn every_kind_that_is_kept_is_created_as_by_a_real_server() {
    let (mut wrong, mut met) = (Vec::new(), BTreeSet::new());
    let answers = include_str!("kinds_answers.jsonl").lines();
    for (line, answer) in include_str!("kinds.jsonl").lines().zip(answers) {
        let case: Value = serde_json::from_str(line).unwrap();
        let answer: Value = serde_json::from_str(answer).unwrap();
        let path = format!("{}?dryRun=All&fieldManager=tester", case["path"].as_str().unwrap());
        let made = post(&api(), &path, case["object"].clone()).await.expect(StatusCode::CREATED);
        let mut made = shared(made);
        made["metadata"].as_object_mut().unwrap().remove("creationTimestamp");
        for entry in made["metadata"]["managedFields"].as_array_mut().unwrap() {
            entry.as_object_mut().unwrap().remove("time");
        }
        let kind = answer["kind"].as_str().unwrap();
        assert_eq!(kind, case["object"]["kind"], "a line is missing");
        let mut found = Vec::new();
        differences(&made, &answer, "", &mut found);
        for one in found {
            match OTHERWISE.iter().position(|(of, path)| *of == kind && one.starts_with(path)) {
                Some(known) => _ = met.insert(known),
                None => wrong.push(format!("{kind}: {one}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let gone: Vec<_> = (0..OTHERWISE.len()).filter(|at| !met.contains(at)).map(|at| OTHERWISE[at]).collect();
    assert!(gone.is_empty(), "these are answered equally by now: {gone:?}");
}

/// Whoever signs relies on who asked: nobody says that he is somebody else.
#[tokio::test]
async fn a_signing_request_says_who_made_it() {
    let api = api();
    let line = include_str!("kinds.jsonl").lines().find(|line| line.contains("CertificateSigningRequest"));
    let case: Value = serde_json::from_str(line.unwrap()).unwrap();
    let (path, mut object) = (case["path"].as_str().unwrap(), case["object"].clone());
    object["spec"]["username"] = json!("system:kube-controller-manager");
    object["spec"]["groups"] = json!(["system:nodes"]);
    let made = post(&api, path, object).await.expect(StatusCode::CREATED);
    let user = User::admin();
    assert_eq!(made["spec"]["username"], user.name.as_str());
    assert_eq!(made["spec"]["groups"], json!(user.groups));
    let mut other = made.clone();
    other["spec"]["username"] = json!("somebody");
    other["metadata"]["labels"] = json!({"a": "b"});
    let kept = ask(&api, "PUT", &format!("{path}/o"), other).await.expect(StatusCode::OK);
    assert_eq!((&kept["spec"], &kept["metadata"]["labels"]), (&made["spec"], &json!({"a": "b"})));
}

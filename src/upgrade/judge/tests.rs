//! Whole observations and their findings.

use super::*;
use crate::calls::Write;
use crate::finding::{Class, Level};
use crate::running::Rest;
use crate::snapshot::Snapshot;
use http::Method;
use opdev_project::program::election::Election;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn observed(before: Vec<Value>, after: Vec<Value>) -> Observed {
    Observed {
        variant: Variant::Plain,
        from: "v1".to_owned(),
        to: "v2".to_owned(),
        before: Snapshot::of(before),
        after: Snapshot::of(after),
        writes: Vec::new(),
        rest_before: Rest::default(),
        rest: Rest::default(),
        defined: Vec::new(),
        old_again: Vec::new(),
        old_anew: Vec::new(),
        new: Vec::new(),
        lossy: BTreeMap::new(),
        left: BTreeSet::new(),
        rights: RightsSeen::default(),
        elections: Elections::default(),
    }
}

fn object(kind: &str, name: &str, uid: &str, more: &Value) -> Value {
    let api = if kind == "Deployment" || kind == "StatefulSet" { "apps/v1" } else { "v1" };
    let mut object = json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "namespace": "a", "uid": uid } });
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

fn refused(stored: Value, content: &str, body: Value, message: &str, field: &str) -> Write {
    Write {
        method: Method::PATCH,
        path: format!("/apis/apps/v1/namespaces/a/x/{}", meta_name(&stored)),
        content: content.to_owned(),
        body,
        status: 422,
        answer: json!({ "message": message, "details": { "causes": [{ "field": field }] } }),
        stored: Some(stored),
        ..Write::default()
    }
}

fn meta_name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn a_refused_selector_is_named_with_both_values() {
    let selector =
        |app: &str| json!({ "spec": { "selector": { "matchLabels": { "app": app } }, "replicas": 1 } });
    let stored = object("Deployment", "web", "1", &selector("old"));
    let mut body = selector("new");
    body["spec"]["replicas"] = json!(2);
    let mut seen = observed(vec![stored.clone()], vec![stored.clone()]);
    seen.writes = vec![refused(
        stored,
        "application/strategic-merge-patch+json",
        body,
        "spec.selector: Invalid value: field is immutable",
        "spec.selector",
    )];
    let found = findings(&seen);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].title, "Deployment a/web: .spec.selector may not change");
    assert_eq!(
        found[0].lines[1..],
        ["- .spec.selector.matchLabels.app: old", "+ .spec.selector.matchLabels.app: new"]
    );
    // Where a later write went through, nothing is wrong.
    let back =
        Write { status: 200, answer: seen.writes[0].stored.clone().unwrap(), ..seen.writes[0].clone() };
    seen.writes.push(back);
    assert_eq!(findings(&seen).len(), 1, "a rollback makes up for nothing");
    let answer = object("Deployment", "web", "1", &json!({ "spec": seen.writes[0].body["spec"] }));
    let again = Write { status: 200, answer, ..seen.writes[0].clone() };
    seen.writes.push(again);
    assert!(findings(&seen).is_empty());
}

#[test]
fn the_field_of_a_stateful_set_is_found_by_comparing() {
    let spec = |size: &str, replicas: i64| {
        json!({ "spec": { "replicas": replicas, "serviceName": "db", "volumeClaimTemplates": [
            { "metadata": { "name": "data" }, "spec": { "resources": { "requests": { "storage": size } } } }] } })
    };
    let stored = object("StatefulSet", "db", "1", &spec("1Gi", 1));
    let body = spec("2Gi", 3);
    let mut seen = observed(vec![stored.clone()], vec![stored.clone()]);
    let message = "StatefulSet.apps \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than";
    seen.writes = vec![refused(stored, "application/merge-patch+json", body, message, "spec")];
    let found = findings(&seen);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].fields, [".spec.volumeClaimTemplates[0].spec.resources.requests.storage"]);
}

#[test]
fn objects_that_go_are_told_from_renamed_ones() {
    let service =
        |name: &str, uid: &str, port: i64| object("Service", name, uid, &json!({ "spec": { "port": port } }));
    let map = |name: &str| object("ConfigMap", name, name, &json!({}));
    let before = vec![service("web", "1", 80), map("gone"), service("stays", "2", 80)];
    let after = vec![service("web-svc", "3", 80), service("stays", "4", 80), service("other", "5", 443)];
    let seen = observed(before, after);
    let found = findings(&seen);
    let told: Vec<(Level, Class, &str)> =
        found.iter().map(|one| (one.level, one.class, one.title.as_str())).collect();
    assert_eq!(
        told,
        [
            (Level::Warning, Class::Deleted, "ConfigMap a/gone is deleted"),
            (Level::Error, Class::MadeAgain, "Service a/stays is deleted and made again"),
            (
                Level::Error,
                Class::Renamed,
                "Service a/web is deleted, and Service a/web-svc is made in its place"
            ),
        ]
    );
    let counted = tally(&seen);
    assert_eq!((counted.before, counted.same, counted.created.len()), (3, 1, 2));
}

#[test]
fn stored_fields_that_the_new_schema_lacks_are_lost() {
    let crd = |fields: &[&str]| {
        let fields: serde_json::Map<String, Value> =
            fields.iter().map(|name| ((*name).to_owned(), json!({ "type": "integer" }))).collect();
        json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "webs.x.io" },
            "spec": { "group": "x.io", "names": { "kind": "Web", "plural": "webs" }, "scope": "Namespaced", "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "properties":
                    { "spec": { "type": "object", "properties": fields } } } } }] } })
    };
    let web = json!({ "apiVersion": "x.io/v1", "kind": "Web", "metadata": { "name": "w", "namespace": "a", "uid": "1" },
        "spec": { "size": 1, "port": 2 } });
    let mut seen = observed(vec![web.clone()], vec![web]);
    let defined = |new: Value| Defined {
        name: "webs.x.io".to_owned(),
        old: Some(crd(&["size", "port"])),
        new: Arc::new(new),
        refusal: None,
    };
    seen.defined = vec![defined(crd(&["size"]))];
    let found = findings(&seen);
    assert_eq!(
        found.iter().map(|one| one.title.as_str()).collect::<Vec<_>>(),
        ["Web a/w: .spec.port is lost"]
    );
    seen.defined = vec![defined(crd(&["size", "port", "tls"]))];
    assert!(findings(&seen).is_empty(), "a new field hurts nobody");
}

#[test]
fn what_the_operator_writes_and_nobody_stores_is_named() {
    let mut seen = observed(Vec::new(), Vec::new());
    let crd = json!({ "spec": { "group": "x.io", "names": { "kind": "Web" } } });
    seen.defined =
        vec![Defined { name: "webs.x.io".to_owned(), old: None, new: Arc::new(crd), refusal: None }];
    let status = |more: Value| {
        let mut web = json!({ "apiVersion": "x.io/v1", "kind": "Web", "metadata": { "name": "w", "namespace": "a" },
            "status": { "ready": 1 } });
        web["status"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        web
    };
    seen.writes = vec![Write {
        method: Method::PUT,
        path: "/apis/x.io/v1/namespaces/a/webs/w/status".to_owned(),
        body: status(json!({ "address": "x", "empty": {} })),
        status: 200,
        answer: status(json!({})),
        ..Write::default()
    }];
    let found = findings(&seen);
    assert_eq!(found[0].title, "Web a/w: .status.address is written and not stored");
    assert_eq!((found[0].level, found.len()), (Level::Error, 1));
}

#[test]
fn two_versions_that_no_election_keeps_apart_are_told() {
    let election = |lock: &str, turned_on: Option<bool>| {
        Some(Election { lock: Some(lock.to_owned()), turned_on, recreates: false })
    };
    let told = |before: Option<Election>, after: Option<Election>| {
        let mut observed = observed(Vec::new(), Vec::new());
        observed.elections = Elections { before, after };
        findings(&observed).into_iter().map(|finding| finding.title).collect::<Vec<_>>()
    };
    let another = told(election("a", Some(true)), election("b", Some(true)));
    assert!(another[0].ends_with("the lock of their leader election has another name"), "{another:?}");
    let off = told(election("a", Some(true)), election("a", Some(false)));
    assert!(off[0].ends_with("leader election is off now"), "{off:?}");
    assert_eq!(told(election("a", Some(true)), election("a", None)), [""; 0], "the default may be on");
    assert_eq!(told(election("a", Some(false)), election("b", Some(true))), [""; 0], "nothing gets worse");
    assert_eq!(told(None, election("b", Some(true))), [""; 0], "not known");
    assert_eq!(told(election("a", None), election("b", None)), [""; 0], "its default is off");
    let alone = election("b", Some(true)).map(|election| Election { recreates: true, ..election });
    assert_eq!(told(election("a", Some(true)), alone), [""; 0], "the old one is ended first");
}

#[test]
fn an_apply_that_a_patch_made_up_for_is_no_finding() {
    let strategy = |strategy: Value| json!({ "spec": { "strategy": strategy, "memory": "1Gi" } });
    let stored = object("Deployment", "web", "1", &strategy(json!({ "type": "RollingUpdate" })));
    // The API server stores 1024Mi as 1Gi.
    let body = json!({ "spec": { "strategy": { "type": "Recreate" }, "memory": "1024Mi" } });
    let refusal = |content: &str| {
        refused(stored.clone(), content, body.clone(), "Forbidden", "spec.strategy.rollingUpdate")
    };
    let patched = |content: &str| Write {
        content: content.to_owned(),
        status: 200,
        answer: object("Deployment", "web", "1", &strategy(json!({ "type": "Recreate" }))),
        ..refusal(content)
    };
    let told = |writes: Vec<Write>| {
        let mut observed = observed(vec![stored.clone()], vec![stored.clone()]);
        observed.writes = writes;
        findings(&observed).iter().filter(|one| one.class == Class::WriteRefused).count()
    };
    let apply = "application/apply-patch+yaml";
    assert_eq!(told(vec![refusal(apply)]), 1);
    assert_eq!(told(vec![refusal(apply), patched(opdev_client::STRATEGIC)]), 0);
    assert_eq!(told(vec![refusal(apply), patched(apply)]), 1, "what was there before, once more");
}

#[test]
fn what_the_old_version_makes_with_more_time_is_no_news_of_the_new_one() {
    let made = |name: &str| object("Service", name, name, &json!({}));
    let mut back = observed(vec![made("a")], vec![made("a"), made("late"), made("new")]);
    back.variant = Variant::Back;
    back.forget_new(&Snapshot::of(vec![made("a"), made("late")]));
    let told: Vec<String> = findings(&back).into_iter().map(|one| one.object).collect();
    assert_eq!(told, ["Service a/new"]);
}

#[test]
fn what_an_object_that_does_not_go_owns_is_told_with_it() {
    let owned = json!({ "metadata": { "name": "child", "namespace": "a", "uid": "2", "ownerReferences": [
        { "apiVersion": "v1", "kind": "Field", "name": "field", "uid": "1" }] } });
    let left = Snapshot::of(vec![
        object("Field", "field", "1", &json!({})),
        object("Service", "child", "2", &owned),
    ]);
    let of = |name: &str| left.0.iter().find(|(key, _)| key.name == name).unwrap().1;
    assert!(left.has_owner_of(of("child")) && !left.has_owner_of(of("field")));
}

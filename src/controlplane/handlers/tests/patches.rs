//! The four kinds of patches.

use super::*;

const MERGE: &str = "application/merge-patch+json";
const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

async fn patch(api: &Api, uri: &str, media_type: &str, body: Value) -> Read {
    ask_as(api, "PATCH", uri, media_type, body).await
}

#[tokio::test]
async fn json_merge_and_strategic() {
    let api = api();
    let uri = format!("{DEPLOYMENTS}/web");
    post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let ops = json!([{"op": "test", "path": "/spec/replicas", "value": 1},
        {"op": "replace", "path": "/spec/replicas", "value": 2}]);
    assert_eq!(patch(&api, &uri, JSON, ops.clone()).await.expect(StatusCode::OK)["spec"]["replicas"], 2);
    let failed = patch(&api, &uri, JSON, ops).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(failed["message"], "the server rejected our request due to an error in our request");
    let merged = patch(&api, &uri, MERGE, json!({"spec": {"replicas": null}})).await.expect(StatusCode::OK);
    assert_eq!(merged["spec"]["replicas"], 1, "a removed field takes its default again");
    let side = json!({"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "s:1"}]}}}});
    let both = patch(&api, &uri, STRATEGIC, side).await.expect(StatusCode::OK);
    assert_eq!(both["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2);
    let revision = both["metadata"]["resourceVersion"].clone();
    let nothing = patch(&api, &uri, MERGE, json!({"spec": {"replicas": 1}})).await.expect(StatusCode::OK);
    assert_eq!(nothing["metadata"]["resourceVersion"], revision);
    let stale =
        patch(&api, &uri, MERGE, json!({"metadata": {"resourceVersion": "2"}, "spec": {"replicas": 4}}));
    stale.await.expect(StatusCode::CONFLICT);
    let odd = patch(&api, &uri, "application/merge", json!({})).await;
    assert_eq!(odd.code, 415);
}

#[tokio::test]
async fn strict_patches_name_the_unknown_field() {
    let api = api();
    post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let uri = format!("{DEPLOYMENTS}/web");
    let strict =
        patch(&api, &format!("{uri}?fieldValidation=Strict"), MERGE, json!({"spec": {"foo": 1}})).await;
    assert!(strict.message().starts_with(" \"\" is invalid: patch: Invalid value: "), "{}", strict.message());
    assert!(strict.message().ends_with("strict decoding error: unknown field \"spec.foo\""));
    let warned = patch(&api, &uri, MERGE, json!({"spec": {"foo": 1}})).await;
    assert_eq!(warned.warnings, ["299 - \"unknown field \\\"spec.foo\\\"\""]);
    warned.expect(StatusCode::OK);
}

#[tokio::test]
async fn apply_creates_merges_conflicts_and_lets_go() {
    let api = api();
    let uri = format!("{MAPS}/a");
    let mut config = config_map("a");
    let made = patch(&api, &format!("{uri}?fieldManager=one"), APPLY, config.clone()).await;
    let made = made.expect(StatusCode::CREATED);
    assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Apply");
    let again = patch(&api, &format!("{uri}?fieldManager=one"), APPLY, config.clone()).await;
    assert_eq!(again.expect(StatusCode::OK), made, "the same configuration again changes nothing");
    config["data"] = json!({"a": "2"});
    let conflict = patch(&api, &format!("{uri}?fieldManager=two"), APPLY, config.clone()).await;
    let conflict = conflict.expect(StatusCode::CONFLICT);
    assert_eq!(conflict["message"], "Apply failed with 1 conflict: conflict with \"one\": .data.a");
    assert_eq!(
        conflict["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"", "field": ".data.a"}])
    );
    let forced = patch(&api, &format!("{uri}?fieldManager=two&force=true"), APPLY, config.clone()).await;
    assert_eq!(forced.expect(StatusCode::OK)["data"], json!({"a": "2"}));
    config["data"] = json!({"b": "3"});
    let moved = patch(&api, &format!("{uri}?fieldManager=two"), APPLY, config).await.expect(StatusCode::OK);
    assert_eq!(moved["data"], json!({"b": "3"}), "what the only owner no longer names goes");
    let anonymous = patch(&api, &uri, APPLY, config_map("a")).await;
    assert_eq!(
        anonymous.message(),
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let elsewhere = patch(&api, &format!("{MAPS}/b?fieldManager=one"), APPLY, config_map("a")).await;
    elsewhere.expect(StatusCode::BAD_REQUEST);
    let mut odd = config_map("a");
    odd["foo"] = json!(1);
    let odd = patch(&api, &format!("{uri}?fieldManager=one"), APPLY, odd).await;
    assert!(
        odd.message().starts_with("failed to create typed patch object (/a; /v1, Kind=ConfigMap): .foo: "),
        "{}",
        odd.message()
    );
    assert!(odd.message().ends_with("Kind=ConfigMap): .foo: field not declared in schema"));
}

#[tokio::test]
async fn a_dry_apply_leaves_nothing() {
    let api = api();
    let uri = format!("{MAPS}/a?fieldManager=one&dryRun=All");
    patch(&api, &uri, APPLY, config_map("a")).await.expect(StatusCode::CREATED);
    get(&api, &format!("{MAPS}/a")).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn apply_defaults_and_keeps_what_others_own() {
    let api = api();
    let uri = format!("{DEPLOYMENTS}/web");
    let made = patch(&api, &format!("{uri}?fieldManager=one"), APPLY, deployment("web")).await;
    let made = made.expect(StatusCode::CREATED);
    assert_eq!(made["spec"]["replicas"], 1);
    let scaled =
        patch(&api, &format!("{uri}?fieldManager=hand"), MERGE, json!({"spec": {"replicas": 4}})).await;
    scaled.expect(StatusCode::OK);
    let kept = patch(&api, &format!("{uri}?fieldManager=one"), APPLY, deployment("web")).await;
    let kept = kept.expect(StatusCode::OK);
    assert_eq!((&kept["spec"]["replicas"], &kept["metadata"]["generation"]), (&json!(4), &json!(2)));
    let mut status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "status": {"replicas": 4}});
    status["metadata"] = json!({"name": "web", "namespace": "default"});
    let status = patch(&api, &format!("{uri}/status?fieldManager=ctl"), APPLY, status).await;
    let status = status.expect(StatusCode::OK);
    assert_eq!((&status["status"]["replicas"], &status["spec"]["replicas"]), (&json!(4), &json!(4)));
}

/// A load balancer that keeps the callers' addresses is checked at a port of its own.
#[tokio::test]
async fn a_load_balancer_gets_its_port_of_health_checks() {
    let api = api();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    post(&api, "/api/v1/namespaces/default/services", service).await.expect(StatusCode::CREATED);
    let path = "/api/v1/namespaces/default/services/lb";
    let merge = "application/merge-patch+json";
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    let local = ask_as(&api, "PATCH", path, merge, local).await.expect(StatusCode::OK);
    assert!(local["spec"]["healthCheckNodePort"].as_i64().is_some_and(|port| port >= 30_000), "{local}");
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    let cluster = ask_as(&api, "PATCH", path, merge, cluster).await.expect(StatusCode::OK);
    assert_eq!(cluster["spec"].get("healthCheckNodePort"), None);
}

/// A service that is reached by addresses of the cluster's surroundings says how its callers are passed on,
/// as others do.
#[tokio::test]
async fn a_service_with_external_addresses_has_a_policy_for_them() {
    let api = api();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "out"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}});
    let made = post(&api, "/api/v1/namespaces/default/services", service).await.expect(StatusCode::CREATED);
    assert_eq!(
        (&made["spec"]["type"], &made["spec"]["externalTrafficPolicy"]),
        (&json!("ClusterIP"), &json!("Cluster"))
    );
    let path = "/api/v1/namespaces/default/services/out";
    let inside = json!({"spec": {"externalIPs": null}});
    let inside = ask_as(&api, "PATCH", path, MERGE, inside).await.expect(StatusCode::OK);
    assert_eq!(inside["spec"].get("externalTrafficPolicy"), None);
    let outside = json!({"spec": {"externalIPs": ["192.0.2.2"]}});
    let outside = ask_as(&api, "PATCH", path, MERGE, outside).await.expect(StatusCode::OK);
    assert_eq!(outside["spec"]["externalTrafficPolicy"], "Cluster");
}

#[tokio::test]
async fn a_patch_that_takes_the_name_away_is_told_of_that_first() {
    let api = super::definitions::with_widgets().await;
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": {"color": "red"}});
    post(&api, "/apis/ex.io/v1/namespaces/default/widgets", widget).await.expect(StatusCode::CREATED);
    let uri = "/apis/ex.io/v1/namespaces/default/widgets/a";
    for to in ["/kind", "/apiVersion"] {
        let patch = json!([{"op": "move", "from": "/metadata/name", "path": to}]);
        let moved = ask_as(&api, "PATCH", uri, "application/json-patch+json", patch).await;
        assert_eq!(
            moved.message(),
            "the name of the object (a based on URL) was undeterminable: name must be provided"
        );
        moved.expect(StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn a_patch_that_takes_kind_and_version_away_leaves_no_name() {
    let api = api();
    let maps = "/api/v1/namespaces/default/configmaps";
    post(&api, maps, json!({"metadata": {"name": "a"}})).await.expect(StatusCode::CREATED);
    let remove = |fields: &[&str]| fields.iter().map(|at| json!({"op": "remove", "path": at})).collect();
    for (fields, code) in [(&["/apiVersion", "/kind"][..], 400), (&["/apiVersion"], 400), (&["/kind"], 200)] {
        let patch: Value = remove(fields);
        let answer = ask_as(&api, "PATCH", &format!("{maps}/a"), JSON, patch).await;
        assert_eq!(answer.code, code, "{fields:?}: {}", answer.message());
    }
}

#[tokio::test]
async fn a_null_in_a_list_of_a_built_in_kind_is_what_such_an_item_begins_with() {
    let api = api();
    let labels = json!({"app": "a"});
    let container = json!({"name": "c", "image": "i", "command": [null, "x"]});
    let deployment = json!({"metadata": {"name": "nulls"}, "spec": {"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}});
    let made = post(&api, DEPLOYMENTS, deployment).await.expect(StatusCode::CREATED);
    assert_eq!(made["spec"]["template"]["spec"]["containers"][0]["command"], json!(["", "x"]));
}

#[tokio::test]
async fn an_apply_that_fits_no_schema_is_told_of_that_before_its_uid() {
    let api = api();
    let config = |spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "other"}, "spec": spec});
    let uri = format!("{DEPLOYMENTS}/web?fieldManager=m");
    for (spec, code) in [(json!({"nope": 1}), 500), (json!({"replicas": 1}), 409)] {
        let applied = ask_as(&api, "PATCH", &uri, "application/apply-patch+yaml", config(spec)).await;
        assert_eq!(applied.code, code, "{}", applied.message());
    }
}

#[tokio::test]
async fn the_metadata_of_a_custom_resource_are_looked_at_before_its_kind() {
    const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";
    let api = super::definitions::with_widgets().await;
    let widget = |kind: &str, name: &str| json!({"apiVersion": "ex.io/v1", "kind": kind, "metadata": {"name": name}, "spec": {"color": "red"}});
    let made = post(&api, WIDGETS, widget("Widget", "a")).await.expect(StatusCode::CREATED);
    let uri = format!("{WIDGETS}/a");
    let unversioned = "widgets.ex.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    let other = "the name of the object (other) does not match the name on the URL (a)";
    let mut versioned = widget("Wrong", "a");
    versioned["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let wrong = "Wrong.ex.io \"a\" is invalid: kind: Invalid value: \"Wrong\": must be Widget";
    for (body, expected) in
        [(widget("Wrong", "other"), other), (widget("Wrong", "a"), unversioned), (versioned, wrong)]
    {
        assert_eq!(ask(&api, "PUT", &uri, body).await.message(), expected);
    }
    let removed = json!([{"op": "remove", "path": "/metadata/resourceVersion"}, {"op": "remove", "path": "/apiVersion"}]);
    assert_eq!(ask_as(&api, "PATCH", &uri, JSON, removed).await.message(), unversioned);
}

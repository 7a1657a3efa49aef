//! Bodies of any shape: whatever a client sends is answered, and never makes the server panic.

use super::*;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Values that are no object, or have something else where an object belongs.
fn shapes() -> Vec<Value> {
    let odd = [json!(5), json!("x"), json!([]), json!([1]), json!(true), json!(null), json!({"a": []})];
    let mut shapes: Vec<Value> = odd.to_vec();
    for field in ["metadata", "spec", "status", "target", "deleteOptions", "subsets", "rules"] {
        shapes.extend(odd.iter().map(|odd| {
            let mut shape = json!({"metadata": {"name": "a"}});
            shape[field] = odd.clone();
            shape
        }));
    }
    for (outer, inner) in [
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("metadata", "managedFields"),
        ("metadata", "ownerReferences"),
        ("spec", "template"),
        ("spec", "replicas"),
        ("spec", "selector"),
        ("spec", "containers"),
        ("spec", "boundObjectRef"),
        ("status", "conditions"),
    ] {
        shapes.extend(odd.iter().map(|odd| json!({"metadata": {"name": "a"}, outer: {inner: odd}})));
    }
    shapes
}

/// Patches that put such values into an object.
fn patches() -> Vec<Value> {
    let odd = [json!(5), json!("x"), json!([]), json!(null), json!({})];
    let paths = [
        "",
        "/metadata",
        "/metadata/name",
        "/metadata/labels",
        "/metadata/managedFields",
        "/spec",
        "/status",
    ];
    paths
        .iter()
        .flat_map(|path| odd.iter().map(move |odd| json!([{"op": "add", "path": path, "value": odd}])))
        .collect()
}

#[tokio::test]
async fn no_body_makes_the_server_panic() {
    let api = api();
    // With a policy in force what is written goes through admission.
    let policy = json!({"metadata": {"name": "all"}, "spec": {"failurePolicy": "Ignore", "matchConstraints":
        {"resourceRules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}]},
        "validations": [{"expression": "true"}]}});
    let group = "/apis/admissionregistration.k8s.io/v1";
    post(&api, &format!("{group}/validatingadmissionpolicies"), policy).await.expect(StatusCode::CREATED);
    let binding =
        json!({"metadata": {"name": "all"}, "spec": {"policyName": "all", "validationActions": ["Deny"]}});
    let bindings = format!("{group}/validatingadmissionpolicybindings");
    post(&api, &bindings, binding).await.expect(StatusCode::CREATED);
    let definition = json!({"metadata": {"name": "kits.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "kits", "kind": "Kit"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    post(&api, CRDS, definition).await.expect(StatusCode::CREATED);
    let kits = "/apis/ex.io/v1/namespaces/default/kits";
    post(&api, kits, json!({"apiVersion": "ex.io/v1", "kind": "Kit", "metadata": {"name": "a"}})).await;
    post(&api, DEPLOYMENTS, deployment("a")).await.expect(StatusCode::CREATED);
    post(&api, PODS, pod("a")).await.expect(StatusCode::CREATED);
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    post(&api, accounts, json!({"metadata": {"name": "a"}})).await.expect(StatusCode::CREATED);

    let named =
        [format!("{kits}/a"), format!("{DEPLOYMENTS}/a"), format!("{PODS}/a"), format!("{accounts}/a")];
    let below =
        ["", "/status", "/scale", "/binding", "/eviction", "/token", "/resize", "/ephemeralcontainers"];
    let reviews =
        ["/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews"];
    let collections = [kits, DEPLOYMENTS, PODS, MAPS, CRDS, "/api/v1/namespaces/default/secrets"];
    let all = named.iter().flat_map(|one| below.iter().map(move |sub| format!("{one}{sub}?dryRun=All")));
    let all: Vec<String> = all.chain(reviews.into_iter().chain(collections).map(str::to_owned)).collect();
    let mut asked = 0;
    for uri in &all {
        for shape in shapes() {
            for method in ["POST", "PUT", "DELETE"] {
                let read = ask(&api, method, uri, shape.clone()).await;
                assert!(read.code >= 200, "{method} {uri} {shape}");
                asked += 1;
            }
            for kind in ["application/merge-patch+json", "application/strategic-merge-patch+json"] {
                ask_as(&api, "PATCH", uri, kind, shape.clone()).await;
            }
            let apply = format!("{uri}{}fieldManager=t", if uri.contains('?') { '&' } else { '?' });
            ask_as(&api, "PATCH", &apply, "application/apply-patch+yaml", shape.clone()).await;
        }
        for patch in patches() {
            ask_as(&api, "PATCH", uri, "application/json-patch+json", patch).await;
        }
    }
    assert!(asked > 5000, "{asked}");
}

//! Create, update, delete.

use super::*;
use expect_test::expect;

#[tokio::test]
async fn create_stamps_and_answers_201() {
    let api = api();
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let meta = &made["metadata"];
    assert_eq!(meta["namespace"], "default");
    assert_eq!(meta["creationTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert!(meta["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 1);
    let entry = &meta["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("tester"), &json!("Update")));
    assert_eq!(entry["fieldsV1"], json!({"f:data": {".": {}, "f:a": {}}}));
    assert_eq!(get(&api, &format!("{MAPS}/a")).await.expect(StatusCode::OK), made);
}

#[tokio::test]
async fn names_are_taken_generated_and_checked() {
    let api = api();
    post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let again = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CONFLICT);
    assert_eq!(again["reason"], "AlreadyExists");
    assert_eq!(again["message"], "configmaps \"a\" already exists");
    assert_eq!(again["details"], json!({"name": "a", "kind": "configmaps"}));
    let mut generated = config_map("");
    generated["metadata"] = json!({"generateName": "gen-"});
    let one = post(&api, MAPS, generated.clone()).await.expect(StatusCode::CREATED);
    let name = one["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    let bad = post(&api, MAPS, config_map("Not_Valid")).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert!(bad["message"].as_str().unwrap().starts_with(
        "ConfigMap \"Not_Valid\" is invalid: metadata.name: Invalid value: \"Not_Valid\": a lowercase RFC 1123 subdomain"
    ));
    assert_eq!(bad["details"]["kind"], "ConfigMap");
    let mut none = config_map("");
    none["metadata"] = json!({});
    let none = post(&api, MAPS, none).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        none["message"],
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
}

#[tokio::test]
async fn namespaces_must_exist_and_live() {
    let api = api();
    let nowhere = post(&api, "/api/v1/namespaces/nowhere/configmaps", config_map("a")).await;
    assert_eq!(nowhere.message(), "namespaces \"nowhere\" not found");
    nowhere.expect(StatusCode::NOT_FOUND);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}});
    let space = post(&api, "/api/v1/namespaces", space).await.expect(StatusCode::CREATED);
    assert_eq!(space["metadata"]["labels"]["kubernetes.io/metadata.name"], "going");
    assert_eq!(space["spec"]["finalizers"], json!(["kubernetes"]));
    let gone = ask(&api, "DELETE", "/api/v1/namespaces/going", Value::Null).await.expect(StatusCode::OK);
    assert_eq!(gone["status"]["phase"], "Terminating");
    let late = post(&api, "/api/v1/namespaces/going/configmaps", config_map("a")).await;
    let late = late.expect(StatusCode::FORBIDDEN);
    assert_eq!(
        late["message"],
        "configmaps \"a\" is forbidden: unable to create new content in namespace going because it is being terminated"
    );
    assert_eq!(late["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let again = ask(&api, "DELETE", "/api/v1/namespaces/going", Value::Null).await;
    again.expect(StatusCode::CONFLICT);
    let mut finalized = gone.clone();
    finalized["spec"] = json!({});
    ask(&api, "PUT", "/api/v1/namespaces/going/finalize", finalized).await.expect(StatusCode::OK);
    get(&api, "/api/v1/namespaces/going").await.expect(StatusCode::NOT_FOUND);
    let kept = ask(&api, "DELETE", "/api/v1/namespaces/default", Value::Null).await;
    assert_eq!(kept.message(), "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test]
async fn unknown_fields_warn_or_fail() {
    let api = api();
    let mut object = deployment("web");
    object["spec"]["foo"] = json!(1);
    let warned = post(&api, DEPLOYMENTS, object.clone()).await;
    assert_eq!(warned.warnings, ["299 - \"unknown field \\\"spec.foo\\\"\""]);
    assert!(warned.expect(StatusCode::CREATED)["spec"].get("foo").is_none());
    let strict = post(&api, &format!("{DEPLOYMENTS}?fieldValidation=Strict"), object.clone()).await;
    assert_eq!(
        strict.message(),
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.foo\""
    );
    assert_eq!(strict.expect(StatusCode::BAD_REQUEST)["reason"], "BadRequest");
    object["metadata"]["name"] = json!("quiet");
    let quiet = post(&api, &format!("{DEPLOYMENTS}?fieldValidation=Ignore"), object).await;
    assert!(quiet.warnings.is_empty());
    quiet.expect(StatusCode::CREATED);
}

#[tokio::test]
async fn a_deployment_gets_its_defaults() {
    let api = api();
    let made = post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    assert_eq!(made["metadata"]["generation"], 1);
    let spec = &made["spec"];
    assert_eq!((&spec["replicas"], &spec["revisionHistoryLimit"]), (&json!(1), &json!(10)));
    assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxSurge": "25%", "maxUnavailable": "25%"}));
    assert_eq!(
        spec["template"]["spec"],
        json!({"containers": [{"name": "main", "image": "nginx:1.27", "imagePullPolicy": "IfNotPresent",
            "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
            "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
            "securityContext": {}, "terminationGracePeriodSeconds": 30})
    );
    assert_eq!(made["status"], json!({}));
}

#[tokio::test]
async fn dry_runs_leave_nothing() {
    let api = api();
    let before = api.registry().store.revision();
    let made = post(&api, &format!("{MAPS}?dryRun=All"), config_map("a")).await.expect(StatusCode::CREATED);
    assert!(made["metadata"]["uid"].is_string());
    assert_eq!(api.registry().store.revision(), before);
    let wrong = post(&api, &format!("{MAPS}?dryRun=Some"), config_map("a")).await;
    assert_eq!(
        wrong.message(),
        "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""
    );
}

#[tokio::test]
async fn updates_lock_and_skip_what_changes_nothing() {
    let api = api();
    let uri = format!("{MAPS}/a");
    let made = post(&api, MAPS, config_map("a")).await.expect(StatusCode::CREATED);
    let same = ask(&api, "PUT", &uri, made.clone()).await.expect(StatusCode::OK);
    assert_eq!(same, made, "a write that changes nothing keeps the resourceVersion");
    let mut next = made.clone();
    next["data"]["a"] = json!("2");
    let changed = ask(&api, "PUT", &uri, next.clone()).await.expect(StatusCode::OK);
    assert_ne!(changed["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    next["data"]["a"] = json!("3");
    let stale = ask(&api, "PUT", &uri, next.clone()).await.expect(StatusCode::CONFLICT);
    assert_eq!(
        stale["message"],
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    next["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    ask(&api, "PUT", &uri, next.clone()).await.expect(StatusCode::OK);
    next["metadata"]["uid"] = json!("other");
    ask(&api, "PUT", &uri, next.clone()).await.expect(StatusCode::CONFLICT);
    next["metadata"]["name"] = json!("b");
    let name = ask(&api, "PUT", &uri, next).await;
    assert_eq!(name.message(), "the name of the object (b) does not match the name on the URL (a)");
    let missing = ask(&api, "PUT", &format!("{MAPS}/zz"), config_map("zz")).await;
    missing.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn generation_counts_the_spec_and_status_has_its_own_path() {
    let api = api();
    let uri = format!("{DEPLOYMENTS}/web");
    let mut made = post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    made["metadata"]["labels"] = json!({"a": "b"});
    made["status"] = json!({"replicas": 7});
    let labelled = ask(&api, "PUT", &uri, made.clone()).await.expect(StatusCode::OK);
    assert_eq!(labelled["metadata"]["generation"], 1);
    assert_eq!(labelled["status"], json!({}), "status is not written with the object");
    let mut scaled = labelled.clone();
    scaled["spec"]["replicas"] = json!(3);
    let scaled = ask(&api, "PUT", &uri, scaled).await.expect(StatusCode::OK);
    assert_eq!(scaled["metadata"]["generation"], 2);
    let mut status = scaled.clone();
    status["status"] = json!({"replicas": 3});
    status["spec"]["replicas"] = json!(9);
    let status = ask(&api, "PUT", &format!("{uri}/status"), status).await.expect(StatusCode::OK);
    assert_eq!((&status["spec"]["replicas"], &status["status"]["replicas"]), (&json!(3), &json!(3)));
    assert_eq!(status["metadata"]["generation"], 2);
    let entries = status["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["subresource"] == "status"));
}

#[tokio::test]
async fn selectors_are_immutable_and_must_match() {
    let api = api();
    let mut wrong = deployment("web");
    wrong["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let wrong = post(&api, DEPLOYMENTS, wrong).await;
    assert_eq!(
        wrong.message(),
        "Deployment.apps \"web\" is invalid: spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: \
         `selector` does not match template `labels`"
    );
    // No labels and an empty map of labels are the same, but not where they are printed.
    let mismatch = |labels: &str| {
        format!(
            "Deployment.apps \"web\" is invalid: spec.template.metadata.labels: Invalid value: {labels}: \
             `selector` does not match template `labels`"
        )
    };
    for (labels, printed) in [(json!({}), "{}"), (Value::Null, "null")] {
        let mut bare = deployment("web");
        bare["spec"]["template"]["metadata"]["labels"] = labels;
        assert_eq!(post(&api, DEPLOYMENTS, bare).await.message(), mismatch(printed));
    }
    let mut made = post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let emptied = json!({"spec": {"template": {"metadata": {"labels": {"app": null}}}}});
    let uri = format!("{DEPLOYMENTS}/web");
    let emptied = ask_as(&api, "PATCH", &uri, "application/merge-patch+json", emptied).await;
    assert_eq!(emptied.message(), mismatch("{}"));
    made["spec"]["selector"] = json!({"matchLabels": {"app": "web", "x": "y"}});
    made["spec"]["template"]["metadata"]["labels"]["x"] = json!("y");
    let changed = ask(&api, "PUT", &format!("{DEPLOYMENTS}/web"), made).await;
    assert_eq!(
        changed.message(),
        "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: \
         {\"matchLabels\":{\"app\":\"web\",\"x\":\"y\"}}: field is immutable"
    );
    let empty = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "e"}, "spec": {}});
    let empty = post(&api, DEPLOYMENTS, empty).await.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let text = empty["message"].as_str().unwrap();
    expect![[r#"Deployment.apps "e" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, spec.template.spec.containers: Required value]"#]]
    .assert_eq(text);
}

#[tokio::test]
async fn finalizers_hold_and_the_last_one_lets_go() {
    let api = api();
    let uri = format!("{MAPS}/a");
    let mut object = config_map("a");
    object["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    post(&api, MAPS, object).await.expect(StatusCode::CREATED);
    let marked = ask(&api, "DELETE", &uri, Value::Null).await.expect(StatusCode::OK);
    assert_eq!(marked["kind"], "ConfigMap");
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    let added = ask_as(
        &api,
        "PATCH",
        &uri,
        "application/merge-patch+json",
        json!({"metadata": {"finalizers": ["ex.io/hold", "ex.io/new"]}}),
    )
    .await;
    expect![[r#"ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"ex.io/new"}"#]]
    .assert_eq(added.message());
    let freed = ask_as(
        &api,
        "PATCH",
        &uri,
        "application/merge-patch+json",
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    freed.expect(StatusCode::OK);
    get(&api, &uri).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn deletes_take_preconditions_and_propagation() {
    let api = api();
    let uri = format!("{DEPLOYMENTS}/web");
    let made = post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let wrong = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "x"}});
    let wrong = ask(&api, "DELETE", &uri, wrong).await.expect(StatusCode::CONFLICT);
    assert!(wrong["message"].as_str().unwrap().contains("the UID in the precondition (x) does not match"));
    let held = ask(&api, "DELETE", &format!("{uri}?propagationPolicy=Foreground"), Value::Null).await;
    let held = held.expect(StatusCode::OK);
    assert_eq!(held["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert_eq!(held["metadata"]["generation"], 2);
    let orphan =
        ask(&api, "DELETE", &uri, json!({"propagationPolicy": "Orphan"})).await.expect(StatusCode::OK);
    assert_eq!(orphan["metadata"]["finalizers"], json!(["orphan"]));
    let now = ask(&api, "DELETE", &uri, json!({"propagationPolicy": "Background"})).await;
    assert_eq!(
        now.expect(StatusCode::OK),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {
            "name": "web", "group": "apps", "kind": "deployments", "uid": made["metadata"]["uid"]}})
    );
    let both =
        ask(&api, "DELETE", &uri, json!({"propagationPolicy": "Orphan", "orphanDependents": true})).await;
    both.expect(StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn pods_go_gracefully() {
    let api = api();
    let uri = format!("{PODS}/a");
    let made = post(&api, PODS, pod("a")).await.expect(StatusCode::CREATED);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(made["spec"]["serviceAccountName"], "default");
    let bound = post(
        &api,
        &format!("{uri}/binding"),
        json!({"apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": "a"}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"}}),
    )
    .await;
    bound.expect(StatusCode::CREATED);
    let twice = post(
        &api,
        &format!("{uri}/binding"),
        json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n2"}}),
    )
    .await;
    assert_eq!(
        twice.message(),
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
    );
    let marked = ask(&api, "DELETE", &uri, Value::Null).await.expect(StatusCode::OK);
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-02T03:04:35Z");
    let again = ask(&api, "DELETE", &uri, Value::Null).await.expect(StatusCode::OK);
    assert_eq!(again["metadata"]["resourceVersion"], marked["metadata"]["resourceVersion"]);
    let now = ask(&api, "DELETE", &format!("{uri}?gracePeriodSeconds=0"), Value::Null).await;
    now.expect(StatusCode::OK);
    get(&api, &uri).await.expect(StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn services_get_addresses_and_keep_them() {
    let api = api();
    let services = "/api/v1/namespaces/default/services";
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let made = post(&api, services, object.clone()).await.expect(StatusCode::CREATED);
    let spec = &made["spec"];
    assert!(spec["clusterIP"].as_str().unwrap().starts_with("10.96."));
    assert_eq!(spec["clusterIPs"][0], spec["clusterIP"]);
    assert_eq!(spec["ports"][0]["targetPort"], 80);
    assert!(spec["ports"][0]["nodePort"].as_i64().unwrap() >= 30_000);
    let kept = ask(&api, "PUT", &format!("{services}/s"), object).await.expect(StatusCode::OK);
    assert_eq!(kept["spec"], made["spec"]);
    let taken = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "t"},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}});
    let taken = post(&api, services, taken).await;
    assert!(taken.message().ends_with("failed to allocate IP 10.96.0.1: provided IP is already allocated"));
}

#[tokio::test]
async fn secrets_take_plain_texts() {
    let api = api();
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"a": "hello"}});
    let made = post(&api, "/api/v1/namespaces/default/secrets", object).await.expect(StatusCode::CREATED);
    assert_eq!((&made["data"]["a"], &made["type"]), (&json!("aGVsbG8="), &json!("Opaque")));
    let empty = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "e"}, "data": {"a": ""}});
    post(&api, "/api/v1/namespaces/default/secrets", empty).await.expect(StatusCode::CREATED);
    assert!(made.get("stringData").is_none());
}

#[tokio::test]
async fn scales_read_and_write_replicas() {
    let api = api();
    let uri = format!("{DEPLOYMENTS}/web/scale");
    post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let mut scale = get(&api, &uri).await.expect(StatusCode::OK);
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["selector"]), (&json!(1), &json!("app=web")));
    scale["spec"]["replicas"] = json!(5);
    ask(&api, "PUT", &uri, scale.clone()).await.expect(StatusCode::OK);
    let stored = get(&api, &format!("{DEPLOYMENTS}/web")).await.expect(StatusCode::OK);
    assert_eq!((&stored["spec"]["replicas"], &stored["metadata"]["generation"]), (&json!(5), &json!(2)));
    ask(&api, "PUT", &uri, scale).await.expect(StatusCode::CONFLICT);
    let patched =
        ask_as(&api, "PATCH", &uri, "application/merge-patch+json", json!({"spec": {"replicas": -1}}));
    assert_eq!(
        patched.await.message(),
        "Scale.autoscaling \"web\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
}

#[tokio::test]
async fn a_scale_has_no_replicas_while_they_are_none() {
    let api = api();
    post(&api, DEPLOYMENTS, deployment("web")).await.expect(StatusCode::CREATED);
    let none = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 0}});
    let apply = async |manager: &str, force: bool| {
        let uri = format!("{DEPLOYMENTS}/web/scale?fieldManager={manager}&force={force}");
        ask_as(&api, "PATCH", &uri, "application/apply-patch+yaml", none.clone()).await
    };
    apply("one", true).await.expect(StatusCode::OK);
    // To name them is a change then, and somebody else has named them.
    assert_eq!(
        apply("two", false).await.message(),
        "Apply failed with 1 conflict: conflict with \"one\" with subresource \"scale\": .spec.replicas"
    );
}

#[tokio::test]
async fn one_event_has_two_shapes() {
    let api = api();
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "c", "reportingInstance": "i",
        "action": "A", "reason": "R", "type": "Normal", "note": "hello",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}});
    post(&api, "/apis/events.k8s.io/v1/namespaces/default/events", event).await.expect(StatusCode::CREATED);
    let read = get(&api, "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp").await;
    let read = read.expect(StatusCode::OK);
    assert_eq!(read["items"][0]["message"], "hello");
    assert_eq!(read["items"][0]["reportingComponent"], "c");
    assert_eq!((&read["apiVersion"], read["items"][0].get("apiVersion")), (&json!("v1"), None));
}

#[tokio::test]
async fn reviews_allow_and_tokens_have_a_shape() {
    let api = api();
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let review = post(&api, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review).await;
    assert_eq!(review.expect(StatusCode::CREATED)["status"]["allowed"], true);
    let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let who = post(&api, "/apis/authentication.k8s.io/v1/selfsubjectreviews", who).await;
    assert_eq!(who.expect(StatusCode::CREATED)["status"]["userInfo"]["username"], "kubernetes-admin");
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_done() {
    let api = api();
    let none = get(&api, "/apis/apps/v1/namespaces/default/chairs").await;
    assert_eq!((none.code, none.json.as_str()), (404, Some("404 page not found\n")));
    let verb = ask(&api, "PUT", MAPS, config_map("a")).await.expect(StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(verb["reason"], "MethodNotAllowed");
    let proto = ask_as(&api, "POST", MAPS, "application/vnd.kubernetes.protobuf", json!({})).await;
    assert_eq!(proto.code, 400);
    expect!["the object provided is unrecognized (must be of type ConfigMap): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})"]
        .assert_eq(proto.message());
    let odd = ask_as(&api, "POST", MAPS, "text/plain", json!({})).await;
    assert_eq!(odd.code, 415);
    let kind = post(&api, MAPS, deployment("a")).await.expect(StatusCode::BAD_REQUEST);
    assert_eq!(
        kind["message"],
        "Deployment in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Deployment) to \
         (core.ConfigMap): unknown conversion"
    );
    let version =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "3"}});
    let version = post(&api, MAPS, version).await;
    assert_eq!(version.message(), "resourceVersion should not be set on objects to be created");
}

/// One minimal object of every kind that has rules of its own can be created, and put back as it came.
#[tokio::test]
async fn minimal_objects_of_many_kinds() {
    let api = api();
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "i:1"}]}});
    let selector = json!({"matchLabels": {"a": "b"}});
    let mut claiming = template.clone();
    claiming["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    let mut job = template.clone();
    job["spec"]["restartPolicy"] = json!("Never");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"});
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"});
    for (path, body) in [
        (
            "apps/v1/namespaces/default/statefulsets",
            json!({"spec": {"selector": selector, "template": claiming,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                    "resources": {"requests": {"storage": "1Gi"}}}}]}}),
        ),
        (
            "apps/v1/namespaces/default/daemonsets",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        (
            "apps/v1/namespaces/default/replicasets",
            json!({"spec": {"selector": selector, "template": template}}),
        ),
        ("batch/v1/namespaces/default/jobs", json!({"spec": {"template": job}})),
        (
            "batch/v1/namespaces/default/cronjobs",
            json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": job}}}}),
        ),
        (
            "autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"spec": {"maxReplicas": 2, "scaleTargetRef": target}}),
        ),
        (
            "policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"spec": {"minAvailable": 1, "selector": selector}}),
        ),
        ("networking.k8s.io/v1/namespaces/default/ingresses", json!({"spec": {"defaultBackend": backend}})),
        ("networking.k8s.io/v1/namespaces/default/networkpolicies", json!({"spec": {"podSelector": {}}})),
        (
            "rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            json!({"roleRef": role, "subjects": [{"kind": "User", "name": "u"}]}),
        ),
        ("coordination.k8s.io/v1/namespaces/default/leases", json!({"spec": {"leaseDurationSeconds": 15}})),
        (
            "discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"addressType": "IPv4", "endpoints": []}),
        ),
        ("storage.k8s.io/v1/storageclasses", json!({"provisioner": "p"})),
        ("scheduling.k8s.io/v1/priorityclasses", json!({"value": 1})),
        ("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", json!({"webhooks": []})),
    ] {
        let mut body = body;
        body["metadata"] = json!({"name": "one"});
        let made = post(&api, &format!("/apis/{path}?fieldValidation=Strict"), body)
            .await
            .expect(StatusCode::CREATED);
        let again = ask(&api, "PUT", &format!("/apis/{path}/one?fieldValidation=Strict"), made.clone()).await;
        assert_eq!(again.expect(StatusCode::OK), made, "{path}");
    }
}

#[tokio::test]
async fn an_autoscaler_is_created_at_either_version() {
    let api = api();
    let spec = |extra: Value| {
        let mut spec = json!({"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        opdev_object::patch::merge_patch(&mut spec, &extra);
        spec
    };
    let at =
        |version: &str| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers");
    let old = json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "old"}, "spec": spec(json!({"targetCPUUtilizationPercentage": 50}))});
    let created = post(&api, &at("v1"), old).await.expect(StatusCode::CREATED);
    assert_eq!(created["status"], json!({"currentReplicas": 0, "desiredReplicas": 0}));
    let new = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "new"}, "spec": spec(json!({})), "status": {"currentMetrics": null}});
    post(&api, &at("v2"), new).await.expect(StatusCode::CREATED);
    let old = get(&api, &format!("{}/old", at("v2"))).await.expect(StatusCode::OK);
    assert_eq!(old["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], 50);
    let new = get(&api, &format!("{}/new", at("v1"))).await.expect(StatusCode::OK);
    assert_eq!(new["status"]["currentReplicas"], 0);
}

#[tokio::test]
async fn a_service_whose_ports_share_a_port_of_the_node_can_be_changed() {
    const SERVICES: &str = "/api/v1/namespaces/default/services";
    let api = api();
    let dns = json!({"metadata": {"name": "dns"}, "spec": {"type": "LoadBalancer", "ports": [
        {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "tcp", "port": 53, "protocol": "TCP"}]}});
    let made = post(&api, SERVICES, dns).await.expect(StatusCode::CREATED);
    let ports = &made["spec"]["ports"];
    assert_eq!(ports[0]["nodePort"], ports[1]["nodePort"]);
    let mut next = made.clone();
    next["metadata"]["labels"] = json!({"a": "b"});
    let next = ask(&api, "PUT", &format!("{SERVICES}/dns"), next).await.expect(StatusCode::OK);
    assert_eq!(next["spec"]["ports"], *ports);
}

#[tokio::test]
async fn a_volume_says_since_when_it_has_its_phase() {
    let api = api();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/v"}}});
    let made = post(&api, "/api/v1/persistentvolumes", volume).await.expect(StatusCode::CREATED);
    let now = "2026-01-02T03:04:05Z";
    assert_eq!(made["status"], json!({"phase": "Pending", "lastPhaseTransitionTime": now}));
    let uri = "/api/v1/persistentvolumes/v/status";
    let set =
        |status: Value| ask_as(&api, "PATCH", uri, "application/merge-patch+json", json!({"status": status}));
    let then = "2020-01-01T00:00:00Z";
    let told = set(json!({"phase": "Available", "lastPhaseTransitionTime": then})).await.json;
    assert_eq!(told["status"]["lastPhaseTransitionTime"], then, "what the request says counts");
    let same = set(json!({"phase": "Available", "message": "m"})).await.json;
    assert_eq!(same["status"]["lastPhaseTransitionTime"], then);
    let moved = set(json!({"phase": "Bound"})).await.json;
    assert_eq!(moved["status"]["lastPhaseTransitionTime"], now);
}

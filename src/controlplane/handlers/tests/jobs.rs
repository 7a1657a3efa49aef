//! Jobs and pods: what ties them together, and what may change of them.

use super::*;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// In the words of the real server (1.36): the rules of a Job's policies.
#[tokio::test]
async fn policies_of_jobs_are_held_to_their_rules() {
    let api = api();
    let code = |values: Value| json!({"operator": "In", "values": values});
    let rules = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let indexed = |rule: Value| json!({"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": rule}});
    let at = "podFailurePolicy.rules[0]";
    for (spec, field) in [
        (json!({"successPolicy": {"rules": [{"succeededCount": 1}]}}), "successPolicy".to_owned()),
        (indexed(json!([])), "successPolicy.rules".to_owned()),
        (indexed(json!([{}])), "successPolicy.rules[0]".to_owned()),
        (indexed(json!([{"succeededIndexes": "0-9"}])), "successPolicy.rules[0].succeededIndexes".to_owned()),
        (indexed(json!([{"succeededIndexes": "2-1"}])), "successPolicy.rules[0].succeededIndexes".to_owned()),
        (indexed(json!([{"succeededCount": 4}])), "successPolicy.rules[0].succeededCount".to_owned()),
        (
            rules(json!({"action": "FailJob", "onExitCodes": code(json!([0]))})),
            format!("{at}.onExitCodes.values[0]"),
        ),
        (
            rules(json!({"action": "FailJob", "onExitCodes": code(json!([2, 1]))})),
            format!("{at}.onExitCodes.values"),
        ),
        (
            rules(json!({"action": "FailJob", "onExitCodes":
                {"operator": "In", "values": [1], "containerName": "other"}})),
            format!("{at}.onExitCodes.containerName"),
        ),
        (rules(json!({"action": "FailIndex", "onExitCodes": code(json!([1]))})), format!("{at}.action")),
        (rules(json!({"action": "Ignore"})), at.to_owned()),
        (json!({"managedBy": "notadomain"}), "managedBy".to_owned()),
        (
            json!({"podFailurePolicy": {"rules": []}, "podReplacementPolicy": "TerminatingOrFailed"}),
            "podReplacementPolicy".to_owned(),
        ),
    ] {
        let mut job = json!({"metadata": {"name": "a"}, "spec": {"template": {"spec":
            {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
        job["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let refused = post(&api, JOBS, job).await;
        let causes = refused.json["details"]["causes"].as_array().cloned().unwrap_or_default();
        let fields: Vec<&str> = causes.iter().filter_map(|cause| cause["field"].as_str()).collect();
        assert_eq!((refused.code, fields), (422, vec![format!("spec.{field}").as_str()]), "{spec}");
    }
}

#[tokio::test]
async fn jobs_are_tied_to_their_pods_by_uid_and_name() {
    let api = api();
    let job = |name: &str, labels: Value| {
        json!({"metadata": {"name": name}, "spec": {"template": {"metadata": {"labels": labels},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let copied = post(&api, JOBS, job("copy", json!({"job-name": "first"}))).await;
    let copied = copied.expect(StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(copied["details"]["causes"].as_array().unwrap().len(), 1);
    assert_eq!(copied["details"]["causes"][0]["field"], "spec.template.metadata.labels[job-name]");
    assert!(copied["message"].as_str().unwrap().ends_with("must be 'copy'"));
    let mut own = job("own", json!({"a": "b"}));
    own["spec"]["selector"] = json!({"matchLabels": {"a": "b"}});
    assert!(post(&api, JOBS, own.clone()).await.message().ends_with("`selector` not auto-generated"));
    own["spec"]["manualSelector"] = json!(true);
    let own = post(&api, JOBS, own).await.expect(StatusCode::CREATED);
    assert_eq!(own["spec"]["selector"], json!({"matchLabels": {"a": "b"}}));
    post(&api, JOBS, job("plain", json!({}))).await.expect(StatusCode::CREATED);
    let shared = post(&api, JOBS, job("shared", json!({"a": "b"}))).await.expect(StatusCode::CREATED);
    assert_eq!(shared["metadata"]["labels"], shared["spec"]["template"]["metadata"]["labels"]);
    assert_eq!(shared["metadata"]["labels"]["job-name"], "shared");
    let loose = json!({"spec": {"template": {"metadata": {"labels": null}}}});
    let loose = ask_as(&api, "PATCH", &format!("{JOBS}/plain"), MERGE, loose).await;
    let loose = loose.expect(StatusCode::UNPROCESSABLE_ENTITY);
    let causes = loose["details"]["causes"].as_array().unwrap();
    let fields: Vec<&Value> = causes.iter().map(|cause| &cause["field"]).collect();
    assert_eq!(
        fields,
        ["spec.template.metadata.labels", "spec.template"],
        "names and uid are not asked for again"
    );
}

#[tokio::test]
async fn the_last_pod_of_an_indexed_job_has_a_host_name() {
    let api = api();
    let job = |name: &str, count: u32| {
        json!({"metadata": {"name": name}, "spec": {"completionMode": "Indexed", "completions": count,
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}})
    };
    let long = "i".repeat(61);
    let refused = post(&api, JOBS, job(&long, 11)).await;
    let detail = format!("will not able to create pod with invalid DNS label: {long}-10");
    assert!(refused.message().ends_with(&detail), "{}", refused.message());
    assert_eq!(post(&api, JOBS, job("a.b", 2)).await.code, 422);
    post(&api, JOBS, job(&long, 10)).await.expect(StatusCode::CREATED);
}

/// The fields of the causes of a strategic patch, or none where it is taken.
async fn refused(api: &Api, uri: &str, patch: Value) -> Vec<String> {
    let answer = ask_as(api, "PATCH", uri, STRATEGIC, patch).await;
    let causes = answer.json["details"]["causes"].as_array().cloned().unwrap_or_default();
    causes.iter().map(|cause| cause["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn where_the_pods_of_a_suspended_job_go_may_change_once_it_is_known_to_be() {
    let api = api();
    let job = json!({"metadata": {"name": "j"}, "spec": {"suspend": true, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    post(&api, JOBS, job).await.expect(StatusCode::CREATED);
    let uri = format!("{JOBS}/j");
    let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
    let place =
        pod(json!({"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1,
            "preference": {"matchExpressions": [{"key": "k", "operator": "Exists"}]}}]}}}));
    assert!(refused(&api, &uri, place.clone()).await.is_empty(), "it never began");
    let began = json!({"status": {"startTime": "2026-01-01T00:00:00Z"}});
    ask_as(&api, "PATCH", &format!("{uri}/status"), MERGE, began).await.expect(StatusCode::OK);
    let gone = pod(json!({"nodeSelector": null}));
    assert_eq!(refused(&api, &uri, gone).await, ["spec.template"]);
    let known = json!({"status": {"conditions": [{"type": "Suspended", "status": "True"}]}});
    ask_as(&api, "PATCH", &format!("{uri}/status"), MERGE, known).await.expect(StatusCode::OK);
    assert!(refused(&api, &uri, place.clone()).await.is_empty());
    let more = pod(json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}));
    assert!(refused(&api, &uri, more).await.is_empty());
    let label = json!({"spec": {"template": {"metadata": {"labels": {"x": "y"}}}}});
    assert!(refused(&api, &uri, label).await.is_empty());
    assert!(refused(&api, &uri, pod(json!({"affinity": null}))).await.is_empty());
    let other = pod(json!({"containers": [{"name": "c", "image": "other"}]}));
    assert_eq!(refused(&api, &uri, other).await, ["spec.template.spec"]);
    let apart = pod(json!({"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]}}}));
    assert_eq!(refused(&api, &uri, apart).await, ["spec.template.spec"]);
    let active = json!({"status": {"active": 1}});
    ask_as(&api, "PATCH", &format!("{uri}/status"), MERGE, active).await.expect(StatusCode::OK);
    assert_eq!(refused(&api, &uri, place).await, ["spec.template"]);
}

#[tokio::test]
async fn a_pod_lets_little_change() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let api = api();
    let pod = json!({"metadata": {"name": "p"}, "spec": {"schedulingGates": [{"name": "a.b/c"}],
        "containers": [{"name": "c", "image": "i"}]}});
    post(&api, PODS, pod).await.expect(StatusCode::CREATED);
    let uri = format!("{PODS}/p");
    let deadline = |seconds: Value| json!({"spec": {"activeDeadlineSeconds": seconds}});
    let field = "spec.activeDeadlineSeconds";
    assert!(refused(&api, &uri, deadline(json!(100))).await.is_empty());
    assert_eq!(refused(&api, &uri, deadline(json!(200))).await, [field]);
    assert_eq!(refused(&api, &uri, deadline(json!(-5))).await, [field, field]);
    assert_eq!(refused(&api, &uri, deadline(Value::Null)).await, [field]);
    assert!(refused(&api, &uri, deadline(json!(50))).await.is_empty());
    let image = |name: &str| json!({"spec": {"containers": [{"name": "c", "image": name}]}});
    let field = "spec.containers[0].image";
    assert_eq!(refused(&api, &uri, image("")).await, [field]);
    assert_eq!(refused(&api, &uri, image(" i")).await, [field]);
    assert!(refused(&api, &uri, image("j")).await.is_empty());
    let gate = json!({"spec": {"schedulingGates": [{"name": "a.b/d"}]}});
    assert_eq!(refused(&api, &uri, gate).await, ["spec.schedulingGates[0].name"]);
    let near = json!({"spec": {"tolerations": [{"key": "k", "operator": "Near"}]}});
    assert_eq!(refused(&api, &uri, near).await.len(), 1);
}

#[tokio::test]
async fn a_template_is_warned_of_with_every_generation() {
    let api = api();
    let mut twice = deployment("web");
    twice["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let made = post(&api, DEPLOYMENTS, twice).await;
    assert_eq!(made.warnings.len(), 1);
    let uri = format!("{DEPLOYMENTS}/web");
    // An annotation of a Deployment is a new generation, a label is none.
    for (field, warnings) in [("labels", 0), ("annotations", 1)] {
        let patch = json!({"metadata": {field: {"a": "b"}}});
        assert_eq!(ask_as(&api, "PATCH", &uri, MERGE, patch).await.warnings.len(), warnings, "{field}");
    }
}

#[tokio::test]
async fn a_role_without_rules_says_so() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let api = api();
    let made = post(&api, ROLES, json!({"metadata": {"name": "r"}})).await.expect(StatusCode::CREATED);
    assert_eq!(made.get("rules"), Some(&Value::Null));
    // Nobody owns what nobody has written.
    assert!(made["metadata"].get("managedFields").is_none());
    let read = get(&api, &format!("{ROLES}/r")).await.expect(StatusCode::OK);
    assert_eq!(read.get("rules"), Some(&Value::Null));
}

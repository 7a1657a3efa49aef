//! Evictions and the budgets that decide about them.

use super::*;

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
const MERGE: &str = "application/merge-patch+json";

/// A running pod, ready or not.
async fn running(api: &Api, name: &str, ready: bool) {
    let mut made = pod(name);
    made["metadata"]["labels"]["app"] = json!("web");
    made["spec"]["nodeName"] = json!("n");
    post(api, PODS, made).await.expect(StatusCode::CREATED);
    let ready = if ready { "True" } else { "False" };
    let status = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}});
    ask_as(api, "PATCH", &format!("{PODS}/{name}/status"), MERGE, status).await.expect(StatusCode::OK);
}

/// A budget as its controller has counted it.
async fn budget(api: &Api, name: &str, policy: Option<&str>, [allowed, healthy, desired]: [i64; 3]) {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}, "unhealthyPodEvictionPolicy": policy}});
    post(api, BUDGETS, budget).await.expect(StatusCode::CREATED);
    let reason = if allowed > 0 { ["True", "SufficientPods"] } else { ["False", "InsufficientPods"] };
    let status = json!({"status": {"disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": 3, "observedGeneration": 1, "conditions": [{"type": "DisruptionAllowed", "status": reason[0],
            "reason": reason[1], "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    ask_as(api, "PATCH", &format!("{BUDGETS}/{name}/status"), MERGE, status).await.expect(StatusCode::OK);
}

async fn evict(api: &Api, name: &str) -> Read {
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    post(api, &format!("{PODS}/{name}/eviction"), eviction).await
}

#[tokio::test]
async fn an_eviction_is_taken_from_the_budget() {
    let api = api();
    running(&api, "a", true).await;
    running(&api, "b", true).await;
    budget(&api, "web", None, [1, 3, 2]).await;
    let done = evict(&api, "a").await.expect(StatusCode::CREATED);
    assert_eq!((&done["status"], &done["code"]), (&json!("Success"), &json!(201)));
    let pod = get(&api, &format!("{PODS}/a")).await.expect(StatusCode::OK);
    let target = pod["status"]["conditions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&target["type"], &target["reason"]),
        (&json!("DisruptionTarget"), &json!("EvictionByEvictionAPI"))
    );
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let left = get(&api, &format!("{BUDGETS}/web")).await.expect(StatusCode::OK);
    let status = &left["status"];
    assert_eq!(
        (&status["disruptionsAllowed"], &status["conditions"][0]["status"]),
        (&json!(0), &json!("False"))
    );
    assert_eq!(status["disruptedPods"], json!({"a": "2026-01-02T03:04:05Z"}));
    let refused = evict(&api, "b").await;
    assert_eq!(refused.code, 429);
    let cause = &refused.json["details"]["causes"][0]["message"];
    assert_eq!(*cause, "The disruption budget web needs 2 healthy pods and has 3 currently");
}

#[tokio::test]
async fn a_pod_that_is_not_ready_goes_where_its_policy_lets_it() {
    for (policy, counts, code) in [
        (None, [0, 2, 2], 201),
        (None, [0, 1, 2], 429),
        (Some("IfHealthyBudget"), [0, 1, 2], 429),
        (Some("AlwaysAllow"), [0, 1, 2], 201),
    ] {
        let api = api();
        running(&api, "a", false).await;
        budget(&api, "web", policy, counts).await;
        let read = evict(&api, "a").await;
        assert_eq!(read.code, code, "{policy:?} {counts:?}: {}", read.json);
    }
}

#[tokio::test]
async fn two_budgets_on_a_pod_are_one_too_many() {
    let api = api();
    running(&api, "a", true).await;
    budget(&api, "one", None, [1, 3, 2]).await;
    budget(&api, "two", None, [1, 3, 2]).await;
    let refused = evict(&api, "a").await;
    let said =
        "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!((refused.code, refused.message()), (500, said));
}

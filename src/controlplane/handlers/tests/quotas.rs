//! Quotas and LimitRanges: what is refused, what is filled in, and what is not counted.

use super::*;

/// In the words of the real server (1.36).
#[tokio::test]
async fn a_quota_refuses_what_would_be_too_much() {
    let api = api();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"configmaps": "1", "requests.cpu": "300m", "count/deployments.apps": "0"}}});
    post(&api, "/api/v1/namespaces/default/resourcequotas", quota).await.expect(StatusCode::CREATED);
    post(&api, MAPS, config_map("one")).await.expect(StatusCode::CREATED);
    let refused = post(&api, MAPS, config_map("two")).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "configmaps \"two\" is forbidden: exceeded quota: few, requested: configmaps=1, used: configmaps=1, \
             limited: configmaps=1"
        )
    );
    let refused = post(&api, "/apis/apps/v1/namespaces/default/deployments", deployment("a")).await;
    assert_eq!(
        refused.message(),
        "deployments.apps \"a\" is forbidden: exceeded quota: few, requested: count/deployments.apps=1, used: \
         count/deployments.apps=0, limited: count/deployments.apps=0"
    );
    let pod = |name: &str, resources: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "main", "image": "nginx", "resources": resources}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let bare = post(&api, pods, pod("bare", json!({}))).await;
    let said = "pods \"bare\" is forbidden: failed quota: few: must specify requests.cpu for: main";
    assert_eq!((bare.code, bare.message()), (403, said));
    let asks = |cpu: &str| json!({"requests": {"cpu": cpu}});
    post(&api, pods, pod("small", asks("200m"))).await.expect(StatusCode::CREATED);
    let large = post(&api, pods, pod("large", asks("0.2"))).await;
    assert_eq!(
        large.message(),
        "pods \"large\" is forbidden: exceeded quota: few, requested: requests.cpu=200m, used: requests.cpu=200m, \
         limited: requests.cpu=300m"
    );
    // Where there is no quota, nothing is counted.
    let elsewhere = post(&api, "/api/v1/namespaces/kube-system/configmaps", config_map("two")).await;
    assert_eq!(elsewhere.code, 201, "{}", elsewhere.message());
}

/// A pod may come into the scope of a quota by a change.
#[tokio::test]
async fn a_changed_pod_is_held_against_quotas() {
    let api = api();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"pods": "0"}, "scopes": ["Terminating"]}});
    post(&api, "/api/v1/namespaces/default/resourcequotas", quota).await.expect(StatusCode::CREATED);
    post(&api, PODS, pod("a")).await.expect(StatusCode::CREATED);
    let merge = "application/merge-patch+json";
    let deadline = json!({"spec": {"activeDeadlineSeconds": 5000}});
    let refused = ask_as(&api, "PATCH", &format!("{PODS}/a"), merge, deadline).await;
    let said =
        "pods \"a\" is forbidden: exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0";
    assert_eq!((refused.code, refused.message()), (403, said));
    let label = json!({"metadata": {"labels": {"b": "c"}}});
    ask_as(&api, "PATCH", &format!("{PODS}/a"), merge, label).await.expect(StatusCode::OK);
}

/// In the words of the real server (1.36).
#[tokio::test]
async fn a_limit_range_fills_in_and_refuses() {
    let api = api();
    let range = json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "200m"}, "max": {"cpu": "500m"}, "min": {"cpu": "100m"}}]}});
    let range = post(&api, "/api/v1/namespaces/default/limitranges", range).await.expect(StatusCode::CREATED);
    assert_eq!(range["spec"]["limits"][0]["defaultRequest"], json!({"cpu": "200m"}));
    let pod = |resources: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
            "spec": {"containers": [{"name": "main", "image": "nginx", "resources": resources}]}})
    };
    let pods = "/api/v1/namespaces/default/pods";
    let filled = post(&api, pods, pod(json!({}))).await.expect(StatusCode::CREATED);
    let resources = &filled["spec"]["containers"][0]["resources"];
    assert_eq!(*resources, json!({"limits": {"cpu": "200m"}, "requests": {"cpu": "200m"}}));
    assert_eq!(
        filled["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container main; cpu limit for container main"
    );
    let asked = json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "2"}});
    let refused = post(&api, pods, pod(asked)).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "pods \"a\" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per \
             Container is 500m, but limit is 2]"
        )
    );
}

//! Defaults of built-in kinds that Go sets by hand, so that no schema names them.

use super::*;

#[tokio::test]
async fn what_nobody_has_said_is_as_on_a_real_server() {
    let api = api();
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let rules = json!({"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]});
    let job = json!({"podFailurePolicy": rules, "template": pod});
    let named = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    let policies = json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]);
    let requests = json!({"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}},
        {"name": "s", "firstAvailable": [{"name": "t", "deviceClassName": "c", "allocationMode": "All"}]}]}});
    let cases = [
        (
            "/apis/batch/v1/namespaces/default/jobs",
            named(job.clone()),
            "/spec/podFailurePolicy/rules/0/onPodConditions/0/status",
            json!("True"),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            named(json!({"schedule": "* * * * *", "jobTemplate": {"spec": job}})),
            "/spec/jobTemplate/spec/podFailurePolicy/rules/0/onPodConditions/0/status",
            json!("True"),
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            named(
                json!({"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
                "behavior": {"scaleUp": {"stabilizationWindowSeconds": 9}}}),
            ),
            "/spec/behavior",
            json!({"scaleDown": {"selectPolicy": "Max", "policies": policies},
                "scaleUp": {"stabilizationWindowSeconds": 9, "selectPolicy": "Max", "policies": [
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15}]}}),
        ),
        (
            "/apis/networking.k8s.io/v1/ingressclasses",
            named(json!({"controller": "a.b/c", "parameters": {"kind": "K", "name": "n"}})),
            "/spec/parameters/scope",
            json!("Cluster"),
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
            named(json!({"priorityLevelConfiguration": {"name": "a"}})),
            "/spec/matchingPrecedence",
            json!(1000),
        ),
        (
            "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations",
            named(json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}}})),
            "/spec/limited/limitResponse/queuing",
            json!({"queues": 64, "handSize": 8, "queueLengthLimit": 50}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
            named(requests.clone()),
            "/spec/devices/requests/0/exactly",
            json!({"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}),
        ),
        (
            "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
            named(json!({"spec": requests})),
            "/spec/spec/devices/requests/1/firstAvailable/0",
            json!({"name": "t", "deviceClassName": "c", "allocationMode": "All"}),
        ),
        (
            "/api/v1/namespaces/default/pods",
            named(json!({"containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "image": {"reference": "r:1"}}]})),
            "/spec/volumes/0/image/pullPolicy",
            json!("IfNotPresent"),
        ),
    ];
    for (uri, object, field, expected) in cases {
        let made = post(&api, uri, object).await.expect(StatusCode::CREATED);
        assert_eq!(made.pointer(field), Some(&expected), "{uri}");
    }
    let services = "/api/v1/namespaces/default/services";
    post(&api, services, named(json!({"type": "LoadBalancer", "ports": [{"port": 80}]}))).await;
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "a.b"}]}}});
    let merge = "application/merge-patch+json";
    let written = ask_as(&api, "PATCH", &format!("{services}/a/status"), merge, status).await;
    assert_eq!(
        written.expect(StatusCode::OK)["status"]["loadBalancer"]["ingress"],
        json!([{"ip": "192.0.2.1", "ipMode": "VIP"}, {"hostname": "a.b"}])
    );
}

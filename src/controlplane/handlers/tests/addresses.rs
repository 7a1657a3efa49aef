//! Addresses in statuses, and ranges that an update keeps. Objects that are created are among `refusals`.

use super::*;

const MERGE: &str = "application/merge-patch+json";
const SERVICES: &str = "/api/v1/namespaces/default/services";

async fn patched(api: &Api, uri: &str, body: Value) -> Read {
    ask_as(api, "PATCH", uri, MERGE, body).await
}

/// The words of an answer: the message of a refusal, or its only warning.
fn said(answer: &Read) -> String {
    let warning = answer.warnings.first().cloned().unwrap_or_default();
    format!("{} {}{warning}", answer.code, answer.message())
}

#[tokio::test]
async fn a_status_has_addresses_that_a_load_balancer_can_have() {
    let api = api();
    let balanced =
        json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    post(&api, SERVICES, balanced).await.expect(StatusCode::CREATED);
    let inner = json!({"metadata": {"name": "in"}, "spec": {"ports": [{"port": 80}]}});
    post(&api, SERVICES, inner).await.expect(StatusCode::CREATED);
    let invalid = |name: &str, why: &str| format!("422 Service \"{name}\" is invalid: {why}");
    let place = "status.loadBalancer.ingress";
    let zeros = format!("{place}[0].ip: Invalid value: \"1.2.3.04\": must not have leading 0s");
    let no_name =
        format!("{place}[0].hostname: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address");
    let no_address = format!("{place}[0].ipMode: Forbidden: may not be specified when `ip` is not set");
    let no_balancer = format!("{place}: Forbidden: may only be used when `spec.type` is 'LoadBalancer'");
    let cases = [
        ("lb", json!({"ip": "1.2.3.04"}), invalid("lb", &zeros)),
        ("lb", json!({"hostname": "1.2.3.4"}), invalid("lb", &no_name)),
        ("lb", json!({"hostname": "a.b", "ipMode": "VIP"}), invalid("lb", &no_address)),
        (
            "lb",
            json!({"ip": "FD00:0::1"}),
            format!(
                "200 299 - \"{place}[0]: IPv6 address \\\"FD00:0::1\\\" should be in RFC 5952 canonical format \
                 (\\\"fd00::1\\\")\""
            ),
        ),
        ("lb", json!({"ip": "1.2.3.4"}), "200 ".to_owned()),
        ("in", json!({"ip": "1.2.3.4"}), invalid("in", &no_balancer)),
    ];
    for (name, entry, expected) in cases {
        let body = json!({"status": {"loadBalancer": {"ingress": [entry]}}});
        assert_eq!(said(&patched(&api, &format!("{SERVICES}/{name}/status"), body).await), expected);
    }
}

#[tokio::test]
async fn a_pod_has_its_first_address_twice() {
    let api = api();
    post(&api, "/api/v1/namespaces/default/pods", pod("p")).await.expect(StatusCode::CREATED);
    let uri = "/api/v1/namespaces/default/pods/p/status";
    let told =
        patched(&api, uri, json!({"status": {"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.5"}]}})).await;
    assert_eq!(told.json["status"]["podIPs"], json!([{"ip": "1.2.3.4"}]));
    let told = patched(&api, uri, json!({"status": {"podIP": null, "podIPs": [{"ip": "1.2.3.9"}]}})).await;
    assert_eq!(told.json["status"]["podIP"], "1.2.3.9");
    let refused = |why: &str| format!("422 Pod \"p\" is invalid: {why}");
    let cases = [
        (
            json!({"podIP": "1.2.3.04"}),
            refused("status.podIPs[0]: Invalid value: \"1.2.3.04\": must not have leading 0s"),
        ),
        (
            json!({"podIP": "1.2.3.4", "podIPs": [{"ip": "1.2.3.4"}, {"ip": "1.2.3.5"}]}),
            refused(
                "status.podIPs: Invalid value: [{\"IP\":\"1.2.3.4\"},{\"IP\":\"1.2.3.5\"}]: may specify no more \
                 than one IP for each IP family",
            ),
        ),
        (
            json!({"hostIP": "1.2.3.4", "hostIPs": [{"ip": "1.2.3.9"}]}),
            refused("status.hostIPs[0].ip: Invalid value: \"1.2.3.9\": must be equal to `hostIP`"),
        ),
    ];
    for (status, expected) in cases {
        assert_eq!(said(&patched(&api, uri, json!({"status": status})).await), expected);
    }
}

#[tokio::test]
async fn a_service_that_is_no_load_balancer_any_more_can_have_a_status() {
    let api = api();
    let balanced =
        json!({"metadata": {"name": "lb"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    post(&api, SERVICES, balanced).await.expect(StatusCode::CREATED);
    let (uri, status) = (format!("{SERVICES}/lb"), format!("{SERVICES}/lb/status"));
    let ingress = json!({"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
    patched(&api, &status, ingress).await.expect(StatusCode::OK);
    let plain = patched(&api, &uri, json!({"spec": {"type": "ClusterIP"}})).await.expect(StatusCode::OK);
    assert_eq!(plain["status"], json!({"loadBalancer": {}}));
    let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z"});
    patched(&api, &status, json!({"status": {"conditions": [condition]}})).await.expect(StatusCode::OK);
}

#[tokio::test]
async fn warnings_of_an_update_are_those_of_a_real_server() {
    const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
    const JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";
    let api = api();
    let old = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}],
        "nodeSelector": {"beta.kubernetes.io/os": "linux"}}});
    let set = json!({"metadata": {"name": "s"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": old}});
    assert_eq!(post(&api, SETS, set).await.warnings.len(), 1);
    let uri = format!("{SETS}/s");
    let count = async |body: Value| patched(&api, &uri, body).await.warnings.len();
    assert_eq!(count(json!({"spec": {"minReadySeconds": 5}})).await, 0, "the template is the same");
    let image = json!([{"name": "c", "image": "j"}]);
    assert_eq!(count(json!({"spec": {"template": {"spec": {"containers": image}}}})).await, 1);
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"metadata": {"name": "j"}, "spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": template}}}});
    post(&api, JOBS, job).await.expect(StatusCode::CREATED);
    let zoned = patched(&api, &format!("{JOBS}/j"), json!({"spec": {"schedule": "TZ=UTC 0 0 * * *"}})).await;
    assert_eq!(zoned.code, 422);
    let hook = json!({"metadata": {"name": "h"}, "webhooks": [{"name": "a.b.c", "admissionReviewVersions": ["v1"],
        "sideEffects": "None", "clientConfig": {"url": "https://x.example.com"}, "rules": [{
            "apiGroups": ["authentication.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["tokenreviews"]}]}]});
    let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    let said = post(&api, hooks, hook).await.warnings;
    let uncalled = "299 - \"webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission \
                    webhooks; this rule will have no effect\"";
    assert_eq!(said, [uncalled]);
}

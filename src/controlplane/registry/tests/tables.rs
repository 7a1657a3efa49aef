//! The cells of the kinds as kubectl prints them.

use jiff::Timestamp;
use opdev_apis::table::{Printer, Row};
use serde_json::{Value, json};

const IDS: [&str; 34] = [
    "pods",
    "replicationcontrollers",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "apps/daemonsets",
    "apps/controllerrevisions",
    "batch/jobs",
    "batch/cronjobs",
    "services",
    "endpoints",
    "discovery.k8s.io/endpointslices",
    "networking.k8s.io/ingresses",
    "networking.k8s.io/ingressclasses",
    "networking.k8s.io/networkpolicies",
    "namespaces",
    "nodes",
    "events",
    "events.k8s.io/events",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "coordination.k8s.io/leases",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storage.k8s.io/storageclasses",
    "podtemplates",
    "apiregistration.k8s.io/apiservices",
    "admissionregistration.k8s.io/validatingwebhookconfigurations",
    "resourcequotas",
    "scheduling.k8s.io/priorityclasses",
    "rbac.authorization.k8s.io/rolebindings",
    "autoscaling/horizontalpodautoscalers",
    "policy/poddisruptionbudgets",
];

fn now() -> Timestamp {
    "2026-01-01T01:00:00Z".parse().unwrap()
}

fn printer(id: &str) -> Printer {
    let all = super::super::builtin_resources();
    let found = all.iter().find(|resource| resource.id() == id);
    let printer = found.and_then(|resource| super::super::strategy_of(resource).printer);
    printer.unwrap_or_else(|| panic!("{id} has no printer"))
}

/// The cells of an object, as one line of text.
fn line(id: &str, object: &Value) -> String {
    let cells = (printer(id).cells)(Row { object, now: now() });
    cells
        .iter()
        .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
        .collect::<Vec<_>>()
        .join(" | ")
}

#[test]
fn every_printer_fills_its_columns_whatever_it_gets() {
    for id in IDS {
        let printer = printer(id);
        for object in [
            json!({}),
            json!({"metadata": null, "spec": [], "status": 3, "data": "x"}),
            json!({"spec": {"ports": [{}], "metrics": [{}], "containers": [{}], "rules": [{}]},
                   "subsets": [{}], "endpoints": [{}], "ports": [{}], "subjects": [{}],
                   "status": {"containerStatuses": [{}], "initContainerStatuses": [{}], "conditions": [{}]}}),
        ] {
            let cells = (printer.cells)(Row { object: &object, now: now() });
            assert_eq!(cells.len(), printer.columns.len(), "{id}");
        }
    }
}

#[test]
fn workloads_read_as_kubectl_prints_them() {
    let made = "2026-01-01T00:00:00Z";
    let template = json!({"spec": {"containers": [
        {"name": "a", "image": "x:1"}, {"name": "b", "image": "y:2"}]}});
    let deployment = json!({
        "metadata": {"name": "web", "creationTimestamp": made},
        "spec": {"replicas": 3, "template": template, "selector": {"matchLabels": {"app": "web"}}},
        "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 2},
    });
    assert_eq!(line("apps/deployments", &deployment), "web | 2/3 | 3 | 2 | 60m | a,b | x:1,y:2 | app=web");
    let job = json!({
        "metadata": {"name": "j", "creationTimestamp": made},
        "spec": {"completions": 1, "template": template},
        "status": {"succeeded": 1, "startTime": made, "completionTime": "2026-01-01T00:00:05Z",
                   "conditions": [{"type": "Complete", "status": "True"}]},
    });
    assert_eq!(line("batch/jobs", &job), "j | Complete | 1/1 | 5s | 60m | a,b | x:1,y:2 | <none>");
    let cron = json!({
        "metadata": {"name": "c", "creationTimestamp": made},
        "spec": {"schedule": "* * * * *", "suspend": false, "jobTemplate": {"spec": {"template": template}}},
    });
    assert_eq!(
        line("batch/cronjobs", &cron),
        "c | * * * * * | <none> | False | 0 | <none> | 60m | a,b | x:1,y:2 | <none>"
    );
}

#[test]
fn services_read_as_kubectl_prints_them() {
    let service = |spec: Value| json!({"metadata": {"name": "s"}, "spec": spec});
    let plain = service(json!({
        "type": "ClusterIP", "clusterIP": "10.0.0.1", "selector": {"a": "b"},
        "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}));
    assert_eq!(
        line("services", &plain),
        "s | ClusterIP | 10.0.0.1 | <none> | 80/TCP,53/UDP | <unknown> | a=b"
    );
    let headless = service(json!({"type": "ClusterIP", "clusterIP": "None"}));
    assert_eq!(line("services", &headless), "s | ClusterIP | None | <none> | <none> | <unknown> | <none>");
    let balanced = service(json!({
        "type": "LoadBalancer", "clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30080}]}));
    assert_eq!(
        line("services", &balanced),
        "s | LoadBalancer | 10.0.0.1 | <pending> | 80:30080/TCP | <unknown> | <none>"
    );
    let external = service(json!({"type": "ExternalName", "externalName": "example.com"}));
    assert!(line("services", &external).starts_with("s | ExternalName | <none> | example.com"));
}

#[test]
fn both_shapes_of_events_read_alike() {
    let core = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Started", "message": "It runs. ",
        "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
        "source": {"component": "kubelet", "host": "n"}, "count": 2,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:59:30Z",
    });
    let expected = "30s | Normal | Started | pod/p | spec | kubelet, n | It runs. | 60m | 2 | e";
    assert_eq!(line("events", &core), expected);
    let new = json!({
        "metadata": {"name": "e"}, "type": "Normal", "reason": "Started", "note": "It runs. ",
        "regarding": {"kind": "Pod", "name": "p", "fieldPath": "spec"},
        "deprecatedSource": {"component": "kubelet", "host": "n"}, "deprecatedCount": 2,
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-01T00:59:30Z",
    });
    assert_eq!(line("events.k8s.io/events", &new), expected);
}

#[test]
fn autoscalers_read_as_kubectl_prints_them() {
    let scaler = json!({
        "metadata": {"name": "h"},
        "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
    });
    assert_eq!(
        line("autoscaling/horizontalpodautoscalers", &scaler),
        "h | Deployment/web | cpu: <unknown>/80% | 1 | 5 | 0 | <unknown>"
    );
}

//! Table answers: which columns a kind has and what stands in them. Built-in kinds have theirs here by hand,
//! custom ones bring their own. Never selects or sorts objects; the verbs do. `row` has what printers share.

mod age;
pub(crate) mod answer;
mod cluster;
mod column;
mod custom;
mod jsonpath;
mod network;
mod pods;
mod row;
mod rows;
mod scaling;
mod workloads;

use crate::resource::Resource;
use column::Column;
use jiff::Timestamp;
use row::Row;
pub(crate) use rows::Tables;
use serde_json::Value;

/// The printer columns of all kinds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Printers;

/// The columns of a built-in kind (a leading `*` shows them only in wide output, `:type` where it is not
/// string) and what makes the cells.
struct Printer {
    columns: &'static [&'static str],
    cells: Cells,
}

type Cells = fn(Row<'_>) -> Vec<Value>;

impl Tables for Printers {
    fn columns(&self, resource: &Resource) -> Vec<Value> {
        columns(resource).iter().map(Column::to_value).collect()
    }

    fn cells(&self, resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
        if let Some(custom) = &resource.custom {
            return custom::cells(&custom.printer_columns, object, now);
        }
        match printer(resource.id()) {
            Some(printer) => (printer.cells)(Row { object, now }),
            None => vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()],
        }
    }
}

fn columns(resource: &Resource) -> Vec<Column> {
    if let Some(custom) = &resource.custom {
        return custom::columns(&custom.printer_columns);
    }
    match printer(resource.id()) {
        Some(printer) => printer.columns.iter().map(|text| parsed(text)).collect(),
        None => vec![Column::name(), Column::of("Created At", "date")],
    }
}

fn parsed(text: &'static str) -> Column {
    let (text, priority) = text.strip_prefix('*').map_or((text, 0), |text| (text, 1));
    let (name, kind) = text.split_once(':').unwrap_or((text, "string"));
    match name {
        "Name" => Column { priority, ..Column::name() },
        "Age" => Column { priority, ..Column::age() },
        _ => Column { priority, ..Column::of(name, kind) },
    }
}

/// What a row says about itself besides its cells.
pub(crate) fn conditions(resource: &Resource, object: &Value) -> Option<Value> {
    if resource.id() == "pods" { pods::conditions(object) } else { None }
}

fn printer(id: &str) -> Option<Printer> {
    let (columns, cells): (&'static [&'static str], Cells) = match id {
        "pods" => (pods::COLUMNS, pods::cells),
        "replicationcontrollers" => (workloads::REPLICAS, workloads::replication_controller),
        "apps/deployments" => (workloads::DEPLOYMENT, workloads::deployment),
        "apps/replicasets" => (workloads::REPLICAS, workloads::replica_set),
        "apps/statefulsets" => (workloads::STATEFUL_SET, workloads::stateful_set),
        "apps/daemonsets" => (workloads::DAEMON_SET, workloads::daemon_set),
        "apps/controllerrevisions" => (workloads::CONTROLLER_REVISION, workloads::controller_revision),
        "batch/jobs" => (workloads::JOB, workloads::job),
        "batch/cronjobs" => (workloads::CRON_JOB, workloads::cron_job),
        "services" => (network::SERVICE, network::service),
        "endpoints" => (network::ENDPOINTS, network::endpoints),
        "discovery.k8s.io/endpointslices" => (network::ENDPOINT_SLICE, network::endpoint_slice),
        "networking.k8s.io/ingresses" => (network::INGRESS, network::ingress),
        "networking.k8s.io/ingressclasses" => (network::INGRESS_CLASS, network::ingress_class),
        "networking.k8s.io/networkpolicies" => (network::NETWORK_POLICY, network::network_policy),
        "namespaces" => (cluster::NAMESPACE, cluster::namespace),
        "nodes" => (cluster::NODE, cluster::node),
        "events" | "events.k8s.io/events" => (cluster::EVENT, cluster::event),
        "configmaps" => (cluster::CONFIG_MAP, cluster::config_map),
        "secrets" => (cluster::SECRET, cluster::secret),
        "serviceaccounts" => (cluster::SERVICE_ACCOUNT, cluster::service_account),
        "coordination.k8s.io/leases" => (cluster::LEASE, cluster::lease),
        "persistentvolumeclaims" => (cluster::CLAIM, cluster::claim),
        "persistentvolumes" => (cluster::VOLUME, cluster::volume),
        "storage.k8s.io/storageclasses" => (cluster::STORAGE_CLASS, cluster::storage_class),
        "podtemplates" => (cluster::POD_TEMPLATE, cluster::pod_template),
        "apiregistration.k8s.io/apiservices" => (cluster::API_SERVICE, cluster::api_service),
        "admissionregistration.k8s.io/mutatingwebhookconfigurations"
        | "admissionregistration.k8s.io/validatingwebhookconfigurations" => {
            (cluster::WEBHOOKS, cluster::webhooks)
        }
        "node.k8s.io/runtimeclasses" => (cluster::RUNTIME_CLASS, cluster::runtime_class),
        "certificates.k8s.io/certificatesigningrequests" => {
            (cluster::SIGNING_REQUEST, cluster::signing_request)
        }
        "resourcequotas" => (cluster::RESOURCE_QUOTA, cluster::resource_quota),
        "scheduling.k8s.io/priorityclasses" => (cluster::PRIORITY_CLASS, cluster::priority_class),
        "rbac.authorization.k8s.io/rolebindings" | "rbac.authorization.k8s.io/clusterrolebindings" => {
            (cluster::BINDING, cluster::binding)
        }
        "autoscaling/horizontalpodautoscalers" => (scaling::AUTOSCALER, scaling::autoscaler),
        "policy/poddisruptionbudgets" => (scaling::BUDGET, scaling::budget),
        _ => return None,
    };
    Some(Printer { columns, cells })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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

    /// The cells of an object, as one line of text.
    fn line(id: &str, object: &Value) -> String {
        let cells = (printer(id).unwrap().cells)(Row { object, now: now() });
        cells
            .iter()
            .map(|cell| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(" | ")
    }

    #[test]
    fn every_printer_fills_its_columns_whatever_it_gets() {
        for id in IDS {
            let printer = printer(id).unwrap_or_else(|| panic!("{id} has no printer"));
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
        assert_eq!(
            line("apps/deployments", &deployment),
            "web | 2/3 | 3 | 2 | 60m | a,b | x:1,y:2 | app=web"
        );
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
        assert_eq!(
            line("services", &headless),
            "s | ClusterIP | None | <none> | <none> | <unknown> | <none>"
        );
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

    #[test]
    fn column_texts_parse() {
        let column = parsed("*Count:integer");
        assert_eq!((column.name.as_ref(), column.kind.as_ref(), column.priority), ("Count", "integer", 1));
    }
}

//! Table answers: which columns a kind has and what stands in them. Built-in kinds have theirs here by hand,
//! custom ones bring their own. Never selects or sorts objects; the verbs do. `row` has what printers share.

mod age;
mod cluster;
mod column;
mod custom;
mod jsonpath;
mod network;
mod pods;
mod row;
mod scaling;
mod workloads;

use crate::handlers::Tables;
use crate::registry::Resource;
use column::Column;
use jiff::Timestamp;
use row::Row;
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
        match printer(&resource.id()) {
            Some(printer) => (printer.cells)(Row { object, now }),
            None => vec![object["metadata"]["name"].clone(), object["metadata"]["creationTimestamp"].clone()],
        }
    }
}

fn columns(resource: &Resource) -> Vec<Column> {
    if let Some(custom) = &resource.custom {
        return custom::columns(&custom.printer_columns);
    }
    match printer(&resource.id()) {
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

//! Rows of what the cluster itself consists of: namespaces, nodes, events, configuration, storage, leases.

use super::row::{Row, labels};
use opdev_apimachinery::classes::{DEFAULT_STORAGE_CLASS, is_default};
use serde_json::{Map, Value};

pub const NAMESPACE: &[&str] = &["Name", "Status", "Age"];

pub fn namespace(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/status/phase").into(), row.age()]
}

pub const NODE: &[&str] = &[
    "Name",
    "Status",
    "Roles",
    "Age",
    "Version",
    "*Internal-IP",
    "*External-IP",
    "*OS-Image",
    "*Kernel-Version",
    "*Container-Runtime",
];

pub fn node(row: Row<'_>) -> Vec<Value> {
    let ready = row.list("/status/conditions").iter().find(|at| at["type"] == "Ready");
    let mut status = match ready.map(|at| at["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if row.at("/spec/unschedulable") == true {
        status.push_str(",SchedulingDisabled");
    }
    let mut roles: Vec<&str> = Vec::new();
    for (key, value) in row.fields("/metadata/labels").into_iter().flatten() {
        match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) if !role.is_empty() => roles.push(role),
            _ if key == "kubernetes.io/role" => roles.extend(value.as_str().filter(|role| !role.is_empty())),
            _ => {}
        }
    }
    roles.sort_unstable();
    roles.dedup();
    let address = |kind: &str| {
        let found = row.list("/status/addresses").iter().find(|at| at["type"] == kind);
        Value::from(found.and_then(|at| at["address"].as_str()).unwrap_or("<none>"))
    };
    vec![
        row.name(),
        status.into(),
        if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") }.into(),
        row.age(),
        row.text("/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        row.text_or("/status/nodeInfo/osImage", "<unknown>").into(),
        row.text_or("/status/nodeInfo/kernelVersion", "<unknown>").into(),
        row.text_or("/status/nodeInfo/containerRuntimeVersion", "<unknown>").into(),
    ]
}

pub const EVENT: &[&str] = &[
    "Last Seen",
    "Type",
    "Reason",
    "Object",
    "*Subobject",
    "*Source",
    "Message",
    "*First Seen",
    "*Count:integer",
    "*Name",
];

/// Events of the core group and of `events.k8s.io`: one store, two sets of field names.
pub fn event(row: Row<'_>) -> Vec<Value> {
    let either = |core: &'static str, new: &'static str| if row.is_set(core) { core } else { new };
    let object = either("/involvedObject", "/regarding");
    let source = either("/source", "/deprecatedSource");
    let first = match either("/firstTimestamp", "/deprecatedFirstTimestamp") {
        first if row.is_set(first) => row.since(first),
        _ => row.since("/eventTime"),
    };
    let mut last = match either("/lastTimestamp", "/deprecatedLastTimestamp") {
        last if row.is_set(last) => row.since(last),
        _ => first.clone(),
    };
    let mut count = row.number(either("/count", "/deprecatedCount"));
    if row.is_set("/series") {
        last = row.since("/series/lastObservedTime");
        count = row.number("/series/count");
    } else if count == 0 {
        count = 1;
    }
    let (kind, name) =
        (row.text(&format!("{object}/kind")).to_lowercase(), row.text(&format!("{object}/name")));
    let component = match row.text(&format!("{source}/component")) {
        "" => row.text(either("/reportingComponent", "/reportingController")),
        component => component,
    };
    let source = match row.text(&format!("{source}/host")) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    };
    vec![
        last.into(),
        row.text("/type").into(),
        row.text("/reason").into(),
        if name.is_empty() { kind } else { format!("{kind}/{name}") }.into(),
        row.text(&format!("{object}/fieldPath")).into(),
        source.into(),
        row.text(either("/message", "/note")).trim().into(),
        first.into(),
        count.into(),
        row.name(),
    ]
}

fn size(fields: Option<&Map<String, Value>>) -> usize {
    fields.map_or(0, Map::len)
}

pub const CONFIG_MAP: &[&str] = &["Name", "Data:integer", "Age"];

pub fn config_map(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), (size(row.fields("/data")) + size(row.fields("/binaryData"))).into(), row.age()]
}

pub const SECRET: &[&str] = &["Name", "Type", "Data:integer", "Age"];

pub fn secret(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/type").into(), size(row.fields("/data")).into(), row.age()]
}

pub const SERVICE_ACCOUNT: &[&str] = &["Name", "Age"];

pub fn service_account(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.age()]
}

pub const LEASE: &[&str] = &["Name", "Holder", "Age"];

pub fn lease(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/spec/holderIdentity").into(), row.age()]
}

fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let known = short.iter().filter(|(long, _)| modes.iter().any(|mode| mode == long));
    known.map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

fn phase(row: Row<'_>) -> Value {
    if row.is_set("/metadata/deletionTimestamp") { "Terminating" } else { row.text("/status/phase") }.into()
}

pub const CLAIM: &[&str] = &[
    "Name",
    "Status",
    "Volume",
    "Capacity",
    "Access Modes",
    "StorageClass",
    "VolumeAttributesClass",
    "Age",
    "*VolumeMode",
];

pub fn claim(row: Row<'_>) -> Vec<Value> {
    let bound = !row.text("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (row.text("/status/capacity/storage"), access_modes(row.list("/status/accessModes")))
    } else {
        ("", String::new())
    };
    let class = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    vec![
        row.name(),
        phase(row),
        row.text("/spec/volumeName").into(),
        capacity.into(),
        modes.into(),
        row.text_or("/spec/storageClassName", row.text(class)).into(),
        row.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

pub const VOLUME: &[&str] = &[
    "Name",
    "Capacity",
    "Access Modes",
    "Reclaim Policy",
    "Status",
    "Claim",
    "StorageClass",
    "VolumeAttributesClass",
    "Reason",
    "Age",
    "*VolumeMode",
];

pub fn volume(row: Row<'_>) -> Vec<Value> {
    let claim = match row.text("/spec/claimRef/name") {
        "" => String::new(),
        name => format!("{}/{name}", row.text("/spec/claimRef/namespace")),
    };
    vec![
        row.name(),
        row.text("/spec/capacity/storage").into(),
        access_modes(row.list("/spec/accessModes")).into(),
        row.text("/spec/persistentVolumeReclaimPolicy").into(),
        phase(row),
        claim.into(),
        row.text("/spec/storageClassName").into(),
        row.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        row.text("/status/reason").into(),
        row.age(),
        row.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

pub const STORAGE_CLASS: &[&str] =
    &["Name", "Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion:boolean", "Age"];

pub fn storage_class(row: Row<'_>) -> Vec<Value> {
    let name = row.text("/metadata/name");
    let mark = if is_default(row.object, &DEFAULT_STORAGE_CLASS) { " (default)" } else { "" };
    vec![
        format!("{name}{mark}").into(),
        row.text("/provisioner").into(),
        row.text_or("/reclaimPolicy", "Delete").into(),
        row.text_or("/volumeBindingMode", "Immediate").into(),
        row.at("/allowVolumeExpansion").as_bool().unwrap_or(false).into(),
        row.age(),
    ]
}

pub const POD_TEMPLATE: &[&str] = &["Name", "Containers", "Images", "Pod Labels"];

pub fn pod_template(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/template");
    vec![row.name(), containers, images, labels(row.fields("/template/metadata/labels")).into()]
}

pub const API_SERVICE: &[&str] = &["Name", "Service", "Available", "Age"];

pub fn api_service(row: Row<'_>) -> Vec<Value> {
    let service = match row.text("/spec/service/name") {
        "" => "Local".to_owned(),
        name => format!("{}/{name}", row.text("/spec/service/namespace")),
    };
    let available = if row.condition("Available") { "True" } else { "False" };
    vec![row.name(), service.into(), available.into(), row.age()]
}

pub const WEBHOOKS: &[&str] = &["Name", "Webhooks:integer", "Age"];

pub fn webhooks(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.list("/webhooks").len().into(), row.age()]
}

pub const RUNTIME_CLASS: &[&str] = &["Name", "Handler", "Age"];

pub fn runtime_class(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text("/handler").into(), row.age()]
}

pub const SIGNING_REQUEST: &[&str] =
    &["Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"];

pub fn signing_request(row: Row<'_>) -> Vec<Value> {
    let decided: Vec<&str> = ["Approved", "Denied", "Failed"]
        .into_iter()
        .filter(|kind| row.list("/status/conditions").iter().any(|at| at["type"] == *kind))
        .collect();
    let mut condition = if decided.is_empty() { "Pending".to_owned() } else { decided.join(",") };
    if !row.text("/status/certificate").is_empty() {
        condition.push_str(",Issued");
    }
    let duration = match row.at("/spec/expirationSeconds").as_i64() {
        Some(seconds) => super::age::human(seconds),
        None => "<none>".to_owned(),
    };
    vec![
        row.name(),
        row.age(),
        row.text_or("/spec/signerName", "<none>").into(),
        row.text("/spec/username").into(),
        duration.into(),
        condition.into(),
    ]
}

pub const TRUST_BUNDLE: &[&str] = &["Name", "SignerName"];

pub fn trust_bundle(row: Row<'_>) -> Vec<Value> {
    vec![row.name(), row.text_or("/spec/signerName", "<none>").into()]
}

pub const POD_CERTIFICATE: &[&str] =
    &["Name", "PodName", "ServiceAccountName", "NodeName", "SignerName", "State"];

pub fn pod_certificate(row: Row<'_>) -> Vec<Value> {
    let kinds = row.list("/status/conditions").iter().filter_map(|one| one["type"].as_str());
    let state = kinds.rev().find(|kind| matches!(*kind, "Issued" | "Denied" | "Failed"));
    let texts = ["/spec/podName", "/spec/serviceAccountName", "/spec/nodeName", "/spec/signerName"];
    let mut cells = vec![row.name()];
    cells.extend(texts.map(|pointer| row.text(pointer).into()));
    cells.push(state.unwrap_or("Pending").into());
    cells
}

pub const TAINT_RULE: &[&str] = &["Name", "Key", "Value", "Effect", "TimeAdded", "Age"];

pub fn taint_rule(row: Row<'_>) -> Vec<Value> {
    let taint = |field: &str| row.text(&format!("/spec/taint/{field}")).into();
    let added = row.since("/spec/taint/timeAdded").into();
    vec![row.name(), taint("key"), taint("value"), taint("effect"), added, row.age()]
}

pub const MIGRATION: &[&str] = &["Name", "Resource", "Status"];

pub fn migration(row: Row<'_>) -> Vec<Value> {
    let (group, plural) = (row.text("/spec/resource/group"), row.text("/spec/resource/resource"));
    let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let true_ones = row.list("/status/conditions").iter().filter(|one| one["status"] == "True");
    let kinds = true_ones.filter_map(|one| one["type"].as_str());
    let state = kinds.rev().find(|kind| matches!(*kind, "Running" | "Failed" | "Succeeded"));
    vec![row.name(), resource.into(), state.unwrap_or("Unknown").into()]
}

pub const RESOURCE_QUOTA: &[&str] = &["Name", "Request", "Limit", "Age"];

pub fn resource_quota(row: Row<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in row.fields("/status/hard").into_iter().flatten() {
        let used = row.at("/status/used").get(name).and_then(Value::as_str).unwrap_or("0");
        let text = format!("{name}: {used}/{}", hard.as_str().unwrap_or_default());
        if name.starts_with("limits") { limits.push(text) } else { requests.push(text) }
    }
    vec![row.name(), requests.join(", ").into(), limits.join(", ").into(), row.age()]
}

pub const PRIORITY_CLASS: &[&str] =
    &["Name", "Value:integer", "Global-Default:boolean", "PreemptionPolicy", "Age"];

pub fn priority_class(row: Row<'_>) -> Vec<Value> {
    vec![
        row.name(),
        row.number("/value").into(),
        row.at("/globalDefault").as_bool().unwrap_or(false).into(),
        row.text("/preemptionPolicy").into(),
        row.age(),
    ]
}

pub const BINDING: &[&str] = &["Name", "Role", "Age", "*Users", "*Groups", "*ServiceAccounts"];

pub fn binding(row: Row<'_>) -> Vec<Value> {
    let subjects = |kind: &str| -> Value {
        let texts: Vec<String> = row
            .list("/subjects")
            .iter()
            .filter(|subject| subject["kind"] == kind)
            .map(|subject| {
                let name = subject["name"].as_str().unwrap_or_default();
                match subject["namespace"].as_str().filter(|_| kind == "ServiceAccount") {
                    Some(namespace) => format!("{namespace}/{name}"),
                    None => name.to_owned(),
                }
            })
            .collect();
        texts.join(", ").into()
    };
    vec![
        row.name(),
        format!("{}/{}", row.text("/roleRef/kind"), row.text("/roleRef/name")).into(),
        row.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

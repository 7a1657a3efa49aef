//! Refusals of a container: its name and image, ports, environment, mounts, resources, probes.

use super::checks::{
    absent, amount, at_least_zero, entries, identity, items, named, one_of, optional, port, port_number,
    quantity_at_least_zero,
};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use serde_json::{Value, json};

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

/// The containers of a pod.
pub(super) fn containers(spec: &Value, path: &str, volumes: &[&str], causes: &mut Vec<Cause>) {
    let place = format!("{path}.containers");
    let list = items(&spec["containers"]);
    if list.is_empty() {
        causes.push(Cause::required(place, ""));
        return;
    }
    let mut seen: Vec<&str> = Vec::new();
    for (i, item) in list.iter().enumerate() {
        let place = format!("{place}[{i}]");
        container(item, &place, volumes, causes);
        let name = item["name"].as_str().unwrap_or_default();
        if seen.contains(&name) {
            causes.push(Cause::duplicate(format!("{place}.name"), &item["name"]));
        }
        seen.push(name);
        running(item, &place, causes);
    }
    host_ports(list, &place, causes);
}

/// The containers that run before the others.
pub(super) fn init_containers(spec: &Value, path: &str, volumes: &[&str], causes: &mut Vec<Cause>) {
    let place = format!("{path}.initContainers");
    let mut seen: Vec<&str> = items(&spec["containers"]).iter().filter_map(|c| c["name"].as_str()).collect();
    for (i, item) in items(&spec["initContainers"]).iter().enumerate() {
        let own = format!("{place}[{i}]");
        container(item, &own, volumes, causes);
        let name = item["name"].as_str().unwrap_or_default();
        if seen.contains(&name) {
            causes.push(Cause::duplicate(format!("{own}.name"), &item["name"]));
        } else if !name.is_empty() {
            seen.push(name);
        }
        host_ports(std::slice::from_ref(item), &place, causes);
        if item["restartPolicy"] == "Always" {
            running(item, &own, causes);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if !item[field].is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                causes.push(Cause::forbidden(format!("{own}.{field}"), detail));
            }
        }
    }
}

/// Fields that only a container that keeps running may have.
fn running(container: &Value, place: &str, causes: &mut Vec<Cause>) {
    for hook in ["postStart", "preStop"] {
        let found = &container["lifecycle"][hook];
        if !found.is_null() {
            handler(found, &format!("{place}.lifecycle.{hook}"), causes);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let found = &container[name];
        if found.is_null() {
            continue;
        }
        let path = format!("{place}.{name}");
        probe(found, &path, causes);
        if name != "readinessProbe" && found["successThreshold"].as_i64().is_some_and(|n| n != 1) {
            let value = &found["successThreshold"];
            causes.push(Cause::invalid(format!("{path}.successThreshold"), value, "must be 1"));
        }
    }
}

fn container(container: &Value, place: &str, volumes: &[&str], causes: &mut Vec<Cause>) {
    let name = format!("{place}.name");
    if absent(&container["name"]) {
        causes.push(Cause::required(name, ""));
    } else {
        named(&name, &container["name"], names::label, causes);
    }
    if absent(&container["image"]) {
        causes.push(Cause::required(format!("{place}.image"), ""));
    }
    let policies = ["File", "FallbackToLogsOnError"];
    one_of(
        &format!("{place}.terminationMessagePolicy"),
        &container["terminationMessagePolicy"],
        &policies,
        causes,
    );
    ports(&container["ports"], &format!("{place}.ports"), causes);
    environment(&container["env"], &format!("{place}.env"), causes);
    mounts(&container["volumeMounts"], &format!("{place}.volumeMounts"), volumes, causes);
    one_of(&format!("{place}.imagePullPolicy"), &container["imagePullPolicy"], &PULL_POLICIES, causes);
    resources(&container["resources"], &format!("{place}.resources"), causes);
    security(&container["securityContext"], &format!("{place}.securityContext"), causes);
}

fn ports(list: &Value, place: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, found) in items(list).iter().enumerate() {
        let place = format!("{place}[{i}]");
        let name = found["name"].as_str().unwrap_or_default();
        if !name.is_empty() {
            let before = causes.len();
            named(&format!("{place}.name"), &found["name"], names::port, causes);
            if causes.len() == before && seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{place}.name"), &found["name"]));
            }
            seen.push(name);
        }
        let field = format!("{place}.containerPort");
        match found["containerPort"].as_i64() {
            None | Some(0) => causes.push(Cause::required(field, "")),
            Some(_) => port_number(&field, &found["containerPort"], causes),
        }
        if found["hostPort"].as_i64().is_some_and(|port| port != 0) {
            port_number(&format!("{place}.hostPort"), &found["hostPort"], causes);
        }
        one_of(&format!("{place}.protocol"), &found["protocol"], &PROTOCOLS, causes);
    }
}

fn host_ports(containers: &[Value], place: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<String> = Vec::new();
    for (i, container) in containers.iter().enumerate() {
        for (j, port) in items(&container["ports"]).iter().enumerate() {
            let Some(number) = port["hostPort"].as_i64().filter(|number| *number != 0) else { continue };
            let text = |field: &str| port[field].as_str().unwrap_or_default();
            let key = format!("{}/{}/{number}", text("protocol"), text("hostIP"));
            if seen.contains(&key) {
                causes.push(Cause::duplicate(format!("{place}[{i}].ports[{j}].hostPort"), &json!(key)));
            } else {
                seen.push(key);
            }
        }
    }
}

fn environment(list: &Value, place: &str, causes: &mut Vec<Cause>) {
    const SOURCES: [&str; 5] =
        ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    for (i, variable) in items(list).iter().enumerate() {
        let place = format!("{place}[{i}]");
        let name = variable["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(format!("{place}.name"), ""));
        } else if name.chars().any(|c| !(' '..='~').contains(&c) || c == '=') {
            let detail = "a valid environment variable name must consist only of printable ASCII characters other than '='";
            causes.push(Cause::invalid(format!("{place}.name"), &variable["name"], detail));
        }
        let from = &variable["valueFrom"];
        if from.is_null() {
            continue;
        }
        let field = format!("{place}.valueFrom");
        match SOURCES.iter().filter(|source| !from[**source].is_null()).count() {
            0 => {
                let detail = "must specify one of: `configMapKeyRef`, `fieldRef`, `fileKeyRef`, `resourceFieldRef` or `secretKeyRef`";
                causes.push(Cause::invalid(field, &json!(""), detail));
            }
            _ if !absent(&variable["value"]) => {
                let detail = "may not be specified when `value` is not empty";
                causes.push(Cause::invalid(field, &json!(""), detail));
            }
            1 => {}
            _ => {
                let detail = "may not have more than one field specified at a time";
                causes.push(Cause::invalid(field, &json!(""), detail));
            }
        }
    }
}

fn mounts(list: &Value, place: &str, volumes: &[&str], causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, mount) in items(list).iter().enumerate() {
        let field = format!("{place}[{i}]");
        let name = mount["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(format!("{field}.name"), ""));
        }
        if !volumes.contains(&name) {
            let text = format!("Not found: {name:?}");
            causes.push(Cause::text("FieldValueNotFound", format!("{field}.name"), text));
        }
        let path = mount["mountPath"].as_str().unwrap_or_default();
        if path.is_empty() {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
        if seen.contains(&path) {
            causes.push(Cause::invalid(format!("{field}.mountPath"), &json!(path), "must be unique"));
        }
        seen.push(path);
    }
}

/// Returns true if a resource may be promised more than once.
fn overcommits(name: &str) -> bool {
    !name.starts_with("hugepages-") && (!name.contains('/') || name.contains("kubernetes.io/"))
}

fn resources(resources: &Value, place: &str, causes: &mut Vec<Cause>) {
    let (limits, requests) = (&resources["limits"], &resources["requests"]);
    for (name, value) in entries(limits) {
        resource(&format!("{place}.limits[{name}]"), name, value, causes);
    }
    for (name, value) in entries(requests) {
        resource(&format!("{place}.requests[{name}]"), name, value, causes);
        let limit = &limits[name];
        if limit.is_null() {
            if !overcommits(name) {
                let detail = "Limit must be set for non overcommitable resources";
                causes.push(Cause::required(format!("{place}.limits"), detail));
            }
            continue;
        }
        let (Some(asked), Some(most)) = (amount(value), amount(limit)) else { continue };
        let shown = limit.as_str().unwrap_or_default();
        let detail = if asked != most && !overcommits(name) {
            format!("must be equal to {name} limit of {shown}")
        } else if asked > most {
            format!("must be less than or equal to {name} limit of {shown}")
        } else {
            continue;
        };
        causes.push(Cause::invalid(format!("{place}.requests"), value, &detail));
    }
}

fn resource(field: &str, name: &str, value: &Value, causes: &mut Vec<Cause>) {
    let shown = json!(name);
    named(field, &shown, names::qualified_name, causes);
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') && !standard {
        if !matches!(name, "storage" | "pods" | "services" | "secrets" | "configmaps") {
            let detail = "must be a standard resource type or fully qualified";
            causes.push(Cause::invalid(field, &shown, detail));
        }
        causes.push(Cause::invalid(field, &shown, "must be a standard resource for containers"));
    }
    quantity_at_least_zero(field, value, causes);
    if name.contains('/') && amount(value).is_some_and(|amount| amount % 1_000_000_000 != 0) {
        causes.push(Cause::invalid(field, value, "must be an integer"));
    }
}

fn security(context: &Value, place: &str, causes: &mut Vec<Cause>) {
    for field in ["runAsUser", "runAsGroup"] {
        identity(&format!("{place}.{field}"), &context[field], causes);
    }
    optional(&format!("{place}.procMount"), &context["procMount"], &["Default", "Unmasked"], causes);
    if context["allowPrivilegeEscalation"] == false && context["privileged"] == true {
        let detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        causes.push(wrong_context(context, place, detail));
    }
}

/// The Go struct of a security context as errors print it.
fn wrong_context(context: &Value, place: &str, detail: &str) -> Cause {
    const FIELDS: [(&str, &str); 12] = [
        ("Capabilities", "capabilities"),
        ("Privileged", "privileged"),
        ("SELinuxOptions", "seLinuxOptions"),
        ("WindowsOptions", "windowsOptions"),
        ("RunAsUser", "runAsUser"),
        ("RunAsGroup", "runAsGroup"),
        ("RunAsNonRoot", "runAsNonRoot"),
        ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem"),
        ("AllowPrivilegeEscalation", "allowPrivilegeEscalation"),
        ("ProcMount", "procMount"),
        ("SeccompProfile", "seccompProfile"),
        ("AppArmorProfile", "appArmorProfile"),
    ];
    let fields: Vec<(&str, &Value)> = FIELDS.iter().map(|(go, json)| (*go, &context[*json])).collect();
    super::checks::wrong_struct(place, &fields, detail)
}

fn probe(probe: &Value, place: &str, causes: &mut Vec<Cause>) {
    handler(probe, place, causes);
    for field in
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
    {
        at_least_zero(&format!("{place}.{field}"), &probe[field], causes);
    }
    let grace = &probe["terminationGracePeriodSeconds"];
    if grace.as_i64().is_some_and(|seconds| seconds <= 0) {
        let field = format!("{place}.terminationGracePeriodSeconds");
        causes.push(Cause::invalid(field, grace, "must be greater than 0"));
    }
}

fn handler(action: &Value, place: &str, causes: &mut Vec<Cause>) {
    let mut found = HANDLERS.into_iter().filter(|name| !action[*name].is_null());
    let Some(first) = found.next() else {
        causes.push(Cause::required(place, "must specify a handler type"));
        return;
    };
    let (inner, field) = (&action[first], format!("{place}.{first}"));
    match first {
        "exec" if items(&inner["command"]).is_empty() => {
            causes.push(Cause::required(format!("{field}.command"), ""));
        }
        "httpGet" => {
            if absent(&inner["path"]) {
                causes.push(Cause::required(format!("{field}.path"), ""));
            }
            port(&format!("{field}.port"), &inner["port"], causes);
            let schemes = ["HTTP", "HTTPS"];
            optional(&format!("{field}.scheme"), &inner["scheme"], &schemes, causes);
        }
        "tcpSocket" => port(&format!("{field}.port"), &inner["port"], causes),
        "grpc" => port_number(&format!("{field}.port"), &inner["port"], causes),
        _ => {}
    }
    for other in found {
        let detail = "may not specify more than 1 handler type";
        causes.push(Cause::forbidden(format!("{place}.{other}"), detail));
    }
}

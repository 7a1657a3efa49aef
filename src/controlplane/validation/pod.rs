//! Refusals of pods and pod templates. Read `container` for what is inside.

use super::checks::{absent, annotations, entries, identity, items, labels, named, one_of, optional};
use super::{addresses, container, volumes};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use opdev_apimachinery::version::since;
use serde_json::{Value, json};

/// The sources of a volume.
const SOURCES: [&str; 30] = [
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "storageos",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "projected",
    "csi",
    "ephemeral",
    "image",
];

/// Checks a pod template at `path`.
pub fn template(template: &Value, path: &str, causes: &mut Vec<Cause>) {
    let meta = &template["metadata"];
    labels(&format!("{path}.labels"), &meta["labels"], causes);
    annotations(&format!("{path}.annotations"), &meta["annotations"], causes);
    seccomp(&format!("{path}.annotations"), &meta["annotations"], causes);
    spec(&template["spec"], &format!("{path}.spec"), false, causes);
    if !items(&template["spec"]["ephemeralContainers"]).is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden(format!("{path}.spec.ephemeralContainers"), detail));
    }
}

/// Checks a pod, without the metadata that all kinds have.
pub fn pod(pod: &Value, causes: &mut Vec<Cause>) {
    seccomp("metadata.annotations", &pod["metadata"]["annotations"], causes);
    spec(&pod["spec"], "spec", true, causes);
}

/// Profiles of seccomp in annotations, as before 1.19. They do nothing any more, and are still checked.
fn seccomp(field: &str, annotations: &Value, causes: &mut Vec<Cause>) {
    for (key, value) in entries(annotations) {
        let named = key == "seccomp.security.alpha.kubernetes.io/pod"
            || key.starts_with("container.seccomp.security.alpha.kubernetes.io/");
        let profile = value.as_str().unwrap_or_default();
        let known = ["runtime/default", "docker/default", "unconfined"].contains(&profile)
            || profile
                .strip_prefix("localhost/")
                .is_some_and(|file| !file.starts_with('/') && !file.split('/').any(|part| part == ".."));
        if named && !known {
            let detail = "must be a valid seccomp profile";
            causes.push(Cause::invalid(format!("{field}.{key}"), value, detail));
        }
    }
}

/// Checks a pod spec at `path`.
fn spec(spec: &Value, path: &str, own: bool, causes: &mut Vec<Cause>) {
    let volumes = named_volumes(&spec["volumes"], &format!("{path}.volumes"), causes);
    container::containers(spec, path, &volumes, causes);
    container::init_containers(spec, path, &volumes, causes);
    host_network(spec, path, own, causes);
    let policies = ["Always", "OnFailure", "Never"];
    one_of(&format!("{path}.restartPolicy"), &spec["restartPolicy"], &policies, causes);
    let policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    one_of(&format!("{path}.dnsPolicy"), &spec["dnsPolicy"], &policies, causes);
    labels(&format!("{path}.nodeSelector"), &spec["nodeSelector"], causes);
    security(&spec["securityContext"], &format!("{path}.securityContext"), causes);
    affinity(&spec["affinity"], &format!("{path}.affinity"), causes);
    dns_config(spec, &format!("{path}.dnsConfig"), causes);
    spread(&spec["topologySpreadConstraints"], &format!("{path}.topologySpreadConstraints"), causes);
    for (field, rule) in [
        ("serviceAccountName", names::subdomain as fn(&str) -> Vec<String>),
        ("nodeName", names::subdomain),
        ("hostname", names::label),
        ("subdomain", names::label),
    ] {
        if !absent(&spec[field]) {
            named(&format!("{path}.{field}"), &spec[field], rule, causes);
        }
        if field == "nodeName" {
            deadline(&spec["activeDeadlineSeconds"], &format!("{path}.activeDeadlineSeconds"), causes);
        }
    }
    tolerations(&spec["tolerations"], &format!("{path}.tolerations"), causes);
    host_aliases(&spec["hostAliases"], &format!("{path}.hostAliases"), causes);
    for field in ["priorityClassName", "runtimeClassName"] {
        if !absent(&spec[field]) {
            named(&format!("{path}.{field}"), &spec[field], names::subdomain, causes);
        }
    }
    let policies = ["Never", "PreemptLowerPriority"];
    optional(&format!("{path}.preemptionPolicy"), &spec["preemptionPolicy"], &policies, causes);
    if own {
        for list in ["containers", "initContainers"] {
            items(&spec[list]).iter().enumerate().for_each(|(i, container)| {
                untrimmed(container, &format!("{path}.{list}[{i}].image"), causes);
            });
        }
    }
}

fn dns_config(spec: &Value, place: &str, causes: &mut Vec<Cause>) {
    let config = &spec["dnsConfig"];
    let (servers, searches) = (items(&config["nameservers"]), items(&config["searches"]));
    if spec["dnsPolicy"] == "None" {
        if config.is_null() {
            let detail = "must provide `dnsConfig` when `dnsPolicy` is None";
            causes.push(Cause::required(place, detail));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            causes.push(Cause::required(format!("{place}.nameservers"), detail));
            return;
        }
    }
    if servers.len() > 3 {
        let detail = "must not have more than 3 nameservers";
        causes.push(Cause::invalid(format!("{place}.nameservers"), &config["nameservers"], detail));
    }
    for (i, server) in servers.iter().enumerate() {
        let server = server.as_str().unwrap_or_default();
        addresses::ip(&format!("{place}.nameservers[{i}]"), server, &[], causes);
    }
    let length: usize = searches.iter().filter_map(Value::as_str).map(|path| path.len() + 1).sum();
    for (over, what) in [
        (searches.len() > 32, "32 search paths"),
        (length > 2049, "2048 characters (including spaces) in the search list"),
    ] {
        if over {
            let detail = format!("must not have more than {what}");
            causes.push(Cause::invalid(format!("{place}.searches"), &config["searches"], &detail));
        }
    }
    for (i, path) in searches.iter().enumerate().filter(|(_, path)| **path != ".") {
        let path = path.as_str().unwrap_or_default();
        let path = json!(path.strip_suffix('.').unwrap_or(path));
        named(&format!("{place}.searches[{i}]"), &path, names::search_path, causes);
    }
    for (i, _) in items(&config["options"]).iter().enumerate().filter(|(_, option)| absent(&option["name"])) {
        causes.push(Cause::required(format!("{place}.options[{i}]"), "must not be empty"));
    }
}

fn host_aliases(list: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (i, alias) in items(list).iter().enumerate() {
        let ip = alias["ip"].as_str().unwrap_or_default();
        addresses::ip(&format!("{path}[{i}].ip"), ip, &[], causes);
        for (j, name) in items(&alias["hostnames"]).iter().enumerate() {
            named(&format!("{path}[{i}].hostnames[{j}]"), name, names::subdomain, causes);
        }
    }
}

/// An image name that begins or ends with a blank. Only pods report it.
fn untrimmed(container: &Value, field: &str, causes: &mut Vec<Cause>) {
    let image = container["image"].as_str().unwrap_or_default();
    if image.trim().len() != image.len() {
        let detail = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(field, &container["image"], detail));
    }
}

fn deadline(value: &Value, field: &str, causes: &mut Vec<Cause>) {
    if value.as_i64().is_some_and(|seconds| !(1..=i64::from(i32::MAX)).contains(&seconds)) {
        causes.push(Cause::invalid(field, value, "must be between 1 and 2147483647, inclusive"));
    }
}

/// Checks the volumes; the names of those that are right.
fn named_volumes<'a>(list: &'a Value, path: &str, causes: &mut Vec<Cause>) -> Vec<&'a str> {
    let mut good: Vec<&str> = Vec::new();
    for (i, volume) in items(list).iter().enumerate() {
        let place = format!("{path}[{i}]");
        let before = causes.len();
        source(volume, &place, causes);
        let field = format!("{place}.name");
        let name = volume["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            causes.push(Cause::required(field.as_str(), ""));
        } else {
            named(&field, &volume["name"], names::label, causes);
        }
        if good.contains(&name) {
            causes.push(Cause::duplicate(field, &volume["name"]));
        }
        if causes.len() == before {
            good.push(name);
        }
    }
    good
}

fn source(volume: &Value, place: &str, causes: &mut Vec<Cause>) {
    let mut found = SOURCES.into_iter().filter(|name| !volume[*name].is_null());
    let Some(first) = found.next() else {
        causes.push(Cause::required(place, "must specify a volume type"));
        return;
    };
    let required = match first {
        "hostPath" => Some("path"),
        "secret" => Some("secretName"),
        "configMap" => Some("name"),
        "persistentVolumeClaim" => Some("claimName"),
        "csi" => Some("driver"),
        "image" if since(37) => Some("reference"),
        _ => None,
    };
    if let Some(field) = required.filter(|field| absent(&volume[first][*field])) {
        causes.push(Cause::required(format!("{place}.{first}.{field}"), ""));
    }
    if let Some(mode) = volume[first]["defaultMode"].as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(Cause::invalid(format!("{place}.{first}.defaultMode"), &json!(mode), detail));
    }
    volumes::inside(first, &volume[first], &format!("{place}.{first}"), causes);
    for other in found {
        let detail = "may not specify more than 1 volume type";
        causes.push(Cause::forbidden(format!("{place}.{other}"), detail));
    }
}

fn host_network(spec: &Value, path: &str, own: bool, causes: &mut Vec<Cause>) {
    if spec["hostNetwork"] != true {
        return;
    }
    for (i, container) in items(&spec["containers"]).iter().enumerate() {
        for (j, port) in items(&container["ports"]).iter().enumerate() {
            let number = |field: &str| port[field].as_i64().unwrap_or(0);
            let (host, inner) = (number("hostPort"), number("containerPort"));
            if (own || host != 0) && host != inner {
                let field = format!("{path}.containers[{i}].ports[{j}].hostPort");
                let detail = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(field, &json!(host), detail));
            }
        }
    }
}

fn security(context: &Value, place: &str, causes: &mut Vec<Cause>) {
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        identity(&format!("{place}.{field}"), &context[field], causes);
    }
    for (i, group) in items(&context["supplementalGroups"]).iter().enumerate() {
        identity(&format!("{place}.supplementalGroups[{i}]"), group, causes);
    }
    let policies = ["Always", "OnRootMismatch"];
    optional(&format!("{place}.fsGroupChangePolicy"), &context["fsGroupChangePolicy"], &policies, causes);
}

fn weight(term: &Value, place: &str, causes: &mut Vec<Cause>) {
    let weight = term["weight"].as_i64().unwrap_or(0);
    if !(1..=100).contains(&weight) {
        causes.push(Cause::invalid(format!("{place}.weight"), &json!(weight), "must be in the range 1-100"));
    }
}

fn affinity(affinity: &Value, place: &str, causes: &mut Vec<Cause>) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    let nodes = &affinity["nodeAffinity"];
    if !nodes[REQUIRED].is_null() && items(&nodes[REQUIRED]["nodeSelectorTerms"]).is_empty() {
        let field = format!("{place}.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        causes.push(Cause::required(field, "must have at least one node selector term"));
    }
    for (i, term) in items(&nodes[PREFERRED]).iter().enumerate() {
        weight(term, &format!("{place}.nodeAffinity.{PREFERRED}[{i}]"), causes);
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (i, term) in items(&affinity[kind][REQUIRED]).iter().enumerate() {
            pod_term(term, &format!("{place}.{kind}.{REQUIRED}[{i}]"), causes);
        }
        for (i, weighted) in items(&affinity[kind][PREFERRED]).iter().enumerate() {
            let place = format!("{place}.{kind}.{PREFERRED}[{i}]");
            weight(weighted, &place, causes);
            pod_term(&weighted["podAffinityTerm"], &format!("{place}.podAffinityTerm"), causes);
        }
    }
}

fn pod_term(term: &Value, place: &str, causes: &mut Vec<Cause>) {
    super::checks::selector(&format!("{place}.labelSelector"), &term["labelSelector"], causes);
    let field = format!("{place}.topologyKey");
    if absent(&term["topologyKey"]) {
        causes.push(Cause::required(field.as_str(), "can not be empty"));
    }
    named(&field, &json!(term["topologyKey"].as_str().unwrap_or_default()), names::qualified_name, causes);
}

fn spread(list: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (i, constraint) in items(list).iter().enumerate() {
        let place = format!("{path}[{i}]");
        let skew = constraint["maxSkew"].as_i64().unwrap_or(0);
        if skew <= 0 {
            causes.push(Cause::invalid(
                format!("{place}.maxSkew"),
                &json!(skew),
                "must be greater than zero",
            ));
        }
        if absent(&constraint["topologyKey"]) {
            causes.push(Cause::required(format!("{place}.topologyKey"), "can not be empty"));
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        let field = format!("{place}.whenUnsatisfiable");
        if !constraint["whenUnsatisfiable"].as_str().is_some_and(|action| actions.contains(&action)) {
            causes.push(Cause::not_supported(field, &constraint["whenUnsatisfiable"], &actions));
        }
    }
}

fn tolerations(list: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (i, toleration) in items(list).iter().enumerate() {
        let place = format!("{path}[{i}]");
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        if !text("key").is_empty() {
            named(&format!("{place}.key"), &toleration["key"], names::qualified_name, causes);
        } else if text("operator") != "Exists" {
            let detail =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            causes.push(Cause::invalid(format!("{place}.operator"), &json!(text("operator")), detail));
        }
        if !toleration["tolerationSeconds"].is_null() && text("effect") != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            causes.push(Cause::invalid(format!("{place}.effect"), &json!(text("effect")), detail));
        }
        let field = format!("{place}.operator");
        match text("operator") {
            "Equal" | "" => {
                let wrong = names::label_value(text("value"));
                if !wrong.is_empty() {
                    causes.push(Cause::invalid(field, &toleration["value"], &wrong.join(";")));
                }
            }
            "Exists" if text("value").is_empty() => {}
            "Exists" => {
                let detail = "value must be empty when `operator` is 'Exists'";
                causes.push(Cause::invalid(field, &toleration["value"], detail));
            }
            "Lt" | "Gt" => {
                let known = ["Equal", "Exists", "Lt", "Gt"];
                causes.push(Cause::not_supported(field, &toleration["operator"], &known));
            }
            _ => causes.push(Cause::not_supported(field, &toleration["operator"], &["Equal", "Exists"])),
        }
        if !text("effect").is_empty() {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            one_of(&format!("{place}.effect"), &toleration["effect"], &effects, causes);
        }
    }
}

/// The addresses in a pod's status. An update may keep those that were there.
pub fn status(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    for list in ["podIPs", "hostIPs"] {
        let of = |pod: &'_ Value| -> Vec<String> {
            let texts = items(&pod["status"][list]).iter();
            texts.map(|entry| entry["ip"].as_str().unwrap_or_default().to_owned()).collect()
        };
        let (addresses, kept) = (of(object), of(current));
        let kept: Vec<&str> = kept.iter().map(String::as_str).collect();
        let host = object["status"]["hostIP"].as_str().unwrap_or_default();
        if let Some(first) = addresses.first().filter(|first| list == "hostIPs" && *first != host) {
            let detail = "must be equal to `hostIP`";
            causes.push(Cause::invalid("status.hostIPs[0].ip", &json!(first), detail));
        }
        for (i, address) in addresses.iter().enumerate() {
            addresses::ip(&format!("status.{list}[{i}]"), address, &kept, causes);
        }
        let family = |text: &String| addresses::parse(text).map(|ip| ip.is_ipv6());
        let families: Vec<Option<bool>> = addresses.iter().map(family).collect();
        if addresses::are_too_many(&families) {
            let shown: Vec<String> =
                addresses.iter().map(|address| format!("{{\"IP\":{}}}", json!(address))).collect();
            let detail = "may specify no more than one IP for each IP family";
            let text = format!("Invalid value: [{}]: {detail}", shown.join(","));
            causes.push(Cause::text("FieldValueInvalid", format!("status.{list}"), text));
        }
    }
}

/// A pod's spec is frozen but for a few fields.
pub fn update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    for list in ["containers", "initContainers"] {
        if items(&new[list]).len() != items(&old[list]).len() {
            let detail = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(format!("spec.{list}"), detail));
            return;
        }
        // Told once more, for those whose image is all that may change.
        for (i, container) in items(&new[list]).iter().enumerate() {
            let field = format!("spec.{list}[{i}].image");
            if absent(&container["image"]) {
                causes.push(Cause::required(field.as_str(), ""));
            }
            untrimmed(container, &field, causes);
        }
    }
    if changed_deadline(&new["activeDeadlineSeconds"], &old["activeDeadlineSeconds"], causes) {
        return;
    }
    let bare = |toleration: &Value| {
        let mut map = toleration.as_object().cloned().unwrap_or_default();
        map.remove("tolerationSeconds");
        map
    };
    let kept = |old: &Value| items(&new["tolerations"]).iter().any(|new| bare(new) == bare(old));
    if items(&old["tolerations"]).iter().all(kept) {
        tolerations(&new["tolerations"], "spec.tolerations", causes);
    } else {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Cause::forbidden("spec.tolerations", detail));
    }
    for (i, gate) in items(&new["schedulingGates"]).iter().enumerate() {
        if !items(&old["schedulingGates"]).iter().any(|old| old["name"] == gate["name"]) {
            let name = gate["name"].as_str().unwrap_or_default();
            let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
            causes.push(Cause::forbidden(format!("spec.schedulingGates[{i}].name"), &detail));
        }
    }
    if frozen(object) != frozen(current) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                      to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it \
                      was previously negative)";
        causes.push(Cause::forbidden("spec", detail));
    }
}

/// A pod's deadline may come and get nearer. Says whether the rest is not looked at any more.
fn changed_deadline(new: &Value, old: &Value, causes: &mut Vec<Cause>) -> bool {
    let field = "spec.activeDeadlineSeconds";
    match (new.as_i64(), old.as_i64()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            causes.push(Cause::invalid(field, new, "must be between 0 and 2147483647, inclusive"));
            true
        }
        (Some(seconds), Some(before)) if before < seconds => {
            causes.push(Cause::invalid(field, new, "must be less than or equal to previous value"));
            true
        }
        (None, Some(_)) => {
            causes.push(Cause::invalid(field, new, "must not update from a positive integer to nil value"));
            false
        }
        _ => false,
    }
}

fn frozen(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(map) = spec.as_object_mut() {
        // The node's name comes through the binding, which writes past this check.
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"] {
            map.remove(field);
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            if let Some(map) = container.as_object_mut() {
                map.remove("image");
            }
        }
        if spec[list].is_null()
            && let Some(map) = spec.as_object_mut()
        {
            map.remove(list);
        }
    }
    spec
}

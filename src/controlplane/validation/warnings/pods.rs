//! Warnings of pods, and of all that has a template of them.

use super::network;
use super::storage::{OLD_VOLUMES, claim_spec, old_expression, old_expressions};
use super::told::{Warnings, annotations, fraction, named_as_host, old_label, old_labels};
use crate::{absent, items};
use opdev_apimachinery::resource::names;
use serde_json::Value;

/// Annotations of pods that do nothing any more.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
const NO_SECCOMP: &str = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
const OLD_APPARMOR: &str = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Warns of a pod. Its spec hardly changes: its warnings come once.
pub fn pod(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    if current.is_none() {
        named_as_host(told, object, "the Pod's hostname");
        pod_spec(told, object, "");
    }
}

/// Warns of a DaemonSet whose template is new. Its pods have other names.
pub fn daemon_set(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    let template = &object["spec"]["template"];
    if current.is_none_or(|current| current["spec"]["template"] != *template) {
        pod_spec(told, template, "spec.template.");
    }
}

fn template(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    template_at(told, object, current, &["spec", "template"]);
}

/// Warns of a ReplicationController. In an update a real server looks at the template that was there before.
pub fn replication_controller(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    new_name(told, object, current);
    if is_new_generation(object, current) {
        pod_spec(told, &current.unwrap_or(object)["spec"]["template"], "spec.template.");
    }
}

/// Warns of a kind whose name becomes that of its pods.
pub fn workload(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    new_name(told, object, current);
    template(told, object, current);
}

/// Warns of a StatefulSet.
pub fn stateful_set(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    template(told, object, current);
    let spec = &object["spec"];
    // A real server has other words in an update.
    let inside = if current.is_some() { ".Spec" } else { "" };
    for (i, claim) in items(&spec["volumeClaimTemplates"]).iter().enumerate() {
        claim_spec(told, &claim["spec"], &format!("spec.volumeClaimTemplates[{i}]{inside}"));
    }
    if spec["revisionHistoryLimit"].as_i64().is_some_and(|limit| limit < 0) {
        told.warn(
            "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is \
             recommended",
        );
    }
}

/// Warns of a Job.
pub fn job(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    new_name(told, object, current);
    job_spec(told, object, current, &["spec"]);
}

/// Warns of a CronJob.
pub fn cron_job(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    new_name(told, object, current);
    job_spec(told, object, current, &["spec", "jobTemplate", "spec"]);
    if current.is_some() && object["spec"]["schedule"].as_str().is_some_and(|text| text.contains("TZ")) {
        told.warn(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
             https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details",
        );
    }
}

/// Warns of a PodTemplate.
pub fn pod_template(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    template_at(told, object, current, &["template"]);
}

fn new_name(told: &mut Warnings, object: &Value, current: Option<&Value>) {
    if current.is_none() {
        named_as_host(told, object, "Pod names and hostnames");
    }
}

/// The warnings of a template come with every generation.
fn is_new_generation(object: &Value, current: Option<&Value>) -> bool {
    let generation = opdev_object::meta::generation;
    current.is_none_or(|old| generation(old) != generation(object))
}

fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |at, name| &at[*name])
}

fn template_at(told: &mut Warnings, object: &Value, current: Option<&Value>, path: &[&str]) {
    if is_new_generation(object, current) {
        pod_spec(told, at(object, path), &format!("{}.", path.join(".")));
    }
}

fn job_spec(told: &mut Warnings, object: &Value, current: Option<&Value>, path: &[&str]) {
    let spec = at(object, path);
    let over = |field: &str, limit: i64| spec[field].as_i64().is_some_and(|number| number > limit);
    let many = over("completions", 100_000) && over("parallelism", 10_000);
    if many && spec["completionMode"] == "Indexed" && is_new_generation(object, current) {
        told.warn(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than \
             10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            path.join(".")
        ));
    }
    template_at(told, object, current, &[path, &["template"]].concat());
}

/// Each container with its path, in the order in which a real server looks at them.
fn containers<'a>(spec: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let of = |list: &'static str| {
        items(&spec[list]).iter().enumerate().map(move |(i, item)| (format!("{list}[{i}]"), item))
    };
    lists.into_iter().flat_map(of).map(|(place, item)| (format!("{path}.{place}"), item)).collect()
}

/// Warns of a pod, or of a template. The path of a template ends with a dot.
fn pod_spec(told: &mut Warnings, pod: &Value, prefix: &str) {
    let (meta, spec) = (&pod["metadata"], &pod["spec"]);
    let (notes, path) = (format!("{prefix}metadata.annotations"), format!("{prefix}spec"));
    nodes(told, spec, &path);
    annotations(told, &notes, meta, &OLD_ANNOTATIONS);
    volumes(told, spec, &path);
    doubles(told, spec, &path);
    for name in ["memory", "ephemeral-storage"] {
        fraction(told, &format!("{path}.overhead"), &spec["overhead"], name);
    }
    if spec["securityContext"]["seccompProfile"].is_null() {
        annotations(told, &notes, meta, &[("seccomp.security.alpha.kubernetes.io/pod", NO_SECCOMP)]);
    }
    let all = containers(spec, &path);
    for (place, container) in &all {
        profiles(told, (pod, container), &notes);
        fractions(told, container, place);
        variables(told, container, place);
    }
    ports(told, &all);
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        told.warn(format!(
            "{path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"
        ));
    }
    affinity(told, spec, &path);
    network::addresses_of_pods(told, spec, &path);
}

/// Nodes that are chosen by old labels, and constraints that match no pod.
fn nodes(told: &mut Warnings, spec: &Value, path: &str) {
    for (name, advice) in old_labels(&spec["nodeSelector"]) {
        told.warn(format!("{path}.nodeSelector[{name}]: {advice}"));
    }
    let affinity = &spec["affinity"]["nodeAffinity"];
    let place = format!("{path}.affinity.nodeAffinity");
    for (i, term) in items(&affinity[REQUIRED]["nodeSelectorTerms"]).iter().enumerate() {
        old_expressions(told, term, &format!("{place}.{REQUIRED}.nodeSelectorTerms[{i}]"));
    }
    for (i, term) in items(&affinity[PREFERRED]).iter().enumerate() {
        for (j, expression) in items(&term["preference"]["matchExpressions"]).iter().enumerate() {
            let place = format!("{place}.{PREFERRED}[{i}].preference.matchExpressions[{j}]");
            old_expression(told, expression, &place);
            for (k, value) in items(&expression["values"]).iter().enumerate() {
                let value = value.as_str().unwrap_or_default();
                for wrong in names::label_value(value) {
                    told.warn(format!("{place}.values[{k}]: {value} is invalid, {wrong}"));
                }
            }
        }
    }
    for (i, constraint) in items(&spec["topologySpreadConstraints"]).iter().enumerate() {
        let place = format!("{path}.topologySpreadConstraints[{i}]");
        let key = constraint["topologyKey"].as_str().unwrap_or_default();
        if let Some(advice) = old_label(key) {
            told.warn(format!("{place}.topologyKey: {key} is {advice}"));
        }
        no_selector(told, constraint, &place);
    }
}

fn no_selector(told: &mut Warnings, term: &Value, place: &str) {
    if term["labelSelector"].is_null() {
        told.warn(format!("{place}.labelSelector: a null labelSelector results in matching no pod"));
    }
}

/// Terms about other pods that match none.
fn affinity(told: &mut Warnings, spec: &Value, path: &str) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (terms, place) = (&spec["affinity"][kind], format!("{path}.affinity.{kind}"));
        for (i, term) in items(&terms[REQUIRED]).iter().enumerate() {
            no_selector(told, term, &format!("{place}.{REQUIRED}[{i}]"));
        }
        for (i, term) in items(&terms[PREFERRED]).iter().enumerate() {
            no_selector(told, &term["podAffinityTerm"], &format!("{place}.{PREFERRED}[{i}].podAffinityTerm"));
        }
    }
}

/// Volumes that no kubelet mounts any more, claims of their own, and files at the same path.
fn volumes(told: &mut Warnings, spec: &Value, path: &str) {
    for (i, volume) in items(&spec["volumes"]).iter().enumerate() {
        let place = format!("{path}.volumes[{i}]");
        for (field, shown, advice) in OLD_VOLUMES {
            if !volume[field].is_null() {
                told.warn(format!("{place}.{shown}: {advice}"));
            }
        }
        let claim = &volume["ephemeral"]["volumeClaimTemplate"];
        claim_spec(told, &claim["spec"], &format!("{place}.ephemeral.volumeClaimTemplate.spec"));
    }
    for volume in items(&spec["volumes"]) {
        super::paths::overlapping(told, volume);
    }
}

fn doubles(told: &mut Warnings, spec: &Value, path: &str) {
    for (list, field, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let all = items(&spec[list]);
        let text = |item: &Value| item[field].as_str().unwrap_or_default().to_owned();
        for (i, item) in all.iter().enumerate() {
            let value = text(item);
            if all[..i].iter().any(|other| text(other) == value) {
                told.warn(format!("{path}.{list}[{i}].{field}: duplicate {what} {value:?}"));
            }
        }
    }
    for (i, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
        if absent(&secret["name"]) {
            told.warn(format!("{path}.imagePullSecrets[{i}].name: invalid empty name \"\""));
        }
    }
}

/// Profiles of a container in annotations, without the field that took their place.
fn profiles(told: &mut Warnings, (pod, container): (&Value, &Value), notes: &str) {
    let name = container["name"].as_str().unwrap_or_default();
    let own = &container["securityContext"];
    if own["seccompProfile"].is_null() {
        let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
        annotations(told, notes, &pod["metadata"], &[(&key, NO_SECCOMP)]);
    }
    if !own["appArmorProfile"].is_null() {
        return;
    }
    let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
    let profile = pod["metadata"]["annotations"][&key].as_str().unwrap_or_default();
    let whole = &pod["spec"]["securityContext"]["appArmorProfile"];
    let same = match profile.strip_prefix("localhost/") {
        Some(file) => whole["type"] == "Localhost" && whole["localhostProfile"] == file,
        None => {
            (profile == "runtime/default" && whole["type"] == "RuntimeDefault")
                || (profile == "unconfined" && whole["type"] == "Unconfined")
        }
    };
    if !same {
        annotations(told, notes, &pod["metadata"], &[(&key, OLD_APPARMOR)]);
    }
}

fn fractions(told: &mut Warnings, container: &Value, place: &str) {
    for name in ["memory", "ephemeral-storage"] {
        for part in ["limits", "requests"] {
            fraction(told, &format!("{place}.resources.{part}"), &container["resources"][part], name);
        }
    }
}

fn variables(told: &mut Warnings, container: &Value, place: &str) {
    let all = items(&container["env"]);
    for (i, variable) in all.iter().enumerate() {
        let name = variable["name"].as_str().unwrap_or_default();
        let again = all[..i].iter().any(|other| other["name"] == variable["name"]);
        let reference = format!("$({name})");
        let value = variable["value"].as_str().unwrap_or_default();
        let extends = variable["valueFrom"].is_null() && value != reference && value.contains(&reference);
        if again && !extends {
            told.warn(format!(
                "{place}.env[{i}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn ports(told: &mut Warnings, containers: &[(String, &Value)]) {
    let all: Vec<(String, &Value)> = containers
        .iter()
        .flat_map(|(place, container)| {
            let own = items(&container["ports"]).iter().enumerate();
            own.map(move |(i, port)| (format!("{place}.ports[{i}]"), port))
        })
        .collect();
    let host = |port: &Value| port["hostPort"].as_i64().unwrap_or(0);
    for (i, (place, port)) in all.iter().enumerate() {
        if !absent(&port["hostIP"]) && host(port) == 0 {
            told.warn(format!("{place}: hostIP set without hostPort: {}", go_port(port)));
        }
        for (other_place, other) in &all[..i] {
            let same = |field: &str| port[field] == other[field];
            if !same("containerPort") || !same("protocol") {
                continue;
            }
            if same("hostIP") && host(port) == host(other) {
                told.warn(format!("{place}: duplicate port definition with {other_place}"));
            } else if host(port) == 0 || host(other) == 0 {
                told.warn(format!("{place}: overlapping port definition with {other_place}"));
            } else if host(port) == host(other) && (absent(&port["hostIP"]) != absent(&other["hostIP"])) {
                told.warn(format!("{place}: dangerously ambiguous port definition with {other_place}"));
            }
        }
    }
    for (i, (place, port)) in all.iter().enumerate() {
        let Some(name) = port["name"].as_str().filter(|name| !name.is_empty()) else { continue };
        if let Some((first, _)) = all[..i].iter().find(|(_, other)| other["name"] == name) {
            told.warn(format!(
                "{place}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}"
            ));
        }
    }
}

/// A port as Go prints it.
fn go_port(port: &Value) -> String {
    let text = |field: &str| port[field].as_str().unwrap_or_default();
    let number = |field: &str| port[field].as_i64().unwrap_or(0);
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text("name"),
        number("hostPort"),
        number("containerPort"),
        text("protocol"),
        text("hostIP")
    )
}

//! Refusals of jobs and cron jobs. Read `opdev_apimachinery::schedule` for the five fields of cron.

use super::checks::{absent, at_least_zero, immutable, one_of, selector};
use super::job_policies;
use super::pod;
use super::workloads::mismatch;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::schedule;
use opdev_object::facts::minors;
use opdev_object::names::dns1123_label;
use opdev_object::selector::LabelSelector;
use serde_json::{Map, Value};

/// A job's spec at `path`, its selector aside.
fn job(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        at_least_zero(&format!("{path}.{field}"), &spec[field], causes);
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        let detail = "when maxFailedIndexes is specified";
        causes.push(Cause::required(format!("{path}.backoffLimitPerIndex"), detail));
    }
    job_policies::manager(spec, path, causes);
    let mode = &spec["completionMode"];
    if !mode.is_null() {
        // Without a value the field is missing, with an empty one it is wrong.
        let known = ["NonIndexed", "Indexed"];
        if !mode.as_str().is_some_and(|mode| known.contains(&mode)) {
            causes.push(Cause::not_supported(format!("{path}.completionMode"), mode, &known));
        }
        if *mode == "Indexed" && spec["completions"].is_null() {
            let detail = "when completion mode is Indexed";
            causes.push(Cause::required(format!("{path}.completions"), detail));
        }
        if *mode == "Indexed" {
            limits(spec, path, causes);
        }
    }
    if mode.is_null() || *mode == "NonIndexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if !spec[field].is_null() {
                let detail = "requires indexed completion mode";
                causes.push(Cause::invalid(format!("{path}.{field}"), &spec[field], detail));
            }
        }
    }
    job_policies::all(spec, path, causes);
    pod::template(&spec["template"], &format!("{path}.template"), causes);
    let field = format!("{path}.template.spec.restartPolicy");
    let policy = &spec["template"]["spec"]["restartPolicy"];
    match policy.as_str().unwrap_or_default() {
        "Always" | "" => causes.push(Cause::required(field, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            causes.push(Cause::invalid(field, policy, detail));
        }
        "OnFailure" | "Never" => {}
        _ => causes.push(Cause::not_supported(field, policy, &["OnFailure", "Never"])),
    }
}

/// The sizes of a job whose pods have indexes: all of these are in its status.
fn limits(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    const MOST: i64 = 100_000;
    /// With so many completions of which each may fail by itself.
    const MOST_OF_MANY: i64 = 10_000;
    let number = |field: &str| spec[field].as_i64();
    let mut above = |field: &str, most: i64, detail: String| {
        if number(field).is_some_and(|number| number > most) {
            causes.push(Cause::invalid(format!("{path}.{field}"), &spec[field], &detail));
        }
    };
    let at_most = |most: i64| format!("must be less than or equal to {most}");
    above("parallelism", MOST, format!("{} when completion mode is Indexed", at_most(MOST)));
    if let Some(completions) = number("completions") {
        above("maxFailedIndexes", completions, "must be less than or equal to completions".to_owned());
    }
    above("maxFailedIndexes", MOST, at_most(MOST));
    if number("completions").is_none_or(|all| all <= MOST) || spec["backoffLimitPerIndex"].is_null() {
        return;
    }
    if spec["maxFailedIndexes"].is_null() {
        let detail = format!("must be specified when completions is above {MOST}");
        causes.push(Cause::required(format!("{path}.maxFailedIndexes"), &detail));
    }
    for field in ["parallelism", "maxFailedIndexes"] {
        if number(field).is_some_and(|number| number > MOST_OF_MANY) {
            let most = at_most(MOST_OF_MANY);
            let detail =
                format!("{most} when completions are above {MOST} and used with backoff limit per index");
            causes.push(Cause::invalid(format!("{path}.{field}"), &spec[field], &detail));
        }
    }
}

/// Validates the labels and the selector, with the job's uid and name, that tie a new job to its pods, unless
/// the user manages them. A change is not asked for them again.
pub fn generated(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let (spec, metadata) = (&object["spec"], &object["metadata"]);
    if spec["manualSelector"] == true || spec["selector"].is_null() || current.is_some() {
        return;
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let parts = [("controller-uid", &metadata["uid"]), ("job-name", &metadata["name"])];
    let mut expected: Vec<(String, &Value)> =
        parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    expected.extend(parts.iter().map(|(name, value)| (format!("batch.kubernetes.io/{name}"), *value)));
    for (name, value) in &expected {
        let field = format!("spec.template.metadata.labels[{name}]");
        let detail = format!("must be '{}'", value.as_str().unwrap_or_default());
        match labels.get(name) {
            None => causes.push(Cause::required(field, &detail)),
            Some(found) if found != *value => causes.push(Cause::invalid(field, labels, &detail)),
            Some(_) => {}
        }
    }
    let expected: Map<String, Value> =
        expected.into_iter().map(|(name, value)| (name, value.clone())).collect();
    if LabelSelector::from_json(&spec["selector"]).is_ok_and(|selector| !selector.matches(&expected)) {
        let detail = "`selector` not auto-generated";
        causes.push(Cause::invalid("spec.selector", &spec["selector"], detail));
    }
}

/// A job of its own.
pub fn alone(spec: &Value, causes: &mut Vec<Cause>) {
    job(spec, "spec", causes);
    let found = &spec["selector"];
    if found.is_null() {
        causes.push(Cause::required("spec.selector", ""));
    } else {
        selector("spec.selector", found, causes);
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let own = labels.as_object().cloned().unwrap_or_default();
    let selects = !found.is_null() && LabelSelector::from_json(found).is_ok_and(|found| found.matches(&own));
    if !selects {
        causes.push(mismatch(labels));
    }
}

/// A cron job, which may replace another. Its name leaves room for the times of its jobs.
pub fn cron(object: &Value, current: Option<&Value>, causes: &mut Vec<Cause>) {
    let spec = &object["spec"];
    let text = spec["schedule"].as_str().unwrap_or_default();
    if text.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else {
        if let Err(error) = schedule::check(text) {
            causes.push(Cause::invalid("spec.schedule", &spec["schedule"], &error.to_string()));
        }
        let had = |old: &Value| old["spec"]["schedule"].as_str().is_some_and(|old| old.contains("TZ"));
        if text.contains("TZ") && !current.is_some_and(had) {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            causes.push(Cause::invalid("spec.schedule", &spec["schedule"], detail));
        }
    }
    at_least_zero("spec.startingDeadlineSeconds", &spec["startingDeadlineSeconds"], causes);
    if current.is_none_or(|old| old["spec"]["timeZone"] != spec["timeZone"]) {
        time_zone(&spec["timeZone"], causes);
    }
    let policies = ["Allow", "Forbid", "Replace"];
    one_of("spec.concurrencyPolicy", &spec["concurrencyPolicy"], &policies, causes);
    let inner = &spec["jobTemplate"]["spec"];
    job(inner, "spec.jobTemplate.spec", causes);
    if !inner["selector"].is_null() {
        let detail = "`selector` will be auto-generated";
        causes.push(Cause::invalid("spec.jobTemplate.spec.selector", &inner["selector"], detail));
    }
    if inner["manualSelector"] == true {
        let known = ["nil", "false"];
        let field = "spec.jobTemplate.spec.manualSelector";
        causes.push(Cause::not_supported(field, &inner["manualSelector"], &known));
    }
    at_least_zero("spec.successfulJobsHistoryLimit", &spec["successfulJobsHistoryLimit"], causes);
    at_least_zero("spec.failedJobsHistoryLimit", &spec["failedJobsHistoryLimit"], causes);
    let name = &object["metadata"]["name"];
    if current.is_none() && name.as_str().is_some_and(|name| name.len() > 52) {
        causes.push(Cause::invalid("metadata.name", name, "must be no more than 52 characters"));
    }
}

fn time_zone(zone: &Value, causes: &mut Vec<Cause>) {
    let Some(name) = zone.as_str() else { return };
    let mut wrong = |detail: &str| causes.push(Cause::invalid("spec.timeZone", zone, detail));
    if absent(zone) {
        return wrong("timeZone must be nil or non-empty string");
    }
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "._+-".contains(c));
    let bad = |part: &str| {
        part.is_empty() || part == "." || part == ".." || part.starts_with('-') || part.contains(odd)
    };
    if name.split('/').any(bad) {
        return wrong(&format!("unknown time zone {name}"));
    }
    if name.eq_ignore_ascii_case("Local") {
        wrong("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
    } else if !name.eq_ignore_ascii_case("UTC") {
        let known = jiff::tz::db();
        // A machine without a time zone database cannot say that one is unknown.
        if known.available().next().is_some() && known.get(name).is_err() {
            wrong(&format!("unknown time zone {name}"));
        }
    }
}

/// The template must not change. The placement and the requests of its pods may change while the job is
/// suspended, is known to be, and has no pods that run. From 1.36 on a job that never began is known to be.
fn template(new: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let suspended = current["spec"]["suspend"] == true;
    let conditions = current["status"]["conditions"].as_array();
    let said =
        conditions.is_some_and(|list| list.iter().any(|c| c["type"] == "Suspended" && c["status"] == "True"));
    let never_began = current["status"]["startTime"].is_null() && minors::since(36);
    let known = (said || never_began) && current["status"]["active"].as_i64().unwrap_or(0) == 0;
    let old = &current["spec"]["template"];
    if !(suspended && known) {
        immutable("spec.template", new, old, causes);
        return;
    }
    let mut allowed = old.clone();
    copy(&mut allowed, new, "metadata");
    let (pod, wanted) = (&mut allowed["spec"], &new["spec"]);
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        copy(pod, wanted, field);
    }
    node_affinity(pod, &wanted["affinity"]);
    for field in ["containers", "initContainers"] {
        let list = pod.get_mut(field).and_then(Value::as_array_mut);
        let (Some(list), Some(new)) = (list, wanted[field].as_array()) else { continue };
        if list.len() == new.len() {
            for (old, new) in list.iter_mut().zip(new).filter(|(old, new)| old["name"] == new["name"]) {
                copy(old, new, "resources");
            }
        }
    }
    immutable("spec.template.spec", wanted, pod, causes);
}

/// Makes a field what it is in another object, which may be without it.
fn copy(object: &mut Value, from: &Value, field: &str) {
    let Some(map) = object.as_object_mut() else { return };
    match from.get(field) {
        Some(value) => _ = map.insert(field.to_owned(), value.clone()),
        None => _ = map.remove(field),
    }
}

/// Gives a pod the node affinity of another one; without any affinity, none is left where it had no other.
fn node_affinity(pod: &mut Value, wanted: &Value) {
    let Some(pod) = pod.as_object_mut() else { return };
    if wanted.is_null() && !pod.contains_key("affinity") {
        return;
    }
    let affinity = pod.entry("affinity").or_insert_with(|| Value::Object(Map::new()));
    copy(affinity, wanted, "nodeAffinity");
    if wanted.is_null() && affinity.as_object().is_some_and(Map::is_empty) {
        pod.remove("affinity");
    }
}

/// Most of a job never changes.
pub fn update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let (new, old) = (&object["spec"], &current["spec"]);
    if new["completionMode"] != "Indexed" {
        immutable("spec.completions", &new["completions"], &old["completions"], causes);
    } else if new["completions"] != old["completions"] && new["completions"] != new["parallelism"] {
        let detail = "can only be modified in tandem with spec.parallelism";
        causes.push(Cause::invalid("spec.completions", &new["completions"], detail));
    }
    immutable("spec.selector", &new["selector"], &old["selector"], causes);
    template(&new["template"], current, causes);
    immutable("spec.completionMode", &new["completionMode"], &old["completionMode"], causes);
    immutable("spec.podFailurePolicy", &new["podFailurePolicy"], &old["podFailurePolicy"], causes);
    immutable(
        "spec.backoffLimitPerIndex",
        &new["backoffLimitPerIndex"],
        &old["backoffLimitPerIndex"],
        causes,
    );
    immutable("spec.managedBy", &new["managedBy"], &old["managedBy"], causes);
    immutable("spec.successPolicy", &new["successPolicy"], &old["successPolicy"], causes);
    if minors::since(37) {
        pod_names(object, causes);
    }
}

/// Validates that the last pod of an indexed job can have its host name.
pub fn pod_names(object: &Value, causes: &mut Vec<Cause>) {
    let (spec, name) = (&object["spec"], &object["metadata"]["name"]);
    let count =
        spec["completions"].as_i64().filter(|count| *count > 0 && spec["completionMode"] == "Indexed");
    let (Some(count), Some(text)) = (count, name.as_str()) else { return };
    let last = format!("{text}-{}", count - 1);
    if !dns1123_label(&last).is_empty() {
        let detail = format!("will not able to create pod with invalid DNS label: {last}");
        causes.push(Cause::invalid("metadata.name", name, &detail));
    }
}

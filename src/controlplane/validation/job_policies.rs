//! Rules for a job's policies: which failures count, when it has succeeded, when a pod is replaced, who
//! manages it.

use super::checks::items;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use serde_json::{Value, json};

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const MOST_RULES: usize = 20;
const MOST_CODES: usize = 255;
/// Bytes of the name of who looks after a job.
const LONGEST_MANAGER: usize = 63;

/// A cause without a value to show.
pub(super) fn plain(field: String, detail: &str) -> Cause {
    Cause::text("FieldValueInvalid", field, format!("Invalid value: {detail}"))
}

fn too_many(field: &str, number: usize, most: usize) -> Cause {
    let text = format!("Too many: {number}: must have at most {most} items");
    Cause::text("FieldValueTooMany", field, text)
}

fn known(field: String, value: &Value, known: &[&str], causes: &mut Vec<Cause>) {
    match value.as_str().unwrap_or_default() {
        "" => {
            let quoted: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
            causes.push(Cause::required(field, &format!("valid values: [{}]", quoted.join(" "))));
        }
        name if !known.contains(&name) => causes.push(Cause::not_supported(field, value, known)),
        _ => {}
    }
}

/// All policies of the spec at `path`.
pub(super) fn all(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if !spec["podFailurePolicy"].is_null() {
        failure(spec, &format!("{path}.podFailurePolicy"), causes);
    }
    if !spec["successPolicy"].is_null() {
        let field = format!("{path}.successPolicy");
        if spec["completionMode"] == "Indexed" {
            success(spec, &field, causes);
        } else {
            causes.push(Cause::invalid(field, &spec["successPolicy"], "requires indexed completion mode"));
        }
    }
    let (field, replacement) = (format!("{path}.podReplacementPolicy"), &spec["podReplacementPolicy"]);
    let fitting: &[&str] = match spec["podFailurePolicy"].is_null() {
        true => &["Failed", "TerminatingOrFailed"],
        false => &["Failed"],
    };
    if replacement.as_str().is_some_and(|policy| !fitting.contains(&policy)) {
        causes.push(Cause::not_supported(field, replacement, fitting));
    }
}

/// The controller that looks after a job has a name with a domain before it.
pub(super) fn manager(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(name) = spec["managedBy"].as_str() else { return };
    let field = format!("{path}.managedBy");
    match name.split_once('/') {
        _ if name.is_empty() => causes.push(Cause::required(field.as_str(), "")),
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            for wrong in names::subdomain(domain) {
                causes.push(Cause::invalid(field.as_str(), &json!(domain), &wrong));
            }
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            causes.push(Cause::invalid(field.as_str(), &spec["managedBy"], detail));
        }
    }
    if name.len() > LONGEST_MANAGER {
        causes.push(Cause::too_long(field, LONGEST_MANAGER));
    }
}

fn failure(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = items(&spec["podFailurePolicy"]["rules"]);
    if rules.len() > MOST_RULES {
        causes.push(too_many(&format!("{path}.rules"), rules.len(), MOST_RULES));
    }
    for (i, rule) in rules.iter().enumerate() {
        let place = format!("{path}.rules[{i}]");
        let action = format!("{place}.action");
        if rule["action"] == "FailIndex" {
            if spec["backoffLimitPerIndex"].is_null() {
                let detail = "requires the backoffLimitPerIndex to be set";
                causes.push(Cause::invalid(action, &rule["action"], detail));
            }
        } else {
            known(action, &rule["action"], &ACTIONS, causes);
        }
        let (codes, conditions) = (&rule["onExitCodes"], items(&rule["onPodConditions"]));
        match (codes.is_null(), conditions.is_empty()) {
            (false, false) => {
                let detail = "specifying both OnExitCodes and OnPodConditions is not supported";
                causes.push(plain(place.clone(), detail));
            }
            (true, true) => {
                let detail = "specifying one of OnExitCodes and OnPodConditions is required";
                causes.push(plain(place.clone(), detail));
            }
            _ => {}
        }
        if !codes.is_null() {
            exit_codes(spec, codes, &format!("{place}.onExitCodes"), causes);
        }
        for (j, pattern) in conditions.iter().enumerate() {
            let place = format!("{place}.onPodConditions[{j}]");
            for wrong in names::qualified_name(pattern["type"].as_str().unwrap_or_default()) {
                causes.push(Cause::invalid(format!("{place}.type"), &pattern["type"], &wrong));
            }
            known(format!("{place}.status"), &pattern["status"], &["False", "True", "Unknown"], causes);
        }
    }
}

fn exit_codes(spec: &Value, codes: &Value, path: &str, causes: &mut Vec<Cause>) {
    known(format!("{path}.operator"), &codes["operator"], &["In", "NotIn"], causes);
    let pod = &spec["template"]["spec"];
    let mut containers = items(&pod["containers"]).iter().chain(items(&pod["initContainers"]));
    let name = &codes["containerName"];
    if !name.is_null() && !containers.any(|container| container["name"] == *name) {
        let detail = "must be one of the container or initContainer names in the pod template";
        causes.push(Cause::invalid(format!("{path}.containerName"), name, detail));
    }
    let (field, values) = (format!("{path}.values"), items(&codes["values"]));
    if values.is_empty() {
        return causes.push(Cause::invalid(field, &json!([]), "at least one value is required"));
    }
    if values.len() > MOST_CODES {
        causes.push(too_many(&field, values.len(), MOST_CODES));
    }
    for (j, value) in values.iter().enumerate() {
        if codes["operator"] == "In" && *value == 0 {
            let detail = "must not be 0 for the In operator";
            causes.push(Cause::invalid(format!("{field}[{j}]"), value, detail));
        }
        if values[..j].contains(value) {
            causes.push(Cause::duplicate(format!("{field}[{j}]"), value));
        }
    }
    if !values.is_sorted_by_key(|value| value.as_i64().unwrap_or(0)) {
        causes.push(Cause::invalid(field, &codes["values"], "must be ordered"));
    }
}

fn success(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let rules = items(&spec["successPolicy"]["rules"]);
    let field = format!("{path}.rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        causes.push(Cause::required(field.as_str(), detail));
    }
    if rules.len() > MOST_RULES {
        causes.push(too_many(&field, rules.len(), MOST_RULES));
    }
    let completions = spec["completions"].as_i64().unwrap_or(0);
    for (i, rule) in rules.iter().enumerate() {
        let place = format!("{field}[{i}]");
        let (indexes, number) = (&rule["succeededIndexes"], &rule["succeededCount"]);
        if indexes.is_null() && number.is_null() {
            let detail = "at least one of succeededCount or succeededIndexes must be specified";
            causes.push(Cause::required(place.as_str(), detail));
        }
        let mut total = 0;
        if let Some(text) = indexes.as_str() {
            match count(text, completions) {
                Ok(found) => total = found,
                Err(why) => {
                    let detail = format!("error parsing succeededIndexes: {why}");
                    causes.push(Cause::invalid(format!("{place}.succeededIndexes"), indexes, &detail));
                }
            }
        }
        let field = format!("{place}.succeededCount");
        super::checks::at_least_zero(&field, number, causes);
        let limits =
            [(completions, "completions"), (total, "indexes in the specified succeededIndexes field")];
        for (most, of) in limits.into_iter().take(if indexes.is_null() { 1 } else { 2 }) {
            if number.as_i64().is_some_and(|number| number > most) {
                let of = if of == "completions" { "specified completions" } else { of };
                let detail = format!("must be less than or equal to {most} (the number of {of})");
                causes.push(Cause::invalid(field.as_str(), number, &detail));
            }
        }
    }
}

/// How many indexes a text such as `0,2-4` has.
pub(super) fn count(text: &str, completions: i64) -> Result<i64, String> {
    let (mut total, mut last) = (0, -1);
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let ends: Vec<&str> = part.split('-').collect();
        if ends.len() > 2 {
            return Err(format!(
                "the fragment {part:?} violates the requirement that an index interval can have at most two parts \
                 separated by '-'"
            ));
        }
        let before = last;
        for end in &ends {
            let index: i64 =
                end.parse().map_err(|_| format!("cannot convert string to integer for index: {end:?}"))?;
            if index >= completions {
                return Err(format!("too large index: {end:?}"));
            }
            if index <= last {
                return Err(format!("non-increasing order, previous: {last}, current: {index}"));
            }
            last = index;
        }
        let first = ends[0].parse().unwrap_or(before + 1);
        total += last - first + 1;
    }
    Ok(total)
}

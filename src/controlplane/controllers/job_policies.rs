//! A Job's policies: they say which failures count, which index has failed for good, and when the Job has
//! succeeded. Never looks at a clock and never writes.

use super::fields::{count, int, list, name, text};
use super::pods;
use opdev_object::meta;
use serde_json::Value;
use std::collections::BTreeSet;

/// How often the index of a pod had failed before it.
pub(super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";

/// The meaning of a failed pod for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It counts.
    Counts,
    /// It does not.
    Ignored,
    /// Its index is not tried again.
    FailsIndex,
    /// The Job has failed, for this reason.
    FailsJob(String),
}

/// The first rule that matches says it.
pub(super) fn failure(job: &Value, pod: &Value) -> Failure {
    for (at, rule) in list(job, "/spec/podFailurePolicy/rules").iter().enumerate() {
        let Some(what) = matched(rule, pod) else { continue };
        match text(rule, "/action") {
            "FailJob" => return Failure::FailsJob(format!("{what} matching FailJob rule at index {at}")),
            "FailIndex" if per_index(job).is_some() => return Failure::FailsIndex,
            "Ignore" => return Failure::Ignored,
            "Count" => return Failure::Counts,
            _ => {}
        }
    }
    Failure::Counts
}

/// The part of a pod that a rule matches, in words.
fn matched(rule: &Value, pod: &Value) -> Option<String> {
    let shown = || format!("{}/{}", meta::namespace(pod).unwrap_or_default(), name(pod));
    if let Some(codes) = rule.get("onExitCodes").filter(|codes| codes.is_object()) {
        let of = text(codes, "/containerName");
        let statuses = ["/status/containerStatuses", "/status/initContainerStatuses"];
        let statuses = statuses.iter().flat_map(|at| list(pod, at));
        for status in statuses.filter(|status| of.is_empty() || name_of(status) == of) {
            let Some(code) = int(status, "/state/terminated/exitCode").filter(|code| *code != 0) else {
                continue;
            };
            let named = list(codes, "/values").iter().any(|value| value.as_i64() == Some(code));
            if named == (text(codes, "/operator") == "In") {
                let container = name_of(status);
                return Some(format!(
                    "Container {container} for pod {} failed with exit code {code}",
                    shown()
                ));
            }
        }
        return None;
    }
    let holds = |pattern: &&Value| {
        list(pod, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == text(pattern, "/type")
                && text(condition, "/status") == wanted(pattern)
        })
    };
    let found = list(rule, "/onPodConditions").iter().find(holds)?;
    Some(format!("Pod {} has condition {}", shown(), text(found, "/type")))
}

fn name_of(status: &Value) -> &str {
    text(status, "/name")
}

fn wanted(pattern: &Value) -> &str {
    match text(pattern, "/status") {
        "" => "True",
        status => status,
    }
}

/// How often each index may fail, where that is counted.
pub(super) fn per_index(job: &Value) -> Option<i64> {
    int(job, "/spec/backoffLimitPerIndex")
}

/// How often the index of a failed pod has failed by now.
pub(super) fn failures_of(job: &Value, pod: &Value) -> i64 {
    let before = meta::annotation(pod, FAILURES).and_then(|number| number.parse().ok()).unwrap_or(0);
    before + i64::from(failure(job, pod) != Failure::Ignored)
}

/// True where the index of a failed pod is not tried again.
pub(super) fn fails_index(job: &Value, pod: &Value) -> bool {
    per_index(job).is_some_and(|most| match failure(job, pod) {
        Failure::FailsIndex => true,
        Failure::Ignored => false,
        Failure::Counts | Failure::FailsJob(_) => failures_of(job, pod) > most,
    })
}

/// The rule by which the Job has succeeded with these indexes done.
pub(super) fn success(job: &Value, done: &BTreeSet<i64>) -> Option<usize> {
    list(job, "/spec/successPolicy/rules").iter().position(|rule| {
        let wanted = rule.get("succeededIndexes").and_then(Value::as_str).map(super::job::parse_ranges);
        let number = int(rule, "/succeededCount");
        match wanted {
            Some(wanted) => {
                let there = wanted.intersection(done).count();
                number.map_or(there == wanted.len(), |number| there as i64 >= number)
            }
            None => number.is_some_and(|number| done.len() as i64 >= number),
        }
    })
}

/// True where a pod is replaced only once it has ended.
pub(super) fn replaces_ended_only(job: &Value) -> bool {
    text(job, "/spec/podReplacementPolicy") == "Failed"
}

/// True where another controller looks after the Job.
pub(super) fn of_others(job: &Value) -> bool {
    !["", "kubernetes.io/job-controller"].contains(&text(job, "/spec/managedBy"))
}

/// The Job fails for what one of these pods did.
pub(super) fn fatal<'a>(job: &Value, mut failed: impl Iterator<Item = &'a Value>) -> Option<String> {
    failed.find_map(|pod| match failure(job, pod) {
        Failure::FailsJob(why) if pods::phase(pod) == "Failed" => Some(why),
        _ => None,
    })
}

/// More indexes have failed than may.
pub(super) fn too_many_failed(job: &Value, failed: usize) -> bool {
    job.pointer("/spec/maxFailedIndexes").is_some_and(Value::is_i64)
        && failed as i64 > count(job, "/spec/maxFailedIndexes")
}

//! Rules for the status of a job. As on the real server most hold only where the request changes their
//! fields: a status that was wrong before can still be written.

use super::checks::{at_least_zero, items};
use super::job_policies::{count, plain};
use opdev_apimachinery::error::Cause;
use serde_json::Value;
use std::collections::BTreeSet;

/// Errors of a status that is written over another one.
pub fn update(object: &Value, current: &Value, causes: &mut Vec<Cause>) {
    let change = Change { new: &object["status"], old: &current["status"], spec: &object["spec"] };
    numbers(change.new, causes);
    change.ends(causes);
    change.finished(causes);
    change.indexes(causes);
    change.pods(causes);
    change.terminal(causes);
    change.counters(causes);
}

/// Numbers and names that are wrong whatever was there before.
fn numbers(status: &Value, causes: &mut Vec<Cause>) {
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        at_least_zero(&format!("status.{field}"), &status[field], causes);
    }
    let mut seen = BTreeSet::new();
    for list in ["succeeded", "failed"] {
        for (i, uid) in items(&status["uncountedTerminatedPods"][list]).iter().enumerate() {
            let place = format!("status.uncountedTerminatedPods.{list}[{i}]");
            let text = uid.as_str().unwrap_or_default();
            if text.is_empty() {
                causes.push(Cause::invalid(place, uid, "must not be empty"));
            } else if !seen.insert(text) {
                causes.push(Cause::duplicate(place, uid));
            }
        }
    }
}

/// A time as errors print it.
fn time_text(time: &Value) -> String {
    let parsed = time.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    parsed.map_or_else(|| time.to_string(), |time| time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string())
}

/// A cause that shows a time.
fn of_time(field: &str, time: &Value, detail: &str) -> Cause {
    Cause::text("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", time_text(time)))
}

fn is(status: &Value, kind: &str) -> bool {
    items(&status["conditions"]).iter().any(|one| one["type"] == kind && one["status"] == "True")
}

fn is_finished(status: &Value) -> bool {
    is(status, "Complete") || is(status, "Failed")
}

fn conditions(detail: &str) -> Cause {
    plain("status.conditions".to_owned(), detail)
}

fn number(status: &Value, field: &str) -> i64 {
    status[field].as_i64().unwrap_or_default()
}

struct Change<'a> {
    new: &'a Value,
    old: &'a Value,
    spec: &'a Value,
}

impl Change<'_> {
    fn changes(&self, field: &str) -> bool {
        self.new[field] != self.old[field]
    }

    fn turns(&self, kind: &str) -> bool {
        is(self.new, kind) != is(self.old, kind)
    }

    /// Returns true if a job is finished, and this or a field of its status is new.
    fn finishes_with(&self, field: &str) -> bool {
        is_finished(self.new) && (!is_finished(self.old) || self.changes(field))
    }

    fn is_indexed(&self) -> bool {
        self.spec["completionMode"] == "Indexed"
    }

    /// Conditions that exclude one another, and the time of the end.
    fn ends(&self, causes: &mut Vec<Cause>) {
        let (new, complete) = (self.new, is(self.new, "Complete"));
        if (self.turns("Complete") || self.turns("Failed")) && complete && is(new, "Failed") {
            causes.push(conditions("cannot set Complete=True and Failed=true conditions"));
        }
        if (self.turns("Complete") || self.turns("FailureTarget")) && complete && is(new, "FailureTarget") {
            causes.push(conditions("cannot set Complete=True and FailureTarget=true conditions"));
        }
        let (field, end, start) = ("status.completionTime", &new["completionTime"], &new["startTime"]);
        if self.turns("Complete") || self.changes("completionTime") {
            if !end.is_null() && !complete {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                causes.push(of_time(field, end, detail));
            }
            if end.is_null() && complete {
                causes.push(Cause::required(field, "completionTime is required for Complete jobs"));
            }
        }
        let moved = self.changes("startTime") || self.changes("completionTime");
        if moved
            && let (Some(end), Some(start)) = (instant(end), instant(start))
            && end < start
        {
            let detail = "completionTime cannot be set before startTime";
            causes.push(of_time(field, &new["completionTime"], detail));
        }
        let failing = self.turns("Failed") || self.changes("failedIndexes");
        if failing && is(new, "Failed") && !is(new, "FailureTarget") {
            let detail = "cannot set Failed=True condition without the FailureTarget=true condition";
            causes.push(conditions(detail));
        }
        let completing = self.turns("Complete") || self.turns("SuccessCriteriaMet");
        if completing && complete && !is(new, "SuccessCriteriaMet") {
            let detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
            causes.push(conditions(detail));
        }
    }

    /// A finished job has no pods left, and has begun once.
    fn finished(&self, causes: &mut Vec<Cause>) {
        let new = self.new;
        if self.finishes_with("active") && number(new, "active") > 0 {
            let detail = "active>0 is invalid for finished job";
            causes.push(Cause::invalid("status.active", &new["active"], detail));
        }
        let never_began = self.spec["suspend"] == true && self.spec["completions"] == 0;
        if self.finishes_with("startTime") && new["startTime"].is_null() && !never_began {
            causes.push(Cause::required("status.startTime", "startTime is required for finished job"));
        }
        let uncounted = &new["uncountedTerminatedPods"];
        let left = items(&uncounted["failed"]).len() + items(&uncounted["succeeded"]).len();
        if self.finishes_with("uncountedTerminatedPods") && left > 0 {
            let detail = "uncountedTerminatedPods needs to be empty for finished job";
            causes.push(Cause::invalid("status.uncountedTerminatedPods", uncounted, detail));
        }
    }

    /// Numbers of pods that leave or are ready.
    fn pods(&self, causes: &mut Vec<Cause>) {
        let new = self.new;
        if self.finishes_with("terminating") && number(new, "terminating") > 0 {
            let detail = "terminating>0 is invalid for finished job";
            causes.push(Cause::invalid("status.terminating", &new["terminating"], detail));
        }
        let moved = self.changes("ready") || self.changes("active");
        if moved && number(new, "ready") > number(new, "active") {
            let detail = "cannot set more ready pods than active";
            causes.push(Cause::invalid("status.ready", &new["ready"], detail));
        }
    }

    /// Lists of indexes such as `0,2-4`.
    fn indexes(&self, causes: &mut Vec<Cause>) {
        let completions = self.spec["completions"].as_i64();
        let limited = !self.spec["backoffLimitPerIndex"].is_null();
        for (name, read) in [("completedIndexes", true), ("failedIndexes", limited)] {
            let value = &self.new[name];
            let (Some(most), Some(text)) = (completions.filter(|_| read), value.as_str()) else { continue };
            if self.changes(name)
                && let Err(why) = count(text, most)
            {
                let detail = format!("error parsing {name}: {why}");
                causes.push(Cause::invalid(format!("status.{name}"), value, &detail));
            }
        }
        let done = &self.new["completedIndexes"];
        let some = done.as_str().is_some_and(|text| !text.is_empty());
        if self.changes("completedIndexes") && some && !self.is_indexed() {
            let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
            causes.push(Cause::invalid("status.completedIndexes", done, detail));
        }
        let failed = &self.new["failedIndexes"];
        if self.changes("failedIndexes") && !failed.is_null() && !limited {
            let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
            causes.push(Cause::invalid("status.failedIndexes", failed, detail));
        }
        let moved = self.changes("failedIndexes") || self.changes("completedIndexes");
        if moved
            && let (Some(most), Some(done), Some(failed)) = (completions, done.as_str(), failed.as_str())
            && let Some(index) = shared(done, failed, most)
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            causes.push(Cause::invalid("status.failedIndexes", &self.new["failedIndexes"], &detail));
        }
    }

    /// Conditions that stay once they are there.
    fn terminal(&self, causes: &mut Vec<Cause>) {
        let (new, old) = (self.new, self.old);
        if is(new, "SuccessCriteriaMet") {
            for kind in ["Failed", "FailureTarget"].into_iter().filter(|kind| is(new, kind)) {
                causes.push(conditions(&format!(
                    "cannot set SuccessCriteriaMet=True and {kind}=true conditions"
                )));
            }
        } else if is(new, "Complete") && !self.spec["successPolicy"].is_null() {
            let detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True";
            causes.push(conditions(detail));
        }
        for kind in ["Failed", "Complete", "FailureTarget"] {
            if is(old, kind) && !is(new, kind) {
                causes.push(conditions(&format!("cannot disable the terminal {kind}=True condition")));
            }
        }
    }

    /// Numbers and times that do not go back.
    fn counters(&self, causes: &mut Vec<Cause>) {
        let (new, old) = (self.new, self.old);
        let scales = self.is_indexed() && self.spec["completions"] == self.spec["parallelism"];
        for (field, holds) in [("failed", true), ("succeeded", !scales)] {
            if holds && number(new, field) < number(old, field) {
                let value = Value::from(number(new, field));
                let detail = format!("cannot decrease the {field} counter");
                causes.push(Cause::invalid(format!("status.{field}"), &value, &detail));
            }
        }
        let (before, after) = (&old["completionTime"], &new["completionTime"]);
        if !before.is_null() && !after.is_null() && before != after {
            causes.push(of_time("status.completionTime", after, "completionTime cannot be mutated"));
        }
        let resumes = is(old, "Suspended") && !is(new, "Suspended");
        let fixed = !old["startTime"].is_null() && self.spec["suspend"] != true && !resumes;
        if fixed && self.changes("startTime") {
            let detail = "field is immutable for unsuspended job once set";
            causes.push(of_time("status.startTime", &new["startTime"], detail));
        }
        if is(old, "SuccessCriteriaMet") && !is(new, "SuccessCriteriaMet") {
            causes.push(conditions("cannot disable the SuccessCriteriaMet=True condition"));
        }
        if is(old, "Complete") && !is(old, "SuccessCriteriaMet") && is(new, "SuccessCriteriaMet") {
            let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
            causes.push(conditions(detail));
        }
    }
}

/// The first index that two lists such as `0,2-4` both have; nothing where one of them cannot be read.
fn shared(one: &str, other: &str, most: i64) -> Option<i64> {
    count(one, most).ok().zip(count(other, most).ok())?;
    let spans = |text: &str| -> Vec<(i64, i64)> {
        let of = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            Some((first.parse().ok()?, last.parse().ok()?))
        };
        text.split(',').filter_map(of).collect()
    };
    let (one, other) = (spans(one), spans(other));
    let both = one.iter().flat_map(|a| other.iter().map(move |b| (a.0.max(b.0), a.1.min(b.1))));
    both.filter(|(first, last)| first <= last).map(|(first, _)| first).min()
}

fn instant(time: &Value) -> Option<jiff::Timestamp> {
    time.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn job(status: &Value) -> Value {
        json!({"spec": {"completions": 1, "parallelism": 1, "completionMode": "NonIndexed"}, "status": status})
    }

    fn done() -> Value {
        json!({"conditions": [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}],
            "startTime": "2026-11-30T12:00:00Z", "completionTime": "2026-11-30T12:00:05Z", "succeeded": 1})
    }

    fn refused(new: &Value, old: &Value) -> String {
        let mut causes = Vec::new();
        update(&job(new), &job(old), &mut causes);
        causes.iter().map(|one| format!("{}: {}\n", one.field, one.message)).collect()
    }

    #[test]
    fn a_finished_job_stays_finished() {
        assert_eq!(refused(&done(), &json!({"startTime": "2026-11-30T12:00:00Z", "active": 1})), "");
        let mut again = done();
        again["conditions"][1]["status"] = "False".into();
        again["succeeded"] = 0.into();
        expect![[r#"
            status.completionTime: Invalid value: 2026-11-30 12:00:05 +0000 UTC: cannot set completionTime when there is no Complete=True condition
            status.conditions: Invalid value: cannot disable the terminal Complete=True condition
            status.succeeded: Invalid value: 0: cannot decrease the succeeded counter
        "#]]
        .assert_eq(&refused(&again, &done()));
    }

    #[test]
    fn a_job_does_not_end_half() {
        let half = json!({"conditions": [{"type": "Complete", "status": "True"}], "active": 1});
        expect![[r#"
            status.completionTime: Required value: completionTime is required for Complete jobs
            status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition
            status.active: Invalid value: 1: active>0 is invalid for finished job
            status.startTime: Required value: startTime is required for finished job
        "#]]
        .assert_eq(&refused(&half, &json!({})));
        let failed = json!({"conditions": [{"type": "Failed", "status": "True"}], "startTime": "2026-11-30T12:00:00Z"});
        expect![[r#"
            status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition
        "#]]
        .assert_eq(&refused(&failed, &json!({"startTime": "2026-11-30T12:00:00Z"})));
    }
}

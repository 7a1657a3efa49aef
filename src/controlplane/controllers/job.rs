//! Jobs: pods until enough have succeeded or too many have failed, counted through a finalizer so that none
//! is lost. Never restarts containers; the kubelet does.

use super::conditions::{self, NewCondition};
use super::fields::{
    self, deleting, flag, int, list, map_copy, name, put, put_count, seconds_between, stamp, text, time, uid,
    with_status,
};
use super::job_policies::{self, Failure};
use super::owners::owner_keys;
use super::pods;
use crate::contract::{
    Actor, Change, Controller, Key, NoteKind, Observed, Propagation, Refusal, Sync, View, Write,
};
use jiff::Timestamp;
use opdev_apimachinery::attributes::Lookup;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct Jobs;

const RESOURCE: &str = "batch/jobs";
const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// A Job lives for about so many seconds, as on a cluster, where its pod takes as long. Helm 4 waits for ever
/// for one that it does not see complete.
const SEEN: i64 = 3;
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// One sync of one Job.
struct JobSync<'a> {
    job: &'a Value,
    now: Timestamp,
    pods: Vec<Arc<Value>>,
    status: Map<String, Value>,
    sync: Sync,
}

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:job-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            RESOURCE => change.key().into_iter().collect(),
            "pods" => {
                let mut keys = owner_keys(view, change, "Job", RESOURCE);
                // A pod whose Job is gone still waits for its finalizer.
                let tracked =
                    |pod: &Observed| pod.attributes().finalizers().iter().any(|name| name == TRACKING);
                if keys.is_empty() && change.after.as_ref().is_some_and(tracked) {
                    keys.extend(change.key());
                }
                keys
            }
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let job = if key.resource == RESOURCE { key.read(view) } else { None };
        let Some(job) = job else { return release_orphans(view, key) };
        if job_policies::of_others(&job) {
            return Sync::done();
        }
        let own = Lookup::ControlledBy(uid(&job));
        let pods = view.select("pods", key.namespace.as_deref(), &own, &|pod| {
            pod.controller().is_some_and(|controller| controller.uid == uid(&job))
        });
        let status = fields::status(&job);
        let work = JobSync { job: &job, now, pods, status, sync: Sync::default() };
        work.run()
    }

    fn refused(
        &self,
        view: &dyn View,
        key: &Key,
        write: &Write,
        refusal: &Refusal,
        _: Timestamp,
    ) -> Vec<Write> {
        match (key.read(view), write) {
            (Some(job), Write::Create { .. }) => {
                let message = format!("Error creating: {}", refusal.message);
                vec![pods::note(&job, NoteKind::Warning, "FailedCreate", &message)]
            }
            _ => Vec::new(),
        }
    }
}

/// Pods of a Job that no longer exists are let go.
fn release_orphans(view: &dyn View, key: &Key) -> Sync {
    let left = view.list("pods", key.namespace.as_deref());
    let writes = left
        .iter()
        .filter(|pod| meta::finalizers(pod).contains(&TRACKING))
        .filter(|pod| match meta::controller(pod) {
            Some(owner) if owner.kind == "Job" => {
                view.get(RESOURCE, meta::namespace(pod), &owner.name).is_none_or(|job| uid(&job) != owner.uid)
            }
            _ => true,
        })
        .map(|pod| release(pod))
        .collect();
    Sync { writes, ..Sync::default() }
}

fn release(pod: &Value) -> Write {
    let rest: Vec<_> = meta::finalizers(pod).into_iter().filter(|finalizer| *finalizer != TRACKING).collect();
    Write::Patch {
        resource: "pods".into(),
        namespace: meta::namespace(pod).map(str::to_owned),
        name: name(pod).to_owned(),
        patch: json!({"metadata": {"finalizers": if rest.is_empty() { Value::Null } else { json!(rest) }}}),
    }
}

fn tracked(pod: &Value) -> bool {
    meta::finalizers(pod).contains(&TRACKING)
}

fn index_of(pod: &Value) -> Option<i64> {
    meta::annotation(pod, INDEX)?.parse().ok()
}

/// Returns true if a Job is over, well or not.
fn over(status: &Map<String, Value>) -> bool {
    conditions::is(status, "Complete", "True") || conditions::is(status, "Failed", "True")
}

/// A set of indexes as `0,2-4`.
fn ranges(indexes: &BTreeSet<i64>) -> String {
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => parts.push((*index, *index)),
        }
    }
    let text = |(first, last): &(i64, i64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}

pub(super) fn parse_ranges(source: &str) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in source.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first..=last);
        }
    }
    indexes
}

impl JobSync<'_> {
    fn run(mut self) -> Sync {
        if deleting(self.job) || over(&self.status) {
            self.let_go();
            self.expire();
            return self.finish();
        }
        if !flag(self.job, "/spec/suspend") && !self.status.contains_key("startTime") {
            self.status.insert("startTime".into(), stamp(self.now).into());
        }
        let newly = self.count_ended();
        let active: Vec<_> = self.pods.iter().filter(|pod| pods::active(pod)).cloned().collect();
        if let Some((reason, message)) = self.failure(&active) {
            self.end(&active, "Failed", reason, &message);
        } else if let Some(rule) = job_policies::success(self.job, &self.completed_indexes()) {
            let message = format!("Matched rules at index {rule}");
            self.end(&active, "Complete", "SuccessPolicy", &message);
        } else if self.complete(&active) {
            self.end(&active, "Complete", "CompletionsReached", "Reached expected number of succeeded pods");
        } else if flag(self.job, "/spec/suspend") {
            self.suspend(&active);
        } else {
            self.resume();
            self.manage(&active);
        }
        self.settle_counts();
        // The count is written before the pods that it counts are let go.
        let mut sync = self.finish();
        sync.writes.extend(newly.iter().map(|pod| release(pod)));
        sync
    }

    fn indexed(&self) -> bool {
        text(self.job, "/spec/completionMode") == "Indexed"
    }

    fn number(&self, field: &str) -> i64 {
        self.status.get(field).and_then(Value::as_i64).unwrap_or(0)
    }

    /// Adds pods that have ended since the last sync to the status, and gives them for letting go.
    fn count_ended(&mut self) -> Vec<Arc<Value>> {
        let ended: Vec<_> =
            self.pods.iter().filter(|pod| pods::finished(pod) && tracked(pod)).cloned().collect();
        let (mut succeeded, mut failed) = (self.number("succeeded"), self.number("failed"));
        let mut indexes = self.completed_indexes();
        let mut lost = self.failed_indexes();
        for pod in &ended {
            if pods::phase(pod) == "Failed" {
                failed += i64::from(job_policies::failure(self.job, pod) != Failure::Ignored);
                lost.extend(index_of(pod).filter(|_| job_policies::fails_index(self.job, pod)));
            } else if !self.indexed() {
                succeeded += 1;
            } else if let Some(index) = index_of(pod) {
                indexes.insert(index);
            }
        }
        if self.indexed() {
            succeeded = indexes.len() as i64;
            let text = ranges(&indexes);
            if text.is_empty() {
                self.status.remove("completedIndexes");
            } else {
                self.status.insert("completedIndexes".into(), text.into());
            }
        }
        if job_policies::per_index(self.job).is_some() {
            self.status.insert("failedIndexes".into(), ranges(&lost).into());
        }
        put_count(&mut self.status, "succeeded", succeeded);
        put_count(&mut self.status, "failed", failed);
        ended
    }

    fn completed_indexes(&self) -> BTreeSet<i64> {
        self.indexes("completedIndexes")
    }

    /// Indexes of a field of the status that the job still has: it may have been scaled down.
    fn indexes(&self, field: &str) -> BTreeSet<i64> {
        let mut found = self.status.get(field).and_then(Value::as_str).map(parse_ranges).unwrap_or_default();
        let most = self.job["spec"]["completions"].as_i64().unwrap_or(i64::MAX);
        found.retain(|index| *index < most);
        found
    }

    /// The indexes that are not tried again.
    fn failed_indexes(&self) -> BTreeSet<i64> {
        self.indexes("failedIndexes")
    }

    fn failure(&mut self, active: &[Arc<Value>]) -> Option<(&'static str, String)> {
        if let Some(why) = job_policies::fatal(self.job, self.pods.iter().map(|pod| &**pod)) {
            return Some(("PodFailurePolicy", why));
        }
        let lost = self.failed_indexes();
        if job_policies::too_many_failed(self.job, lost.len()) {
            let why = "Job has exceeded the specified maximal number of failed indexes";
            return Some(("MaxFailedIndexesExceeded", why.to_owned()));
        }
        let tried = lost.len() + self.completed_indexes().len();
        if !lost.is_empty() && tried as i64 >= int(self.job, "/spec/completions").unwrap_or(0) {
            return Some(("FailedIndexes", "Job has failed indexes".to_owned()));
        }
        let limit = int(self.job, "/spec/backoffLimit").unwrap_or(6);
        let restarts: i64 = match text(self.job, "/spec/template/spec/restartPolicy") {
            "OnFailure" => active.iter().map(|pod| pods::restarts(pod)).sum(),
            _ => 0,
        };
        if self.number("failed") > limit || (restarts > 0 && restarts >= limit.max(1)) {
            let why = "Job has reached the specified backoff limit";
            return Some(("BackoffLimitExceeded", why.to_owned()));
        }
        let deadline = int(self.job, "/spec/activeDeadlineSeconds")?;
        let started = self.status.get("startTime")?.as_str()?.parse::<Timestamp>().ok()?;
        let left = deadline - seconds_between(started, self.now);
        if left <= 0 && !flag(self.job, "/spec/suspend") {
            let why = "Job was active longer than specified deadline";
            return Some(("DeadlineExceeded", why.to_owned()));
        }
        self.sync.again(Duration::from_secs(left.max(1) as u64));
        None
    }

    fn complete(&self, active: &[Arc<Value>]) -> bool {
        match int(self.job, "/spec/completions") {
            Some(completions) => self.number("succeeded") >= completions,
            None => self.number("succeeded") > 0 && active.is_empty(),
        }
    }

    /// First the decision, then, once no pod runs any more, the end.
    fn end(&mut self, active: &[Arc<Value>], kind: &str, reason: &str, message: &str) {
        let early = if kind == "Failed" { "FailureTarget" } else { "SuccessCriteriaMet" };
        self.say(early, "True", reason, message);
        for pod in active {
            self.sync.writes.extend(pods::delete(self.job, pod));
        }
        if kind == "Failed" {
            let failed = self.number("failed") + active.len() as i64;
            put_count(&mut self.status, "failed", failed);
        }
        self.say(kind, "True", reason, message);
        if kind == "Complete" {
            self.status.insert("completionTime".into(), stamp(self.now).into());
            self.tell(NoteKind::Normal, "Completed", "Job completed");
        } else {
            self.tell(NoteKind::Warning, reason, message);
        }
    }

    fn say(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let fresh = conditions::find(&self.status, kind).is_none_or(|c| text(c, "/status") != status);
        conditions::set(&mut self.status, NewCondition { kind, status, reason, message }, self.now);
        if !fresh {
            return;
        }
        let now = stamp(self.now);
        if let Some(Value::Array(all)) = self.status.get_mut("conditions") {
            for condition in all.iter_mut().filter(|c| text(c, "/type") == kind) {
                put(condition, "/lastProbeTime", now.clone().into());
            }
        }
    }

    fn tell(&mut self, kind: NoteKind, reason: &str, message: &str) {
        self.sync.writes.push(pods::note(self.job, kind, reason, message));
    }

    /// Deletes a pod that counts neither as succeeded nor as failed.
    fn drop_pod(&mut self, pod: &Value) {
        if tracked(pod) {
            self.sync.writes.push(release(pod));
        }
        self.sync.writes.extend(pods::delete(self.job, pod));
    }

    fn suspend(&mut self, active: &[Arc<Value>]) {
        for pod in active {
            self.drop_pod(pod);
        }
        if !conditions::is(&self.status, "Suspended", "True") {
            self.say("Suspended", "True", "JobSuspended", "Job suspended");
            self.status.remove("startTime");
            self.tell(NoteKind::Normal, "Suspended", "Job suspended");
        }
    }

    fn resume(&mut self) {
        if conditions::is(&self.status, "Suspended", "True") {
            self.say("Suspended", "False", "JobResumed", "Job resumed");
            self.status.insert("startTime".into(), stamp(self.now).into());
            self.tell(NoteKind::Normal, "Resumed", "Job resumed");
        }
    }

    fn manage(&mut self, active: &[Arc<Value>]) {
        let parallelism = int(self.job, "/spec/parallelism").unwrap_or(1).max(0);
        let wanted = match int(self.job, "/spec/completions") {
            Some(completions) => {
                let lost = self.failed_indexes().len() as i64;
                (completions - self.number("succeeded") - lost).min(parallelism)
            }
            None if self.number("succeeded") > 0 => active.len() as i64,
            None => parallelism,
        };
        let ending = self.ending().count() as i64;
        let missing = wanted - active.len() as i64;
        let missing = if missing > 0 { (missing - ending).max(0) } else { missing };
        if missing < 0 {
            for pod in active.iter().rev().take(missing.unsigned_abs() as usize) {
                self.drop_pod(pod);
            }
        }
        if missing <= 0 {
            return;
        }
        if let Some(wait) = self.backoff() {
            self.sync.again(wait);
            return;
        }
        let mut free = self.free_indexes(active).into_iter();
        for _ in 0..missing.min(500) {
            let index = if self.indexed() { free.next() } else { None };
            if self.indexed() && index.is_none() {
                break;
            }
            let pod = self.new_pod(index);
            self.sync.writes.extend(pods::create(self.job, pod));
        }
    }

    /// The pods that are still there and are replaced only once they have ended.
    fn ending(&self) -> impl Iterator<Item = &Arc<Value>> {
        let waits = job_policies::replaces_ended_only(self.job);
        self.pods.iter().filter(move |pod| waits && deleting(pod) && !pods::finished(pod))
    }

    fn free_indexes(&self, active: &[Arc<Value>]) -> Vec<i64> {
        let mut done = self.completed_indexes();
        done.append(&mut self.failed_indexes());
        let mut running: BTreeSet<_> = active.iter().filter_map(|pod| index_of(pod)).collect();
        running.extend(self.ending().filter_map(|pod| index_of(pod)));
        let all = 0..int(self.job, "/spec/completions").unwrap_or(0);
        all.filter(|index| !done.contains(index) && !running.contains(index)).collect()
    }

    /// How long to wait after failures: ten seconds, doubled with each, at most ten minutes.
    fn backoff(&self) -> Option<Duration> {
        let last_ended = |phase: &str| {
            let ended = self.pods.iter().filter(|pod| pods::phase(pod) == phase);
            let at = |pod: &Arc<Value>| {
                list(pod, "/status/containerStatuses")
                    .iter()
                    .filter_map(|status| time(status, "/state/terminated/finishedAt"))
                    .max()
            };
            ended.filter_map(at).max()
        };
        let failed_at = last_ended("Failed")?;
        if last_ended("Succeeded").is_some_and(|succeeded_at| succeeded_at > failed_at) {
            return None;
        }
        let failures = self.pods.iter().filter(|pod| pods::phase(pod) == "Failed").count() as u32;
        let wait = 10i64.saturating_mul(1 << (failures.max(1) - 1).min(10)).min(600);
        let left = wait - seconds_between(failed_at, self.now);
        (left > 0).then(|| Duration::from_secs(left as u64))
    }

    fn new_pod(&self, index: Option<i64>) -> Value {
        let template = self.job.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
        let mut pod = pods::from_template(self.job, &template);
        let mut finalizers = list(&pod, "/metadata/finalizers").to_vec();
        finalizers.push(TRACKING.into());
        put(&mut pod, "/metadata/finalizers", finalizers.into());
        let mut labels = map_copy(&pod, "/metadata/labels");
        for prefix in ["", "batch.kubernetes.io/"] {
            labels.insert(format!("{prefix}job-name"), name(self.job).into());
            labels.insert(format!("{prefix}controller-uid"), uid(self.job).into());
        }
        if let Some(index) = index {
            labels.insert(INDEX.into(), index.to_string().into());
            put(
                &mut pod,
                &format!("/metadata/annotations/{}", fields::step(INDEX)),
                index.to_string().into(),
            );
            if job_policies::per_index(self.job).is_some() {
                let failed = self
                    .pods
                    .iter()
                    .filter(|pod| pods::phase(pod) == "Failed" && index_of(pod) == Some(index));
                let failures = failed.map(|pod| job_policies::failures_of(self.job, pod)).max().unwrap_or(0);
                let at = format!("/metadata/annotations/{}", fields::step(job_policies::FAILURES));
                put(&mut pod, &at, failures.to_string().into());
            }
            let host = format!("{}-{index}", name(self.job));
            put(&mut pod, "/metadata/generateName", format!("{host}-").into());
            put(&mut pod, "/spec/hostname", host.into());
            let path = format!("metadata.labels['{INDEX}']");
            let variable =
                json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef": {"fieldPath": path}}});
            pods::add_environment(&mut pod, &variable);
        }
        put(&mut pod, "/metadata/labels", labels.into());
        pod
    }

    fn settle_counts(&mut self) {
        let ended = over(&self.status);
        let alive = |pod: &&Arc<Value>| pods::active(pod) && !ended;
        let active = self.pods.iter().filter(alive).count() as i64;
        let ready = self.pods.iter().filter(|pod| pods::active(pod) && pods::ready(pod) && !ended).count();
        let leaving = |pod: &&Arc<Value>| deleting(pod) && !pods::finished(pod) && !ended;
        let terminating = self.pods.iter().filter(leaving).count();
        put_count(&mut self.status, "active", active);
        self.status.insert("ready".into(), ready.into());
        self.status.insert("terminating".into(), terminating.into());
        self.status.entry("uncountedTerminatedPods").or_insert_with(|| json!({}));
    }

    /// After the end no pod has to be kept for counting any more, and none may go on running.
    fn let_go(&mut self) {
        let over = over(&self.status);
        for pod in &self.pods {
            if tracked(pod) && (deleting(self.job) || pods::finished(pod) || deleting(pod)) {
                self.sync.writes.push(release(pod));
            }
            if over && pods::active(pod) {
                self.sync.writes.extend(pods::delete(self.job, pod));
            }
        }
        // The API server takes no other number for a job that is over.
        if over {
            self.status.insert("terminating".into(), 0.into());
        }
    }

    fn expire(&mut self) {
        let Some(ttl) = int(self.job, "/spec/ttlSecondsAfterFinished") else { return };
        if deleting(self.job) {
            return;
        }
        let ended = list(self.job, "/status/conditions")
            .iter()
            .filter(|c| ["Complete", "Failed"].contains(&text(c, "/type")) && text(c, "/status") == "True")
            .find_map(|condition| time(condition, "/lastTransitionTime"));
        let Some(ended) = ended else { return };
        let made = time(self.job, "/metadata/creationTimestamp").unwrap_or(ended);
        let left = (ttl - seconds_between(ended, self.now)).max(SEEN - seconds_between(made, self.now));
        if left > 0 {
            self.sync.again(Duration::from_secs(left as u64));
            return;
        }
        self.sync.writes.push(Write::Delete {
            resource: RESOURCE.into(),
            namespace: meta::namespace(self.job).map(str::to_owned),
            name: name(self.job).to_owned(),
            uid: Some(uid(self.job).to_owned()),
            propagation: Some(Propagation::Foreground),
            grace: None,
        });
    }

    /// The status goes before the rest, so that nothing is counted twice when it turns out to be stale.
    fn finish(mut self) -> Sync {
        if self.status != fields::status(self.job) {
            let object = with_status(self.job, std::mem::take(&mut self.status));
            self.sync.writes.insert(0, Write::UpdateStatus { resource: RESOURCE.into(), object });
        }
        self.sync
    }
}

#[cfg(test)]
mod tests {
    use super::{parse_ranges, ranges};

    #[test]
    fn indexes_print_as_ranges() {
        let indexes = parse_ranges("0,2-4,6,7");
        assert_eq!(indexes.len(), 6);
        assert_eq!(ranges(&indexes), "0,2-4,6,7");
    }
}

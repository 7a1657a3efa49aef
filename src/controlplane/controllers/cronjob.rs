//! CronJobs: a Job at each time of the schedule, as many at once as the policy allows, the oldest ended ones
//! removed. The rules are those of upstream's controller (v2); `opdev_apimachinery::schedule` says when.

use super::conditions;
use super::fields::{
    self, controller_reference, deleting, flag, int, list, map_copy, name, put, stamp, text, time, uid,
    with_status,
};
use super::owners::owner_keys;
use super::pods;
use crate::contract::{Actor, Change, Controller, Key, NoteKind, Propagation, Refusal, Sync, View, Write};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use opdev_apimachinery::attributes::Lookup;
use opdev_apimachinery::schedule::Schedule;
use opdev_object::meta;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// See the module.
pub(crate) struct CronJobs;

const RESOURCE: &str = "batch/cronjobs";
const JOBS: &str = "batch/jobs";
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// More missed times than these and the clock of somebody is wrong.
const MOST_MISSED: usize = 100;

impl Controller for CronJobs {
    fn name(&self) -> &'static str {
        "cronjob-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:cronjob-controller")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        match change.resource.as_str() {
            RESOURCE => change.key().into_iter().collect(),
            JOBS => owner_keys(view, change, "CronJob", RESOURCE),
            _ => Vec::new(),
        }
    }

    fn sync(&self, view: &dyn View, key: &Key, now: Timestamp) -> Sync {
        let Some(cron) = key.read(view).filter(|cron| !deleting(cron)) else { return Sync::done() };
        let own = Lookup::ControlledBy(uid(&cron));
        let jobs = view.select(JOBS, key.namespace.as_deref(), &own, &|job| {
            job.controller().is_some_and(|owner| owner.uid == uid(&cron))
        });
        let status = fields::status(&cron);
        CronJobSync { cron: &cron, jobs, now, status, sync: Sync::default() }.run()
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
            (Some(cron), Write::Create { .. }) if refusal.reason != "AlreadyExists" => {
                let message = format!("Error creating job: {}", refusal.message);
                vec![pods::note(&cron, NoteKind::Warning, "FailedCreate", &message)]
            }
            _ => Vec::new(),
        }
    }
}

/// One sync of one CronJob.
struct CronJobSync<'a> {
    cron: &'a Value,
    jobs: Vec<Arc<Value>>,
    now: Timestamp,
    status: Map<String, Value>,
    sync: Sync,
}

/// How a Job ended, if it has.
fn ended(job: &Value) -> Option<&'static str> {
    let status = fields::status(job);
    ["Complete", "Failed"].into_iter().find(|kind| conditions::is(&status, kind, "True"))
}

impl CronJobSync<'_> {
    fn run(mut self) -> Sync {
        self.forget_old();
        self.count_active();
        if !flag(self.cron, "/spec/suspend") {
            self.start();
        }
        if self.status != fields::status(self.cron) {
            let object = with_status(self.cron, std::mem::take(&mut self.status));
            // After the Job: where that is refused, the time is not over yet.
            self.sync.writes.push(Write::UpdateStatus { resource: RESOURCE.into(), object });
        }
        self.sync
    }

    fn tell(&mut self, kind: NoteKind, reason: &str, message: &str) {
        self.sync.writes.push(pods::note(self.cron, kind, reason, message));
    }

    fn remove(&mut self, job: &Value) {
        self.sync.writes.push(Write::Delete {
            resource: JOBS.into(),
            namespace: meta::namespace(job).map(str::to_owned),
            name: name(job).to_owned(),
            uid: meta::uid(job).map(str::to_owned),
            propagation: Some(Propagation::Background),
            grace: None,
        });
        self.tell(NoteKind::Normal, "SuccessfulDelete", &format!("Deleted job {}", name(job)));
    }

    /// Removes ended Jobs beyond the limits, the oldest first.
    fn forget_old(&mut self) {
        for (kind, field) in
            [("Complete", "/spec/successfulJobsHistoryLimit"), ("Failed", "/spec/failedJobsHistoryLimit")]
        {
            let Some(limit) = int(self.cron, field) else { continue };
            let done = |job: &&Arc<Value>| ended(job) == Some(kind) && !deleting(job);
            let mut old: Vec<Arc<Value>> = self.jobs.iter().filter(done).cloned().collect();
            old.sort_by_key(|job| (time(job, "/status/startTime"), name(job).to_owned()));
            let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
            for job in &old[..surplus] {
                self.remove(job);
            }
        }
    }

    /// Brings `status.active` in line with the Jobs that run.
    fn count_active(&mut self) {
        let before = list(self.cron, "/status/active").to_vec();
        let mut active = Vec::new();
        for entry in &before {
            match self.jobs.iter().find(|job| uid(job) == text(entry, "/uid")).cloned() {
                None => {
                    let message = format!("Active job went missing: {}", text(entry, "/name"));
                    self.tell(NoteKind::Normal, "MissingJob", &message);
                }
                Some(job) => match ended(&job) {
                    None => active.push(entry.clone()),
                    Some(how) => {
                        let message = format!("Saw completed job: {}, condition: {how}", name(&job));
                        self.tell(NoteKind::Normal, "SawCompletedJob", &message);
                    }
                },
            }
        }
        for job in self.jobs.iter().filter(|job| ended(job).is_none() && !deleting(job)) {
            if !active.iter().any(|entry| text(entry, "/uid") == uid(job)) {
                let mut entry = fields::reference(job);
                put(&mut entry, "/resourceVersion", meta::resource_version(job).unwrap_or_default().into());
                active.push(entry);
            }
        }
        let succeeded = |job: &&Arc<Value>| ended(job) == Some("Complete");
        let last =
            self.jobs.iter().filter(succeeded).filter_map(|job| time(job, "/status/completionTime")).max();
        if let Some(last) = last
            .filter(|last| time(self.cron, "/status/lastSuccessfulTime").is_none_or(|known| known < *last))
        {
            self.status.insert("lastSuccessfulTime".into(), stamp(last).into());
        }
        if active.is_empty() {
            self.status.remove("active");
        } else {
            self.status.insert("active".into(), active.into());
        }
    }

    /// Makes the Job that is due, if one is.
    fn start(&mut self) {
        let said = text(self.cron, "/spec/schedule");
        let schedule = match Schedule::parse(said) {
            Ok(schedule) => schedule,
            Err(why) => {
                let message = format!("unparseable schedule: {said:?} : {why}");
                return self.tell(NoteKind::Warning, "UnparseableSchedule", &message);
            }
        };
        let zone = match text(self.cron, "/spec/timeZone") {
            "" => TimeZone::UTC,
            name => jiff::tz::db().get(name).unwrap_or(TimeZone::UTC),
        };
        let Some(next) = schedule.next(self.now, &zone) else {
            // Such as the 31st of February.
            let why = "time difference between two schedules is less than 1 second";
            let message = format!("invalid schedule: {said} : {why}");
            return self.tell(NoteKind::Warning, "InvalidSchedule", &message);
        };
        let wait = Duration::try_from(next.duration_since(self.now)).unwrap_or_default();
        self.sync.again(wait + Duration::from_millis(100));
        let Some((due, missed)) = self.due(&schedule, &zone) else { return };
        if missed > MOST_MISSED {
            let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock \
                           skew";
            self.tell(NoteKind::Warning, "TooManyMissedTimes", message);
        }
        let name = format!("{}-{}", name(self.cron), due.as_second() / 60);
        let last = time(self.cron, "/status/lastScheduleTime");
        if last == Some(due) {
            return;
        }
        if self.jobs.iter().any(|job| fields::name(job) == name) {
            self.status.insert("lastScheduleTime".into(), stamp(due).into());
            return;
        }
        let active = self.jobs.iter().filter(|job| ended(job).is_none()).cloned().collect::<Vec<_>>();
        match text(self.cron, "/spec/concurrencyPolicy") {
            "Forbid" if !active.is_empty() => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                return self.tell(NoteKind::Normal, "JobAlreadyActive", message);
            }
            "Replace" => {
                for job in &active {
                    self.remove(job);
                }
                self.status.remove("active");
            }
            _ => {}
        }
        let object = self.job(&name, due);
        self.sync.writes.push(Write::Create { resource: JOBS.into(), object });
        self.tell(NoteKind::Normal, "SuccessfulCreate", &format!("Created job {name}"));
        self.status.insert("lastScheduleTime".into(), stamp(due).into());
    }

    /// The latest time that has passed since the last Job, and how many have.
    fn due(&self, schedule: &Schedule, zone: &TimeZone) -> Option<(Timestamp, usize)> {
        let mut from = time(self.cron, "/status/lastScheduleTime")
            .or_else(|| time(self.cron, "/metadata/creationTimestamp"))?;
        if let Some(deadline) = int(self.cron, "/spec/startingDeadlineSeconds") {
            let earliest = self.now.checked_sub(jiff::SignedDuration::from_secs(deadline)).ok()?;
            from = from.max(earliest);
        }
        let mut due = None;
        let mut missed = 0;
        while let Some(next) = schedule.next(from, zone).filter(|next| *next <= self.now) {
            missed += 1;
            due = Some(next);
            from = next;
            if missed > MOST_MISSED {
                // Only the last one matters: look for it close to now.
                let close = self.now.checked_sub(jiff::SignedDuration::from_mins(1)).ok()?;
                from = from.max(close);
                if schedule.next(from, zone).is_none_or(|next| next > self.now) {
                    break;
                }
            }
        }
        Some((due?, missed))
    }

    fn job(&self, name: &str, due: Timestamp) -> Value {
        let template = self.cron.pointer("/spec/jobTemplate").cloned().unwrap_or_default();
        let mut annotations = map_copy(&template, "/metadata/annotations");
        annotations.insert(SCHEDULED.into(), stamp(due).into());
        let mut metadata = json!({
            "name": name,
            "annotations": annotations,
            "ownerReferences": [controller_reference(self.cron)],
        });
        let labels = map_copy(&template, "/metadata/labels");
        if !labels.is_empty() {
            put(&mut metadata, "/labels", labels.into());
        }
        if let Some(namespace) = meta::namespace(self.cron) {
            put(&mut metadata, "/namespace", namespace.into());
        }
        let spec = template.get("spec").cloned().unwrap_or_default();
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
    }
}

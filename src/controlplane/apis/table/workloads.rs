//! Rows of what runs pods: deployments, sets, jobs.

use super::age;
use super::row::{Row, labels, selector};
use serde_json::Value;

pub const DEPLOYMENT: &[&str] = &[
    "Name",
    "Ready",
    "Up-to-date:integer",
    "Available:integer",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];

pub fn deployment(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/template");
    vec![
        row.name(),
        format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")).into(),
        row.number("/status/updatedReplicas").into(),
        row.number("/status/availableReplicas").into(),
        row.age(),
        containers,
        images,
        selector(row.at("/spec/selector")).into(),
    ]
}

/// ReplicaSets and replication controllers.
pub const REPLICAS: &[&str] = &[
    "Name",
    "Desired:integer",
    "Current:integer",
    "Ready:integer",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];

pub fn replica_set(row: Row<'_>) -> Vec<Value> {
    replicas(row, selector(row.at("/spec/selector")))
}

pub fn replication_controller(row: Row<'_>) -> Vec<Value> {
    replicas(row, labels(row.fields("/spec/selector")))
}

fn replicas(row: Row<'_>, selector: String) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/template");
    vec![
        row.name(),
        row.number("/spec/replicas").into(),
        row.number("/status/replicas").into(),
        row.number("/status/readyReplicas").into(),
        row.age(),
        containers,
        images,
        selector.into(),
    ]
}

pub const STATEFUL_SET: &[&str] = &["Name", "Ready", "Age", "*Containers", "*Images"];

pub fn stateful_set(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/template");
    vec![
        row.name(),
        format!("{}/{}", row.number("/status/readyReplicas"), row.number("/spec/replicas")).into(),
        row.age(),
        containers,
        images,
    ]
}

pub const DAEMON_SET: &[&str] = &[
    "Name",
    "Desired:integer",
    "Current:integer",
    "Ready:integer",
    "Up-to-date:integer",
    "Available:integer",
    "Node Selector",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];

pub fn daemon_set(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/template");
    vec![
        row.name(),
        row.number("/status/desiredNumberScheduled").into(),
        row.number("/status/currentNumberScheduled").into(),
        row.number("/status/numberReady").into(),
        row.number("/status/updatedNumberScheduled").into(),
        row.number("/status/numberAvailable").into(),
        labels(row.fields("/spec/template/spec/nodeSelector")).into(),
        row.age(),
        containers,
        images,
        selector(row.at("/spec/selector")).into(),
    ]
}

pub const JOB: &[&str] =
    &["Name", "Status", "Completions", "Duration", "Age", "*Containers", "*Images", "*Selector"];

pub fn job(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/template");
    let succeeded = row.number("/status/succeeded");
    let completions = match row.at("/spec/completions").as_i64() {
        Some(completions) => format!("{succeeded}/{completions}"),
        None => match row.number("/spec/parallelism") {
            many if many > 1 => format!("{succeeded}/1 of {many}"),
            _ => format!("{succeeded}/1"),
        },
    };
    let duration = match age::instant(row.at("/status/startTime")) {
        Some(start) => {
            let end = age::instant(row.at("/status/completionTime")).unwrap_or(row.now);
            age::human(end.as_second() - start.as_second())
        }
        None => String::new(),
    };
    vec![
        row.name(),
        job_status(row).into(),
        completions.into(),
        duration.into(),
        row.age(),
        containers,
        images,
        selector(row.at("/spec/selector")).into(),
    ]
}

fn job_status(row: Row<'_>) -> &'static str {
    for done in ["Complete", "Failed"] {
        if row.condition(done) {
            return done;
        }
    }
    if row.is_set("/metadata/deletionTimestamp") {
        return "Terminating";
    }
    ["Suspended", "FailureTarget", "SuccessCriteriaMet"]
        .into_iter()
        .find(|kind| row.condition(kind))
        .unwrap_or("Running")
}

pub const CRON_JOB: &[&str] = &[
    "Name",
    "Schedule",
    "Timezone",
    "Suspend:boolean",
    "Active:integer",
    "Last Schedule",
    "Age",
    "*Containers",
    "*Images",
    "*Selector",
];

pub fn cron_job(row: Row<'_>) -> Vec<Value> {
    let [containers, images] = row.containers("/spec/jobTemplate/spec/template");
    let last = match age::instant(row.at("/status/lastScheduleTime")) {
        Some(_) => row.since("/status/lastScheduleTime"),
        None => "<none>".to_owned(),
    };
    let suspended = match row.at("/spec/suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    vec![
        row.name(),
        row.text("/spec/schedule").into(),
        row.text_or("/spec/timeZone", "<none>").into(),
        suspended.into(),
        row.list("/status/active").len().into(),
        last.into(),
        row.age(),
        containers,
        images,
        selector(row.at("/spec/jobTemplate/spec/selector")).into(),
    ]
}

pub const CONTROLLER_REVISION: &[&str] = &["Name", "Controller", "Revision:integer", "Age"];

pub fn controller_revision(row: Row<'_>) -> Vec<Value> {
    let owner = row.list("/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true);
    let controller = owner.map_or("<none>".to_owned(), |owner| {
        let api_version = owner["apiVersion"].as_str().unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = owner["kind"].as_str().unwrap_or_default().to_lowercase();
        let kind = if group.is_empty() { kind } else { format!("{kind}.{group}") };
        format!("{kind}/{}", owner["name"].as_str().unwrap_or_default())
    });
    vec![row.name(), controller.into(), row.number("/revision").into(), row.age()]
}

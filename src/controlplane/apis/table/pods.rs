//! The row of a pod: readiness, the one word for its state, restarts.

use super::age;
use super::row::Row;
use jiff::Timestamp;
use serde_json::Value;

pub const COLUMNS: &[&str] =
    &["Name", "Ready", "Status", "Restarts", "Age", "*IP", "*Node", "*Nominated Node", "*Readiness Gates"];

/// A summary of the containers of a pod.
struct Summary {
    status: String,
    total: usize,
    ready: usize,
    restarts: i64,
    restarted: Option<Timestamp>,
}

pub fn cells(row: Row<'_>) -> Vec<Value> {
    let summary = summary(row);
    let restarts = match summary.restarted {
        Some(at) if summary.restarts > 0 => {
            let ago = age::human(row.now.as_second() - at.as_second());
            format!("{} ({ago} ago)", summary.restarts)
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        row.name(),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.status.into(),
        restarts.into(),
        row.age(),
        address(row).into(),
        row.text_or("/spec/nodeName", "<none>").into(),
        row.text_or("/status/nominatedNodeName", "<none>").into(),
        gates(row).into(),
    ]
}

/// A row's conditions: finished pods are marked, so that clients can dim them.
pub fn conditions(object: &Value) -> Option<Value> {
    let (reason, message) = match object["status"]["phase"].as_str()? {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return None,
    };
    Some(serde_json::json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

fn address(row: Row<'_>) -> &str {
    match row.list("/status/podIPs").first() {
        Some(first) => first["ip"].as_str().unwrap_or("<none>"),
        None => row.text_or("/status/podIP", "<none>"),
    }
}

fn gates(row: Row<'_>) -> String {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let passed =
        gates.iter().filter(|gate| gate["conditionType"].as_str().is_some_and(|kind| row.condition(kind)));
    format!("{}/{}", passed.count(), gates.len())
}

fn summary(row: Row<'_>) -> Summary {
    let phase = row.text("/status/phase");
    let mut summary = Summary {
        status: row.text_or("/status/reason", phase).to_owned(),
        total: row.list("/spec/containers").len(),
        ready: 0,
        restarts: 0,
        restarted: None,
    };
    let gated = row.list("/status/conditions").iter();
    if gated.clone().any(|at| at["type"] == "PodScheduled" && at["reason"] == "SchedulingGated") {
        summary.status = "SchedulingGated".to_owned();
    }
    let initializing = init_containers(row, &mut summary);
    if !initializing || row.condition("Initialized") {
        main_containers(row, &mut summary);
    }
    if row.is_set("/metadata/deletionTimestamp") {
        if row.text("/status/reason") == "NodeLost" {
            summary.status = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.status = "Terminating".to_owned();
        }
    }
    summary
}

fn is_sidecar(row: Row<'_>, name: &Value) -> bool {
    row.list("/spec/initContainers").iter().any(|at| at["name"] == *name && at["restartPolicy"] == "Always")
}

fn latest(a: Option<Timestamp>, b: &Value) -> Option<Timestamp> {
    a.max(age::instant(&b["lastState"]["terminated"]["finishedAt"]))
}

/// Looks at the init containers up to the one that is not done; whether there is such a one.
fn init_containers(row: Row<'_>, summary: &mut Summary) -> bool {
    let statuses = row.list("/status/initContainerStatuses");
    let all = row.list("/spec/initContainers");
    summary.total += all.iter().filter(|at| at["restartPolicy"] == "Always").count();
    let (mut restarts, mut restarted) = (0, None);
    let (mut sidecar_restarts, mut sidecar_restarted) = (0, None);
    let mut waiting = false;
    for (index, status) in statuses.iter().enumerate() {
        let sidecar = is_sidecar(row, &status["name"]);
        restarts += status["restartCount"].as_i64().unwrap_or(0);
        restarted = latest(restarted, status);
        if sidecar {
            sidecar_restarts += status["restartCount"].as_i64().unwrap_or(0);
            sidecar_restarted = latest(sidecar_restarted, status);
        }
        let state = &status["state"];
        if state["terminated"]["exitCode"] == 0 {
            continue;
        }
        if sidecar && status["started"] == true {
            summary.ready += usize::from(status["ready"] == true);
            continue;
        }
        summary.status = if state["terminated"].is_object() {
            ended(&state["terminated"], "Init:")
        } else {
            match state["waiting"]["reason"].as_str() {
                Some(reason) if !reason.is_empty() && reason != "PodInitializing" => {
                    format!("Init:{reason}")
                }
                _ => format!("Init:{index}/{}", all.len()),
            }
        };
        waiting = true;
        break;
    }
    // Once the pod runs, only sidecars' restarts are still of interest.
    let running = !waiting || row.condition("Initialized");
    (summary.restarts, summary.restarted) =
        if running { (sidecar_restarts, sidecar_restarted) } else { (restarts, restarted) };
    waiting
}

/// Why a container ended, in a word.
fn ended(terminated: &Value, prefix: &str) -> String {
    match terminated["reason"].as_str().filter(|reason| !reason.is_empty()) {
        Some(reason) => format!("{prefix}{reason}"),
        None => match terminated["signal"].as_i64().filter(|signal| *signal != 0) {
            Some(signal) => format!("{prefix}Signal:{signal}"),
            None => format!("{prefix}ExitCode:{}", terminated["exitCode"]),
        },
    }
}

fn main_containers(row: Row<'_>, summary: &mut Summary) {
    let mut running = false;
    for status in row.list("/status/containerStatuses").iter().rev() {
        summary.restarts += status["restartCount"].as_i64().unwrap_or(0);
        summary.restarted = latest(summary.restarted, status);
        let state = &status["state"];
        let waiting = state["waiting"]["reason"].as_str().unwrap_or_default();
        if !waiting.is_empty() {
            summary.status = waiting.to_owned();
        } else if state["terminated"].is_object() {
            summary.status = ended(&state["terminated"], "");
        } else if status["ready"] == true && state["running"].is_object() {
            running = true;
            summary.ready += 1;
        }
    }
    if summary.status == "Completed" && running {
        let ready = row.condition("Ready");
        summary.status = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn printed(object: &Value) -> Vec<String> {
        let now = "2026-01-01T01:00:00Z".parse().unwrap();
        let cells = cells(Row { object, now });
        cells[1..4].iter().map(|cell| cell.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_running_pod() {
        let pod = json!({
            "spec": {"containers": [{"name": "a"}, {"name": "b"}]},
            "status": {"phase": "Running", "containerStatuses": [
                {"name": "a", "ready": true, "restartCount": 0, "state": {"running": {}}},
                {"name": "b", "ready": false, "restartCount": 2, "state": {"running": {}},
                 "lastState": {"terminated": {"finishedAt": "2026-01-01T00:55:00Z"}}},
            ]},
        });
        assert_eq!(printed(&pod), ["1/2", "Running", "2 (5m ago)"]);
    }

    #[test]
    fn a_pod_that_cannot_pull_or_crashes() {
        let pod = json!({
            "spec": {"containers": [{"name": "a"}]},
            "status": {"phase": "Pending", "containerStatuses": [
                {"name": "a", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
        });
        assert_eq!(printed(&pod), ["0/1", "ImagePullBackOff", "0"]);
        let pod = json!({
            "spec": {"containers": [{"name": "a"}]},
            "status": {"phase": "Failed", "containerStatuses": [
                {"name": "a", "restartCount": 0, "state": {"terminated": {"exitCode": 3}}}]},
        });
        assert_eq!(printed(&pod), ["0/1", "ExitCode:3", "0"]);
        assert_eq!(conditions(&pod).unwrap()[0]["reason"], "Failed");
    }

    #[test]
    fn a_pod_that_initializes() {
        let pod = json!({
            "spec": {"initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}],
                     "containers": [{"name": "a"}]},
            "status": {"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "restartCount": 1, "state": {"running": {}}}]},
        });
        assert_eq!(printed(&pod), ["0/2", "Init:0/2", "1"]);
    }

    #[test]
    fn a_pod_that_goes() {
        let pod = json!({
            "metadata": {"deletionTimestamp": "2026-01-01T01:00:00Z"},
            "spec": {"containers": [{"name": "a"}]},
            "status": {"phase": "Running"},
        });
        assert_eq!(printed(&pod)[1], "Terminating");
    }
}

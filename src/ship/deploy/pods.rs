//! Reasons for which the pods of a workload wait: of their containers, of scheduling, of events.

use anyhow::Result;
use http::Method;
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use opdev_client::{escape, is_forbidden, send};
use opdev_event::words;
use opdev_object::meta;
use serde_json::Value;

const JSON: &str = "application/json";
/// Pods of one workload that are looked at.
const MOST: usize = 50;
/// Lines of the log of a container that has crashed.
const LINES: usize = 10;
/// Reasons of a container that only starts.
const STARTS: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// A pod that does not come up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stuck {
    pub(super) name: String,
    /// One word, such as `ImagePullBackOff`.
    pub(super) reason: String,
    pub(super) message: String,
    /// The container it is about, where it is about one.
    pub(super) container: String,
    /// True if the container has ended and has a log of before.
    pub(super) has_crashed: bool,
    /// True if it may only need time: nothing has failed so far.
    pub(super) only_starts: bool,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("pod {}: {}", self.name, self.reason);
        f.write_str(&words::one_line(&text))?;
        if self.message.is_empty() { Ok(()) } else { write!(f, ": {}", words::one_line(&self.message)) }
    }
}

/// The pods of a workload's newest revision that are stuck.
pub(super) async fn stuck(client: &Client, workload: &Value) -> Result<Vec<Stuck>> {
    let namespace = meta::namespace(workload).unwrap_or_default();
    let Some(selector) = selector(workload) else { return Ok(Vec::new()) };
    let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={selector}&limit={MOST}");
    let list = match send(client, Method::GET, &path, JSON, None).await {
        Ok((list, _)) => list,
        // A user who may not list pods still learns whether the workload is ready.
        Err(error) if is_forbidden(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let revision = revision(client, workload, &selector).await?;
    let is_new = |pod: &&Value| {
        let Some((label, value)) = &revision else { return true };
        pod["metadata"]["labels"][*label] == value.as_str() && pod["metadata"]["deletionTimestamp"].is_null()
    };
    let mut found = Vec::new();
    for pod in list["items"].as_array().into_iter().flatten().filter(is_new) {
        match reason(pod) {
            Some(stuck) => found.push(stuck),
            None if is_ready(pod) => {}
            None => found.extend(of_events(client, namespace, pod).await?.or_else(|| unready(pod))),
        }
    }
    Ok(found)
}

/// The selector of a workload's pods as a query has it.
fn selector(workload: &Value) -> Option<String> {
    let labels = workload.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs: Vec<String> =
        labels.iter().filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?))).collect();
    (!pairs.is_empty()).then(|| escape(&pairs.join(",")))
}

/// The label, and its value, of the pods of a workload's newest revision: what keeps older ones from starting
/// does not matter any more. `None` where it cannot be told.
async fn revision(
    client: &Client,
    workload: &Value,
    selector: &str,
) -> Result<Option<(&'static str, String)>> {
    if let Some(hash) = workload.pointer("/status/updateRevision").and_then(Value::as_str) {
        return Ok(Some(("controller-revision-hash", hash.to_owned())));
    }
    let key = "deployment.kubernetes.io/revision";
    let Some(newest) = meta::annotation(workload, key) else { return Ok(None) };
    let namespace = meta::namespace(workload).unwrap_or_default();
    let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets?labelSelector={selector}");
    let (sets, _) = send(client, Method::GET, &path, JSON, None).await?;
    let uid = meta::uid(workload);
    let is_newest = |set: &&Value| {
        let mut owners = set["metadata"]["ownerReferences"].as_array().into_iter().flatten();
        meta::annotation(set, key) == Some(newest) && owners.any(|owner| owner["uid"].as_str() == uid)
    };
    let label = "pod-template-hash";
    let set = sets["items"].as_array().into_iter().flatten().find(is_newest);
    Ok(set.and_then(|set| Some((label, set["metadata"]["labels"][label].as_str()?.to_owned()))))
}

/// The reason why a pod does not start, as its status has it.
fn reason(pod: &Value) -> Option<Stuck> {
    let name = meta::name(pod)?.to_owned();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let status = &pod["status"];
    let lists = ["initContainerStatuses", "containerStatuses"];
    for container in lists.iter().flat_map(|list| status[*list].as_array().into_iter().flatten()) {
        let waiting = &container["state"]["waiting"];
        let ended = &container["state"]["terminated"];
        let before = &container["lastState"]["terminated"];
        let has_crashed =
            [ended, before].iter().any(|state| state["exitCode"].as_i64().is_some_and(|code| code != 0));
        let is_stuck = waiting["reason"].as_str().is_some_and(|reason| !STARTS.contains(&reason));
        let (reason, message) = if is_stuck {
            (text(&waiting["reason"]), text(&waiting["message"]))
        } else if ended["exitCode"].as_i64().is_some_and(|code| code != 0) {
            (text(&ended["reason"]), format!("exit code {} {}", ended["exitCode"], text(&ended["message"])))
        } else {
            continue;
        };
        return Some(Stuck {
            name,
            reason,
            message,
            container: text(&container["name"]),
            has_crashed,
            only_starts: false,
        });
    }
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let held = conditions.find(|one| one["type"] == "PodScheduled" && one["status"] == "False")?;
    let (reason, message) = (text(&held["reason"]), text(&held["message"]));
    Some(Stuck { name, reason, message, container: String::new(), has_crashed: false, only_starts: false })
}

fn is_ready(pod: &Value) -> bool {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// The reason in the condition `Ready` of a pod that starts.
fn unready(pod: &Value) -> Option<Stuck> {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == "Ready" && one["status"] == "False")?;
    Some(Stuck {
        name: meta::name(pod)?.to_owned(),
        reason: ready["reason"].as_str()?.to_owned(),
        message: ready["message"].as_str().unwrap_or_default().to_owned(),
        container: String::new(),
        has_crashed: false,
        only_starts: true,
    })
}

/// The newest warning about a pod: a volume that cannot be mounted, and a probe that fails, stand nowhere
/// else.
async fn of_events(client: &Client, namespace: &str, pod: &Value) -> Result<Option<Stuck>> {
    let (Some(name), Some(uid)) = (meta::name(pod), meta::uid(pod)) else { return Ok(None) };
    let fields = escape(&format!("involvedObject.uid={uid},type=Warning"));
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector={fields}&limit={MOST}");
    // A user who may not read events waits without them.
    let Ok((list, _)) = send(client, Method::GET, &path, JSON, None).await else { return Ok(None) };
    let time = |event: &&Value| {
        let times = ["lastTimestamp", "eventTime", "firstTimestamp"].map(|field| event[field].as_str());
        times.into_iter().flatten().max().unwrap_or_default().to_owned()
    };
    let newest = list["items"].as_array().into_iter().flatten().max_by_key(time);
    Ok(newest.map(|event| Stuck {
        name: name.to_owned(),
        reason: event["reason"].as_str().unwrap_or_default().to_owned(),
        message: event["message"].as_str().unwrap_or_default().to_owned(),
        container: String::new(),
        has_crashed: false,
        only_starts: false,
    }))
}

/// The last lines that a container wrote before it ended; none where they cannot be had.
pub(super) async fn last_lines(client: &Client, namespace: &str, pod: &Stuck) -> Vec<String> {
    let path = format!(
        "/api/v1/namespaces/{namespace}/pods/{}/log?container={}&previous=true&tailLines={LINES}",
        pod.name, pod.container
    );
    let Ok(request) = http::Request::get(path).body(Body::empty()) else { return Vec::new() };
    let Ok(response) = client.send(request).await else { return Vec::new() };
    if !response.status().is_success() {
        return Vec::new();
    }
    let Ok(body) = response.into_body().collect().await else { return Vec::new() };
    let bytes = body.to_bytes();
    let lines = words::lines(&String::from_utf8_lossy(&bytes));
    lines.into_iter().rev().take(LINES).rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_pod_waits_for_stands_in_its_status() {
        let pod = |status: Value| json!({ "metadata": { "name": "p" }, "status": status });
        let said = |status: Value| reason(&pod(status)).map(|stuck| (stuck.to_string(), stuck.has_crashed));
        let waits = |reason: &str| {
            json!({ "containerStatuses": [
            { "name": "m", "state": { "waiting": { "reason": reason, "message": "no such\nimage" } } }] })
        };
        assert_eq!(
            said(waits("ImagePullBackOff")),
            Some(("pod p: ImagePullBackOff: no such image".to_owned(), false))
        );
        assert_eq!(said(waits("ContainerCreating")), None);
        let crashed = json!({ "containerStatuses": [{ "name": "m", "state": { "waiting": { "reason": "CrashLoopBackOff" } },
            "lastState": { "terminated": { "exitCode": 1 } } }] });
        assert_eq!(said(crashed), Some(("pod p: CrashLoopBackOff".to_owned(), true)));
        let unscheduled = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": "0/1 nodes are available" }] });
        assert_eq!(
            said(unscheduled),
            Some(("pod p: Unschedulable: 0/1 nodes are available".to_owned(), false))
        );
    }
}

//! The status word of a pod, as kubectl prints it: phase, then what its containers wait for or died of.

use super::{Health, Level, number, text};
use opdev_object::meta;
use serde_json::Value;

fn list<'a>(pod: &'a Value, pointer: &str) -> &'a [Value] {
    pod.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `Error`, `OOMKilled`, `ExitCode:2`, `Signal:9`.
fn terminated(state: &Value) -> String {
    match (text(state, "/reason"), number(state, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(state, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn restarts_always(pod: &Value, name: &str) -> bool {
    list(pod, "/spec/initContainers")
        .iter()
        .any(|container| text(container, "/name") == name && text(container, "/restartPolicy") == "Always")
}

/// The word and detail of a pod whose init containers are not done; `None` if they are.
fn initializing(pod: &Value) -> Option<(String, Option<String>)> {
    let statuses = list(pod, "/status/initContainerStatuses");
    let total = list(pod, "/spec/initContainers").len().max(statuses.len());
    for (i, status) in statuses.iter().enumerate() {
        let sidecar = restarts_always(pod, text(status, "/name"));
        if let Some(state) = status.pointer("/state/terminated") {
            if number(state, "/exitCode") == 0 {
                continue;
            }
            let detail = text(state, "/message");
            return Some((
                format!("Init:{}", terminated(state)),
                (!detail.is_empty()).then(|| detail.to_owned()),
            ));
        }
        if sidecar && status.get("started").and_then(Value::as_bool) == Some(true) {
            continue;
        }
        return Some(match text(status, "/state/waiting/reason") {
            "" | "PodInitializing" => (format!("Init:{i}/{total}"), None),
            reason => (format!("Init:{reason}"), Some(text(status, "/state/waiting/message").to_owned())),
        });
    }
    None
}

/// Adds why containers wait or ended; the first container has the last word.
fn containers(pod: &Value, word: &mut String, detail: &mut Option<String>) {
    let mut running = false;
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(word);
            let message = text(status, "/state/waiting/message");
            *detail = (!message.is_empty()).then(|| message.to_owned());
        } else if let Some(state) = status.pointer("/state/terminated") {
            *word = terminated(state);
            let message = text(state, "/message");
            *detail = (!message.is_empty()).then(|| message.to_owned());
        } else if status.get("ready").and_then(Value::as_bool) == Some(true)
            && status.pointer("/state/running").is_some()
        {
            running = true;
        }
    }
    if word == "Completed" && running {
        let ready = super::condition(pod, "Ready").is_some_and(|(status, ..)| status == "True");
        *word = if ready { "Running" } else { "NotReady" }.to_owned();
    }
}

/// How a pod is.
pub(super) fn of(pod: &Value) -> Health {
    let mut word = match (text(pod, "/status/reason"), text(pod, "/status/phase")) {
        ("", "") => "Pending".to_owned(),
        ("", phase) => phase.to_owned(),
        (reason, _) => reason.to_owned(),
    };
    let message = text(pod, "/status/message");
    let mut detail = (!message.is_empty()).then(|| message.to_owned());
    if let Some((_, reason, why)) =
        super::condition(pod, "PodScheduled").filter(|(status, ..)| *status == "False")
    {
        if reason == "SchedulingGated" {
            reason.clone_into(&mut word);
        }
        detail = super::because((reason, why));
    }
    match initializing(pod) {
        Some((init, why)) => (word, detail) = (init, why.or(detail)),
        None => containers(pod, &mut word, &mut detail),
    }
    let finished = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
    if meta::deletion_timestamp(pod).is_some() {
        if text(pod, "/status/reason") == "NodeLost" {
            word = "Unknown".to_owned();
        } else if !finished {
            word = "Terminating".to_owned();
        }
    }
    let statuses = list(pod, "/status/containerStatuses");
    let is_ready = |status: &&Value| status.get("ready").and_then(Value::as_bool) == Some(true);
    let sidecars = list(pod, "/status/initContainerStatuses")
        .iter()
        .filter(|status| restarts_always(pod, text(status, "/name")));
    let sidecars_wanted = list(pod, "/spec/initContainers")
        .iter()
        .filter(|container| text(container, "/restartPolicy") == "Always")
        .count();
    let ready = statuses.iter().filter(is_ready).count() + sidecars.filter(is_ready).count();
    let wanted = list(pod, "/spec/containers").len().max(statuses.len()) + sidecars_wanted;
    Health { level: level(&word, ready == wanted), word, ready: Some((ready as i64, wanted as i64)), detail }
}

fn level(word: &str, ready: bool) -> Level {
    match word {
        "Running" if ready => Level::Good,
        "Completed" | "Succeeded" => Level::Done,
        "Pending" | "ContainerCreating" | "PodInitializing" | "Running" | "Terminating" | "NotReady"
        | "SchedulingGated" => Level::Busy,
        other => match other.strip_prefix("Init:") {
            Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => Level::Busy,
            Some(_) | None => Level::Bad,
        },
    }
}

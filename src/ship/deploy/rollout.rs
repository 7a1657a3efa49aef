//! Waits until workloads are there, and says meanwhile what their pods wait for. An image that cannot be
//! pulled ends the wait at once: nothing that happens in the cluster mends it.

use super::input::{Say, shown};
use super::pods;
use anyhow::{Result, bail};
use http::Method;
use kube::Client;
use opdev_client::send;
use opdev_event::words;
use opdev_object::meta;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const JSON: &str = "application/json";
/// How often the cluster is asked.
const PAUSE: Duration = Duration::from_millis(250);
/// Reasons that only another image, or another right, mends.
const FINAL: [&str; 4] = ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

/// The progress of a workload.
#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Done,
    /// Its controller has not seen the newest change, so its pods are those of before.
    Unseen,
    Waits(String),
    Failed(String),
}

/// Waits for all workloads among the objects.
pub(super) async fn wait(
    client: &Client,
    namespace: &str,
    objects: &[&Value],
    longest: Duration,
    say: Say<'_>,
) -> Result<()> {
    let until = Instant::now() + longest;
    for object in objects {
        let plural = match (object["apiVersion"].as_str(), object["kind"].as_str()) {
            (Some("apps/v1"), Some("Deployment")) => "deployments",
            (Some("apps/v1"), Some("StatefulSet")) => "statefulsets",
            (Some("apps/v1"), Some("DaemonSet")) => "daemonsets",
            _ => continue,
        };
        let namespace = meta::namespace(object).unwrap_or(namespace);
        let name = meta::name(object).unwrap_or_default();
        let path = format!("/apis/apps/v1/namespaces/{namespace}/{plural}/{name}");
        one(client, object, &path, until, say).await?;
    }
    Ok(())
}

async fn one(client: &Client, object: &Value, path: &str, until: Instant, say: Say<'_>) -> Result<()> {
    let shown = shown(object);
    let mut said = BTreeSet::new();
    let mut say_once = |line: String| {
        let line = words::visible_line(&line);
        if said.insert(line.clone()) {
            say(&line);
        }
    };
    loop {
        let (live, _) = send(client, Method::GET, path, JSON, None).await?;
        let is_seen = progress(&live) != Progress::Unseen;
        let waits = match progress(&live) {
            Progress::Done => {
                say(&format!("{shown} is ready"));
                return Ok(());
            }
            Progress::Failed(why) => {
                let stuck = pods::stuck(client, &live).await?;
                let pods: Vec<String> = stuck.iter().map(|pod| format!("\n  {pod}")).collect();
                bail!("{shown}: {}{}", words::one_line(&why), pods.concat())
            }
            Progress::Unseen => "its controller has not seen it yet".to_owned(),
            Progress::Waits(why) => why,
        };
        say_once(format!("{shown}: {waits}"));
        let stuck = if is_seen { pods::stuck(client, &live).await? } else { Vec::new() };
        for pod in stuck.iter().filter(|pod| !pod.only_starts) {
            say_once(format!("  {pod}"));
        }
        if let Some(pod) = stuck.iter().find(|pod| FINAL.contains(&pod.reason.as_str())) {
            bail!(
                "{shown} does not start: {pod}\n  to do: push the image, or name another one with --image; a registry that asks \
                 for a login needs imagePullSecrets"
            );
        }
        if Instant::now() >= until {
            let mut why: Vec<String> = stuck.iter().map(|pod| format!("\n  {pod}")).collect();
            for pod in stuck.iter().filter(|pod| pod.has_crashed) {
                let lines = pods::last_lines(client, meta::namespace(&live).unwrap_or_default(), pod).await;
                why.extend(lines.iter().map(|line| format!("\n    {line}")));
            }
            bail!(
                "{shown} is not ready in time: {waits}{}\n  to do: --wait gives it more time",
                why.concat()
            );
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The progress of a workload, as `kubectl rollout status` sees it.
fn progress(live: &Value) -> Progress {
    let number = |pointer: &str| live.pointer(pointer).and_then(Value::as_i64);
    let status = |field: &str| number(&format!("/status/{field}")).unwrap_or(0);
    if status("observedGeneration") < number("/metadata/generation").unwrap_or(0) {
        return Progress::Unseen;
    }
    if live["kind"] == "DaemonSet" || live["status"].get("desiredNumberScheduled").is_some() {
        let wanted = status("desiredNumberScheduled");
        let (updated, ready) = (status("updatedNumberScheduled"), status("numberAvailable"));
        return if updated >= wanted && ready >= wanted {
            Progress::Done
        } else {
            Progress::Waits(format!("{ready} of {wanted} pods are available"))
        };
    }
    let conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    if let Some(late) = conditions.clone().find(|one| one["reason"] == "ProgressDeadlineExceeded") {
        return Progress::Failed(late["message"].as_str().unwrap_or("it makes no progress").to_owned());
    }
    let mut failures = conditions.filter(|one| one["type"] == "ReplicaFailure" && one["status"] == "True");
    if let Some(failure) = failures.next() {
        let message = failure["message"].as_str().unwrap_or("its pods cannot be made");
        return Progress::Waits(words::one_line(message));
    }
    let wanted = number("/spec/replicas").unwrap_or(1);
    let (updated, all) = (status("updatedReplicas"), status("replicas"));
    let ready = if live["status"].get("availableReplicas").is_some() {
        status("availableReplicas")
    } else {
        status("readyReplicas")
    };
    if updated < wanted {
        return Progress::Waits(format!("{updated} of {wanted} replicas are new"));
    }
    if all > updated {
        return Progress::Waits(format!(
            "{} of the replicas are old ones that stay until new ones are available",
            all - updated
        ));
    }
    if ready < wanted {
        return Progress::Waits(format!("{ready} of {wanted} replicas are available"));
    }
    Progress::Done
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rollout_is_seen_as_kubectl_sees_it() {
        let live = |status: Value| json!({ "kind": "Deployment", "metadata": { "generation": 2 }, "spec": { "replicas": 2 }, "status": status });
        let said = |status: Value| progress(&live(status));
        assert_eq!(said(json!({ "observedGeneration": 1 })), Progress::Unseen);
        assert_eq!(
            said(
                json!({ "observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2 })
            ),
            Progress::Waits(
                "1 of the replicas are old ones that stay until new ones are available".to_owned()
            )
        );
        assert_eq!(
            said(
                json!({ "observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2 })
            ),
            Progress::Done
        );
        assert!(matches!(
            said(json!({ "observedGeneration": 2, "conditions": [{ "reason": "ProgressDeadlineExceeded", "message": "late" }] })),
            Progress::Failed(why) if why == "late"
        ));
    }
}

//! `exec` in a simulated pod: refused, or answered as the user has said. The checks before it, and their
//! words, are those of a real cluster. Never speaks a protocol of streams; the server does.

use super::respond;
use super::write::{Answer, Call};
use bytes::Bytes;
use opdev_apimachinery::contract::Write;
use opdev_apimachinery::contract::exec::{self, ExecOutcome};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::User;
use opdev_apimachinery::resource::metadata;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// The outcome that a command seems to have, beside an answer over HTTP: the server carries it to streams.
#[derive(Clone, Debug)]
pub struct ExecSession {
    /// The output.
    pub output: Bytes,
    /// The exit code.
    pub code: u8,
    /// Streams that the client wants: its own input, the output, the errors of the command.
    pub streams: [bool; 3],
}

impl Call<'_> {
    /// Answers an `exec`; `None` where the user has said nothing of this command.
    pub(crate) fn exec(&self) -> Option<Answer> {
        let registry = &self.shape.registry;
        if registry.exec_answers().is_empty() {
            return None;
        }
        let command: Vec<&str> = self.query.all("command").collect();
        let command = command.join(" ");
        let checked = self.container();
        let outcome = exec::answer(registry.exec_answers(), &command)?;
        Some(checked.map(|(pod, container)| {
            self.tell(&pod, &container, &command, outcome);
            let wants = |stream: &str| self.query.flag(stream) == Some(true);
            let session = ExecSession {
                output: Bytes::from(outcome.output.clone()),
                code: outcome.code,
                streams: [wants("stdin"), wants("stdout"), wants("stderr")],
            };
            // A client that does not switch to streams gets no answer, as from a real server.
            let refusal = Status::bad_request("Upgrade request required");
            let mut response = respond::failure(&refusal, self.shape.agreed.encoding);
            response.extensions_mut().insert(session);
            (response, Vec::new())
        }))
    }

    /// The pod, and the container that is meant.
    fn container(&self) -> Result<(Value, String), Status> {
        let (resource, key) = (self.resource(), self.key());
        let stored = self.shape.registry.store.get(&resource.table, &key);
        let stored = stored.ok_or_else(|| Status::not_found(&resource.group, &resource.plural, &key.name))?;
        let pod = Value::clone(&stored.value());
        let names = |list: &str| -> Vec<String> {
            let list = pod["spec"][list].as_array();
            list.into_iter()
                .flatten()
                .map(|found| found["name"].as_str().unwrap_or_default().to_owned())
                .collect()
        };
        let own = names("containers");
        let all = [names("initContainers"), own.clone(), names("ephemeralContainers")].concat();
        let container = match self.query.get("container").filter(|name| !name.is_empty()) {
            Some(name) if all.iter().any(|known| known == name) => name.to_owned(),
            Some(name) => {
                let why = format!("container {name} is not valid for pod {}", key.name);
                return Err(Status::bad_request(why));
            }
            None => match own.as_slice() {
                [only] => only.clone(),
                _ => {
                    let why = format!(
                        "a container name must be specified for pod {}, choose one of: [{}]",
                        key.name,
                        all.join(" ")
                    );
                    return Err(Status::bad_request(why));
                }
            },
        };
        if pod["spec"]["nodeName"].as_str().unwrap_or_default().is_empty() {
            return Err(Status::bad_request(format!("pod {} does not have a host assigned", key.name)));
        }
        let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
        let mut statuses = lists.iter().filter_map(|list| pod["status"][*list].as_array()).flatten();
        let runs = |status: &Value| status["name"] == container && status["state"].get("running").is_some();
        if !statuses.any(runs) {
            return Err(Status::internal(&format!("container not found ({container:?})")));
        }
        Ok((pod, container))
    }

    /// Says on the pod that nothing has run. Once for each command: operators ask again and again.
    fn tell(&self, pod: &Value, container: &str, command: &str, outcome: &ExecOutcome) {
        let registry = &self.shape.registry;
        let said = match (outcome.code, outcome.output.trim_end()) {
            (0, "") => "success".to_owned(),
            (0, output) => format!("{output:?}"),
            (code, _) => format!("exit code {code}"),
        };
        let shown: String = command.chars().take(200).collect();
        let message =
            format!("exec of `{shown}` was answered with {said} (--exec); nothing runs in a simulated pod");
        let (name, namespace) = (metadata::text(pod, "name"), metadata::text(pod, "namespace"));
        let digest = Sha256::digest(format!("{container}\n{message}"));
        let mark: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let now = metadata::seconds(registry.now());
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let event = json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": format!("{name}.{mark}"), "namespace": namespace},
            "involvedObject": {"kind": "Pod", "apiVersion": "v1", "name": name, "namespace": namespace,
                "uid": pod["metadata"]["uid"], "fieldPath": format!("spec.containers{{{container}}}")},
            "reason": "Simulated", "message": message, "type": "Normal", "count": 1,
            "source": {"component": "kubelet", "host": node}, "reportingComponent": "kubelet",
            "reportingInstance": node, "firstTimestamp": now, "lastTimestamp": now});
        let kubelet = User::authenticated(format!("system:node:{node}"), ["system:nodes"]);
        // An Event that is there already has said it.
        let create = Write::Create { resource: "events".to_owned(), object: event };
        if let Err(status) = registry.write(&kubelet, "kubelet", &create)
            && !status.is_already_exists()
        {
            tracing::debug!(code = status.code, "the Event of an exec was not recorded");
        }
    }
}

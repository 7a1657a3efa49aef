//! Waits for one object to reach a state: by a watch, for a finite time, until opdev stops. Never polls.

use anyhow::anyhow;
use futures::StreamExt;
use kube::api::{Api as KubeApi, DynamicObject};
use kube::runtime::watcher::watch_object;
use opdev_client::{Api, At};
use serde_json::Value;
use std::pin::pin;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The limits of a wait.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    pub timeout: Duration,
    pub cancel: &'a CancellationToken,
}

/// Waits until `done` says how it ended. It sees the object, or `None` where there is none.
pub(crate) async fn until(
    api: &Api,
    at: &At<'_>,
    limits: Limits<'_>,
    what: &str,
    done: impl Fn(Option<&Value>) -> Option<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let described = at.resource.api_resource();
    let client = api.client.streams().clone();
    let objects: KubeApi<DynamicObject> = match at.namespace.filter(|_| at.resource.namespaced) {
        Some(namespace) => KubeApi::namespaced_with(client, namespace, &described),
        None => KubeApi::all_with(client, &described),
    };
    let mut states = pin!(watch_object(objects, at.name));
    let mut timer = pin!(tokio::time::sleep(limits.timeout));
    loop {
        tokio::select! {
            state = states.next() => match state {
                Some(Ok(object)) => {
                    let object = object.and_then(|object| serde_json::to_value(object).ok());
                    if let Some(end) = done(object.as_ref()) {
                        return end;
                    }
                }
                // The stream recovers by itself; the time limit ends it where it cannot.
                Some(Err(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
                None => return Err(anyhow!("{what}: the watch ended")),
            },
            () = &mut timer => {
                return Err(anyhow!("{what}: timed out after {} s", limits.timeout.as_secs()));
            }
            () = limits.cancel.cancelled() => return Err(anyhow!("{what}: stopped, something newer came")),
        }
    }
}

/// Waits until the object is gone.
pub async fn until_gone(api: &Api, at: &At<'_>, limits: Limits<'_>, what: &str) -> anyhow::Result<()> {
    until(api, at, limits, what, |object| object.is_none().then_some(Ok(()))).await
}

/// The condition with status True that an object carries, if any; its reason and message.
pub(crate) fn condition(object: &Value, kind: &str) -> Option<String> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array)?;
    let text = |condition: &Value, field: &str| {
        condition.get(field).and_then(Value::as_str).unwrap_or("").to_owned()
    };
    conditions
        .iter()
        .find(|condition| text(condition, "type") == kind && text(condition, "status") == "True")
        .map(|condition| {
            let (reason, message) = (text(condition, "reason"), text(condition, "message"));
            if message.is_empty() { reason } else { format!("{reason}: {message}") }
        })
}

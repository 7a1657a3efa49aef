//! Emits the one Kubernetes event of the classic engine: that a chart value was overridden. Repeats are counted.

use super::inject::Owner;
use crate::event::mask;
use crate::operator::api::{Api, At};
use opdev_object::meta::Gvk;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// How many events of one object are counted on; more begin anew.
const MOST: usize = 64;

/// The events of one object that were emitted before, by message: name and count.
#[derive(Debug, Default)]
pub(in crate::operator) struct Emitted(HashMap<String, (String, u64)>);

/// One warning per override. An event that cannot be written is no reason to stop.
pub(super) async fn override_values(
    api: &Api,
    owner: &Owner,
    overrides: &BTreeMap<String, String>,
    suppress: bool,
    emitted: &mut Emitted,
) {
    for (key, value) in overrides {
        let value = if suppress || mask::is_secret_path(key) { "****" } else { value.as_str() };
        let message = format!("Chart value {key:?} overridden to {value:?} by operator's watches.yaml");
        if let Err(error) = emit(api, owner, "OverrideValuesInUse", &message, emitted).await {
            tracing::warn!(object = %owner.name, %error, "cannot write an event");
        }
    }
}

async fn emit(
    api: &Api,
    owner: &Owner,
    reason: &str,
    message: &str,
    emitted: &mut Emitted,
) -> anyhow::Result<()> {
    let resource = api.resource(&Gvk::new("", "v1", "Event")).await?;
    let namespace = owner.namespace.as_deref().unwrap_or("default");
    let now = jiff::Timestamp::now();
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Some((name, count)) = emitted.0.get_mut(message) {
        let patch = json!({"count": *count + 1, "lastTimestamp": at});
        let place = At { resource: &resource, namespace: Some(namespace), name };
        if api.merge(&place, &patch).await.is_ok() {
            *count += 1;
            return Ok(());
        }
    }
    let component = format!("{}-controller", owner.gvk.kind.to_lowercase());
    let name = format!("{}.{:x}", owner.name, now.as_nanosecond());
    let event: Value = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": owner.gvk.api_version(), "kind": owner.gvk.kind, "name": owner.name,
            "namespace": owner.namespace, "uid": owner.uid,
        },
        "reason": reason,
        "message": message,
        "type": "Warning",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    });
    api.create(&resource, Some(namespace), &event).await?;
    if emitted.0.len() >= MOST {
        emitted.0.clear();
    }
    emitted.0.insert(message.to_owned(), (name, 1));
    Ok(())
}

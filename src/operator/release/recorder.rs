//! Emits Kubernetes Events. Repeats are counted, floods cut.

use super::objects::inject::Owner;
use opdev_client::{Api, At};
use opdev_object::meta::Gvk;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How many events of one object are counted on; more begin anew.
const MOST: usize = 64;
/// As many events of one object are written at once, then one in a while: what Kubernetes' own recorder
/// allows.
const BURST: u32 = 25;
const REFILL: Duration = Duration::from_secs(300);

/// The events of one object that were emitted before, by message: name and count.
#[derive(Debug)]
pub struct Emitted {
    known: HashMap<String, (String, u64)>,
    /// The number of further events that may be written now.
    tokens: u32,
    filled: Instant,
}

impl Default for Emitted {
    fn default() -> Emitted {
        Emitted { known: HashMap::new(), tokens: BURST, filled: Instant::now() }
    }
}

impl Emitted {
    /// Takes a token: a loop must not flood the API server.
    fn spend(&mut self) -> bool {
        while self.tokens < BURST && self.filled.elapsed() >= REFILL {
            self.tokens += 1;
            self.filled += REFILL;
        }
        if self.tokens == BURST {
            self.filled = Instant::now();
        }
        let spent = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        spent
    }
}

/// A Kubernetes Event.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// `Normal` or `Warning`.
    pub kind: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Writes an event, or counts it on where it was written before.
pub async fn emit(api: &Api, owner: &Owner, note: Note<'_>, emitted: &mut Emitted) -> anyhow::Result<()> {
    let Note { kind, reason, message } = note;
    let identity = format!("{kind} {reason} {message}");
    if !emitted.spend() {
        return Ok(());
    }
    let resource = api.resource(&Gvk::new("", "v1", "Event")).await?;
    let namespace = owner.namespace.as_deref().unwrap_or("default");
    let now = jiff::Timestamp::now();
    let at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    if let Some((name, count)) = emitted.known.get_mut(&identity) {
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
        "type": kind,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
    });
    api.create(&resource, Some(namespace), &event).await?;
    if emitted.known.len() >= MOST {
        emitted.known.clear();
    }
    emitted.known.insert(identity, (name, 1));
    Ok(())
}

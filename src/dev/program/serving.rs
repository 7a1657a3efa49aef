//! The webhooks of the operator's program on the embedded control plane: registered once the program answers, taken away
//! with it. Also the lease that a program before has left. Writes as opdev, never as the program.

use crate::dev::api::{MANAGER, is_not_found, send};
use crate::event::{Event, Level, Notice};
use crate::process::Start;
use crate::process::webhooks::{CONFIGURATIONS, LABEL, Webhooks};
use crate::tap::EventSink;
use anyhow::Result;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// How often a port is tried until something listens there.
const TRY: Duration = Duration::from_millis(100);

/// Webhooks of one program.
#[derive(Clone)]
pub(super) struct Serving {
    pub(super) client: Client,
    pub(super) events: EventSink,
    pub(super) webhooks: Webhooks,
    pub(super) project: String,
    pub(super) port: u16,
    /// PEM.
    pub(super) authority: String,
}

impl Serving {
    /// Registers the webhooks once the program listens.
    pub(super) async fn run(self, mut starts: watch::Receiver<Option<Arc<Start>>>) {
        // What an earlier opdev has left would refuse every object until the program is up.
        self.remove().await;
        if starts.wait_for(Option::is_some).await.is_err() {
            return;
        }
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.is_err() {
            tokio::time::sleep(TRY).await;
        }
        let (level, message) = match self.register().await {
            Ok(names) => (
                Level::Info,
                format!(
                    "webhooks of the program are registered and reached at 127.0.0.1:{}: {}",
                    self.port,
                    names.join(", ")
                ),
            ),
            Err(error) => {
                (Level::Error, format!("the webhooks of the program are not registered: {error:#}"))
            }
        };
        self.events
            .emit(Event::Noticed(Notice { at: Timestamp::now(), level, message, hint: None, object: None }))
            .await;
    }

    async fn register(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for object in self.webhooks.configurations(&self.project, self.port, &self.authority) {
            let kind = object["kind"].as_str().unwrap_or_default();
            let Some((_, list)) = CONFIGURATIONS.iter().find(|(known, _)| *known == kind) else { continue };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            self.apply(&format!("{list}/{name}"), &object).await?;
            names.push(name.to_owned());
        }
        let conversion = Webhooks::conversion_by_url(self.port, &self.authority);
        for name in &self.webhooks.conversion {
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            let patch = json!({ "spec": { "conversion": conversion } });
            send(&self.client, "PATCH", &path, "application/merge-patch+json", Some(&patch)).await?;
            names.push(format!("conversion of {name}"));
        }
        Ok(names)
    }

    async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let uri = format!("{path}?fieldManager={MANAGER}&force=true");
        send(&self.client, "PATCH", &uri, "application/apply-patch+yaml", Some(object)).await?;
        Ok(())
    }

    /// Takes the registered configurations away: nobody answers them any more.
    pub(super) async fn remove(&self) {
        for (_, list) in CONFIGURATIONS {
            let uri = format!("{list}?labelSelector={LABEL}%3D{}", self.project);
            if let Err(error) = send(&self.client, "DELETE", &uri, "application/json", None).await {
                tracing::warn!("webhook configurations of the program are left: {error:#}");
            }
        }
    }
}

/// Deletes the lease that a program before has not given back, so that the next one need not wait for its end: only one
/// of this name that a process of this machine holds.
pub(super) async fn free_lease(client: &Client, name: &str, host: &str) {
    let list =
        match send(client, "GET", "/apis/coordination.k8s.io/v1/leases", "application/json", None).await {
            Ok((list, _)) => list,
            Err(error) => return tracing::warn!("leases cannot be read: {error:#}"),
        };
    let holder = format!("{host}_");
    let is_left = |lease: &&Value| {
        lease["metadata"]["name"] == name
            && lease["spec"]["holderIdentity"].as_str().is_some_and(|identity| identity.starts_with(&holder))
    };
    for lease in list["items"].as_array().into_iter().flatten().filter(is_left) {
        let namespace = lease["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
        match send(client, "DELETE", &path, "application/json", None).await {
            Err(error) if !is_not_found(&error) => tracing::warn!("the lease {name} is left: {error:#}"),
            Ok(_) | Err(_) => {}
        }
    }
}

/// This machine's name, as programs put it into leases; empty where nobody tells it.
pub(super) fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let asked = || {
        let output = std::process::Command::new("uname").arg("-n").output().ok()?;
        String::from_utf8(output.stdout).ok()
    };
    read.or_else(asked).unwrap_or_default().trim().to_owned()
}

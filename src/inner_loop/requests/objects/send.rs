//! The calls of requests to the API server, and how long a kind of the project is waited for.

use crate::Requests;
use anyhow::Result;
use http::Method;
use kube::core::ApiResource;
use opdev_client::{resource_of, send};
use opdev_object::meta::Gvk;
use opdev_types::crd;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long a CRD of the project may take until its kind is served; an API server may take its time with each
/// of them.
const ESTABLISHING: Duration = Duration::from_secs(15);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Requests {
    pub(crate) async fn resource(&self, gvk: &Gvk) -> Result<(ApiResource, bool)> {
        Ok(resource_of(&self.cluster.client, gvk).await?)
    }

    /// Finds a kind of the project whose CRD may have been applied a moment ago: at start, and after a
    /// cluster was unlocked. The first sources say which kinds those are.
    pub(crate) async fn resource_soon(&self, gvk: &Gvk) -> Result<(ApiResource, bool)> {
        let own = || {
            let sources = self.operator.sources.borrow();
            sources.number == 0 || sources.definitions.iter().any(|one| crd::kinds(&one.crd).contains(gvk))
        };
        let deadline = Instant::now() + ESTABLISHING;
        loop {
            match self.resource(gvk).await {
                Err(_) if own() && Instant::now() < deadline => tokio::time::sleep(LOOK_AGAIN).await,
                found => return found,
            }
        }
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        uri: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<(Value, Vec<String>)> {
        send(&self.cluster.client, method, uri, kind, body).await
    }
}

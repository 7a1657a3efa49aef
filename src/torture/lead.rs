//! Leader election of a program that was killed: it gives no lead back, and the next start need not wait
//! for it.

use super::run::Stage;
use anyhow::Result;
use http::Method;
use opdev_normal::LEADER;
use opdev_object::meta;
use serde_json::{Value, json};

/// The resources that older programs elect by: an annotation says who leads.
const OLDER: [&str; 2] = ["configmaps", "endpoints"];

impl Stage<'_> {
    /// Frees every lead.
    pub(super) async fn free_leads(&self) {
        for lease in self.list("/apis/coordination.k8s.io/v1/leases").await {
            let (Some(namespace), Some(name)) = (meta::namespace(&lease), meta::name(&lease)) else {
                continue;
            };
            if namespace == "kube-node-lease" {
                continue;
            }
            let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
            freed(&path, self.send(Method::DELETE, &path, "", None).await);
        }
        for resource in OLDER {
            for lock in self.list(&format!("/api/v1/{resource}")).await {
                let led = meta::annotation(&lock, LEADER).is_some();
                let (Some(namespace), Some(name), true) = (meta::namespace(&lock), meta::name(&lock), led)
                else {
                    continue;
                };
                let path = format!("/api/v1/namespaces/{namespace}/{resource}/{name}");
                let patch = json!({"metadata": {"annotations": {LEADER: null}}});
                let kind = "application/merge-patch+json";
                freed(&path, self.send(Method::PATCH, &path, kind, Some(&patch)).await);
            }
        }
    }

    async fn list(&self, path: &str) -> Vec<Value> {
        match self.send(Method::GET, path, "", None).await {
            Ok(mut list) => match list.get_mut("items").map(Value::take) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
            Err(error) => {
                tracing::debug!("{path} cannot be listed: {error:#}");
                Vec::new()
            }
        }
    }
}

fn freed(path: &str, done: Result<Value>) {
    if let Err(error) = done {
        tracing::debug!("{path} is left as it is: {error:#}");
    }
}

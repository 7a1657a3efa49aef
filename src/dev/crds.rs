//! Brings the CRDs of the sources to the API server: server-side apply, only where something differs, then waits
//! until they are established. Never deletes one: that would delete its objects.

use super::requests::{MANAGER, is_not_found, send};
use crate::sources::definitions::Definition;
use anyhow::{Context as _, Result};
use kube::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

/// What has been applied so far.
#[derive(Default)]
pub(super) struct Crds {
    applied: BTreeMap<String, u64>,
}

/// What came of one CRD.
pub(super) struct Applied {
    pub(super) name: String,
    /// The API server's warnings.
    pub(super) warnings: Vec<String>,
}

const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Crds {
    /// Applies each CRD that is new or has changed since it was applied last. A scaffolded one gives way to a CRD
    /// that is already there.
    ///
    /// # Errors
    /// One line for each CRD that was refused.
    pub(super) async fn apply(
        &mut self,
        client: &Client,
        definitions: &[Arc<Definition>],
    ) -> (Vec<Applied>, Vec<(String, anyhow::Error)>) {
        let (mut done, mut failed) = (Vec::new(), Vec::new());
        for definition in definitions {
            let (name, object) = (definition.name().to_owned(), &*definition.crd);
            let hash = content_hash(object);
            if self.applied.get(&name) == Some(&hash) {
                continue;
            }
            match apply_one(client, &name, object, definition.scaffolded).await {
                Ok(applied) => {
                    self.applied.insert(name, hash);
                    done.extend(applied);
                }
                Err(error) => failed.push((name, error)),
            }
        }
        (done, failed)
    }
}

async fn apply_one(client: &Client, name: &str, object: &Value, scaffolded: bool) -> Result<Option<Applied>> {
    let path = format!("{PATH}/{name}");
    if scaffolded {
        match send(client, "GET", &path, "application/json", None).await {
            Ok(_) => return Ok(None),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
    }
    let uri = format!("{path}?fieldManager={MANAGER}&force=true");
    let (_, warnings) = send(client, "PATCH", &uri, "application/apply-patch+yaml", Some(object))
        .await
        .with_context(|| format!("CustomResourceDefinition {name} was refused"))?;
    established(client, name, &path).await?;
    Ok(Some(Applied { name: name.to_owned(), warnings }))
}

async fn established(client: &Client, name: &str, path: &str) -> Result<()> {
    let wait = async {
        loop {
            let (live, _) = send(client, "GET", path, "application/json", None).await?;
            let conditions = live.pointer("/status/conditions").and_then(Value::as_array);
            let holds = |kind: &str, status: &str| {
                conditions.into_iter().flatten().find(|one| one["type"] == kind && one["status"] == status)
            };
            if holds("Established", "True").is_some() {
                return Ok(());
            }
            if let Some(refused) = holds("NamesAccepted", "False") {
                anyhow::bail!(
                    "its names are not accepted: {}",
                    refused["message"].as_str().unwrap_or_default()
                );
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .with_context(|| format!("CustomResourceDefinition {name} is not established after 30 s"))?
}

fn content_hash(object: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    object.hash(&mut hasher);
    hasher.finish()
}

//! Manifests on a control plane: the samples of the version that users have, as they apply them, and those
//! that are only tried.

use super::judge::Tried;
use super::plane::{How, LOOK, Plane};
use super::samples::{Sample, Samples};
use anyhow::Result;
use opdev_client::ApiError;
use opdev_event::words::one_line;
use opdev_object::meta::{self, Gvk};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A sample as it was applied.
pub(super) struct Applied<'a> {
    pub(super) sample: &'a Sample,
    /// True if the API server knows all of its fields.
    pub(super) strict: bool,
}

/// Applies the samples of a version, and an example of each kind of which it takes no sample.
pub(super) async fn living<'a>(
    plane: &Plane,
    version: &str,
    samples: &'a Samples,
    notes: &mut Vec<String>,
) -> Result<Vec<Applied<'a>>> {
    let mut applied = Vec::new();
    for sample in &samples.own {
        match apply(plane, sample, How::default()).await {
            Ok(()) => applied.push(Applied { sample, strict: true }),
            Err(error) => {
                let lenient = apply(plane, sample, How { lenient: true, ..How::default() }).await;
                let why = one_line(&error.to_string());
                match lenient {
                    Ok(()) => {
                        notes.push(format!("{} is applied without unknown fields: {why}", sample.place));
                        applied.push(Applied { sample, strict: false });
                    }
                    Err(_) => {
                        notes.push(format!("{} is left out: {version} refuses it: {why}", sample.place));
                    }
                }
            }
        }
    }
    let kinds_of = |samples: &[&Sample]| -> Vec<String> {
        samples.iter().filter(|sample| sample.reconciled).filter_map(|sample| kind(sample)).collect()
    };
    let taken: Vec<&Sample> = applied.iter().map(|one| one.sample).collect();
    let mut known: BTreeSet<String> = kinds_of(&taken).into_iter().collect();
    for file in &samples.examples {
        let kinds = kinds_of(&file.iter().collect::<Vec<_>>());
        if kinds.iter().all(|kind| known.contains(kind)) || !is_taken(plane, file).await? {
            continue;
        }
        for sample in file {
            // Objects that it needs beside may be of a kind that is not there.
            if apply(plane, sample, How::default()).await.is_ok() {
                applied.push(Applied { sample, strict: true });
            }
        }
        known.extend(kinds);
    }
    Ok(applied)
}

/// Returns true if the API server takes all custom resources of an example as they are.
async fn is_taken(plane: &Plane, file: &[Sample]) -> Result<bool> {
    for sample in file.iter().filter(|sample| sample.reconciled) {
        let own = meta::namespace(&sample.object).unwrap_or(&sample.namespace);
        // A placeholder is no name.
        if plane.namespace(own).await.is_err() {
            return Ok(false);
        }
        if apply(plane, sample, How { dry_run: true, ..How::default() }).await.is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn kind(sample: &Sample) -> Option<String> {
    Gvk::of(&sample.object).map(|gvk| gvk.kind)
}

pub(super) async fn apply(plane: &Plane, sample: &Sample, how: How) -> Result<(), ApiError> {
    if !how.dry_run && meta::namespace(&sample.object).is_none_or(|own| own != "default") {
        plane.namespace(meta::namespace(&sample.object).unwrap_or(&sample.namespace)).await?;
    }
    let deadline = Instant::now() + SERVED;
    loop {
        match plane.apply(&sample.object, &sample.namespace, how).await {
            // A definition has just come.
            Err(error) if error.is_not_found() && Instant::now() < deadline && !how.dry_run => {
                tokio::time::sleep(LOOK).await;
            }
            done => return done.map(drop),
        }
    }
}

const NAMESPACE: &[&str] = &["metadata", "namespace"];

/// How long a kind may take to be served once its definition is established.
const SERVED: Duration = Duration::from_secs(2);

pub(super) async fn tried(plane: &Plane, sample: &Sample, how: How) -> Option<Tried> {
    let error = apply(plane, sample, how).await.err()?;
    let refusal = match &error {
        ApiError::Refused { message, .. } => message.clone(),
        ApiError::NotServed(gvk) => format!("{} {} is not served", gvk.api_version(), gvk.kind),
        other => other.to_string(),
    };
    let details = match &error {
        ApiError::Refused { details: Some(details), .. } => json!({ "details": details, "message": refusal }),
        _ => json!({ "message": refusal }),
    };
    let mut object = sample.object.clone();
    if meta::namespace(&object).is_none() {
        meta::put(&mut object, NAMESPACE, sample.namespace.as_str());
    }
    Some(Tried::refused(&sample.place, &object, &refusal, &details))
}

/// Tried under a name that is not there yet.
pub(super) async fn tried_anew(plane: &Plane, sample: &Sample, how: How) -> Option<Tried> {
    let mut fresh = sample.clone();
    let name = meta::name(&sample.object).unwrap_or_default();
    meta::put(&mut fresh.object, &["metadata", "name"], format!("{name}-new"));
    // Its namespace may be one that comes with another object of the file.
    if meta::namespace(&fresh.object).is_some_and(|own| own != sample.namespace)
        && let Some(metadata) = fresh.object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("namespace");
        fresh.namespace = "default".to_owned();
    }
    let mut tried = tried(plane, &fresh, how).await?;
    tried.object = sample.object.clone();
    if meta::namespace(&tried.object).is_none() {
        meta::put(&mut tried.object, NAMESPACE, sample.namespace.as_str());
    }
    Some(tried)
}

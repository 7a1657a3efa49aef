//! One object to the cluster by server-side apply, or a dry run of it. Fields that kubectl owns on the user's
//! behalf are handed over first, so that what the files do not have any more goes away, as after `kubectl
//! apply --server-side`.

use super::input::shown;
use super::kinds::Place;
use anyhow::{Result, anyhow};
use http::Method;
use kube::Client;
use opdev_client::error_words::told;
use opdev_client::{ApiError, OWN_MANAGER, is_conflict, is_not_found, object_path, send, without_secrets};
use opdev_object::apply::{HandOver, LAST_APPLIED};
use opdev_object::fieldset::FieldSet;
use opdev_object::meta;
use serde_json::{Value, json};

/// The options of an apply.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Takes fields of other managers.
    pub(super) force: bool,
    /// Only asks.
    pub(super) dry_run: bool,
}

/// The outcome for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Created,
    Configured,
    Unchanged,
    /// A dry run cannot tell: an admission webhook refuses dry runs.
    Unknown,
}

/// The result of an apply.
pub(super) struct Applied {
    pub(super) change: Change,
    /// Managers whose fields opdev has now.
    pub(super) handed_over: Vec<String>,
    /// Warnings of the API server.
    pub(super) warnings: Vec<String>,
}

/// Managers that write as kubectl does on the user's behalf: `kubectl apply`, `kubectl create` and
/// `kubectl apply --server-side`. What somebody has edited, scaled or patched by hand is not among them.
const KUBECTL: [(&str, &str); 3] =
    [("kubectl-client-side-apply", "Update"), ("kubectl-create", "Update"), ("kubectl", "Apply")];
const PATCH: &str = "application/json-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
/// How often fields are handed over anew, where the object changes meanwhile.
const TRIES: usize = 5;

/// Applies an object; one without a namespace goes into `namespace`.
pub(super) async fn apply(
    client: &Client,
    (resource, namespaced): &Place,
    namespace: &str,
    object: &Value,
    how: How,
) -> Result<Applied> {
    let name = meta::name(object).unwrap_or_default();
    let namespace = namespaced.then(|| meta::namespace(object).unwrap_or(namespace));
    let path = object_path(resource, namespace, name);
    let live = get(client, &path).await.map_err(|error| failed(object, &error))?;
    let mut sent = object.clone();
    if !namespaced && let Some(metadata) = sent.get_mut("metadata").and_then(Value::as_object_mut) {
        // Kustomize gives kinds that it does not know a namespace.
        metadata.remove("namespace");
    }
    let given = match (&live, how.dry_run) {
        (None, _) => Ok((None, Vec::new())),
        (Some(live), true) => Ok((None, hand_over(live).map(|(_, managers)| managers).unwrap_or_default())),
        (Some(live), false) => hand_over_fields(client, &path, live).await,
    };
    let (given, handed_over) = given.map_err(|error| failed(object, &error))?;
    let mut answer = patch(client, &path, &sent, how).await;
    if let Err(error) = &answer
        && how.dry_run
        && !handed_over.is_empty()
        && is_conflict(error)
        && strangers_fields(error).is_empty()
    {
        // A dry run hands nothing over, so it takes the fields instead.
        answer = patch(client, &path, &sent, How { force: true, ..how }).await;
    }
    let (now, warnings) = match answer {
        Ok(done) => done,
        Err(error) if how.dry_run && refuses_dry_runs(&error) => {
            return Ok(Applied { change: Change::Unknown, handed_over, warnings: Vec::new() });
        }
        Err(error) => return Err(failed(object, &error)),
    };
    let before = given.as_ref().or(live.as_ref());
    let change = match before {
        None => Change::Created,
        Some(before) if is_same(before, &now) && handed_over.is_empty() => Change::Unchanged,
        Some(_) => Change::Configured,
    };
    Ok(Applied { change, handed_over, warnings })
}

async fn get(client: &Client, path: &str) -> Result<Option<Value>> {
    match send(client, Method::GET, path, JSON, None).await {
        Ok((live, _)) => Ok(Some(live)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn patch(client: &Client, path: &str, sent: &Value, how: How) -> Result<(Value, Vec<String>)> {
    let dry = if how.dry_run { "&dryRun=All" } else { "" };
    let uri = format!("{path}?fieldManager={OWN_MANAGER}&force={}{dry}", how.force);
    send(client, Method::PATCH, &uri, APPLY, Some(sent)).await
}

/// The API server's words of an object, with what to do where fields are another manager's.
fn failed(object: &Value, error: &anyhow::Error) -> anyhow::Error {
    let Some(ApiError::Refused { code, reason, message, details }) = ApiError::of(error) else {
        return anyhow!("{}: {}", shown(object), told(error));
    };
    let others = strangers_fields(error);
    if !others.is_empty() {
        return anyhow!(
            "{}: {}\n    to do: put the value into the files, or take the fields with --force-conflicts",
            shown(object),
            others.join("; ")
        );
    }
    let (code, reason, message, details) = (*code, reason.clone(), message.clone(), details.clone());
    let copy = ApiError::Refused { code, reason, message, details }.into();
    anyhow!("{}: {}", shown(object), told(&without_secrets(copy, object)))
}

/// The fields of a conflict that are not kubectl's, each with its manager.
fn strangers_fields(error: &anyhow::Error) -> Vec<String> {
    let Some(ApiError::Refused { details, .. }) = ApiError::of(error) else { return Vec::new() };
    let causes = details.iter().flat_map(|details| &details.causes);
    let conflicts = causes.filter(|cause| cause.reason == "FieldManagerConflict");
    let is_kubectls = |message: &str| {
        KUBECTL.iter().any(|(manager, _)| message.starts_with(&format!("conflict with \"{manager}\" using ")))
    };
    let conflicts = conflicts.filter(|cause| !is_kubectls(&cause.message));
    conflicts.map(|cause| format!("{} has a {}", cause.field, cause.message)).collect()
}

/// Returns true if a webhook answers no dry runs, which says nothing of the object.
fn refuses_dry_runs(error: &anyhow::Error) -> bool {
    let Some(ApiError::Refused { code: 400, message, .. }) = ApiError::of(error) else { return false };
    message.contains("does not support dry run")
}

/// Returns true if nothing has changed but who owns what, and what controllers have told.
fn is_same(before: &Value, after: &Value) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(map) = object.as_object_mut() {
            map.remove("status");
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            metadata.remove("resourceVersion");
            metadata.remove("generation");
        }
        object
    };
    plain(before) == plain(after)
}

/// Gives fields of kubectl to opdev; the object as it is then, and the managers that had them.
async fn hand_over_fields(client: &Client, path: &str, live: &Value) -> Result<(Option<Value>, Vec<String>)> {
    let uri = format!("{path}?fieldManager={OWN_MANAGER}");
    let mut live = live.clone();
    for tried in 1.. {
        let Some((patch, managers)) = hand_over(&live) else { break };
        match send(client, Method::PATCH, &uri, PATCH, Some(&patch)).await {
            Ok((now, _)) => return Ok((Some(now), managers)),
            // Its controller has written a status meanwhile.
            Err(error) if is_conflict(&error) && tried < TRIES => match get(client, path).await? {
                Some(now) => live = now,
                None => break,
            },
            Err(error) => return Err(error),
        }
    }
    Ok((None, Vec::new()))
}

/// The JSON patch that gives fields of kubectl to opdev, and the managers that had them. `None` where it has
/// none.
fn hand_over(live: &Value) -> Option<(Value, Vec<String>)> {
    let is_kubectls = |entry: &Value| {
        KUBECTL
            .iter()
            .any(|(manager, operation)| entry["manager"] == *manager && entry["operation"] == *operation)
    };
    let given =
        HandOver::plan(
            live,
            OWN_MANAGER,
            |entry, fields| {
                if is_kubectls(entry) { fields.clone() } else { FieldSet::new() }
            },
        )?;
    let given = given.forgetting(&FieldSet::of_fields(&[&["metadata", "annotations", LAST_APPLIED]]));
    let mut patch = given.json_patch(live);
    if meta::annotation(live, LAST_APPLIED).is_some() {
        let key = LAST_APPLIED.replace('~', "~0").replace('/', "~1");
        patch.push(json!({ "op": "remove", "path": format!("/metadata/annotations/{key}") }));
    }
    Some((Value::Array(patch), given.managers))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": fields, "time": "2026-01-01T00:00:00Z" })
    }

    #[test]
    fn fields_of_kubectl_become_opdevs() {
        let live = json!({ "metadata": {
            "resourceVersion": "7",
            "annotations": { LAST_APPLIED: "{}" },
            "managedFields": [
                entry("kubectl-client-side-apply", "Update", &json!({
                    "f:metadata": { "f:annotations": { format!("f:{LAST_APPLIED}"): {} } }, "f:data": { "f:a": {} } })),
                entry("other", "Update", &json!({ "f:data": { "f:b": {} } })),
                entry("kubectl", "Apply", &json!({ "f:data": { "f:c": {} } })),
                entry("opdev", "Apply", &json!({ "f:data": { "f:d": {} } })),
            ],
        } });
        let (patch, managers) = hand_over(&live).unwrap();
        assert_eq!(managers, ["kubectl", "kubectl-client-side-apply"]);
        let entries = patch[0]["value"].as_array().unwrap();
        let names: Vec<_> = entries.iter().map(|entry| &entry["manager"]).collect();
        assert_eq!(names, ["other", "opdev"]);
        assert_eq!(entries[1]["fieldsV1"], json!({ "f:data": { "f:a": {}, "f:c": {}, "f:d": {} } }));
        assert_eq!(patch[2]["op"], "remove");
    }

    #[test]
    fn what_somebody_has_changed_by_hand_is_left() {
        let by_hand =
            [("other", "Update"), ("kubectl", "Update"), ("kubectl-edit", "Update"), ("opdev", "Apply")];
        for (manager, operation) in by_hand {
            let entries = [entry(manager, operation, &json!({}))];
            let live = json!({ "metadata": { "managedFields": entries } });
            assert!(hand_over(&live).is_none(), "{manager}");
        }
    }
}

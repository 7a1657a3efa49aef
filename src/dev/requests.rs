//! Carries out what the user asks for: apply, scale, delete. Every request is announced and answered by an event.
//! Never reconciles; it only writes what was asked, as field manager `opdev`.

use super::project::Project;
use crate::event::{
    Event, Propagation, Request, RequestFinished, RequestId, RequestOutcome, RequestStarted, mask,
};
use crate::tap::{EventSink, warning_text};
use anyhow::{Context as _, Result, anyhow, bail};
use http::header::{CONTENT_TYPE, WARNING};
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind, Status};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_object::yaml;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};

/// The field manager of everything the user writes through opdev.
pub(super) const MANAGER: &str = "opdev";

/// What one can ask of the reloader.
pub(super) enum Ask {
    /// Take every file as saved.
    Reload,
    /// Let a held change through, or drop it; the answer is what was done, or why nothing was.
    Answer { id: String, apply: bool, reply: oneshot::Sender<Result<String, String>> },
}

/// What requests are carried out with.
#[derive(Clone)]
pub(super) struct Requests {
    /// Where files are loaded.
    pub(super) reloader: mpsc::Sender<Ask>,
    pub(super) client: Client,
    pub(super) project: Project,
    pub(super) namespace: String,
    pub(super) events: EventSink,
    /// Why nothing may be written, where that is so.
    pub(super) read_only: Option<String>,
}

/// What was done, in words, and the API server's warnings.
struct Done {
    summary: String,
    warnings: Vec<String>,
}

impl Requests {
    /// Carries one request out and answers it.
    pub(super) async fn carry_out(&self, id: RequestId, request: Request) {
        let begun = Instant::now();
        let what = words(&request);
        let started = RequestStarted { id, at: Timestamp::now(), what: what.clone() };
        self.events.emit(Event::RequestStarted(started)).await;
        let result = match &self.read_only {
            Some(why) => Err(anyhow!("{why}")),
            None => self.run(&request).await,
        };
        let outcome = match result {
            Ok(done) => RequestOutcome::Done { summary: done.summary, warnings: done.warnings },
            Err(error) => {
                RequestOutcome::Failed { message: format!("{error:#}"), hint: hint(&request, &error) }
            }
        };
        let finished = RequestFinished { id, at: Timestamp::now(), what, outcome, took: begun.elapsed() };
        self.events.emit(Event::RequestFinished(finished)).await;
    }

    async fn run(&self, request: &Request) -> Result<Done> {
        match request {
            Request::Apply { path } => self.apply(path).await,
            Request::Scale { object, replicas } => self.scale(object, *replicas).await,
            Request::Delete { object, propagation } => self.delete(object, *propagation).await,
            Request::ApplyHeld { id } => self.answer(id, true).await,
            Request::DiscardHeld { id } => self.answer(id, false).await,
            Request::Reconcile { .. } | Request::Reload | Request::Quit => {
                Ok(Done { summary: String::new(), warnings: Vec::new() })
            }
        }
    }

    async fn apply(&self, path: &str) -> Result<Done> {
        let files = yaml_files(&self.project.root.join(path))?;
        let mut applied = Vec::new();
        let mut warnings = Vec::new();
        for file in files {
            let name = self.project.relative(&file);
            let text =
                tokio::fs::read_to_string(&file).await.with_context(|| format!("{name} cannot be read"))?;
            for document in yaml::documents(&text).map_err(|error| anyhow!("{name}: {error}"))? {
                let object = yaml::to_json(&document).map_err(|error| anyhow!("{name}: {error}"))?;
                if object.is_null() {
                    continue;
                }
                let done = self.apply_object(object).await.with_context(|| name.clone())?;
                applied.push(done.summary);
                warnings.extend(done.warnings);
            }
        }
        if applied.is_empty() {
            bail!("{path} holds no object");
        }
        Ok(Done { summary: applied.join(", "), warnings })
    }

    async fn apply_object(&self, mut object: Value) -> Result<Done> {
        let gvk = Gvk::of(&object).context("an object needs apiVersion and kind")?;
        let (resource, namespaced) = self.resource(&gvk).await?;
        if namespaced && opdev_object::meta::namespace(&object).is_none() {
            object["metadata"]["namespace"] = Value::from(self.namespace.as_str());
        }
        let name = opdev_object::meta::name(&object).context("an object needs metadata.name")?.to_owned();
        let namespace =
            if namespaced { opdev_object::meta::namespace(&object).map(str::to_owned) } else { None };
        let path = object_path(&resource, namespace.as_deref(), &name);
        let uri = format!("{path}?fieldManager={MANAGER}&force=true&fieldValidation=Warn");
        let sent = self.send("PATCH", &uri, "application/apply-patch+yaml", Some(&object)).await;
        let (_, warnings) = sent.map_err(|error| without_secrets(error, &object))?;
        Ok(Done { summary: format!("{} {name} applied", gvk.kind), warnings })
    }

    async fn scale(&self, object: &ObjectRef, replicas: i32) -> Result<Done> {
        if replicas < 0 {
            bail!("{replicas} replicas are not possible");
        }
        let (resource, namespaced) = self.resource(&object.gvk).await?;
        let namespace = if namespaced { object.namespace.as_deref() } else { None };
        let path = object_path(&resource, namespace, &object.name);
        let summary = format!("{object} scaled to {replicas}");
        let of_kind = |(kind, _): &(&String, &String)| kind.eq_ignore_ascii_case(&object.gvk.kind);
        if let Some((_, field)) = self.project.settings.scale.iter().find(of_kind) {
            let warnings = self.scale_field(&path, field, replicas).await?;
            return Ok(Done { summary: format!("{summary} ({field})"), warnings });
        }
        let body = json!({"spec": {"replicas": replicas}});
        let uri = format!("{path}/scale?fieldManager={MANAGER}");
        match self.send("PATCH", &uri, "application/merge-patch+json", Some(&body)).await {
            Ok((_, warnings)) => return Ok(Done { summary, warnings }),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
        // No scale subresource: the field that holds the number.
        let (live, _) = self.send("GET", &path, "application/json", None).await?;
        let spec = live.get("spec").and_then(Value::as_object);
        let field = ["replicas", "replicaCount", "size"]
            .into_iter()
            .find(|field| spec.is_some_and(|spec| spec.contains_key(*field)))
            .unwrap_or(if resource.group.is_empty() || resource.group == "apps" {
                "replicas"
            } else {
                "replicaCount"
            });
        let warnings = self.scale_field(&path, &format!(".spec.{field}"), replicas).await?;
        Ok(Done { summary: format!("{summary} (.spec.{field})"), warnings })
    }

    /// Sets the field that holds the number, such as `.spec.size`; returns the API server's warnings.
    async fn scale_field(&self, path: &str, field: &str, replicas: i32) -> Result<Vec<String>> {
        let names: Vec<&str> = field.split('.').filter(|name| !name.is_empty()).collect();
        if names.is_empty() || field.contains(['[', ']']) {
            bail!("{field:?} is not the path of a field; scale in opdev.yaml takes paths such as .spec.size");
        }
        let body = names.iter().rev().fold(json!(replicas), |value, name| json!({*name: value}));
        let uri = format!("{path}?fieldManager={MANAGER}&fieldValidation=Strict");
        let (_, warnings) = self.send("PATCH", &uri, "application/merge-patch+json", Some(&body)).await?;
        Ok(warnings)
    }

    async fn delete(&self, object: &ObjectRef, propagation: Propagation) -> Result<Done> {
        let (resource, namespaced) = self.resource(&object.gvk).await?;
        let namespace = if namespaced { object.namespace.as_deref() } else { None };
        let path = object_path(&resource, namespace, &object.name);
        let policy = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        let mut body = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        if let Some(uid) = &object.uid {
            // Only the object that was on the screen, not a successor of the same name.
            body["preconditions"] = json!({"uid": uid});
        }
        let (_, warnings) = self.send("DELETE", &path, "application/json", Some(&body)).await?;
        Ok(Done { summary: format!("{object} deleted"), warnings })
    }

    /// Passes the user's word about a held change on.
    async fn answer(&self, id: &str, apply: bool) -> Result<Done> {
        let (reply, answer) = oneshot::channel();
        let gone = "file watching has stopped; restart opdev";
        self.reloader.send(Ask::Answer { id: id.to_owned(), apply, reply }).await.ok().context(gone)?;
        let summary = answer.await.context(gone)?.map_err(|why| anyhow!("{why}"))?;
        Ok(Done { summary, warnings: Vec::new() })
    }

    async fn resource(&self, gvk: &Gvk) -> Result<(ApiResource, bool)> {
        resource_of(&self.client, gvk).await
    }

    async fn send(
        &self,
        verb: &str,
        uri: &str,
        kind: &str,
        body: Option<&Value>,
    ) -> Result<(Value, Vec<String>)> {
        send(&self.client, verb, uri, kind, body).await
    }
}

/// The resource that serves a kind, and whether it is namespaced.
pub(super) async fn resource_of(client: &Client, gvk: &Gvk) -> Result<(ApiResource, bool)> {
    let wanted = GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
    let (resource, capabilities) =
        kube::discovery::pinned_kind(client, &wanted).await.with_context(|| {
            format!("the API server does not serve {gvk}: its CustomResourceDefinition is missing")
        })?;
    Ok((resource, capabilities.scope == kube::discovery::Scope::Namespaced))
}

/// The path of one object.
pub(super) fn object_path(resource: &ApiResource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{name}", resource.plural_path(namespace))
}

trait PluralPath {
    fn plural_path(&self, namespace: Option<&str>) -> String;
}

impl PluralPath for ApiResource {
    fn plural_path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        match namespace {
            Some(namespace) => format!("{root}/{}/namespaces/{namespace}/{}", self.api_version, self.plural),
            None => format!("{root}/{}/{}", self.api_version, self.plural),
        }
    }
}

/// Sends one request and reads its answer and its warnings.
///
/// # Errors
/// The API server's refusal as `kube::Error::Api`, or the transport's error.
pub(super) async fn send(
    client: &Client,
    verb: &str,
    uri: &str,
    content_type: &str,
    body: Option<&Value>,
) -> Result<(Value, Vec<String>)> {
    let body = match body {
        Some(value) => Body::from(serde_json::to_vec(value)?),
        None => Body::empty(),
    };
    let request = http::Request::builder()
        .method(verb)
        .uri(uri)
        .header(CONTENT_TYPE, content_type)
        .header(http::header::ACCEPT, "application/json")
        .body(body)?;
    let response = client.send(request).await?;
    let status = response.status();
    let warnings = response.headers().get_all(WARNING).iter().filter_map(warning_text).collect();
    let bytes = response.into_body().collect().await?.to_bytes();
    let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if !status.is_success() {
        let refusal: Status = serde_json::from_value(value).unwrap_or_else(|_| {
            Status::failure("the answer is not one of a Kubernetes API server", status.as_str())
        });
        return Err(kube::Error::Api(refusal.boxed()).into());
    }
    Ok((value, warnings))
}

/// A refusal repeats values of the object; those under secret names, and all of a Secret's, are masked.
fn without_secrets(error: anyhow::Error, object: &Value) -> anyhow::Error {
    let mut secrets = mask::secrets(object);
    if object["kind"] == "Secret" {
        let values = ["data", "stringData"].into_iter().filter_map(|field| object.get(field)?.as_object());
        secrets.extend(values.flat_map(serde_json::Map::values).filter_map(Value::as_str).map(str::to_owned));
    }
    match error.downcast::<kube::Error>() {
        Ok(kube::Error::Api(mut status)) => {
            status.message = mask::text(&status.message, &secrets);
            kube::Error::Api(status).into()
        }
        Ok(other) => other.into(),
        Err(other) => other,
    }
}

pub(super) fn is_not_found(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 404)
}

/// A file, or the YAML files of a folder in name order.
pub(super) fn yaml_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json"))
        .filter(|path| path.file_stem().is_some_and(|stem| stem != "kustomization"))
        .collect();
    files.sort();
    Ok(files)
}

fn words(request: &Request) -> String {
    match request {
        Request::Apply { path } => format!("apply {path}"),
        Request::Scale { object, replicas } => format!("scale {object} to {replicas}"),
        Request::Delete { object, .. } => format!("delete {object}"),
        Request::Reconcile { object } => format!("reconcile {object}"),
        Request::ApplyHeld { id } => format!("let {} through", subject(id)),
        Request::DiscardHeld { id } => format!("discard {}", subject(id)),
        Request::Reload => "reload".to_owned(),
        Request::Quit => "quit".to_owned(),
    }
}

/// The name of what is held, without its number.
fn subject(id: &str) -> &str {
    id.split_once('@').map_or(id, |(name, _)| name)
}

fn hint(request: &Request, error: &anyhow::Error) -> Option<String> {
    let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() else { return None };
    match (request, status.code) {
        (Request::Scale { .. }, 422) => Some("the schema of the kind refuses this number".to_owned()),
        (Request::Apply { .. }, 422) => Some("correct the file and apply it again".to_owned()),
        (_, 403) => Some("the kubeconfig's user may not do this; see `kubectl auth can-i --list`".to_owned()),
        (_, 404) => Some("it is gone already".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_unquoted() {
        let warning = |text| warning_text(&http::HeaderValue::from_static(text));
        assert_eq!(warning(r#"299 - "unknown field \"spec.foo\"""#).unwrap(), "unknown field \"spec.foo\"");
        assert_eq!(warning("nonsense"), None);
    }

    #[test]
    fn a_folder_is_applied_in_name_order_without_kustomization() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.yaml", "a.yml", "kustomization.yaml", "notes.txt"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = yaml_files(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["a.yml", "b.yaml"]);
    }
}

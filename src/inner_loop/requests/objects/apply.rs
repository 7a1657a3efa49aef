//! Applies every object of a file or folder, server-side. One that is refused does not stop the others; each
//! answer names its object and, where it is refused, the line.

use super::undo_list::Undo;
use super::write::shown;
use crate::Requests;
use crate::drafts::error_places::refusals;
use crate::outcome::Done;
use anyhow::{Context as _, Result, anyhow, bail};
use http::Method;
use jiff::Timestamp;
use opdev_client::backoff::{AGAIN, until_refused};
use opdev_client::{ApiError, OWN_MANAGER, is_not_found, object_path, without_secrets};
use opdev_event::{Event, Level, Notice};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::yaml::{self, Node};
use opdev_os::read;
use opdev_os::yaml_files::yaml_files;
use serde_json::Value;
use std::path::PathBuf;

impl Requests {
    pub(crate) async fn apply(&self, path: &str) -> Result<Done> {
        let files = yaml_files(&self.project.root.join(expanded(path)))?;
        let mut done = Done::default();
        let mut said = Vec::new();
        for file in files {
            let name = self.project.relative(&file);
            let text = read::text(&file).with_context(|| format!("{name} cannot be read"))?;
            let documents = match yaml::documents(&text) {
                Ok(documents) => documents,
                Err(error) => {
                    let place = if error.line > 0 { format!(":{}", error.line) } else { String::new() };
                    done.failed.push(format!("{name}{place}: {error}"));
                    continue;
                }
            };
            for document in &documents {
                match self.apply_document(&name, document, &mut done).await {
                    Ok(Some(words)) => said.push(words),
                    Ok(None) => {}
                    Err(error) => done.failed.push(opdev_client::error_words::told(&error)),
                }
            }
        }
        if said.is_empty() && done.failed.is_empty() {
            bail!("{path} holds no object");
        }
        done.summary = said.join(", ");
        Ok(done)
    }

    /// One document; nothing where it holds no object.
    async fn apply_document(&self, name: &str, document: &Node, done: &mut Done) -> Result<Option<String>> {
        let place = format!("{name}:{}", document.line);
        let object = yaml::to_json(document).map_err(|error| anyhow!("{place}: {error}"))?;
        if object.is_null() {
            return Ok(None);
        }
        let applied = match self.at_start {
            true => {
                let tell = |error: &anyhow::Error| {
                    let message =
                        format!("{place} is not applied yet: {}", opdev_client::error_words::told(error));
                    let hint = Some(AGAIN.to_owned());
                    let notice =
                        Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
                    self.events.emit(Event::Noticed(notice))
                };
                until_refused(|| self.apply_object(&object), tell).await
            }
            false => self.apply_object(&object).await,
        };
        match applied {
            Ok((words, warnings, undo)) => {
                done.warnings.extend(warnings);
                done.undo.extend(undo);
                Ok(Some(words))
            }
            Err(error) => {
                let error = without_secrets(error, &object);
                let what = ObjectRef::of(&object).map_or_else(String::new, |object| format!("{object}: "));
                if let Some(ApiError::Refused { code: 400 | 422, message, details, .. }) =
                    ApiError::of(&error)
                {
                    let all = refusals(message, details.as_deref(), document).into_iter().map(|refusal| {
                        match refusal.line {
                            0 => format!("{place}: {what}{}", refusal.message),
                            line => format!("{name}:{line}: {what}{}", refusal.message),
                        }
                    });
                    bail!("{}", all.collect::<Vec<_>>().join("\n"));
                }
                Err(error.context(format!("{place}: {}", what.trim_end_matches(": "))))
            }
        }
    }

    /// Applies one object: what came of it in words, warnings, what undoes it.
    async fn apply_object(&self, object: &Value) -> Result<(String, Vec<String>, Option<Undo>)> {
        let mut object = object.clone();
        let gvk = Gvk::of(&object).context("an object needs apiVersion and kind")?;
        let (resource, namespaced) = self.resource_soon(&gvk).await?;
        if namespaced && meta::namespace(&object).is_none() {
            meta::put(&mut object, &["metadata", "namespace"], self.cluster.namespace.as_str());
        }
        let name = meta::name(&object).context("an object needs metadata.name")?.to_owned();
        let namespace = if namespaced { meta::namespace(&object).map(str::to_owned) } else { None };
        let path = object_path(&resource, namespace.as_deref(), &name);
        let before = match self.send(Method::GET, &path, "application/json", None).await {
            Ok((before, _)) => Some(before),
            Err(error) if is_not_found(&error) => None,
            Err(error) => return Err(error),
        };
        let uri = format!("{path}?fieldManager={OWN_MANAGER}&force=true&fieldValidation=Warn");
        let (after, warnings) =
            self.send(Method::PATCH, &uri, "application/apply-patch+yaml", Some(&object)).await?;
        let reference = ObjectRef { gvk, namespace, name, uid: meta::uid(&after).map(str::to_owned) };
        let (word, undo) = match before {
            None => ("created", Some(Undo::Remove { object: reference.clone() })),
            Some(before) if shown(&before) == shown(&after) => ("unchanged", None),
            Some(before) => ("configured", Some(Undo::Restore { object: reference.clone(), before, after })),
        };
        Ok((format!("{} {} {word}", reference.gvk.kind, reference.name), warnings, undo))
    }
}

/// A path with the home folder in place of `~`.
pub(crate) fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

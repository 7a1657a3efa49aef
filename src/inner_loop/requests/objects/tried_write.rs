//! One write to the API server that is tried before it is done: what it would change, and what undoes it.

use super::write::{How, Write, shown};
use crate::Requests;
use anyhow::Result;
use http::Method;
use opdev_client::{OWN_MANAGER, is_conflict, without_secrets};
use opdev_object::meta;
use serde_json::{Value, json};

/// How often a write is tried again because only the status has changed.
const MOST_TRIES: usize = 5;

impl Requests {
    /// The result of a write before it is made, with the API server's warnings. `None` where nothing would be
    /// left.
    pub(crate) async fn trial(&self, write: &Write) -> Result<(Option<Value>, Vec<String>)> {
        self.perform(write, true).await
    }

    /// Writes.
    pub(crate) async fn commit(&self, write: &Write) -> Result<(Option<Value>, Vec<String>)> {
        self.perform(write, false).await
    }

    /// A controller that writes the status is in nobody's way: what the user has seen is still true.
    async fn perform(&self, write: &Write, dry: bool) -> Result<(Option<Value>, Vec<String>)> {
        let mut write = write.clone();
        for _ in 0..MOST_TRIES {
            let error = match self.perform_once(&write, dry).await {
                Err(error) if write.how == How::Patch && is_conflict(&error) => error,
                done => return done,
            };
            let Some(before) = &write.before else { return Err(error) };
            let Ok((_, live)) = self.live(&write.object).await else { return Err(error) };
            if meta::uid(&live) != meta::uid(before) || shown(&live) != shown(before) {
                return Err(error);
            }
            let version = live["metadata"]["resourceVersion"].clone();
            meta::put(&mut write.body, &["metadata", "resourceVersion"], version);
            write.before = Some(live);
        }
        self.perform_once(&write, dry).await
    }

    async fn perform_once(&self, write: &Write, dry: bool) -> Result<(Option<Value>, Vec<String>)> {
        let (method, content_type) = match write.how {
            How::Create => (Method::POST, "application/json"),
            How::Patch => (Method::PATCH, "application/merge-patch+json"),
            How::Delete => (Method::DELETE, "application/json"),
        };
        let mut body = write.body.clone();
        let mut uri = format!("{}?fieldManager={OWN_MANAGER}&fieldValidation=Strict", write.path);
        match (dry, write.how) {
            (true, How::Delete) => _ = meta::put(&mut body, &["dryRun"], json!(["All"])),
            (true, How::Create | How::Patch) => uri.push_str("&dryRun=All"),
            (false, _) => {}
        }
        if write.how == How::Delete {
            uri.clone_from(&write.path);
        }
        let sent = self.send(method, &uri, content_type, Some(&body)).await;
        let (answer, warnings) = sent.map_err(|error| match &write.before {
            Some(before) => without_secrets(without_secrets(error, before), &merged(before, &body)),
            None => without_secrets(error, &body),
        })?;
        let gone = write.how == How::Delete && meta::deletion_timestamp(&answer).is_none();
        Ok(((!gone).then_some(answer), warnings))
    }
}

/// The object that a patch asks for.
fn merged(before: &Value, patch: &Value) -> Value {
    let mut object = before.clone();
    opdev_object::patch::merge_patch(&mut object, patch);
    object
}

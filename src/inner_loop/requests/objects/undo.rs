//! Undo of the last actions, newest first: the version before is kept in memory, and nowhere else. Undoing
//! looks at what is there now, shows what it would change, and writes only then.

use super::undo_list::Undo;
use super::write::{How, Write, shown};
use crate::Requests;
use crate::drafts::draft::{Draft, Work};
use crate::outcome::Done;
use anyhow::{Context as _, Result, bail};
use opdev_client::is_not_found;
use opdev_event::Event;
use opdev_object::diff::diff;
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::patch::create_merge_patch;
use serde_json::{Value, json};

impl Requests {
    /// Keeps what undoes a deed.
    pub(crate) async fn remember(&self, what: String, steps: Vec<Undo>) {
        if !steps.is_empty() {
            self.under_way.undo.add(what, steps);
            self.tell_undo().await;
        }
    }

    /// Tells what can be undone.
    pub(crate) async fn tell_undo(&self) {
        let entries = self.under_way.undo.lock().iter().map(|entry| entry.told.clone()).collect();
        self.events.emit(Event::UndoChanged { entries }).await;
    }

    /// Opens a draft that undoes a deed, for the user to look at.
    pub(crate) async fn undo(&self, draft: u64, entry: u64) -> Result<Done> {
        let (told, steps) = self.under_way.undo.steps(entry).context("this is not in the list any more")?;
        if let Some(why) = told.why_not {
            bail!("this cannot be undone: {}; {why}", told.what);
        }
        let mut notes = Vec::new();
        let mut writes = Vec::new();
        // The last thing done is the first to be undone.
        for step in steps.iter().rev() {
            writes.extend(self.back(step, &mut notes).await?);
        }
        if writes.is_empty() {
            self.under_way.undo.remove(entry);
            self.tell_undo().await;
            return Ok(Done::said(format!("{}: all of it is as it was before", told.what)));
        }
        let about = format!("undo: {}", told.what);
        let mut new = Draft::new(about, Work::Undo { entry });
        new.notes = notes;
        new.writes = writes;
        self.review(draft, new).await?;
        Ok(Done::default())
    }

    /// The write that undoes one, over what is there now; nothing where there is nothing to undo.
    async fn back(&self, step: &Undo, notes: &mut Vec<String>) -> Result<Option<Write>> {
        match step {
            Undo::Never { why } => bail!("{why}"),
            Undo::Remove { object } => {
                let (path, live) = match self.live(object).await {
                    Err(error) if is_not_found(&error) => return Ok(None),
                    found => found?,
                };
                if object.uid.is_some() && meta::uid(&live) != object.uid.as_deref() {
                    bail!("{object} was deleted since, and another object has its name now");
                }
                notes.push(format!("{object} was created by it and is deleted, with everything it owns."));
                let body = json!({"apiVersion": "v1", "kind": "DeleteOptions",
                    "propagationPolicy": "Background", "preconditions": {"uid": meta::uid(&live)}});
                Ok(Some(Write { object: object.clone(), path, body, before: Some(live), how: How::Delete }))
            }
            Undo::Restore { object, before, after } => self.restore(object, before, after, notes).await,
            Undo::Recreate { object, before } => self.recreate(object, before, notes).await,
        }
    }

    async fn restore(
        &self,
        object: &ObjectRef,
        before: &Value,
        after: &Value,
        notes: &mut Vec<String>,
    ) -> Result<Option<Write>> {
        let (path, live) = match self.live(object).await {
            Err(error) if is_not_found(&error) => bail!("{object} is gone: there is nothing to put back"),
            found => found?,
        };
        if meta::uid(&live) != meta::uid(before) {
            bail!("{object} was deleted since, and another object has its name now");
        }
        let (before, after) = (shown(before), shown(after));
        for change in diff(&before, &after) {
            let now = change.path.get(&live);
            if now != change.new.as_ref() && now != change.old.as_ref() {
                notes.push(format!("{} was changed once more since then.", change.path));
            }
        }
        let patch = create_merge_patch(&after, &before);
        let mut wanted = live.clone();
        opdev_object::patch::merge_patch(&mut wanted, &patch);
        Ok((wanted != live).then(|| Write::patch(object, path, patch, live)))
    }

    async fn recreate(
        &self,
        object: &ObjectRef,
        before: &Value,
        notes: &mut Vec<String>,
    ) -> Result<Option<Write>> {
        match self.live(object).await {
            Ok((_, live)) if meta::deletion_timestamp(&live).is_some() => {
                bail!(
                    "{object} is still on its way out and waits for {}; undo once it is gone",
                    meta::finalizers(&live).join(", ")
                )
            }
            Ok(_) => bail!("{object} exists: somebody has created it again"),
            Err(error) if is_not_found(&error) => {}
            Err(error) => return Err(error),
        }
        let mut body = shown(before);
        if let Some(finalizers) = body.pointer_mut("/metadata/finalizers").and_then(Value::as_array_mut) {
            finalizers.retain(|name| !matches!(name.as_str(), Some("foregroundDeletion" | "orphan")));
        }
        notes.push(lost(&object.gvk));
        self.without_dead_owners(object, &mut body, notes).await;
        let path = self.path(object).await?;
        let path = path.rsplit_once('/').map_or(path.clone(), |(collection, _)| collection.to_owned());
        Ok(Some(Write { object: object.clone(), path, body, before: None, how: How::Create }))
    }

    /// An object whose owner is gone would be collected at once.
    async fn without_dead_owners(&self, object: &ObjectRef, body: &mut Value, notes: &mut Vec<String>) {
        for owner in meta::owner_references(body) {
            let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
            let found = ObjectRef { gvk, namespace: object.namespace.clone(), name: owner.name, uid: None };
            let lives = self.live(&found).await.is_ok_and(|(_, live)| meta::uid(&live) == Some(&owner.uid));
            if lives {
                continue;
            }
            notes.push(format!("Its owner {found} is gone, so it comes back without an owner."));
            if let Some(all) = body.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
                all.retain(|known| known["uid"] != owner.uid.as_str());
            }
        }
    }
}

/// Parts that do not come back with an object that was deleted.
fn lost(gvk: &Gvk) -> String {
    let own = "It comes back as a new object: its uid, its status and its history are lost.";
    let more = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => "All objects of its kind are lost.",
        ("", "Namespace") => "What was in it is lost.",
        ("", "PersistentVolumeClaim" | "PersistentVolume") => "The data on it may be lost.",
        _ => "What it owned was deleted with it, and whoever made that has to make it anew.",
    };
    format!("{own} {more}")
}

//! Brings live objects to what a release wants: first the plan (which objects differ, which are foreign, which
//! left the manifest), then the writes, kind by kind. An object that already is as wanted is not written.

use super::at_object::AtObject;
use super::compare::{changes, covers};
use super::foretell::{Ask, Foretold, Intent, foretell, removal};
use super::inject::{ReleaseNames, is_kept, ownership_conflict};
use super::objects::{PARALLEL, Wanted, live};
use crate::api::{Api, ApiError, Deletion, HELM_MANAGER};
use crate::event::{Action, ObjectChange, mask};
use crate::tap::change::managers_of;
use anyhow::{Context, anyhow};
use futures::stream::{self, StreamExt};
use opdev_object::meta::{self, ObjectKey};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How often an object is replaced while others write it.
const REPLACEMENTS: u32 = 5;

/// What a pass did to other objects.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// In the order in which it was done.
    pub(super) changes: Vec<ObjectChange>,
    /// States of objects as the API server returned them, and whether our write led to them.
    pub(super) known: Vec<(Arc<Value>, bool)>,
}

/// How objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Force {
    /// Server-side apply.
    No,
    /// Replace what exists.
    Replace,
    /// Server-side apply; what is refused as invalid is replaced.
    Fallback,
}

/// One object and its live state.
struct Planned {
    wanted: Wanted,
    live: Option<Value>,
}

/// The writes that lead to a release.
pub(super) struct Plan {
    write: Vec<Planned>,
    remove: Vec<Planned>,
    unchanged: Vec<Value>,
}

impl Plan {
    /// Whether there is anything to write.
    pub(super) fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty()
    }

    /// Compares `wanted` with the cluster. Objects of `before` that are not wanted any more will be removed.
    /// `guard` refuses live objects that belong to somebody else; objects of `before` are ours.
    pub(super) async fn make(
        api: &Api,
        wanted: Vec<Wanted>,
        before: &[Wanted],
        guard: Option<(&str, ReleaseNames<'_>)>,
    ) -> anyhow::Result<Plan> {
        let known: HashMap<ObjectKey, &Value> =
            before.iter().map(|wanted| (wanted.key(), &wanted.object)).collect();
        let kept: HashSet<ObjectKey> = wanted.iter().map(Wanted::key).collect();
        let gone: Vec<Wanted> = before
            .iter()
            .filter(|old| !kept.contains(&old.key()) && !is_kept(&old.object))
            .cloned()
            .collect();
        let (found, leaving) = tokio::try_join!(live(api, &wanted), live(api, &gone))?;
        let mut plan = Plan { write: Vec::new(), remove: Vec::new(), unchanged: Vec::new() };
        for (wanted, live) in wanted.into_iter().zip(found) {
            let old = known.get(&wanted.key()).copied();
            match live {
                // A field that left the manifest must leave the object, too: only the same text needs no write.
                Some(live) if old == Some(&wanted.object) && covers(&live, &wanted.object) => {
                    plan.unchanged.push(live);
                }
                Some(live) => {
                    if let Some((what, release)) = guard
                        && old.is_none()
                        && let Some(conflict) = ownership_conflict(&live, release)
                    {
                        return Err(anyhow!("Unable to continue with {what}: {conflict}"));
                    }
                    plan.write.push(Planned { wanted, live: Some(live) });
                }
                None => plan.write.push(Planned { wanted, live: None }),
            }
        }
        for (wanted, live) in gone.into_iter().zip(leaving) {
            if let Some(live) = live.filter(|live| !is_kept(live)) {
                plan.remove.push(Planned { wanted, live: Some(live) });
            }
        }
        Ok(plan)
    }

    /// What the writes would do.
    pub(super) async fn foretell(&self, api: &Api, force: Force, ask: Ask) -> Foretold {
        let intents: Vec<Intent<'_>> = self
            .write
            .iter()
            .map(|Planned { wanted, live }| Intent {
                wanted,
                live: live.as_ref(),
                manager: HELM_MANAGER,
                force,
            })
            .collect();
        let mut found = foretell(api, &intents, ask).await;
        // What is on its way out already is not deleted by this pass.
        let leaves = |planned: &&Planned| {
            planned.live.as_ref().is_some_and(|live| meta::deletion_timestamp(live).is_none())
        };
        found.changes.extend(self.remove.iter().filter(leaves).map(|one| removal(one.wanted.reference())));
        found
    }

    /// Carries the plan out. What was done before an error stays in `effects`.
    pub(super) async fn carry_out(
        self,
        api: &Api,
        force: Force,
        effects: &mut Effects,
    ) -> anyhow::Result<()> {
        effects.known.extend(self.unchanged.into_iter().map(|live| (Arc::new(live), false)));
        let mut rest = self.write.as_slice();
        while let Some(first) = rest.first() {
            let kind = &first.wanted.resource.gvk;
            let same = rest.iter().take_while(|planned| planned.wanted.resource.gvk == *kind).count();
            let (batch, after) = rest.split_at(same);
            write_batch(api, batch, force, effects).await?;
            rest = after;
        }
        for Planned { wanted, live } in &self.remove {
            let Some(live) = live else { continue };
            remove(api, wanted, live, effects).await?;
        }
        Ok(())
    }
}

/// Objects of one kind are written at the same time.
async fn write_batch(
    api: &Api,
    batch: &[Planned],
    force: Force,
    effects: &mut Effects,
) -> anyhow::Result<()> {
    let mut calls = Vec::with_capacity(batch.len());
    for planned in batch {
        calls.push(write(api, planned, force));
    }
    let written: Vec<anyhow::Result<Value>> = stream::iter(calls).buffered(PARALLEL).collect().await;
    let mut first_error = None;
    for (planned, written) in batch.iter().zip(written) {
        match written {
            Ok(object) => note_write(planned, object, effects),
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

async fn write(api: &Api, planned: &Planned, force: Force) -> anyhow::Result<Value> {
    let Planned { wanted, live } = planned;
    let name = wanted.at().name.to_owned();
    let kind = &wanted.resource.gvk.kind;
    let failed = |words: String| AtObject::new(words, wanted.reference());
    let not_replaced = || failed(format!("failed to replace object: {kind} {name:?}"));
    let Some(live) = live else {
        let created = api.apply(&wanted.at(), "", &wanted.object, None, HELM_MANAGER).await;
        return created.with_context(|| failed(format!("failed to create resource: {kind} {name:?}")));
    };
    if force == Force::Replace {
        return replace(api, wanted, live).await.with_context(not_replaced);
    }
    match api.apply(&wanted.at(), "", &wanted.object, Some(live), HELM_MANAGER).await {
        Err(ApiError::Refused { code: 422, .. }) if force == Force::Fallback => {
            replace(api, wanted, live).await.with_context(not_replaced)
        }
        patched => patched.with_context(|| failed(format!("cannot patch {name:?} with kind {kind}"))),
    }
}

/// Replaces whatever is there, as Helm does: also what a controller has changed since it was looked at.
async fn replace(api: &Api, wanted: &Wanted, live: &Value) -> Result<Value, ApiError> {
    let mut object = wanted.object.clone();
    let (mut newest, mut left) = (None, REPLACEMENTS);
    loop {
        if let Some(version) = meta::resource_version(newest.as_ref().unwrap_or(live)) {
            meta::put(&mut object, &["metadata", "resourceVersion"], version);
        }
        left -= 1;
        match api.update(&wanted.at(), "", &object).await {
            Err(error) if error.is_conflict() && left > 0 => {
                newest = Some(api.get(&wanted.at()).await?.ok_or(error)?);
            }
            answer => return answer,
        }
    }
}

fn note_write(planned: &Planned, after: Value, effects: &mut Effects) {
    let mut object = planned.wanted.reference();
    object.uid = meta::uid(&after).map(str::to_owned);
    let change = match &planned.live {
        None => Some(ObjectChange {
            object,
            action: Action::Created,
            changes: Vec::new(),
            taken_from: Vec::new(),
        }),
        Some(before) => {
            let changed = changes(before, &after, HELM_MANAGER);
            let mut taken_from: Vec<String> = changed
                .iter()
                .filter(|change| change.old.is_some())
                .flat_map(|change| managers_of(before, &change.path, HELM_MANAGER))
                .collect();
            taken_from.sort();
            taken_from.dedup();
            let kind = &planned.wanted.resource.gvk.kind;
            let wrote = meta::resource_version(before) != meta::resource_version(&after);
            (wrote && !changed.is_empty()).then(|| ObjectChange {
                object,
                action: Action::Updated,
                changes: mask::changes(kind, changed),
                taken_from,
            })
        }
    };
    effects.changes.extend(change);
    effects.known.push((Arc::new(after), true));
}

/// Deletes one live object, as Helm does: by its name. A hook of this pass may have put another one in its place.
pub(super) async fn remove(
    api: &Api,
    wanted: &Wanted,
    live: &Value,
    effects: &mut Effects,
) -> anyhow::Result<Deletion> {
    let failed = || format!("failed to delete {}", wanted.key());
    let replaced;
    let (deletion, live) = match api.delete(&wanted.at(), meta::uid(live)).await {
        Err(ApiError::Refused { code: 409, .. }) => match api.get(&wanted.at()).await.with_context(failed)? {
            Some(other) if !is_kept(&other) => {
                replaced = other;
                (api.delete(&wanted.at(), meta::uid(&replaced)).await, &replaced)
            }
            Some(_) | None => return Ok(Deletion::Gone),
        },
        other => (other, live),
    };
    let deletion = deletion.with_context(failed)?;
    let mut object = wanted.reference();
    object.uid = meta::uid(live).map(str::to_owned);
    if meta::deletion_timestamp(live).is_none() {
        effects.changes.push(ObjectChange {
            object,
            action: Action::Deleted,
            changes: Vec::new(),
            taken_from: Vec::new(),
        });
    }
    Ok(deletion)
}

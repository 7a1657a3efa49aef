//! Brings live objects to what a release wants: first the plan (which objects differ, which are foreign,
//! which left the manifest), then the writes, kind by kind. An object that already is as wanted is not
//! written.

use super::at_object::AtObject;
use super::compare::{changes_to, covers};
use super::dry_run::{Ask, Foretold, Intent, foretell, removal};
use super::hand_over;
use super::inject::{ReleaseNames, is_kept, ownership_conflict};
use super::plain_write;
use super::{PARALLEL, Wanted, live};
use crate::settings::HelmCompat;
use anyhow::{Context, anyhow};
use futures::stream::{self, StreamExt};
use opdev_client::{Api, ApiError, Deletion, HELM_MANAGER};
use opdev_event::reconcile::object_change::managers_of;
use opdev_event::{Action, ObjectChange, mask};
use opdev_object::meta::{self, ObjectKey, ObjectRef};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How often an object is replaced while others write it.
const REPLACEMENTS: u32 = 5;

/// Effects of a reconcile on other objects.
#[derive(Debug, Default)]
pub struct Effects {
    /// In the order in which it was done.
    pub changes: Vec<ObjectChange>,
    /// States of objects as the API server returned them, and whether our write led to them.
    pub known: Vec<(Arc<Value>, bool)>,
    /// Objects that were written as Helm 3 writes them, and why server-side apply refuses each.
    pub(crate) plain: Vec<(ObjectRef, String)>,
}

/// The way objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Server-side apply.
    No,
    /// Replace what exists.
    Replace,
    /// Server-side apply; what is refused as invalid is replaced.
    Fallback,
}

/// The way the objects of a release are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    pub force: Force,
    /// The Helm whose result a write has: with Helm 3, a write that server-side apply refuses is made
    /// plainly.
    pub compat: HelmCompat,
}

/// One object and its live state.
struct Planned {
    wanted: Wanted,
    /// The object in the manifest before.
    old: Option<Value>,
    live: Option<Value>,
}

/// The writes that lead to a release.
pub(crate) struct Plan {
    write: Vec<Planned>,
    remove: Vec<Planned>,
    unchanged: Vec<Value>,
}

impl Plan {
    /// Returns true if there is anything to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.write.is_empty() && self.remove.is_empty()
    }

    /// Compares `wanted` with the cluster. Objects of `before` that are not wanted any more will be removed.
    /// `guard` refuses live objects that belong to somebody else; objects of `before` are ours.
    pub(crate) async fn make(
        api: &Api,
        wanted: Vec<Wanted>,
        before: &[Wanted],
        guard: Option<(&str, ReleaseNames<'_>)>,
    ) -> anyhow::Result<Plan> {
        let known: HashMap<ObjectKey, &Wanted> = before.iter().map(|wanted| (wanted.key(), wanted)).collect();
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
                // A field that left the manifest must leave the object, too: only the same text needs no
                // write.
                Some(live)
                    if old.is_some_and(|old| old.object == wanted.object)
                        && covers(&live, &wanted.object) =>
                {
                    plan.unchanged.push(live);
                }
                Some(live) => {
                    if let Some((what, release)) = guard
                        && old.is_none()
                        && let Some(conflict) = ownership_conflict(&live, release)
                    {
                        return Err(anyhow!("Unable to continue with {what}: {conflict}"));
                    }
                    let old = old.map(|old| old.sent().clone());
                    plan.write.push(Planned { wanted, old, live: Some(live) });
                }
                None => plan.write.push(Planned { wanted, old: None, live: None }),
            }
        }
        for (wanted, live) in gone.into_iter().zip(leaving) {
            if let Some(live) = live.filter(|live| !is_kept(live)) {
                plan.remove.push(Planned { wanted, old: None, live: Some(live) });
            }
        }
        Ok(plan)
    }

    /// The effects of the writes, had they been made.
    pub(crate) async fn foretell(&self, api: &Api, mode: Mode, ask: Ask) -> Foretold {
        let intents: Vec<Intent<'_>> = self
            .write
            .iter()
            .map(|Planned { wanted, old, live }| Intent {
                wanted,
                old: old.as_ref(),
                live: live.as_ref(),
                manager: HELM_MANAGER,
                mode,
            })
            .collect();
        let mut found = foretell(api, &intents, ask).await;
        // An object that is on its way out already is not deleted by this reconcile.
        let leaves = |planned: &&Planned| {
            planned.live.as_ref().is_some_and(|live| meta::deletion_timestamp(live).is_none())
        };
        found.changes.extend(self.remove.iter().filter(leaves).map(|one| removal(one.wanted.reference())));
        found
    }

    /// Carries the plan out. What was done before an error stays in `effects`.
    pub(crate) async fn carry_out(self, api: &Api, mode: Mode, effects: &mut Effects) -> anyhow::Result<()> {
        effects.known.extend(self.unchanged.into_iter().map(|live| (Arc::new(live), false)));
        let mut rest = self.write.as_slice();
        while let Some(first) = rest.first() {
            let kind = &first.wanted.resource.gvk;
            let same = rest.iter().take_while(|planned| planned.wanted.resource.gvk == *kind).count();
            let (batch, after) = rest.split_at(same);
            write_batch(api, batch, mode, effects).await?;
            rest = after;
        }
        for Planned { wanted, live, .. } in &self.remove {
            let Some(live) = live else { continue };
            remove(api, wanted, live, effects).await?;
        }
        Ok(())
    }
}

/// Objects of one kind are written at the same time.
async fn write_batch(api: &Api, batch: &[Planned], mode: Mode, effects: &mut Effects) -> anyhow::Result<()> {
    let mut calls = Vec::with_capacity(batch.len());
    for planned in batch {
        calls.push(write(api, planned, mode));
    }
    let written: Vec<anyhow::Result<(Value, Option<String>)>> =
        stream::iter(calls).buffered(PARALLEL).collect().await;
    let mut first_error = None;
    for (planned, written) in batch.iter().zip(written) {
        match written {
            Ok((object, plainly)) => {
                effects.plain.extend(plainly.map(|why| (planned.wanted.reference(), why)));
                note_write(planned, object, effects);
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// Writes one object. Also gives the reason why it was written as Helm 3 writes, where it was.
async fn write(api: &Api, planned: &Planned, mode: Mode) -> anyhow::Result<(Value, Option<String>)> {
    let Planned { wanted, old, live } = planned;
    let name = wanted.at().name.to_owned();
    let kind = &wanted.resource.gvk.kind;
    let failed = |words: String| AtObject::new(words, wanted.reference());
    let not_replaced = || failed(format!("failed to replace object: {kind} {name:?}"));
    let not_patched = || failed(format!("cannot patch {name:?} with kind {kind}"));
    let Some(live) = live else {
        let created = apply_or_write(api, planned, None, mode).await;
        return created.with_context(|| failed(format!("failed to create resource: {kind} {name:?}")));
    };
    if mode.force == Force::Replace {
        return Ok((replace(api, wanted, live).await.with_context(not_replaced)?, None));
    }
    let given = match old {
        Some(old) => hand_over::carry_out(api, old, wanted, live, mode.compat).await,
        None => Ok(None),
    };
    let given = given.with_context(not_patched)?;
    match apply_or_write(api, planned, Some(given.as_ref().unwrap_or(live)), mode).await {
        Err(ApiError::Refused { code: 422, .. }) if mode.force == Force::Fallback => {
            Ok((replace(api, wanted, live).await.with_context(not_replaced)?, None))
        }
        patched => patched.with_context(not_patched),
    }
}

/// Applies an object. With Helm 3, what is refused of an apply alone is written as Helm 3 writes it.
async fn apply_or_write(
    api: &Api,
    Planned { wanted, old, .. }: &Planned,
    live: Option<&Value>,
    mode: Mode,
) -> Result<(Value, Option<String>), ApiError> {
    match api.apply(&wanted.at(), "", wanted.sent(), live, HELM_MANAGER).await {
        Ok(applied) => Ok((applied, None)),
        Err(refused) => {
            let of = (wanted, old.as_ref(), live);
            let written = plain_write::instead(api, refused, of, mode.compat, false).await;
            written.map(|(object, why)| (object, Some(why)))
        }
    }
}

/// Replaces whatever is there, as Helm does: also what a controller has changed since it was looked at.
async fn replace(api: &Api, wanted: &Wanted, live: &Value) -> Result<Value, ApiError> {
    let mut object = wanted.sent().clone();
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
            let changed = changes_to(before, &after, HELM_MANAGER, &planned.wanted.object);
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

/// Deletes one live object, as Helm does: by its name. A hook of this reconcile may have put another one in
/// its place.
pub(crate) async fn remove(
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

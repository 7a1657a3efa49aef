//! Carries a plan out: children are applied, kind by kind, then what is owned and not listed is deleted. What
//! was done before an error stays told. Never writes what the plan does not name.

use super::plan::{Plan, Write};
use super::state::ScriptReconcile;
use anyhow::Context;
use futures::stream::{self, StreamExt};
use opdev_client::{Api, Deletion};
use opdev_event::{Action, ObjectChange};
use opdev_object::meta::{self, ObjectKey};
use opdev_release::objects::writes::updated;
use opdev_release::objects::{PARALLEL, Wanted};
use opdev_release::verdict::Fault;
use opdev_script::contract::Desired;
use serde_json::Value;
use std::sync::Arc;

/// How many writes that changed nothing are remembered of one object.
const MOST_SETTLED: usize = 10_000;

impl ScriptReconcile {
    /// Children, patches, then what has to go.
    pub(super) async fn carry_out(&mut self, desired: &Desired, plan: Plan) -> Result<(), Fault> {
        let Plan { write, remove, .. } = plan;
        let written = self.write_children(&write).await;
        if !write.is_empty() {
            self.clock.note("apply");
        }
        written.map_err(Fault::plain)?;
        self.put_patches(desired).await?;
        let pruned = self.prune(&remove).await;
        if !remove.is_empty() {
            self.clock.note("prune");
        }
        pruned.map_err(Fault::plain)
    }

    async fn write_children(&mut self, write: &[Write]) -> anyhow::Result<()> {
        let manager = self.manager.clone();
        let mut rest = write;
        while let Some(first) = rest.first() {
            let kind = &first.wanted.resource.gvk;
            let same = rest.iter().take_while(|write| write.wanted.resource.gvk == *kind).count();
            let (batch, after) = rest.split_at(same);
            let mut calls = Vec::with_capacity(batch.len());
            for write in batch {
                calls.push(apply(&self.api, write, &manager));
            }
            let answers: Vec<anyhow::Result<Value>> = stream::iter(calls).buffered(PARALLEL).collect().await;
            let mut first_error = None;
            for (write, answer) in batch.iter().zip(answers) {
                match answer {
                    Ok(object) => {
                        self.note_write(&write.wanted, write.live.as_deref(), object, write.hash, &manager);
                    }
                    Err(error) => {
                        first_error.get_or_insert(error);
                    }
                }
            }
            if let Some(error) = first_error {
                return Err(error);
            }
            rest = after;
        }
        Ok(())
    }

    /// Tells a write and what it changed.
    pub(super) fn note_write(
        &mut self,
        wanted: &Wanted,
        live: Option<&Value>,
        after: Value,
        hash: u64,
        manager: &str,
    ) {
        let mut object = wanted.reference();
        object.uid = meta::uid(&after).map(str::to_owned);
        let change = match live {
            None => Some(ObjectChange {
                object,
                action: Action::Created,
                changes: Vec::new(),
                taken_from: Vec::new(),
            }),
            Some(before) => updated(object, before, &after, manager),
        };
        let wrote = live.and_then(meta::resource_version) != meta::resource_version(&after);
        if let Some(version) = meta::resource_version(&after).filter(|_| !wrote) {
            if self.own.settled.len() >= MOST_SETTLED {
                self.own.settled.clear();
            }
            self.own.settled.insert(wanted.key(), (hash, version.to_owned()));
        }
        self.done.effects.changes.extend(change);
        self.done.effects.known.push((Arc::new(after), wrote));
    }

    /// Deletes objects, their own dependents in the background.
    pub(super) async fn prune(&mut self, remove: &[(Wanted, Arc<Value>)]) -> anyhow::Result<()> {
        let mut calls = Vec::with_capacity(remove.len());
        for (wanted, live) in remove {
            calls.push(delete(&self.api, wanted, live));
        }
        let answers: Vec<anyhow::Result<(Deletion, Option<Value>)>> =
            stream::iter(calls).buffered(PARALLEL).collect().await;
        let mut first_error = None;
        for ((wanted, live), answer) in remove.iter().zip(answers) {
            match answer {
                Ok((deletion, left)) => self.note_deletion(wanted, live, deletion, left),
                Err(error) => {
                    first_error.get_or_insert(error);
                }
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    fn note_deletion(&mut self, wanted: &Wanted, live: &Arc<Value>, deletion: Deletion, left: Option<Value>) {
        let key: ObjectKey = wanted.key();
        self.own.settled.remove(&key);
        match (deletion, left) {
            (Deletion::Pending, Some(left)) => self.done.effects.known.push((Arc::new(left), true)),
            (Deletion::Pending, None) => {}
            (Deletion::Gone, _) => self.done.buried.push(Arc::clone(live)),
        }
        let mut object = wanted.reference();
        object.uid = meta::uid(live).map(str::to_owned);
        self.done.effects.changes.push(ObjectChange {
            object,
            action: Action::Deleted,
            changes: Vec::new(),
            taken_from: Vec::new(),
        });
    }
}

async fn apply(api: &Api, write: &Write, manager: &str) -> anyhow::Result<Value> {
    let at = write.wanted.at();
    let verb = if write.live.is_some() { "update" } else { "create" };
    api.apply(&at, "", &write.wanted.object, write.live.as_deref(), manager)
        .await
        .with_context(|| format!("could not {verb} {}", write.wanted.key()))
}

async fn delete(api: &Api, wanted: &Wanted, live: &Value) -> anyhow::Result<(Deletion, Option<Value>)> {
    let deleted = api.delete_object(&wanted.at(), meta::uid(live)).await;
    deleted.with_context(|| format!("could not delete {}", wanted.key()))
}

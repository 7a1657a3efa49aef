//! One reconcile for one custom resource that a program reconciles: read, observe, ask the program, plan,
//! apply, prune, status. The program says what there should be; all writes are made here. Read `observe`,
//! `ask`, `plan`, `apply`. Never acts on a cache that is older than what it needs: before a child without a
//! name is made, the list is read anew.

mod apply;
mod ask;
pub(crate) mod dry_run;
mod guard;
mod leave;
pub(crate) mod memory;
mod observe;
mod patches;
mod plan;
mod releases;
pub(super) mod state;
mod status;

use super::SHORTEST_REQUEUE;
use super::custom_resource::Parent;
use crate::job::Job;
use anyhow::anyhow;
use opdev_client::{ApiError, At};
use opdev_event::{Outcome, Requeue, RequeueReason, mask};
use opdev_object::meta;
use opdev_release::engine::{Clock, MOST_SAID};
use opdev_release::objects::inject::Owner;
use opdev_release::objects::writes::manager_of;
use opdev_release::recorder;
use opdev_release::recorder::Note;
use opdev_release::verdict;
use opdev_release::verdict::{Fault, Report, Verdict};
use opdev_script::contract::{Desired, Program};
use opdev_sources::TypeReconciler;
use serde_json::Value;
use state::{Done, FINALIZER, ScriptReconcile};
use std::sync::Arc;
use std::time::Instant;

/// Runs one reconcile.
pub(super) async fn run(job: Job, typed: Arc<TypeReconciler>) -> Report {
    let began = Instant::now();
    let Job { object: reference, watch, api, settings, cancel, renders, mut memory, hub, kinds, own_only } =
        job;
    let read = async {
        let resource = api.resource(&reference.gvk).await?;
        let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
        let object = api.get(&at).await?;
        Ok::<_, ApiError>((Arc::clone(&resource), object))
    };
    let (resource, object) = match read.await {
        Ok((resource, Some(object))) => (resource, object),
        Ok((_, None)) | Err(ApiError::NoMatch(_)) => return Report::gone(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("could not get the custom resource");
            return Report { memory, ..Report::failed(verdict::chain(&error)) };
        }
    };
    let owner = Owner {
        gvk: reference.gvk.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
        uid: meta::uid(&object).unwrap_or_default().to_owned(),
        marks: true,
    };
    let own = memory::Memory::take(&mut memory);
    let mut reconcile = ScriptReconcile {
        manager: manager_of(&reference.gvk.kind),
        watch,
        typed,
        api,
        hub,
        settings,
        cancel,
        renders,
        kinds,
        owner,
        memory,
        own,
        own_only,
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        parent: Parent { reference, resource, object },
        clock: Clock::new(began),
        done: Done::default(),
    };
    reconcile.clock.note("read");
    let verdict = match reconcile.reconcile().await {
        Ok(verdict) => Ok(verdict),
        Err(fault) => {
            reconcile.tell_fault(&fault).await;
            Err(fault)
        }
    };
    reconcile.report(verdict)
}

impl ScriptReconcile {
    async fn reconcile(&mut self) -> Result<Verdict, Fault> {
        if self.settings.read_only.holds() {
            let Some(program) = self.typed.program.clone() else { return Err(self.no_program()) };
            if !self.watch.picks(&self.parent.object) {
                return Ok(Verdict::new(Outcome::Unchanged));
            }
            let words = self.foresee(&program).await;
            return Ok(Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) });
        }
        let leaving = meta::deletion_timestamp(&self.parent.object).is_some();
        if leaving && !self.parent.has_finalizer(&[FINALIZER]) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        if !leaving && !self.watch.picks(&self.parent.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        if self.own_only && self.own.guard.is_paused() {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        self.own.guard.begin(self.own_only, &self.parent.object);
        let program = match &self.typed.program {
            Some(program) => Arc::clone(program),
            None => return Err(self.no_program()),
        };
        if leaving && !program.facts().finalizes {
            return self.dismantle().await;
        }
        let (mut desired, plan) = self.ask_and_plan(&program, leaving).await?;
        if let Some(words) = self.own.guard.judge(&plan.fingerprint()) {
            return Err(Fault { retry: false, ..Fault::plain(anyhow!(words)) });
        }
        if !leaving {
            self.settle_finalizer(&program, &desired, &plan).await.map_err(Fault::plain)?;
        }
        self.carry_out(&desired, plan).await?;
        if leaving && desired.finalized {
            return self.dismantle().await;
        }
        self.put_releases(&desired).await?;
        self.tell_releases(&mut desired);
        self.put_status(&desired).await.map_err(Fault::plain)?;
        self.put_events(&desired).await;
        Ok(self.verdict(&desired, leaving))
    }

    /// Texts that releases were asked to say in the status.
    fn tell_releases(&mut self, desired: &mut Desired) {
        for (condition, release) in std::mem::take(&mut self.done.told_releases) {
            desired.conditions.push(condition);
            let before = || self.parent.object.get("status").cloned().unwrap_or_default();
            let mut status = desired.status.take().unwrap_or_else(before);
            if !status.is_object() {
                status = Value::Object(serde_json::Map::new());
            }
            meta::put(&mut status, &["deployedRelease"], release);
            desired.status = Some(status);
        }
    }

    fn no_program(&self) -> Fault {
        Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!("the reconciler {} cannot be loaded", self.typed.path))
        }
    }

    /// The finalizer is there before anything is made that needs it, and goes when nothing does any more.
    async fn settle_finalizer(
        &mut self,
        program: &Arc<dyn Program>,
        desired: &Desired,
        plan: &plan::Plan,
    ) -> anyhow::Result<()> {
        let needed = program.facts().finalizes
            || !desired.releases.is_empty()
            || self.own.has_releases == Some(true)
            || plan.has_strays;
        if needed {
            self.parent.add_finalizer(&self.api, FINALIZER, &[FINALIZER]).await
        } else {
            self.parent.drop_finalizers(&self.api, &[FINALIZER]).await
        }
    }

    fn verdict(&mut self, desired: &Desired, leaving: bool) -> Verdict {
        let changed = !self.done.effects.changes.is_empty() || self.done.releases || self.done.status;
        let asked = guard::hash(&(&desired.children, &desired.patches, &desired.releases));
        let same_answer = self.own.answer.replace(asked) == Some(asked);
        let words = desired.waiting.clone();
        let outcome = match (&words, changed) {
            (Some(_), _) => Outcome::Waiting,
            (None, _) if leaving => Outcome::Waiting,
            (None, false) => Outcome::Unchanged,
            (None, true) if same_answer && self.took_something_back() => Outcome::Repaired,
            (None, true) => Outcome::Applied,
        };
        let asked = desired.requeue_after.map(|after| after.max(SHORTEST_REQUEUE));
        let period = self.watch.reconcile_period.filter(|period| !period.is_zero());
        let requeue = match (asked, period) {
            (Some(after), period) if period.is_none_or(|period| after <= period) => {
                let wait = |words: &String| RequeueReason::Wait { words: words.clone() };
                Some(Requeue { after, reason: words.as_ref().map_or(RequeueReason::Asked, wait) })
            }
            (_, Some(after)) => Some(Requeue { after, reason: RequeueReason::Period }),
            (_, None) => None,
        };
        let words = words.or_else(|| leaving.then(|| "the finalize function is not done yet".to_owned()));
        Verdict { waiting: words, ..Verdict::new(outcome).after(requeue) }
    }

    /// Returns true if what was written had been changed or deleted by others.
    fn took_something_back(&self) -> bool {
        self.done
            .effects
            .changes
            .iter()
            .any(|change| change.action == opdev_event::Action::Created || !change.taken_from.is_empty())
    }

    /// Says something once per object.
    fn say(&mut self, message: String, hint: Option<&str>) {
        if self.memory.said.len() < MOST_SAID && self.memory.said.insert(message.clone()) {
            self.done.notices.push((message, hint.map(str::to_owned)));
        }
    }

    /// The events that the program wants to be recorded.
    async fn put_events(&mut self, desired: &Desired) {
        let secrets = self.secrets();
        for event in &desired.events {
            let message = mask::text(&event.message, &secrets);
            let note = Note { kind: &event.kind, reason: &event.reason, message: &message };
            self.record(note).await;
        }
    }

    /// A failure shows on the object, too, as a Kubernetes Event.
    async fn tell_fault(&mut self, fault: &Fault) {
        if self.settings.read_only.holds() {
            return;
        }
        let message = mask::text(&format!("{:#}", fault.error), &self.secrets());
        self.record(Note { kind: "Warning", reason: "ReconcileError", message: &message }).await;
    }

    /// An event that cannot be written is no reason to stop.
    async fn record(&mut self, note: Note<'_>) {
        if let Err(error) = recorder::emit(&self.api, &self.owner, note, &mut self.memory.emitted).await {
            tracing::warn!(object = %self.owner.name, %error, "cannot write an event");
        }
    }

    /// Texts that must not show in anything that is told about this reconcile.
    fn secrets(&self) -> Vec<String> {
        let mut found = mask::secrets(&self.parent.object);
        found.extend(self.done.secrets.iter().cloned());
        found.extend(self.done.manifests.iter().flat_map(|text| mask::manifest_secrets(text)));
        let reference = &self.parent.reference;
        found.retain(|secret| *secret != reference.name && Some(secret) != reference.namespace.as_ref());
        mask::known(found)
    }

    /// Remembers what an object keeps secret.
    fn hide(&mut self, object: &Value) {
        if object.get("kind").and_then(Value::as_str) == Some("Secret") {
            self.done.secrets.extend(mask::manifest_secrets(&object.to_string()));
        } else {
            self.done.secrets.extend(mask::secrets(object));
        }
    }

    fn report(mut self, verdict: Result<Verdict, Fault>) -> Report {
        let status = verdict::status_changes(&self.status_before, self.parent.object.get("status"));
        let failed = verdict.is_err();
        let (outcome, requeue, waiting, failure) = match verdict {
            Ok(verdict) => (verdict.outcome, verdict.requeue, verdict.waiting, None),
            Err(fault) => (Outcome::Failed, None, None, Some(fault.into_failed())),
        };
        let secrets = self.secrets();
        let mut reads = std::mem::take(&mut self.done.reads);
        if failed {
            // Reads after the place where it failed are still of interest.
            reads.append(&mut self.own.reads);
        }
        reads.sort();
        reads.dedup();
        self.own.reads.clone_from(&reads);
        self.memory.secrets = secrets;
        self.memory.program = Some(Box::new(self.own));
        let children = self.kinds;
        Report {
            uid: Some(self.owner.uid).filter(|uid| !uid.is_empty()),
            status,
            objects: self.done.effects.changes,
            known: self.done.effects.known,
            buried: self.done.buried,
            dependents: self.done.dependents,
            children,
            reads: Some(reads),
            steps: self.clock.steps,
            requeue,
            waiting,
            failure,
            notices: self.done.notices,
            releases: self.done.changes,
            logs: self.done.logs,
            memory: self.memory,
            ..Report::of(outcome)
        }
    }
}

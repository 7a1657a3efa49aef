//! One reconcile for one custom resource against one set of sources, top to bottom: read, values, release,
//! candidate, then install, upgrade, rewrite or repair; a deletion comes first and needs no chart. `run` is
//! the whole reconcile. Never looks at another object's reconcile and never retries: the queue does.

pub(crate) mod chart;
mod chart_script;
mod custom_resource;
pub mod dry_run;
pub mod dry_run_report;
mod hybrid;
pub mod job;
pub(crate) mod plan;
pub mod plan_all;
pub(crate) mod program;

mod uninstall;

pub use chart::FINALIZER;

use crate::job::{Job, ReadObject};
use anyhow::anyhow;
use chart::{ChartReconcile, LEGACY_FINALIZER};
use custom_resource::Parent;
use opdev_client::{ApiError, At};
use opdev_event::{ObjectChange, Outcome, mask};
use opdev_helm::chart::Chart;
use opdev_object::meta;
use opdev_release::engine::{Clock, Deployed, Engine};
use opdev_release::objects::apply::Effects;
use opdev_release::objects::inject::Owner;
use opdev_release::options::ReleaseOptions;
use opdev_release::script::ChartScript;
use opdev_release::script::hook_calls::Doing;
use opdev_release::status::{DEPLOYED, INITIALIZED, IRRECONCILABLE, PAUSED, RELEASE_FAILED, Status};
use opdev_release::verdict::{Fault, Report, Verdict};
use opdev_sources::chart_problems::chart_secrets;
use opdev_sources::{ChartReconciler, Reconciler};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Helm's limit.
const LONGEST_NAME: usize = 53;
/// How often a write is tried again after a conflict.
const CONFLICT_TRIES: usize = 5;
/// About how long a status write takes until it wakes the Operator SDK's operator.
const AT_ONCE: Duration = Duration::from_millis(20);
/// A shorter time between reconciles would be a loop.
const SHORTEST_REQUEUE: Duration = Duration::from_millis(100);

/// Runs one reconcile.
pub async fn run(job: Job) -> Report {
    match &job.watch.reconciler {
        Reconciler::Chart(chart) => {
            let reconciler = Arc::clone(chart);
            run_chart(job, reconciler).await
        }
        Reconciler::Type(typed) => {
            let typed = Arc::clone(typed);
            program::run(job, typed).await
        }
    }
}

async fn run_chart(job: Job, reconciler: Arc<ChartReconciler>) -> Report {
    let began = Instant::now();
    let read = async {
        let reference = &job.object;
        let resource = job.api.resource(&reference.gvk).await?;
        let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
        let object = job.api.get(&at).await?;
        Ok::<_, ApiError>((Arc::clone(&resource), object))
    };
    let read = match read.await {
        Ok((resource, Some(object))) => ReadObject { resource, object },
        Ok((_, None)) | Err(ApiError::NoMatch(_)) => return Report::gone(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("could not get the custom resource");
            return Report { memory: job.memory, ..Report::failed(opdev_release::verdict::chain(&error)) };
        }
    };
    let mut reconcile = chart_reconcile(job, reconciler, read, began);
    reconcile.engine.note("read");
    let verdict = match reconcile.reconcile().await {
        Ok(verdict) => Ok(verdict),
        Err(fault) => Err(reconcile.tell_fault(fault).await),
    };
    reconcile.report(verdict)
}

/// A reconcile of a chart for an object that was read.
fn chart_reconcile(
    job: Job,
    reconciler: Arc<ChartReconciler>,
    ReadObject { resource, object }: ReadObject,
    began: Instant,
) -> ChartReconcile {
    let Job { object: reference, watch, api, settings, cancel, renders, memory, hub, .. } = job;
    let owner = Owner {
        gvk: reference.gvk.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
        uid: meta::uid(&object).unwrap_or_default().to_owned(),
        marks: false,
    };
    let fallback = || settings.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let options = ReleaseOptions::of(&reconciler.options, &object, &settings);
    let script = ChartScript::of(&reconciler, &api, &hub, &reference, &object);
    let status = Status::of(&object, jiff::Timestamp::now());
    let status = if options.hybrid { status.sorted() } else { status };
    let engine = Engine {
        name: reference.name.clone(),
        namespace: reference.namespace.clone().unwrap_or_else(fallback),
        reconciler,
        changed_in: watch.changed_in,
        api: api.clone(),
        settings,
        cancel,
        renders,
        owner,
        memory,
        options,
        script,
        doing: Doing::default(),
        waiting: None,
        requeue: None,
        effects: Effects::default(),
        clock: Clock::new(began),
        dependents: Vec::new(),
        notices: Vec::new(),
        manifests: Vec::new(),
        deployed: None,
        planned: false,
        changes: Vec::new(),
        again: None,
    };
    ChartReconcile {
        watch,
        api,
        status,
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        parent: Parent { reference, resource, object },
        engine,
        script_secrets: Vec::new(),
    }
}

impl ChartReconcile {
    async fn reconcile(&mut self) -> Result<Verdict, Fault> {
        self.refuse_unread()?;
        if self.engine.settings.read_only.holds() {
            return self.foresee().await;
        }
        if self.engine.options.hybrid {
            return self.reconcile_hybrid().await;
        }
        if meta::deletion_timestamp(&self.parent.object).is_some() {
            return self.uninstall().await;
        }
        if !self.watch.picks(&self.parent.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        self.period().map_err(Fault::plain)?;
        if let Some(words) = self.paused().await? {
            self.status.set(PAUSED, true, "PauseReconcileAnnotationTrue", &words);
            self.put_status().await.map_err(Fault::plain)?;
            return Ok(Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) });
        }
        self.status.clear_own(PAUSED, "PauseReconcileAnnotationTrue");
        self.settle_places().await?;
        let chart = self.chart()?;
        self.check_name()?;
        let mut history = self.history().await.map_err(Fault::irreconcilable)?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::plain)?;
        self.status.set(INITIALIZED, true, "", "");
        let healed =
            history.heal(&self.engine.api, &self.engine.owner).await.map_err(Fault::irreconcilable)?;
        if let Some(notice) = healed {
            self.engine.say(notice, None);
        }
        let wanted = self.desired(&history, chart).await?;
        self.engine.say_ignored_annotations(&self.parent.object);
        let mine = [FINALIZER, LEGACY_FINALIZER];
        self.parent.add_finalizer(&self.api, FINALIZER, &mine).await.map_err(Fault::plain)?;
        let outcome = self.engine.release(history, wanted).await;
        self.take_over();
        self.end(outcome?).await
    }

    /// How long until the next reconcile without a cause.
    fn period(&self) -> anyhow::Result<Option<Duration>> {
        let own = opdev_release::annotations::reconcile_period(&self.parent.object)?;
        let period = own.or(self.watch.reconcile_period).unwrap_or(self.engine.settings.reconcile_period);
        Ok(Some(period).filter(|period| !period.is_zero()))
    }

    pub(crate) fn chart(&self) -> Result<Arc<Chart>, Fault> {
        self.engine.reconciler.chart.clone().ok_or_else(|| Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!("the chart {} cannot be loaded", self.engine.reconciler.path))
        })
    }

    /// Options and script decide where a release lives and what is done before it goes: while one of them was
    /// never read, nothing is done, and nothing is taken away.
    fn refuse_unread(&self) -> Result<(), Fault> {
        let reconciler = &self.engine.reconciler;
        let script = reconciler.script.as_ref().filter(|script| script.program.is_none());
        let why = match (reconciler.options.unread, script) {
            (true, _) => "the options of its chart could not be read yet".to_owned(),
            (false, Some(script)) => {
                format!("the script {} beside its chart has not loaded yet", script.path)
            }
            (false, None) => return Ok(()),
        };
        Err(Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!(why))
        })
    }

    pub(crate) fn check_name(&mut self) -> Result<(), Fault> {
        let length = self.parent.reference.name.len();
        if length <= LONGEST_NAME {
            return Ok(());
        }
        self.status.set(INITIALIZED, true, "", "");
        let error = anyhow!(
            "release name {:?}: the name of a custom resource names its Helm release, which may have \
             {LONGEST_NAME} characters; this one has {length}. Create it again with a shorter name",
            self.parent.reference.name
        );
        Err(Fault {
            retry: false,
            ..Fault::release_failed("InstallError", error.context("failed to install release"))
        })
    }

    /// Writes the status if it differs from the one before.
    async fn put_status(&mut self) -> anyhow::Result<()> {
        let status = self.status.to_json();
        for _ in 0..CONFLICT_TRIES {
            if self.parent.object.get("status") == Some(&status) {
                return Ok(());
            }
            let mut object = self.parent.object.clone();
            meta::put(&mut object, &["status"], status.clone());
            let (resource, reference) = (Arc::clone(&self.parent.resource), self.parent.reference.clone());
            let at =
                At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
            match self.api.update(&at, "status", &object).await {
                Ok(object) => {
                    self.parent.object = object;
                    self.engine.note("status");
                    return Ok(());
                }
                Err(error) if error.is_conflict() => match self.api.get(&at).await? {
                    Some(object) => self.parent.object = object,
                    None => return Ok(()),
                },
                Err(error) if error.is_not_found() => {
                    return match self.api.get(&at).await? {
                        Some(_) => Err(anyhow!(
                            "could not write the status: the CRD of {} has no status subresource; add `subresources: \
                             {{status: {{}}}}` to its version {}",
                            self.parent.reference.gvk.kind,
                            self.parent.reference.gvk.version
                        )),
                        None => Ok(()),
                    };
                }
                Err(error) => return Err(anyhow::Error::new(error).context("could not write the status")),
            }
        }
        Err(anyhow!("could not write the status: the object keeps changing"))
    }

    /// Says in the status what has become of the release.
    fn take_over(&mut self) {
        if self.engine.planned {
            self.status.clear(IRRECONCILABLE);
        }
        let Some(Deployed { revision, notes, manifest }) = self.engine.deployed.take() else { return };
        self.status.clear(RELEASE_FAILED);
        self.status.clear(IRRECONCILABLE);
        let reason = if revision == 1 { "InstallSuccessful" } else { "UpgradeSuccessful" };
        self.status.set(DEPLOYED, true, reason, &notes);
        self.status.release(Some((&self.engine.name, &manifest)));
    }

    /// Shows a failure in the object's status, as far as the engine has a condition for it.
    async fn tell_fault(&mut self, mut fault: Fault) -> Fault {
        if self.engine.settings.read_only.holds() {
            return fault;
        }
        let hybrid = self.engine.options.hybrid;
        if hybrid {
            self.show_fault(&fault);
        } else if let Some((kind, reason)) = fault.condition {
            self.status.set(kind, true, reason, &format!("{:#}", fault.error));
        }
        self.engine.put_script_events().await;
        if (hybrid || fault.condition.is_some())
            && let Err(error) = self.put_status().await
        {
            fault.also = Some(error);
        }
        fault
    }

    /// Texts that must not show in anything that is told about this reconcile.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let mut found = mask::secrets(&self.parent.object);
        found.extend(override_secrets(&self.engine.reconciler));
        if let Some(chart) = &self.engine.reconciler.chart {
            chart_secrets(chart, &mut found);
        }
        found.extend(self.script_secrets.iter().cloned());
        found.extend(self.engine.manifests.iter().flat_map(|text| mask::manifest_secrets(text)));
        found.retain(|secret| {
            *secret != self.parent.reference.name && Some(secret) != self.parent.reference.namespace.as_ref()
        });
        mask::known(found)
    }

    fn report(mut self, verdict: Result<Verdict, Fault>) -> Report {
        let status =
            opdev_release::verdict::status_changes(&self.status_before, self.parent.object.get("status"));
        let (outcome, requeue, waiting, failure) = match verdict {
            Ok(verdict) => (verdict.outcome, verdict.requeue, verdict.waiting, None),
            Err(mut fault) => {
                let place = self.engine.place_of(&fault).map(Box::new);
                fault.diagnostic = fault.diagnostic.or(place);
                (Outcome::Failed, None, None, Some(fault.into_failed()))
            }
        };
        let told = self.engine.script.as_ref().map(|script| script.take_told());
        let (mut logs, mut reads) = (Vec::new(), None);
        if let Some(told) = told {
            self.script_secrets = told.secrets;
            self.engine.effects.known.extend(told.known.into_iter().map(|object| (object, false)));
            logs = told.logs;
            let mut all = told.reads;
            all.sort();
            all.dedup();
            reads = Some(all);
        }
        self.engine.memory.secrets = self.secrets();
        let objects: Vec<ObjectChange> = self.engine.effects.changes;
        Report {
            uid: Some(self.engine.owner.uid).filter(|uid| !uid.is_empty()),
            status,
            objects,
            known: self.engine.effects.known,
            dependents: if self.engine.reconciler.watch_dependents {
                self.engine.dependents
            } else {
                Vec::new()
            },
            steps: self.engine.clock.steps,
            requeue,
            waiting,
            failure,
            notices: self.engine.notices,
            releases: self.engine.changes,
            logs,
            reads,
            memory: self.engine.memory,
            ..Report::of(outcome)
        }
    }
}

/// The override values that are secret by their keys.
pub fn override_secrets(chart: &ChartReconciler) -> Vec<String> {
    let secret = chart.overrides.iter().filter(|(key, _)| mask::is_secret_path(key));
    secret.map(|(_, value)| value.clone()).collect()
}

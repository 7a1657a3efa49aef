//! One pass for one custom resource against one set of sources, top to bottom: read, values, release, candidate,
//! then install, upgrade, rewrite or repair; a deletion comes first and needs no chart. `run` is the whole pass.
//! Never looks at another object's pass and never retries: the queue does.

mod annotations;
mod apply;
mod compare;
mod crds;
mod hooks;
mod inject;
mod objects;
mod recorder;
mod release;
mod render;
pub(super) mod selector;
mod status;
mod uninstall;
mod upgrade;
mod values;
mod verdict;
mod wait;

pub(super) use inject::CHART_LABEL;
pub(super) use verdict::Report;

use super::api::{Api, ApiError, At};
use super::discovery::Resource;
use super::manager::Settings;
use crate::event::{ObjectChange, Outcome, Requeue, Step, mask};
use crate::sources::{ChartReconciler, Reconciler, Watch};
use anyhow::{Context, anyhow};
use apply::{Effects, Force, Plan};
use inject::{Owner, ReleaseNames};
use opdev_helm::chart::Chart;
use opdev_helm::template::ParseCache;
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::{Value, json};
use status::{DEPLOYED, INITIALIZED, IRRECONCILABLE, RELEASE_FAILED, Status};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use verdict::{Fault, Verdict};

/// Says that a release has to be uninstalled before its custom resource may go.
pub(super) const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// What older operators wrote.
const LEGACY_FINALIZER: &str = "uninstall-helm-release";
/// How many different things are said of one object.
const MOST_SAID: usize = 64;
/// Helm's limit.
const LONGEST_NAME: usize = 53;
/// How often a write is tried again after a conflict.
const CONFLICT_TRIES: usize = 5;

/// What a worker needs for one pass.
pub(super) struct Job {
    pub(super) object: ObjectRef,
    pub(super) watch: Arc<Watch>,
    pub(super) api: Api,
    pub(super) settings: Arc<Settings>,
    pub(super) cancel: CancellationToken,
    pub(super) templates: Arc<ParseCache>,
    pub(super) memory: Memory,
}

/// What is kept of an object from pass to pass. Everything in it can be lost without harm.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// The spec that the deployed release was made of.
    spec: Option<Value>,
    /// The set of sources that last changed the watch, when the deployed release was made.
    sources: u64,
    /// What random template functions start from.
    seed: Option<[u8; 32]>,
    /// How many passes in a row rendered something new from the same input.
    surplus: u32,
    emitted: recorder::Emitted,
    said: HashSet<String>,
    /// What the pass before knew to be secret.
    secrets: Vec<String>,
}

impl Memory {
    /// What the pass before knew to be secret.
    pub(super) fn secrets(&self) -> &[String] {
        &self.secrets
    }
}

/// A pass under way.
struct Pass {
    reference: ObjectRef,
    watch: Arc<Watch>,
    /// The chart that feeds it.
    fed: Arc<ChartReconciler>,
    api: Api,
    settings: Arc<Settings>,
    cancel: CancellationToken,
    templates: Arc<ParseCache>,
    memory: Memory,
    /// The custom resource as last read or written.
    object: Value,
    resource: Arc<Resource>,
    owner: Owner,
    status: Status,
    /// The status before this pass.
    status_before: Value,
    effects: Effects,
    steps: Vec<Step>,
    began: Instant,
    dependents: Vec<Gvk>,
    notices: Vec<(String, Option<String>)>,
    /// The manifests and hooks that the pass has read or rendered.
    manifests: Vec<String>,
}

/// Runs one pass.
pub(super) async fn run(job: Job) -> Report {
    let began = Instant::now();
    let Job { object: reference, watch, api, settings, cancel, templates, memory } = job;
    let fed = match &watch.reconciler {
        Reconciler::Chart(chart) => Arc::clone(chart),
        Reconciler::Type(_) => {
            return Report::failed(vec![format!("{} is reconciled by a program", reference.gvk.kind)]);
        }
    };
    let read = async {
        let resource = api.resource(&reference.gvk).await?;
        let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
        let object = api.get(&at).await?;
        Ok::<_, ApiError>((Arc::clone(&resource), object))
    };
    let (resource, object) = match read.await {
        Ok((resource, Some(object))) => (resource, object),
        Ok((_, None)) | Err(ApiError::NotServed(_)) => return Report::gone(),
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
    };
    let mut pass = Pass {
        reference,
        watch,
        fed,
        api,
        settings,
        cancel,
        templates,
        memory,
        status: Status::of(&object, jiff::Timestamp::now()),
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        object,
        resource,
        owner,
        effects: Effects::default(),
        steps: Vec::new(),
        began,
        dependents: Vec::new(),
        notices: Vec::new(),
        manifests: Vec::new(),
    };
    pass.note_step("read", Duration::ZERO);
    let verdict = match pass.reconcile().await {
        Ok(verdict) => Ok(verdict),
        Err(fault) => Err(pass.tell_fault(fault).await),
    };
    pass.report(verdict)
}

impl Pass {
    async fn reconcile(&mut self) -> Result<Verdict, Fault> {
        if self.settings.read_only {
            return Ok(Verdict::new(Outcome::Waiting).after(None));
        }
        if meta::deletion_timestamp(&self.object).is_some() {
            return self.uninstall().await;
        }
        if !selector::picks(&self.watch.selector, &self.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        let period = self.period().map_err(Fault::plain)?;
        let chart = self.chart()?;
        self.check_name()?;
        let spec = values::spec(&self.object).map_err(Fault::plain)?;
        let values = values::with_overrides(&spec, &self.fed.overrides).map_err(Fault::plain)?;
        let history = release::History::read(&self.api, &self.namespace(), &self.reference.name)
            .await
            .map_err(|error| Fault::irreconcilable(error.context("failed to retrieve release history")))?;
        history.check(chart.name(), &self.owner).map_err(Fault::plain)?;
        self.status.set(INITIALIZED, true, "", "");
        let wanted = upgrade::Wish { chart, spec, values };
        let outcome = self.release(history, wanted).await?;
        self.put_status().await.map_err(Fault::plain)?;
        Ok(Verdict::new(outcome).after(period.map(|after| Requeue { after, why: "period".to_owned() })))
    }

    /// How long until the next pass without a cause.
    fn period(&self) -> anyhow::Result<Option<Duration>> {
        let own = annotations::reconcile_period(&self.object).map_err(|error| anyhow!(error))?;
        let period = own.or(self.watch.reconcile_period).unwrap_or(self.settings.reconcile_period);
        Ok(Some(period).filter(|period| !period.is_zero()))
    }

    fn chart(&self) -> Result<Arc<Chart>, Fault> {
        self.fed.chart.clone().ok_or_else(|| Fault {
            diagnostic: self.watch.broken.clone().map(Box::new),
            retry: false,
            ..Fault::plain(anyhow!("the chart {} cannot be loaded", self.fed.path))
        })
    }

    fn check_name(&mut self) -> Result<(), Fault> {
        let length = self.reference.name.len();
        if length <= LONGEST_NAME {
            return Ok(());
        }
        self.status.set(INITIALIZED, true, "", "");
        let error = anyhow!(
            "release name {:?}: the name of a custom resource names its Helm release, which may have \
             {LONGEST_NAME} characters; this one has {length}. Create it again with a shorter name",
            self.reference.name
        );
        Err(Fault {
            retry: false,
            ..Fault::release_failed("InstallError", error.context("failed to install release"))
        })
    }

    /// Where the release lives.
    fn namespace(&self) -> String {
        let fallback = || self.settings.namespace.clone().unwrap_or_else(|| "default".to_owned());
        self.reference.namespace.clone().unwrap_or_else(fallback)
    }

    /// Adds the finalizer, so that whatever is installed will be uninstalled.
    async fn ensure_finalizer(&mut self) -> anyhow::Result<()> {
        for _ in 0..CONFLICT_TRIES {
            let finalizers = meta::finalizers(&self.object);
            if finalizers.iter().any(|name| [FINALIZER, LEGACY_FINALIZER].contains(name)) {
                return Ok(());
            }
            let mut finalizers: Vec<String> = finalizers.into_iter().map(str::to_owned).collect();
            finalizers.push(FINALIZER.to_owned());
            if self.write_finalizers(&finalizers).await? {
                return Ok(());
            }
        }
        Err(anyhow!("could not add the finalizer: the object keeps changing"))
    }

    /// Writes the finalizers; `false` after a conflict, with the object read again.
    async fn write_finalizers(&mut self, finalizers: &[String]) -> anyhow::Result<bool> {
        let version = meta::resource_version(&self.object);
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        let (resource, reference) = (Arc::clone(&self.resource), self.reference.clone());
        let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
        match self.api.merge(&at, &patch).await {
            Ok(object) => {
                self.object = object;
                Ok(true)
            }
            Err(error) if error.is_conflict() => {
                if let Some(object) = self.api.get(&at).await.context("could not get the custom resource")? {
                    self.object = object;
                }
                Ok(false)
            }
            Err(error) => Err(anyhow::Error::new(error).context("could not write the finalizers")),
        }
    }

    /// Puts live objects back to what the release says.
    async fn repair(&mut self, manifest: &str) -> anyhow::Result<Outcome> {
        let chart = self.chart_label();
        let namespace = self.namespace();
        let names = ReleaseNames { name: &self.reference.name, namespace: &namespace, chart: &chart };
        let wanted = objects::build(&self.api, manifest, &self.owner, names).await?;
        let plan = Plan::make(&self.api, wanted.clone(), &wanted, None).await?;
        self.note("plan");
        let written = !plan.is_empty();
        plan.carry_out(&self.api, Force::No, &mut self.effects).await?;
        if written {
            self.note("apply");
        }
        let repaired = !self.effects.changes.is_empty();
        Ok(if repaired { Outcome::Repaired } else { Outcome::Unchanged })
    }

    fn chart_label(&self) -> String {
        self.fed.chart.as_ref().map(|chart| chart.name().to_owned()).unwrap_or_default()
    }

    /// Writes the status if it differs from the one before.
    async fn put_status(&mut self) -> anyhow::Result<()> {
        let status = self.status.to_json();
        for _ in 0..CONFLICT_TRIES {
            if self.object.get("status") == Some(&status) {
                return Ok(());
            }
            let mut object = self.object.clone();
            object["status"] = status.clone();
            let (resource, reference) = (Arc::clone(&self.resource), self.reference.clone());
            let at =
                At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
            match self.api.update(&at, "status", &object).await {
                Ok(object) => {
                    self.object = object;
                    self.note("status");
                    return Ok(());
                }
                Err(error) if error.is_conflict() => match self.api.get(&at).await? {
                    Some(object) => self.object = object,
                    None => return Ok(()),
                },
                Err(error) if error.is_not_found() => {
                    return match self.api.get(&at).await? {
                        Some(_) => Err(anyhow!(
                            "could not write the status: the CRD of {} has no status subresource; add `subresources: \
                             {{status: {{}}}}` to its version {}",
                            self.reference.gvk.kind,
                            self.reference.gvk.version
                        )),
                        None => Ok(()),
                    };
                }
                Err(error) => return Err(anyhow::Error::new(error).context("could not write the status")),
            }
        }
        Err(anyhow!("could not write the status: the object keeps changing"))
    }

    /// Notes that the part of the pass since the last note was this step.
    fn note(&mut self, name: &str) {
        let start = self.steps.last().map_or(Duration::ZERO, |step| step.start + step.took);
        self.note_step(name, start);
    }

    fn note_step(&mut self, name: &str, start: Duration) {
        let took = self.began.elapsed().saturating_sub(start);
        self.steps.push(Step { name: name.to_owned(), start, took });
    }

    /// Says something once per object.
    fn say(&mut self, message: String, hint: Option<&str>) {
        if self.memory.said.len() < MOST_SAID && self.memory.said.insert(message.clone()) {
            self.notices.push((message, hint.map(str::to_owned)));
        }
    }

    /// Shows a failure in the object's status, as far as the engine has a condition for it.
    async fn tell_fault(&mut self, mut fault: Fault) -> Fault {
        if let Some((kind, reason)) = fault.condition {
            self.status.set(kind, true, reason, &format!("{:#}", fault.error));
            if let Err(error) = self.put_status().await {
                fault.also = Some(error);
            }
        }
        fault
    }

    /// What must not show in anything that is told about this pass.
    fn secrets(&self) -> Vec<String> {
        let mut found = mask::secrets(&self.object);
        found.extend(override_secrets(&self.fed));
        if let Some(chart) = &self.fed.chart {
            chart_secrets(chart, &mut found);
        }
        found.extend(self.manifests.iter().flat_map(|text| mask::manifest_secrets(text)));
        found.retain(|secret| {
            *secret != self.reference.name && Some(secret) != self.reference.namespace.as_ref()
        });
        mask::known(found)
    }

    fn report(mut self, verdict: Result<Verdict, Fault>) -> Report {
        let status = verdict::status_changes(&self.status_before, self.object.get("status"));
        let (outcome, requeue, failure) = match verdict {
            Ok(verdict) => (verdict.outcome, verdict.requeue, None),
            Err(fault) => (Outcome::Failed, None, Some(fault.into_failed())),
        };
        self.memory.secrets = self.secrets();
        let objects: Vec<ObjectChange> = self.effects.changes;
        Report {
            outcome,
            uid: Some(self.owner.uid).filter(|uid| !uid.is_empty()),
            status,
            objects,
            known: self.effects.known,
            dependents: if self.fed.watch_dependents { self.dependents } else { Vec::new() },
            steps: self.steps,
            requeue,
            failure,
            notices: self.notices,
            memory: self.memory,
        }
    }
}

/// The override values that are secret by their keys.
pub(super) fn override_secrets(chart: &ChartReconciler) -> Vec<String> {
    let secret = chart.overrides.iter().filter(|(key, _)| mask::is_secret_path(key));
    secret.map(|(_, value)| value.clone()).collect()
}

fn chart_secrets(chart: &Chart, found: &mut Vec<String>) {
    found.extend(mask::secrets(&chart.values));
    chart.subcharts.iter().for_each(|chart| chart_secrets(chart, found));
}

/// Sets what a well-ended pass says about its release.
fn set_deployed(status: &mut Status, name: &str, revision: i64, notes: &str, manifest: &str) {
    status.clear(RELEASE_FAILED);
    status.clear(IRRECONCILABLE);
    let reason = if revision == 1 { "InstallSuccessful" } else { "UpgradeSuccessful" };
    status.set(DEPLOYED, true, reason, notes);
    status.release(Some((name, manifest)));
}

//! Runs a chart's hooks for one event: by weight and name, each created, waited for and deleted by its
//! policies. A hook has a finite time and can be stopped; its failure says which hook failed and why.

use super::engine::Engine;
use super::objects::apply::{Effects, remove};
use super::objects::inject::{Owner, ReleaseNames};
use super::objects::{self, Wanted};
use super::options::HelmAction;
use super::wait::{self, Limits};
use anyhow::{Context, anyhow};
use opdev_client::{Api, Deletion};
use opdev_event::{Action, ObjectChange};
use opdev_helm::manifest::HookEvent;
use opdev_helm::release::StoredHook;
use opdev_object::meta;
use serde_json::Value;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Runs hooks of one release.
pub(crate) struct Hooks {
    api: Api,
    owner: Owner,
    name: String,
    namespace: String,
    chart: String,
    timeout: Duration,
    cancel: CancellationToken,
    /// True if they run at all.
    on: bool,
    /// Nothing leads from their objects to the custom resource, as with the helm-operator-plugins library.
    plain: bool,
}

const BEFORE: &str = "before-hook-creation";
const SUCCEEDED: &str = "hook-succeeded";
const FAILED: &str = "hook-failed";

impl Hooks {
    pub(crate) fn of(engine: &Engine, chart: &str, action: &HelmAction) -> Hooks {
        Hooks {
            api: engine.api.clone(),
            owner: engine.owner.clone(),
            name: engine.name.clone(),
            namespace: engine.namespace.clone(),
            chart: chart.to_owned(),
            timeout: action.timeout,
            cancel: engine.cancel.clone(),
            on: action.hooks,
            plain: engine.options.hybrid,
        }
    }

    fn limits(&self) -> Limits<'_> {
        Limits { timeout: self.timeout, cancel: &self.cancel }
    }

    /// Runs the hooks of an event, one after the other.
    pub(crate) async fn run(
        &self,
        event: HookEvent,
        hooks: &mut [StoredHook],
        effects: &mut Effects,
    ) -> anyhow::Result<()> {
        if !self.on {
            return Ok(());
        }
        let order = self::order(event, hooks);
        let mut done: Vec<(Wanted, bool)> = Vec::new();
        for at in order {
            let hook = &mut hooks[at];
            let names = ReleaseNames { name: &self.name, namespace: &self.namespace, chart: &self.chart };
            let mut wanted = Vec::new();
            for object in objects::parse(&hook.manifest)? {
                wanted.push(if self.plain {
                    objects::want_plain(&self.api, object, &self.namespace).await?
                } else {
                    objects::want(&self.api, object, &self.owner, names).await?
                });
            }
            for wanted in wanted {
                let outcome = self.run_one(event, hook, &wanted, effects).await;
                if let Err(error) = outcome {
                    if has(hook, FAILED) {
                        self.clear(&wanted, effects).await?;
                    }
                    for (wanted, _) in done.iter().filter(|(_, on_success)| *on_success) {
                        self.clear(wanted, effects).await?;
                    }
                    return Err(error);
                }
                done.push((wanted, has(hook, SUCCEEDED)));
            }
        }
        for (wanted, _) in done.iter().rev().filter(|(_, on_success)| *on_success) {
            self.clear(wanted, effects).await?;
        }
        Ok(())
    }

    async fn run_one(
        &self,
        event: HookEvent,
        hook: &mut StoredHook,
        wanted: &Wanted,
        effects: &mut Effects,
    ) -> anyhow::Result<()> {
        if hook.delete_policies.is_empty() || has(hook, BEFORE) {
            self.clear(wanted, effects).await?;
        }
        let what = format!("{} hook {}", word(event), wanted.key());
        hook.last_run.started_at = Some(jiff::Timestamp::now());
        "Running".clone_into(&mut hook.last_run.phase);
        let created = self.api.create(&wanted.resource, meta::namespace(&wanted.object), wanted.sent()).await;
        let ended = match created {
            Ok(object) => {
                let mut reference = wanted.reference();
                reference.uid = meta::uid(&object).map(str::to_owned);
                effects.changes.push(ObjectChange {
                    object: reference,
                    action: Action::Created,
                    changes: Vec::new(),
                    taken_from: Vec::new(),
                });
                self.wait_for(wanted, &what).await
            }
            Err(error) => Err(anyhow::Error::new(error).context(format!("{what}: could not be created"))),
        };
        hook.last_run.completed_at = Some(jiff::Timestamp::now());
        let phase = if ended.is_ok() { "Succeeded" } else { "Failed" };
        phase.clone_into(&mut hook.last_run.phase);
        ended
    }

    /// Jobs and Pods are waited for, everything else is done once it exists.
    async fn wait_for(&self, wanted: &Wanted, what: &str) -> anyhow::Result<()> {
        let gvk = &wanted.resource.gvk;
        let done = match (gvk.group.as_str(), gvk.kind.as_str()) {
            ("batch", "Job") => job_ended,
            ("", "Pod") => pod_ended,
            _ => return Ok(()),
        };
        let what = what.to_owned();
        let seen = |object: Option<&Value>| match object {
            Some(object) => done(object).map(|ended| match ended {
                Ended::Well => Ok(()),
                Ended::Failed(why) => Err(anyhow!("{what} failed: {why}")),
            }),
            None => None,
        };
        wait::until(&self.api, &wanted.at(), self.limits(), &what, seen).await
    }

    /// Deletes a hook's object and waits until it is gone. CRDs stay.
    async fn clear(&self, wanted: &Wanted, effects: &mut Effects) -> anyhow::Result<()> {
        if wanted.resource.gvk.kind == "CustomResourceDefinition" {
            return Ok(());
        }
        let live = self.api.get(&wanted.at()).await.with_context(|| format!("hook {}", wanted.key()))?;
        let Some(live) = live else { return Ok(()) };
        if remove(&self.api, wanted, &live, effects).await? == Deletion::Pending {
            let what = format!("hook {} is being deleted", wanted.key());
            wait::until_gone(&self.api, &wanted.at(), self.limits(), &what).await?;
        }
        Ok(())
    }
}

fn has(hook: &StoredHook, policy: &str) -> bool {
    hook.delete_policies.iter().any(|own| own == policy)
}

/// The hooks of an event in the order in which they run.
pub(crate) fn order(event: HookEvent, hooks: &[StoredHook]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..hooks.len()).filter(|at| hooks[*at].events.contains(&event)).collect();
    order.sort_by(|a, b| {
        let (a, b) = (&hooks[*a], &hooks[*b]);
        a.weight.cmp(&b.weight).then_with(|| a.name.cmp(&b.name))
    });
    order
}

/// The event as annotations name it.
pub(crate) fn word(event: HookEvent) -> &'static str {
    match event {
        HookEvent::PreInstall => "pre-install",
        HookEvent::PostInstall => "post-install",
        HookEvent::PreDelete => "pre-delete",
        HookEvent::PostDelete => "post-delete",
        HookEvent::PreUpgrade => "pre-upgrade",
        HookEvent::PostUpgrade => "post-upgrade",
        HookEvent::PreRollback => "pre-rollback",
        HookEvent::PostRollback => "post-rollback",
        HookEvent::Test => "test",
    }
}

/// The end of a Job or a Pod.
enum Ended {
    Well,
    /// In the words of its status.
    Failed(String),
}

fn job_ended(job: &Value) -> Option<Ended> {
    if let Some(why) = wait::condition(job, "Failed") {
        return Some(Ended::Failed(why));
    }
    wait::condition(job, "Complete").map(|_| Ended::Well)
}

fn pod_ended(pod: &Value) -> Option<Ended> {
    match pod.pointer("/status/phase").and_then(Value::as_str) {
        Some("Succeeded") => Some(Ended::Well),
        Some("Failed") => {
            let message = pod.pointer("/status/message").and_then(Value::as_str).unwrap_or("the pod failed");
            Some(Ended::Failed(message.to_owned()))
        }
        _ => None,
    }
}

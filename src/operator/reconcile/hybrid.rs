//! A reconcile of a custom resource with `engine: hybrid`: in the order, and with the conditions, of an
//! operator of the helm-operator-plugins library. The release itself is made by the same engine; read
//! `upgrade`.

use super::chart::{ChartReconcile, FINALIZER, LEGACY_FINALIZER};
use opdev_event::{Outcome, Requeue, RequeueReason};
use opdev_object::meta;
use opdev_release::history::{History, Stored};
use opdev_release::options::ReleaseOptions;
use opdev_release::status::{DEPLOYED, INITIALIZED, IRRECONCILABLE, PAUSED, RELEASE_FAILED};
use opdev_release::verdict::{Fault, Stage, Verdict};
use opdev_release::wait;
use opdev_release::wait::Limits;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The words of Helm's history for a failure, beside the words of opdev around it.
const OWN_WORDS: [&str; 5] = [
    "failed to get candidate release",
    "failed to install release",
    "failed to upgrade release",
    "upgrade failed; rolled back to the last good manifest",
    "failed to retrieve release history",
];

impl ChartReconcile {
    pub(super) async fn reconcile_hybrid(&mut self) -> Result<Verdict, Fault> {
        let leaving = meta::deletion_timestamp(&self.parent.object).is_some();
        let mine = [LEGACY_FINALIZER, FINALIZER];
        if leaving && !self.parent.has_finalizer(&mine) || !leaving && !self.watch.picks(&self.parent.object)
        {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        if !leaving {
            let own = [LEGACY_FINALIZER];
            self.parent.add_finalizer(&self.api, LEGACY_FINALIZER, &own).await.map_err(Fault::plain)?;
            self.engine.options = ReleaseOptions::of(
                &self.engine.reconciler.options,
                &self.parent.object,
                &self.engine.settings,
            );
        }
        if let Some(words) = self.paused().await? {
            self.status.set(PAUSED, true, "PauseReconcileAnnotationTrue", "");
            for kind in [IRRECONCILABLE, DEPLOYED, INITIALIZED, RELEASE_FAILED] {
                self.status.unknown(kind);
            }
            self.status.release(None);
            self.put_status().await.map_err(Fault::plain)?;
            return Ok(Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) });
        }
        self.status.set(PAUSED, false, "", "");
        self.settle_places().await?;
        let history = self.history().await;
        match &history {
            Ok(history) => self.show_newest(history.newest().map_err(Fault::state)?.as_ref()),
            Err(_) => self.status.set(INITIALIZED, true, "", ""),
        }
        let mut history = history.map_err(Fault::state)?;
        if leaving {
            return self.uninstall_hybrid(history).await;
        }
        let chart = self.chart()?;
        self.check_name()?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::state)?;
        let healed = history.heal(&self.engine.api, &self.engine.owner).await.map_err(Fault::state)?;
        if let Some(notice) = healed {
            self.engine.say(notice, None);
        }
        let wanted = self.desired(&history, chart).await?;
        let outcome = self.engine.release(history, wanted).await?;
        if let Some(deployed) = self.engine.deployed.take() {
            self.show(deployed.revision, &deployed.notes, &deployed.manifest);
            self.engine.deployed = Some(deployed);
        }
        if outcome != Outcome::Waiting {
            self.status.set(RELEASE_FAILED, false, "", "");
        }
        self.status.set(IRRECONCILABLE, false, "", "");
        self.end(outcome).await
    }

    fn show_newest(&mut self, newest: Option<&Stored>) {
        match newest {
            Some(stored) => {
                let release = &stored.release;
                self.show(release.version, &release.info.notes, &release.manifest);
            }
            None => self.status.set(DEPLOYED, false, "", ""),
        }
        self.status.set(INITIALIZED, true, "", "");
    }

    fn show(&mut self, revision: i64, notes: &str, manifest: &str) {
        let (reason, words) = match revision {
            1 => ("InstallSuccessful", "release was successfully installed"),
            _ => ("UpgradeSuccessful", "release was successfully upgraded"),
        };
        self.status.set(DEPLOYED, true, reason, if notes.is_empty() { words } else { notes });
        self.status.release(Some((&self.engine.name, manifest)));
    }

    async fn uninstall_hybrid(&mut self, history: History) -> Result<Verdict, Fault> {
        let failed = |error| Fault::release_failed("UninstallError", error);
        if history.belongs_to(&self.engine.owner) && !history.is_empty() {
            self.engine.uninstall_release(history).await.map_err(failed)?;
            self.engine.note("uninstall");
        }
        self.status.set(RELEASE_FAILED, false, "", "");
        self.status.set(DEPLOYED, false, "UninstallSuccessful", "");
        self.status.release(None);
        self.put_status().await.map_err(failed)?;
        self.let_go().await?;
        Ok(Verdict::new(Outcome::Uninstalled))
    }

    /// Drops the finalizers, and waits for the end of the custom resource where that is asked for.
    pub(super) async fn let_go(&mut self) -> Result<(), Fault> {
        let mine = [LEGACY_FINALIZER, FINALIZER];
        self.parent
            .drop_finalizers(&self.api, &mine)
            .await
            .map_err(|error| Fault::release_failed("UninstallError", error))?;
        self.engine.note("finalizer");
        let Some(timeout) = self.engine.options.wait_for_deletion else { return Ok(()) };
        let others = meta::finalizers(&self.parent.object).iter().any(|name| !mine.contains(name));
        if others {
            // The news that the object is to go is no reason to stop.
            let limits = Limits { timeout, cancel: &CancellationToken::new() };
            let what = "the custom resource is still there";
            wait::until_gone(&self.api, &self.parent.at(), limits, what).await.map_err(Fault::plain)?;
        }
        Ok(())
    }

    /// Shows a failure as the library does.
    pub(super) fn show_fault(&mut self, fault: &Fault) {
        let text = words(&fault.error);
        match fault.stage {
            Stage::Values => {
                self.status.set(IRRECONCILABLE, true, "ErrorGettingValues", &text);
                self.status.unknown(RELEASE_FAILED);
            }
            Stage::State => {
                self.status.set(IRRECONCILABLE, true, "ErrorGettingReleaseState", &text);
                self.status.unknown(RELEASE_FAILED);
                self.status.unknown(DEPLOYED);
                self.status.release(None);
            }
            Stage::Repair => {
                self.status.set(RELEASE_FAILED, false, "", "");
                self.status.set(IRRECONCILABLE, true, "ReconcileError", &text);
            }
            Stage::Other => {
                self.status.set(IRRECONCILABLE, true, "ReconcileError", &text);
                if let Some((RELEASE_FAILED, reason)) = fault.condition {
                    self.status.set(RELEASE_FAILED, true, reason, &text);
                }
            }
        }
    }

    /// The end of a reconcile that went well, of both engines: status, events, and when to come again.
    pub(super) async fn end(&mut self, outcome: Outcome) -> Result<Verdict, Fault> {
        self.set_script_conditions();
        self.put_status().await.map_err(Fault::plain)?;
        self.engine.put_script_events().await;
        let period = self.period().map_err(Fault::plain)?;
        let own = self.engine.requeue.take().map(|after| after.max(super::SHORTEST_REQUEUE));
        let next = match (self.engine.again.take(), own, period) {
            (Some(words), _, _) => {
                Some(Requeue { after: super::AT_ONCE, reason: RequeueReason::Wait { words } })
            }
            (None, Some(after), period) if period.is_none_or(|period| after <= period) => {
                Some(Requeue { after, reason: RequeueReason::Asked })
            }
            (None, _, period) => period.map(|after| Requeue { after, reason: RequeueReason::Period }),
        };
        let waiting = self.engine.waiting.take();
        let outcome = if waiting.is_some() { Outcome::Waiting } else { outcome };
        Ok(Verdict { waiting, ..Verdict::new(outcome).after(next) })
    }

    fn set_script_conditions(&mut self) {
        let Some(script) = self.engine.script.as_ref().map(Arc::clone) else { return };
        for condition in script.take_conditions() {
            let text = |key: &str| condition.get(key).and_then(serde_json::Value::as_str).unwrap_or_default();
            self.status.put(text("type"), text("status"), text("reason"), text("message"));
        }
    }
}

/// The words of an error without those that the library does not put around it, and without the frames of a
/// script.
fn words(error: &anyhow::Error) -> String {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let told = |words: &&str| !OWN_WORDS.contains(words) && !words.starts_with("at ");
    let kept: Vec<&str> = chain.iter().map(String::as_str).filter(told).collect();
    if kept.is_empty() { format!("{error:#}") } else { kept.join(": ") }
}

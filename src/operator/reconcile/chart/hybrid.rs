//! A reconcile of a custom resource with `engine: hybrid`: in the order, and with the conditions, of an
//! operator of the helm-operator-plugins library. The release itself is made by the same engine; read
//! `upgrade`.

use super::{ChartReconcile, FINALIZER, LEGACY_FINALIZER, pause};
use opdev_event::Outcome;
use opdev_object::meta;
use opdev_release::history::{History, Stored};
use opdev_release::options::ReleaseOptions;
use opdev_release::status::{DEPLOYED, INITIALIZED, IRRECONCILABLE, PAUSED, RELEASE_FAILED};
use opdev_release::verdict::{Fault, Stage, Verdict};

/// The words of Helm's history for a failure, beside the words of opdev around it.
const OWN_WORDS: [&str; 5] = [
    "failed to get candidate release",
    "failed to install release",
    "failed to upgrade release",
    "upgrade failed; rolled back to the last good manifest",
    "failed to retrieve release history",
];

impl ChartReconcile {
    /// The steps in the order of the library.
    pub(super) async fn hybrid_steps(&mut self) -> Result<Verdict, Fault> {
        let leaving = meta::deletion_timestamp(&self.parent.object).is_some();
        let mine = [LEGACY_FINALIZER, FINALIZER];
        if leaving && !self.parent.has_finalizer(&mine) || !leaving && !self.watch.picks(&self.parent.object)
        {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        if !leaving {
            self.add_finalizer_hybrid().await?;
        }
        if let Some(words) = self.pause_hybrid().await? {
            return Ok(Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) });
        }
        self.settle_places().await?;
        let mut history = self.shown_history().await?;
        if leaving {
            return self.uninstall_hybrid(history).await;
        }
        let chart = self.chart()?;
        self.check_name()?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::state)?;
        self.heal(&mut history).await.map_err(Fault::state)?;
        let desired = self.desired(&history, chart).await?;
        let outcome = self.engine.release(history, desired).await?;
        self.show_release_hybrid(outcome);
        self.end(outcome).await
    }

    /// Adds the library's finalizer; the custom resource as it is then decides the options.
    async fn add_finalizer_hybrid(&mut self) -> Result<(), Fault> {
        let own = [LEGACY_FINALIZER];
        self.parent.add_finalizer(&self.api, LEGACY_FINALIZER, &own).await.map_err(Fault::plain)?;
        self.engine.options =
            ReleaseOptions::of(&self.engine.reconciler.options, &self.parent.object, &self.engine.settings);
        Ok(())
    }

    /// Says in the status that the custom resource is left alone, and gives the reason, where it is.
    async fn pause_hybrid(&mut self) -> Result<Option<String>, Fault> {
        let paused = self.paused().await?;
        if paused.is_none() {
            self.status.set(PAUSED, false, "", "");
            return Ok(None);
        }
        self.status.set(PAUSED, true, pause::REASON, "");
        for kind in [IRRECONCILABLE, DEPLOYED, INITIALIZED, RELEASE_FAILED] {
            self.status.unknown(kind);
        }
        self.status.release(None);
        self.put_status().await.map_err(Fault::plain)?;
        Ok(paused)
    }

    /// The revisions of the release; the status shows the newest.
    async fn shown_history(&mut self) -> Result<History, Fault> {
        let history = self.history().await;
        match &history {
            Ok(history) => self.show_newest(history.newest().map_err(Fault::state)?.as_ref()),
            Err(_) => self.status.set(INITIALIZED, true, "", ""),
        }
        history.map_err(Fault::state)
    }

    /// Says in the status what has become of the release.
    fn show_release_hybrid(&mut self, outcome: Outcome) {
        if let Some(deployed) = self.engine.done.deployed.take() {
            self.show(deployed.revision, &deployed.notes, &deployed.manifest);
            self.engine.done.deployed = Some(deployed);
        }
        if outcome != Outcome::Waiting {
            self.status.set(RELEASE_FAILED, false, "", "");
        }
        self.status.set(IRRECONCILABLE, false, "", "");
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
}

/// The words of an error without those that the library does not put around it, and without the frames of a
/// script.
fn words(error: &anyhow::Error) -> String {
    let chain: Vec<String> = error.chain().map(ToString::to_string).collect();
    let told = |words: &&str| !OWN_WORDS.contains(words) && !words.starts_with("at ");
    let kept: Vec<&str> = chain.iter().map(String::as_str).filter(told).collect();
    if kept.is_empty() { format!("{error:#}") } else { kept.join(": ") }
}

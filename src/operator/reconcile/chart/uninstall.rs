//! The reconcile of a custom resource that is being deleted: its release is uninstalled, then the finalizer
//! is taken off.

use super::{ChartReconcile, FINALIZER, LEGACY_FINALIZER};
use opdev_event::{Outcome, Requeue, RequeueReason};
use opdev_object::meta;
use opdev_release::annotations;
use opdev_release::objects;
use opdev_release::objects::inject::is_kept;
use opdev_release::status::{DEPLOYED, RELEASE_FAILED};
use opdev_release::verdict::{Fault, Verdict};
use serde_json::Value;

const WAITING: &str = "Waiting until all resources are deleted.";

impl ChartReconcile {
    /// The custom resource is being deleted.
    pub(super) async fn uninstall(&mut self) -> Result<Verdict, Fault> {
        let mine = [FINALIZER, LEGACY_FINALIZER];
        if !meta::finalizers(&self.parent.object).iter().any(|name| mine.contains(name)) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        let failed = |error| Fault::release_failed("UninstallError", error);
        self.settle_places().await?;
        let history = self.history().await.map_err(failed)?;
        let was_there = history.belongs_to(&self.engine.owner) && !history.is_empty();
        if was_there {
            self.engine.uninstall_release(history).await.map_err(failed)?;
            self.engine.note("uninstall");
        }
        self.status.clear(RELEASE_FAILED);
        if annotations::uninstall_wait(&self.parent.object) {
            self.status.set(DEPLOYED, false, "UninstallSuccessful", WAITING);
            self.put_status().await.map_err(failed)?;
            if self.still_there().await.map_err(failed)? {
                let period = self.period().ok().flatten();
                let after = period.unwrap_or(self.engine.settings.reconcile_period);
                let requeue = Requeue { after, reason: RequeueReason::Wait { words: WAITING.to_owned() } };
                return Ok(Verdict::new(Outcome::Waiting).after(Some(requeue)));
            }
        } else if was_there {
            self.status.set(DEPLOYED, false, "UninstallSuccessful", "");
            self.status.release(None);
            self.put_status().await.map_err(failed)?;
        }
        self.let_go().await?;
        Ok(Verdict::new(Outcome::Uninstalled))
    }

    /// Returns true if objects of the release that should go still exist; they are deleted once more.
    async fn still_there(&mut self) -> anyhow::Result<bool> {
        let manifest = self.parent.object.pointer("/status/deployedRelease/manifest").and_then(Value::as_str);
        let Some(manifest) = manifest.map(str::to_owned) else { return Ok(false) };
        let chart = self.engine.chart_label();
        let wanted = self.engine.stored_objects(std::slice::from_ref(&manifest), &chart).await?;
        let left =
            objects::live(&self.engine.api, &wanted).await?.into_iter().flatten().any(|live| !is_kept(&live));
        if left {
            self.engine.remove_objects(&[manifest], &chart).await?;
        }
        self.engine.note("wait");
        Ok(left)
    }
}

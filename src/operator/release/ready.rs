//! Waits until the objects of a release are ready, or gone, where `helm: {…: {wait: true}}` asks for it.

use super::engine::Engine;
use super::objects::Wanted;
use super::options::{HelmAction, Jobs};
use super::wait::{self, Limits};
use opdev_script::readiness;
use serde_json::Value;
use std::time::Instant;

impl Engine {
    /// Waits until all objects are ready, within the action's time.
    pub(crate) async fn until_ready(&mut self, wanted: &[Wanted], action: &HelmAction) -> anyhow::Result<()> {
        let Some(jobs) = action.wait else { return Ok(()) };
        let deadline = Instant::now() + action.timeout;
        for wanted in wanted {
            let gvk = &wanted.resource.gvk;
            if jobs == Jobs::LeftOut && gvk.group == "batch" && gvk.kind == "Job" {
                continue;
            }
            let limits =
                Limits { timeout: deadline.saturating_duration_since(Instant::now()), cancel: &self.cancel };
            let what = format!("{} is not ready", wanted.key());
            let ready =
                |object: Option<&Value>| object.filter(|object| readiness::ready(object)).map(|_| Ok(()));
            wait::until(&self.api, &wanted.at(), limits, &what, ready).await?;
        }
        self.note("wait");
        Ok(())
    }

    /// Waits until all objects are gone, within the action's time.
    pub(crate) async fn until_all_gone(
        &mut self,
        wanted: &[Wanted],
        action: &HelmAction,
    ) -> anyhow::Result<()> {
        if action.wait.is_none() {
            return Ok(());
        }
        let deadline = Instant::now() + action.timeout;
        for wanted in wanted {
            let limits =
                Limits { timeout: deadline.saturating_duration_since(Instant::now()), cancel: &self.cancel };
            let what = format!("{} is being deleted", wanted.key());
            wait::until_gone(&self.api, &wanted.at(), limits, &what).await?;
        }
        self.note("wait");
        Ok(())
    }
}

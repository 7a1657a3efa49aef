//! The step that leaves a custom resource alone: an annotation or a script beside the chart says so.

use super::ChartReconcile;
use opdev_object::meta;
use opdev_release::status::PAUSED;
use opdev_release::verdict::Fault;
use opdev_script::contract::ChartFunction;
use serde_json::Value;

/// The reason of the condition.
pub(super) const REASON: &str = "PauseReconcileAnnotationTrue";

impl ChartReconcile {
    /// Says in the status that the custom resource is left alone, and gives the reason, where it is.
    pub(super) async fn pause(&mut self) -> Result<Option<String>, Fault> {
        let paused = self.paused().await?;
        match &paused {
            Some(words) => {
                self.status.set(PAUSED, true, REASON, words);
                self.put_status().await.map_err(Fault::plain)?;
            }
            None => self.status.clear_own(PAUSED, REASON),
        }
        Ok(paused)
    }

    /// Why the custom resource is left alone, where it is.
    pub(super) async fn paused(&mut self) -> Result<Option<String>, Fault> {
        if let Some(name) = &self.engine.reconciler.options.pause_annotation
            && meta::annotation(&self.parent.object, name) == Some("true")
        {
            return Ok(Some(format!("paused: its annotation {name} is \"true\"")));
        }
        let Some(script) = self.script(ChartFunction::Paused) else { return Ok(None) };
        let answer = script.ask(ChartFunction::Paused, vec![None]).await?;
        let words = || format!("paused: {} says so", script.path());
        Ok((answer.value == Value::Bool(true)).then(words))
    }
}

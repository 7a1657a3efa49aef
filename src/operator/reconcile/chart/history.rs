//! The step that reads the revisions of the release, and heals what an end in the middle of a write has left.

use super::ChartReconcile;
use anyhow::Context;
use opdev_helm::chart::Chart;
use opdev_release::history::History;
use opdev_release::history::records::Records;
use opdev_release::status::INITIALIZED;
use opdev_release::verdict::Fault;

impl ChartReconcile {
    /// The revisions of the release of this chart, healed.
    pub(super) async fn healed_history(&mut self, chart: &Chart) -> Result<History, Fault> {
        let mut history = self.history().await.map_err(Fault::irreconcilable)?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::plain)?;
        self.status.set(INITIALIZED, true, "", "");
        self.heal(&mut history).await.map_err(Fault::irreconcilable)?;
        Ok(history)
    }

    /// Heals the revisions, and says so.
    pub(super) async fn heal(&mut self, history: &mut History) -> anyhow::Result<()> {
        if let Some(notice) = history.heal(&self.engine.api, &self.engine.owner).await? {
            self.engine.say(notice, None);
        }
        Ok(())
    }

    /// The revisions of the release. The places are settled.
    pub(super) async fn history(&self) -> anyhow::Result<History> {
        let engine = &self.engine;
        let own = || self.own_namespace();
        let namespace = engine.options.storage_namespace.clone().unwrap_or_else(own);
        let (storage, chunked) = (engine.options.storage, &engine.options.chunked);
        let api = engine.api.as_operator();
        let records = Records::of(&api, &namespace, (storage, chunked), &engine.memory.records).await?;
        let name = &self.parent.reference.name;
        History::read(&engine.api, records, name, engine.options.storage_owner)
            .await
            .context("failed to retrieve release history")
    }
}

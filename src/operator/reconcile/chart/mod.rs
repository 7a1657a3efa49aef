//! A reconcile of a chart's custom resource, a file a step. `steps` is their order, a line a step; `hybrid`
//! has the order of `engine: hybrid`, `plan` that of a reconcile that writes nothing. A new step is a file
//! here with its line in each of the orders that it belongs to.

mod begin;
mod end;
mod finalizers;
mod history;
mod hybrid;
mod pause;
mod places;
mod plan;
mod refusals;
pub(super) mod report;
mod status;
mod uninstall;
mod values;

pub(super) use begin::{begin, run};

use super::custom_resource::Parent;
use opdev_client::Api;
use opdev_event::Outcome;
use opdev_object::meta;
use opdev_release::engine::Engine;
use opdev_release::script::ChartScript;
use opdev_release::status::Status;
use opdev_release::verdict::{Fault, Verdict};
use opdev_script::contract::ChartFunction;
use opdev_sources::Watch;
use serde_json::Value;
use std::sync::Arc;

/// Says that a release has to be uninstalled before its custom resource may go.
pub const FINALIZER: &str = "helm.sdk.operatorframework.io/uninstall-release";
/// The finalizer that older operators wrote.
const LEGACY_FINALIZER: &str = "uninstall-helm-release";

/// A reconcile under way.
pub(crate) struct ChartReconcile {
    parent: Parent,
    watch: Arc<Watch>,
    status: Status,
    /// The status before this reconcile.
    status_before: Value,
    /// As the operator itself, whomever the release is written as.
    api: Api,
    /// Its release.
    engine: Engine,
    /// Secret texts that a script has read or said.
    script_secrets: Vec<String>,
}

impl ChartReconcile {
    /// The steps in their order, after the custom resource was read. The release itself has its own order:
    /// `upgrade` in the package `release`.
    async fn steps(&mut self) -> Result<Verdict, Fault> {
        self.refuse_unread()?;
        if self.engine.settings.read_only.holds() {
            return self.foresee().await;
        }
        if self.engine.options.hybrid {
            return self.hybrid_steps().await;
        }
        if meta::deletion_timestamp(&self.parent.object).is_some() {
            return self.uninstall().await;
        }
        if !self.watch.picks(&self.parent.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        self.period().map_err(Fault::plain)?;
        if let Some(words) = self.pause().await? {
            return Ok(Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) });
        }
        self.settle_places().await?;
        let chart = self.chart()?;
        self.check_name()?;
        let history = self.healed_history(&chart).await?;
        let desired = self.desired(&history, chart).await?;
        self.engine.say_ignored_annotations(&self.parent.object);
        self.add_finalizer().await?;
        let outcome = self.engine.release(history, desired).await;
        self.show_release();
        self.end(outcome?).await
    }

    /// The script beside the chart, where it has this function.
    fn script(&self, function: ChartFunction) -> Option<Arc<ChartScript>> {
        self.engine.script.clone().filter(|script| script.has(function))
    }
}

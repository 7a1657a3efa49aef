//! The step that says which release is wanted: its chart, and its values from the spec, the overrides and a
//! script beside the chart.

use super::ChartReconcile;
use opdev_helm::chart::Chart;
use opdev_helm::values::coalesce;
use opdev_release::history::History;
use opdev_release::history::desired_release::DesiredRelease;
use opdev_release::script::hook_calls;
use opdev_release::verdict::{Fault, Stage};
use opdev_script::contract::ChartFunction;
use opdev_sources::values;
use serde_json::json;
use std::sync::Arc;

impl ChartReconcile {
    /// The wanted release.
    pub(super) async fn desired(
        &mut self,
        history: &History,
        chart: Arc<Chart>,
    ) -> Result<DesiredRelease, Fault> {
        let values = |fault: Fault| Fault { stage: Stage::Values, ..fault };
        let plain = |error| values(Fault::plain(error));
        let spec = values::spec(&self.parent.object).map_err(plain)?;
        let forced = values::with_overrides(&spec, &self.engine.reconciler).map_err(plain)?;
        let (spec, own) = match self.script(ChartFunction::Values) {
            None => (spec, forced),
            Some(script) => {
                let newest = history.newest().map_err(Fault::irreconcilable)?;
                let about = json!({"values": forced, "release": newest.as_ref().map(hook_calls::told)});
                let answer =
                    script.ask(ChartFunction::Values, vec![None, Some(about)]).await.map_err(values)?;
                // What decides are the values: they may follow the cluster while the spec stays.
                (answer.value.clone(), answer.value)
            }
        };
        let own = if self.engine.options.hybrid {
            let compat = self.engine.settings.helm_compat.into();
            coalesce(&chart, &own, compat).map_err(|error| plain(error.into()))?.values
        } else {
            own
        };
        let values = self.engine.values_for(history, own).map_err(Fault::irreconcilable)?;
        Ok(DesiredRelease { chart, spec, values })
    }
}

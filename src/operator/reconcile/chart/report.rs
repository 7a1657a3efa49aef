//! The report of a reconcile to the manager, and the texts that must not show in it.

use super::ChartReconcile;
use opdev_event::{ObjectChange, Outcome, mask};
use opdev_release::verdict::{Fault, Report, Verdict};
use opdev_sources::ChartReconciler;
use opdev_sources::chart_problems::chart_secrets;

impl ChartReconcile {
    /// The work of the reconcile, for the manager.
    pub(super) fn report(mut self, verdict: Result<Verdict, Fault>) -> Report {
        let status =
            opdev_release::verdict::status_changes(&self.status_before, self.parent.object.get("status"));
        let (outcome, requeue, waiting, failure) = match verdict {
            Ok(verdict) => (verdict.outcome, verdict.requeue, verdict.waiting, None),
            Err(mut fault) => {
                let place = self.engine.place_of(&fault).map(Box::new);
                fault.diagnostic = fault.diagnostic.or(place);
                (Outcome::Failed, None, None, Some(fault.into_failed()))
            }
        };
        let told = self.engine.script.as_ref().map(|script| script.take_told());
        let (mut logs, mut reads) = (Vec::new(), None);
        if let Some(told) = told {
            self.script_secrets = told.secrets;
            self.engine.done.effects.known.extend(told.known.into_iter().map(|object| (object, false)));
            logs = told.logs;
            let mut all = told.reads;
            all.sort();
            all.dedup();
            reads = Some(all);
        }
        self.engine.memory.secrets = self.secrets();
        let objects: Vec<ObjectChange> = self.engine.done.effects.changes;
        Report {
            uid: Some(self.engine.owner.uid).filter(|uid| !uid.is_empty()),
            status,
            objects,
            known: self.engine.done.effects.known,
            dependents: if self.engine.reconciler.watch_dependents {
                self.engine.done.dependents
            } else {
                Vec::new()
            },
            steps: self.engine.done.clock.steps,
            requeue,
            waiting,
            failure,
            notices: self.engine.done.notices,
            releases: self.engine.done.changes,
            logs,
            reads,
            memory: self.engine.memory,
            ..Report::of(outcome)
        }
    }

    /// Texts that must not show in anything that is told about this reconcile.
    pub(super) fn secrets(&self) -> Vec<String> {
        let mut found = mask::secrets(&self.parent.object);
        found.extend(override_secrets(&self.engine.reconciler));
        if let Some(chart) = &self.engine.reconciler.chart {
            chart_secrets(chart, &mut found);
        }
        found.extend(self.script_secrets.iter().cloned());
        found.extend(self.engine.done.manifests.iter().flat_map(|text| mask::manifest_secrets(text)));
        found.retain(|secret| {
            *secret != self.parent.reference.name && Some(secret) != self.parent.reference.namespace.as_ref()
        });
        mask::known(found)
    }
}

/// The override values that are secret by their keys.
pub fn override_secrets(chart: &ChartReconciler) -> Vec<String> {
    let secret = chart.overrides.iter().filter(|(key, _)| mask::is_secret_path(key));
    secret.map(|(_, value)| value.clone()).collect()
}

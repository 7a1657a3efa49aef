//! The last step: status, events, and when to come again.

use super::ChartReconcile;
use crate::SHORTEST_REQUEUE;
use opdev_event::{Outcome, Requeue, RequeueReason};
use opdev_release::verdict::{Fault, Verdict};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// About how long a status write takes until it wakes the Operator SDK's operator.
const AT_ONCE: Duration = Duration::from_millis(20);

impl ChartReconcile {
    /// The end of a reconcile that went well, of both engines: status, events, and when to come again.
    pub(super) async fn end(&mut self, outcome: Outcome) -> Result<Verdict, Fault> {
        self.set_script_conditions();
        self.put_status().await.map_err(Fault::plain)?;
        self.engine.put_script_events().await;
        let period = self.period().map_err(Fault::plain)?;
        let own = self.engine.done.requeue.take().map(|after| after.max(SHORTEST_REQUEUE));
        let next = match (self.engine.done.again.take(), own, period) {
            (Some(words), _, _) => Some(Requeue { after: AT_ONCE, reason: RequeueReason::Wait { words } }),
            (None, Some(after), period) if period.is_none_or(|period| after <= period) => {
                Some(Requeue { after, reason: RequeueReason::Asked })
            }
            (None, _, period) => period.map(|after| Requeue { after, reason: RequeueReason::Period }),
        };
        let waiting = self.engine.done.waiting.take();
        let outcome = if waiting.is_some() { Outcome::Waiting } else { outcome };
        Ok(Verdict { waiting, ..Verdict::new(outcome).after(next) })
    }

    /// How long until the next reconcile without a cause.
    pub(super) fn period(&self) -> anyhow::Result<Option<Duration>> {
        let own = opdev_release::annotations::reconcile_period(&self.parent.object)?;
        let period = own.or(self.watch.reconcile_period).unwrap_or(self.engine.settings.reconcile_period);
        Ok(Some(period).filter(|period| !period.is_zero()))
    }

    fn set_script_conditions(&mut self) {
        let Some(script) = self.engine.script.as_ref().map(Arc::clone) else { return };
        for condition in script.take_conditions() {
            let text = |key: &str| condition.get(key).and_then(Value::as_str).unwrap_or_default();
            self.status.put(text("type"), text("status"), text("reason"), text("message"));
        }
    }
}

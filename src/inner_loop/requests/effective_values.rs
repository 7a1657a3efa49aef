//! The effective values of a custom resource that is looked at. Not a request that is announced: it changes
//! nothing.

use super::Requests;
use jiff::Timestamp;
use opdev_event::{Event, ValuesExplained, mask};
use opdev_object::meta::ObjectRef;
use opdev_sources::{Reconciler, Watch, values};

impl Requests {
    /// Tells the effective values as the object is now, or why there are none.
    pub async fn explain_values(&self, object: ObjectRef) {
        let reconciler =
            self.operator.sources.borrow().watches.iter().find(|watch| watch.gvk == object.gvk).cloned();
        let (chart, told) = match reconciler.as_deref() {
            Some(Watch { reconciler: Reconciler::Chart(reconciler), .. }) => match self.live(&object).await {
                Ok((_, live)) => (reconciler.path.clone(), values::effective(reconciler, &live)),
                Err(error) => (reconciler.path.clone(), Err(error)),
            },
            Some(watch) => {
                let why = anyhow::anyhow!(
                    "{} is reconciled by {}, not by a chart, so there are no values",
                    object.gvk.kind,
                    watch.path()
                );
                (String::new(), Err(why))
            }
            None => (String::new(), Err(anyhow::anyhow!("no chart reconciles {}", object.gvk.kind))),
        };
        let (values, problem) = match told {
            Ok(values) => (values, None),
            Err(error) => (Vec::new(), Some(mask::manifest(&format!("{error:#}")))),
        };
        let explained = ValuesExplained { at: Timestamp::now(), object, chart, values, problem };
        self.events.emit(Event::ValuesExplained(explained.into())).await;
    }
}

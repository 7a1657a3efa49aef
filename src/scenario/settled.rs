//! When a scenario is at rest: what is looked for is there, and neither the operator nor the state is behind
//! the API server. A watch may be late on a busy machine; what it has not shown yet would be missed without
//! that.

use super::world::World;
use opdev_client::{Api, Resource};

use futures::future::join_all;
use opdev_event::OperatorTask;
use opdev_object::meta::Gvk;
use opdev_state::{State, waiting};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The reason for waiting where there is no other.
pub(crate) const BEHIND: &str = "the operator has not seen all that the API server has";

impl World {
    /// Waits until the state says what `pick` looks for, and goes on saying so once the operator and the
    /// state have seen all that the API server has; the state as it is where that takes too long.
    pub(crate) async fn at_rest<T>(
        &self,
        within: Duration,
        pick: impl Fn(&State) -> Option<T>,
    ) -> Result<T, Arc<State>> {
        let deadline = Instant::now() + within;
        loop {
            self.until(left(deadline), &pick).await?;
            let state = self.caught_up(deadline).await?;
            if let Some(found) = pick(&state) {
                return Ok(found);
            }
        }
    }

    /// A state that is not behind what is there now, nor behind the operator once it has seen that.
    async fn caught_up(&self, deadline: Instant) -> Result<Arc<State>, Arc<State>> {
        let objects = self.objects().await;
        let shown = |state: &State| waiting::behind(state, &objects).is_none().then_some(());
        self.until(left(deadline), shown).await?;
        let task = OperatorTask::CatchUp { objects: objects.clone() };
        let seen = self.ask_and_see(task, left(deadline)).await;
        seen.map(|()| self.state()).map_err(|_| self.state())
    }

    /// All objects of the kinds that the state shows. Kinds that are not served, or may not be listed, have
    /// none.
    async fn objects(&self) -> Vec<Arc<Value>> {
        let state = self.state();
        let custom = state.kinds().iter().map(|kind| kind.gvk.clone());
        let kinds: Vec<Gvk> =
            opdev_observe::shown().filter(|gvk| gvk.kind != "Event").chain(custom).collect();
        let lists = kinds.iter().map(|gvk| self.list(gvk));
        join_all(lists).await.into_iter().flatten().map(Arc::new).collect()
    }

    async fn list(&self, gvk: &Gvk) -> Vec<Value> {
        let api: &Api = self.api();
        let own = self.own_namespace();
        // Objects of the cluster are everybody's where the operator has a namespace of its own.
        let concerns = |resource: &Resource| resource.namespaced || own.is_none();
        match api.resource(gvk).await {
            Ok(resource) if concerns(&resource) => api.list(&resource, own, "").await.unwrap_or_default(),
            Ok(_) | Err(_) => Vec::new(),
        }
    }
}

fn left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

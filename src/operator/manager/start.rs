//! Begins reconciles on free workers, and lets them end when opdev stops.

use super::worker_end::cover_causes;
use super::workers::Running;
use super::{Manager, Settings};
use crate::queue::{Ended, Origin};
use jiff::Timestamp;
use opdev_client::recorder::Recorder;
use opdev_event::{Event, ReconcileStarted, words};
use std::sync::Arc;
use tokio::time::Instant;
use tracing::Instrument as _;

impl Manager {
    /// Begins as many reconciles as workers are free.
    pub(super) async fn start_workers(&mut self) {
        while !self.server.lost
            && let Some(mut taken) = self.queue.take(Instant::now())
        {
            let Some(watch) = self.sources.watch(&taken.key.group, &taken.key.kind).cloned() else {
                self.queue.end(&taken.key, Ended::Done(None), |_| Origin::Other, Instant::now());
                self.queue.forget(&taken.key);
                continue;
            };
            let id = self.workers.next_number();
            let secrets = self.secrets_of(&taken.key, &watch);
            cover_causes(&mut taken.causes, &secrets);
            let object = self.kinds.reference(&taken.key, &watch.gvk);
            let started = ReconcileStarted {
                id,
                at: Timestamp::now(),
                object: object.clone(),
                causes: taken.causes.clone(),
            };
            self.events.emit(Event::ReconcileStarted(started)).await;
            let cancel = self.workers.cancel.child_token();
            let job = opdev_reconcile::job::Job {
                object: object.clone(),
                watch,
                api: self.server.api.clone(),
                settings: Arc::clone(&self.settings),
                cancel: cancel.clone(),
                renders: Arc::clone(&self.renders),
                memory: self.memories.remove(&taken.key).unwrap_or_default(),
                hub: self.kinds.hub(),
                kinds: self.kinds.children_of(&taken.key),
                own_only: taken.causes.iter().all(words::is_echo),
            };
            let recorder = Arc::new(Recorder::default());
            // Each line of the log says which reconcile it is from.
            let span = tracing::info_span!("reconcile", id, %object);
            let work = Arc::clone(&recorder).scope(opdev_reconcile::run(job)).instrument(span);
            let running = Running {
                id,
                at: Timestamp::now(),
                object,
                taken,
                sources: self.sources.number,
                began: self.kinds.reconcile_begins(),
                recorder,
                secrets,
                cancel,
            };
            self.workers.begin(work, running);
        }
    }

    /// Lets running reconciles end, then stops them.
    pub(super) async fn leave(&mut self) {
        self.kinds.stop();
        let Settings { finish, leave, .. } = *self.settings;
        if tokio::time::timeout(finish, self.workers_end()).await.is_ok() {
            return;
        }
        self.workers.cancel.cancel();
        if tokio::time::timeout(leave, self.workers_end()).await.is_err() {
            self.workers.tasks.shutdown().await;
        }
    }

    async fn workers_end(&mut self) {
        while let Some(ended) = self.workers.tasks.join_next_with_id().await {
            self.worker_ended(ended).await;
        }
    }
}

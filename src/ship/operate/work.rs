//! The work of one process: waits until it leads, reconciles, and stops in good order, or at once where it
//! leads no more.

use super::created::Creations;
use super::election::{Election, Lead};
use super::health::Health;
use super::logs::{self, Line, LogLevel, LogWriter};
use super::metrics::Metrics;
use anyhow::{Context as _, Result, anyhow};
use http::{Method, StatusCode};
use kube::Client;
use opdev_cluster::{CallRules, Connection};
use opdev_event::Event;
use opdev_event::sink::EventSink;
use opdev_event::sink::ReconcileNumbers;
use opdev_operator::manager;
use opdev_operator::manager::{ManagerInput, ManagerRequest};
use opdev_release::settings::Settings;
use opdev_sources::Sources;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// How many events wait before the operator does.
const EVENTS: usize = 4_096;
/// How often the depth of the queues is asked for.
const DEPTH: Duration = Duration::from_secs(1);

/// How long the last lines may take to be written; the Lease is released after them.
const LAST_LINES: Duration = Duration::from_millis(200);

/// Counts calls; lets writes through while this process leads.
pub(super) struct Rules {
    pub(super) metrics: Arc<Metrics>,
    /// `None` where writes go through always.
    pub(super) lead: Option<Lead>,
}

impl CallRules for Rules {
    fn forbids_writes(&self) -> Option<&'static str> {
        let holds = self.lead.as_ref().is_none_or(Lead::holds);
        (!holds).then_some("this replica does not lead; nothing was sent")
    }

    fn called(&self, method: &Method, status: Option<StatusCode>) {
        self.metrics.called(method.as_str(), status.map(|status| status.as_u16()));
    }
}

/// The inputs of the work.
pub(super) struct Work {
    pub(super) sources: Sources,
    /// The only namespaces to watch; empty means all.
    pub(super) namespaces: Vec<String>,
    pub(super) settings: Settings,
    /// The reconcilers' calls.
    pub(super) client: Client,
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    pub(super) log: LogWriter,
    pub(super) shutdown: CancellationToken,
}

impl Work {
    fn say(&self, logger: &'static str, message: impl Into<String>) {
        self.log.write(Line::new(LogLevel::Info, logger, message));
    }

    /// Works once this process leads, until it is told to stop or leads no more.
    ///
    /// # Errors
    /// Where the lead was lost, the operator broke off, or reconciles did not end in time.
    pub(super) async fn run(&self, connection: &mut Connection, election: Option<Election>) -> Result<()> {
        let Some(election) = election else {
            self.metrics.leads(true);
            return self.operate(connection).await;
        };
        let at = format!("{}/{}", election.namespace, election.name);
        self.say("leader", format!("attempting to acquire leader lease {at}..."));
        let (tell, mut leads) = watch::channel(false);
        // It goes on until the work is done: another one must not begin before that.
        let released = CancellationToken::new();
        let mut electing = AbortOnDropHandle::new(tokio::spawn(election.run(tell, released.clone())));
        self.health.stands_by();
        let led = tokio::select! {
            () = self.shutdown.cancelled() => false,
            ended = &mut electing => return ended.context("the election broke off")?,
            led = leads.wait_for(|leads| *leads) => led.is_ok(),
        };
        let mut worked = Ok(());
        if led {
            self.metrics.leads(true);
            self.say("leader", format!("successfully acquired lease {at}"));
            worked = tokio::select! {
                worked = self.operate(connection) => worked,
                // Running work is dropped on the spot.
                ended = &mut electing => {
                    self.metrics.leads(false);
                    return ended.context("the election broke off")?;
                }
            };
            self.metrics.leads(false);
        }
        released.cancel();
        let _ = electing.await;
        worked
    }

    async fn operate(&self, connection: &mut Connection) -> Result<()> {
        let (events, facts) = EventSink::channel(EVENTS);
        let (to_manager, requests) = mpsc::channel(64);
        let (publish, sources) = watch::channel(Arc::new(self.sources.clone()));
        let stop = CancellationToken::new();
        let listening = self.listen(facts);
        let mut beside = Vec::new();
        if let Some(monitor) = connection.monitor() {
            let (awake, _) = watch::channel(0);
            let (lost, lost_now) = watch::channel(false);
            beside.push(AbortOnDropHandle::new(tokio::spawn(monitor.run(events.clone(), lost, awake))));
            let following = opdev_operator::follow_connection(lost_now, to_manager.clone());
            beside.push(AbortOnDropHandle::new(tokio::spawn(following)));
        }
        let (health, asked, log) = (Arc::clone(&self.health), to_manager.clone(), self.log.clone());
        beside.push(AbortOnDropHandle::new(tokio::spawn(async move { health.follow(asked, log).await })));
        let depths = follow_depths(Arc::clone(&self.metrics), to_manager.clone());
        beside.push(AbortOnDropHandle::new(tokio::spawn(depths)));
        let manager = manager::run(ManagerInput {
            client: self.client.clone(),
            sources,
            events,
            numbers: ReconcileNumbers::default(),
            requests,
            settings: self.settings(connection),
            shutdown: stop.clone(),
        });
        self.say("cmd", "Starting workers");
        // Where the lead is lost this is dropped, and with it all reconciles.
        let mut running = AbortOnDropHandle::new(tokio::spawn(manager));
        let ended = tokio::select! {
            ended = &mut running => Err(anyhow!("the operator has stopped: {ended:?}")),
            () = self.shutdown.cancelled() => {
                self.say("cmd", "Stopping and waiting for reconciles that run");
                stop.cancel();
                let began = std::time::Instant::now();
                let ended = running.await;
                match ended.context("the operator broke off")? {
                    Ok(()) if self.settings.finish.is_zero() || began.elapsed() < self.settings.finish => Ok(()),
                    Ok(()) => Err(anyhow!("reconciles did not end within {} s", self.settings.finish.as_secs())),
                    Err(error) => Err(error),
                }
            }
        };
        drop((beside, publish, to_manager));
        let _ = tokio::time::timeout(LAST_LINES, listening).await;
        ended
    }

    fn settings(&self, connection: &Connection) -> Settings {
        let (namespace, only) = match self.namespaces.as_slice() {
            [one] => (Some(one.clone()), Vec::new()),
            some => (None, some.to_vec()),
        };
        Settings { namespace, only, read_only: connection.read_only.clone(), ..self.settings.clone() }
    }

    /// Counts and writes what happens, until there are no more events.
    fn listen(&self, mut facts: mpsc::Receiver<Event>) -> tokio::task::JoinHandle<()> {
        let (metrics, log, health) = (Arc::clone(&self.metrics), self.log.clone(), Arc::clone(&self.health));
        let mut creations =
            Creations::follow(Arc::clone(&metrics), self.client.clone(), self.namespaces.clone());
        tokio::spawn(async move {
            while let Some(event) = facts.recv().await {
                metrics.hear(&event);
                health.hear(&event);
                for line in logs::lines(&event) {
                    log.write(line);
                }
                if let Event::Reconciled(reconcile) = &event {
                    creations.hear(reconcile);
                }
            }
        })
    }
}

/// Asks the manager how many objects wait, again and again, until it ends.
async fn follow_depths(metrics: Arc<Metrics>, manager: mpsc::Sender<ManagerRequest>) {
    loop {
        let (reply, answer) = oneshot::channel();
        if manager.send(ManagerRequest::Look { reply }).await.is_err() {
            return;
        }
        let Ok(kinds) = answer.await else { return };
        for kind in kinds {
            metrics.waits(&kind.gvk, kind.waiting);
        }
        tokio::time::sleep(DEPTH).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_without_the_lead() {
        let metrics = Arc::new(Metrics::for_tests());
        let rules = Rules { metrics: Arc::clone(&metrics), lead: Some(Lead::default()) };
        assert!(rules.forbids_writes().is_some());
        assert!(Rules { metrics, lead: None }.forbids_writes().is_none());
    }
}

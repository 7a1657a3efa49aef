//! The problem: the lead may end while a write is on its way. Each writer asks here at the moment of its
//! write, and a process that was frozen past its lease must find out before it writes.
//!
//! Leader election over a Lease of the API server: reads the Lease, and writes what `lease` decides.

use super::health::Health;
use super::lease::{Elector, Seen, Step, Timing};
use anyhow::{Result, bail};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::Client;
use kube::api::{Api, PostParams};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long one round of calls may take.
const ROUND: Duration = Duration::from_secs(5);
/// How often the same trouble with the Lease is told.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// How long the release at the end may take.
const RELEASE: Duration = Duration::from_secs(1);

/// The lead of this process, for everybody who writes. It ends by itself, also where the election's own task
/// does not run: a process that was frozen and goes on must not write what it was about to.
#[derive(Clone, Debug, Default)]
pub(super) struct Lead(Arc<Mutex<Option<Instant>>>);

impl Lead {
    pub(super) fn holds(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|until| Instant::now() < until)
    }

    /// It ends then; at once where there is no such moment.
    fn until(&self, until: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// It ends now.
    pub(super) fn end(&self) {
        self.until(None);
    }
}

/// A candidate for one Lease.
pub(super) struct Election {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The name of this process.
    pub(super) me: String,
    pub(super) timing: Timing,
    pub(super) lead: Lead,
    /// Hears whether the Lease can be used.
    pub(super) health: Arc<Health>,
}

impl Election {
    /// Tries to lead until `stop` fires, and tells whether it does. Then the Lease is released.
    ///
    /// # Errors
    /// Where it has led and does not any more: whatever it did has to stop at once.
    pub(super) async fn run(self, leads: watch::Sender<bool>, stop: CancellationToken) -> Result<()> {
        let began = Instant::now();
        let now = || began.elapsed();
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut elector = Elector::new(self.me.clone(), self.timing);
        let mut troubled: Option<(String, Instant)> = None;
        loop {
            if elector.has_lost(now()) {
                leads.send_replace(false);
                bail!("leader election lost");
            }
            let limit = if elector.leads(now()) { ROUND.min(elector.left(now())) } else { ROUND };
            let round = tokio::time::timeout(limit, self.round(&leases, &mut elector, now));
            let ended = tokio::select! {
                () = stop.cancelled() => break,
                ended = round => ended.unwrap_or_else(|_| bail!("the API server does not answer in time")),
            };
            match ended {
                Ok(()) => {
                    troubled = None;
                    self.health.lease_fails(None);
                }
                Err(error) => {
                    let why = format!("the Lease {}/{} cannot be used: {error:#}", self.namespace, self.name);
                    let told = troubled
                        .as_ref()
                        .is_some_and(|(before, at)| *before == why && at.elapsed() < TELL_AGAIN);
                    if !told {
                        tracing::error!("{why}");
                        troubled = Some((why.clone(), Instant::now()));
                    }
                    self.health.lease_fails(Some(why));
                }
            }
            self.lead.until(elector.until().map(|until| began + until));
            if elector.has_lost(now()) {
                leads.send_replace(false);
                bail!("leader election lost");
            }
            if elector.leads(now()) && !*leads.borrow() {
                leads.send_replace(true);
                tokio::spawn(announce(
                    self.client.clone(),
                    self.namespace.clone(),
                    self.name.clone(),
                    self.me.clone(),
                ));
            }
            let pause = self.timing.retry.mul_f64(0.8 + 0.4 * chance());
            let pause = if elector.leads(now()) { pause.min(elector.left(now())) } else { pause };
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.lead.end();
        // Also where it is not known whether it leads: the answer to its last write may not have come yet.
        match tokio::time::timeout(RELEASE, self.release(&leases)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!("the Lease {}/{} was not released: {error:#}", self.namespace, self.name);
            }
            Err(_) => tracing::warn!("the Lease {}/{} was not released in time", self.namespace, self.name),
        }
        Ok(())
    }

    async fn round(
        &self,
        leases: &Api<Lease>,
        elector: &mut Elector,
        now: impl Fn() -> Duration,
    ) -> Result<()> {
        let there = leases.get_opt(&self.name).await.map_err(with_hint)?;
        let seen = there.as_ref().map(seen);
        let transitions = match elector.look(seen.as_ref(), now()) {
            Step::Wait => return Ok(()),
            Step::Take { transitions } | Step::Renew { transitions } => transitions,
        };
        let at = Timestamp::now();
        let before = there.as_ref().and_then(|lease| lease.spec.as_ref());
        let mine = before.filter(|spec| spec.holder_identity.as_deref() == Some(self.me.as_str()));
        let spec = LeaseSpec {
            holder_identity: Some(self.me.clone()),
            lease_duration_seconds: Some(i32::try_from(self.timing.duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: mine.and_then(|spec| spec.acquire_time.clone()).or(Some(MicroTime(at))),
            renew_time: Some(MicroTime(at)),
            lease_transitions: Some(transitions),
            ..before.cloned().unwrap_or_default()
        };
        let begun = now();
        match there {
            Some(lease) => {
                let newer = Lease { spec: Some(spec), ..lease };
                leases.replace(&self.name, &PostParams::default(), &newer).await.map_err(with_hint)?;
            }
            None => {
                let mut first = Lease { spec: Some(spec), ..Lease::default() };
                first.metadata.name = Some(self.name.clone());
                leases.create(&PostParams::default(), &first).await.map_err(with_hint)?;
            }
        }
        elector.wrote(begun, now());
        Ok(())
    }

    /// Lets the next one lead at once. Only what this process still holds is released.
    async fn release(&self, leases: &Api<Lease>) -> Result<()> {
        let Some(mut lease) = leases.get_opt(&self.name).await? else { return Ok(()) };
        let Some(spec) = lease.spec.as_mut() else { return Ok(()) };
        if spec.holder_identity.as_deref() != Some(self.me.as_str()) {
            return Ok(());
        }
        let at = MicroTime(Timestamp::now());
        *spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(at.clone()),
            renew_time: Some(at),
            ..spec.clone()
        };
        leases.replace(&self.name, &PostParams::default(), &lease).await?;
        Ok(())
    }
}

/// Adds the remedy where a role is missing.
fn with_hint(error: kube::Error) -> anyhow::Error {
    let forbidden = matches!(&error, kube::Error::Api(status) if status.code == 403);
    let error = match error {
        // Its own text would dump the whole answer as well.
        kube::Error::Api(status) if !status.message.is_empty() => anyhow::Error::msg(status.message),
        other => other.into(),
    };
    match forbidden {
        true => error.context("the ServiceAccount lacks the leader-election-role of config/rbac"),
        false => error,
    }
}

/// Says on the cluster who leads. It may lack the right to.
async fn announce(client: Client, namespace: String, name: String, me: String) {
    let at = Timestamp::now();
    let mut event = Event {
        involved_object: ObjectReference {
            api_version: Some("coordination.k8s.io/v1".to_owned()),
            kind: Some("Lease".to_owned()),
            name: Some(name.clone()),
            namespace: Some(namespace.clone()),
            ..ObjectReference::default()
        },
        reason: Some("LeaderElection".to_owned()),
        message: Some(format!("{me} became leader")),
        type_: Some("Normal".to_owned()),
        count: Some(1),
        first_timestamp: Some(Time(at)),
        last_timestamp: Some(Time(at)),
        source: Some(EventSource { component: Some(me), host: None }),
        ..Event::default()
    };
    event.metadata.name = Some(format!("{name}.{:x}", at.as_nanosecond()));
    let events: Api<Event> = Api::namespaced(client, &namespace);
    let sent = tokio::time::timeout(ROUND, events.create(&PostParams::default(), &event)).await;
    if let Ok(Err(error)) = sent {
        tracing::debug!("no event about the leader: {error}");
    }
}

fn seen(lease: &Lease) -> Seen {
    let spec = lease.spec.clone().unwrap_or_default();
    let record = format!("{spec:?}");
    let seconds = u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
    Seen {
        record,
        holder: spec.holder_identity.unwrap_or_default(),
        duration: Duration::from_secs(seconds),
        transitions: spec.lease_transitions.unwrap_or_default(),
    }
}

/// A random number from 0 to 1, so that replicas do not ask in step.
fn chance() -> f64 {
    let mut bytes = [0; 2];
    // Without randomness they ask in step.
    let _ = getrandom::fill(&mut bytes);
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}

/// The name of this process among the candidates: the pod's, with a random part.
pub(super) fn identity(host: &str) -> String {
    let mut bytes = [0; 16];
    let _ = getrandom::fill(&mut bytes);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [hex.get(..8), hex.get(8..12), hex.get(12..16), hex.get(16..20), hex.get(20..)];
    let uuid: Vec<&str> = parts.into_iter().flatten().collect();
    format!("{host}_{}", uuid.join("-"))
}

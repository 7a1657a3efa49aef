//! The problem: a connection breaks in many ways: a laptop sleeps, a token ends, a tunnel changes its port,
//! the kubeconfig names another server. Each must be told once, and none may end what the user does.
//!
//! Looks after the connection to a context: says what opdev waits for, reads the kubeconfig again, tries
//! again, and says when all is well. Ends with opdev.

use super::Choice;
use super::kubeconfig::Target;
use super::link::Link;
use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{ConnectionChanged, Event, Level, Notice, Trouble, TroubleKind, words};
use std::time::{Duration, Instant};
use tokio::sync::watch;

const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a busy server is not told of, nor one that did not answer a moment ago.
const MOMENT: Duration = Duration::from_millis(1500);
/// A server that answers again is watched for so long: one that drops some calls and answers others is told
/// once.
const UNSURE: Duration = Duration::from_secs(10);

/// Watches one connection: what it waits for, and when all is well again.
pub struct ConnectionMonitor {
    pub(super) link: Link,
    pub(super) choice: Choice,
    pub(super) context: String,
}

impl ConnectionMonitor {
    /// Runs until it is dropped.
    pub async fn run(self, events: EventSink, lost_now: watch::Sender<bool>, awake: watch::Sender<u64>) {
        let mut trouble = self.link.trouble();
        let mut well: Option<Instant> = None;
        loop {
            let Some(now) = trouble.borrow_and_update().clone() else {
                if trouble.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let since = now.since;
            let unsure = well.is_some_and(|since| since.elapsed() < UNSURE);
            // A server that sets up a new kind is busy for a moment; that is worth no word.
            if (now.kind == TroubleKind::Busy || unsure)
                && tokio::time::timeout(MOMENT, trouble.changed()).await.is_ok_and(|changed| changed.is_ok())
            {
                continue;
            }
            let waits = now.kind.still_answers();
            if !waits {
                let _ = lost_now.send_replace(true);
            }
            self.tell(&events, &now).await;
            let lost = self.until_well(&events, &mut trouble, now).await;
            if lost || !waits {
                let _ = lost_now.send_replace(false);
                awake.send_modify(|times| *times += 1);
            }
            well = Some(Instant::now());
            let took = Timestamp::now().duration_since(since).unsigned_abs();
            let at = Timestamp::now();
            events.emit(Event::ConnectionChanged(ConnectionChanged { at, trouble: None })).await;
            let message = format!("the API server answers again, after {}", words::took(took));
            events
                .emit(Event::Noticed(Notice { at, level: Level::Info, message, hint: None, object: None }))
                .await;
        }
    }

    /// Tries until the server answers; whether the connection was lost meanwhile.
    async fn until_well(
        &self,
        events: &EventSink,
        trouble: &mut watch::Receiver<Option<Trouble>>,
        mut told: Trouble,
    ) -> bool {
        let mut pause = FIRST_PAUSE;
        let mut lost = false;
        loop {
            lost |= !told.kind.still_answers();
            let waiting = Trouble { retry: Some(pause), ..told.clone() };
            let at = Timestamp::now();
            events.emit(Event::ConnectionChanged(ConnectionChanged { at, trouble: Some(waiting) })).await;
            // Somebody else's call may be answered, or say more, before the next try.
            if let Ok(Ok(())) = tokio::time::timeout(pause, trouble.changed()).await {
                let now = trouble.borrow_and_update().clone();
                match now {
                    None => return lost,
                    Some(now) => {
                        if now.kind != told.kind {
                            self.tell(events, &now).await;
                        }
                        told = now;
                        continue;
                    }
                }
            }
            if told.kind.still_answers() {
                // The call that waits ends it, nobody else.
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            self.read_again(events).await;
            if self.link.probe().await.is_ok() {
                // The probe itself has said so to the link; take its word in.
                trouble.borrow_and_update();
                return lost;
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// A login or a new cluster rewrites the kubeconfig.
    async fn read_again(&self, events: &EventSink) {
        let before = self.link.target().await;
        let Some(now) = self.target().await else { return };
        if same(&before, &now) {
            return;
        }
        if before.names.server != now.names.server {
            let message = format!(
                "the context {} now names another server ({} instead of {}); opdev stays with the one it was started on",
                self.context, now.names.server, before.names.server
            );
            let hint = Some("go elsewhere and come back (g c), or restart opdev, to go there".to_owned());
            let at = Timestamp::now();
            events.emit(Event::Noticed(Notice { at, level: Level::Warn, message, hint, object: None })).await;
            return;
        }
        if let Err(problem) = self.link.renew(now).await {
            tracing::warn!("{}", words::one_line(&problem.what));
        }
    }

    async fn target(&self) -> Option<Target> {
        let merged = self.choice.merged().ok()??;
        merged.target(&self.context).await.ok()
    }

    async fn tell(&self, events: &EventSink, trouble: &Trouble) {
        let level = match trouble.kind {
            TroubleKind::Slow | TroubleKind::Busy => Level::Warn,
            TroubleKind::Unreachable | TroubleKind::Untrusted | TroubleKind::Unauthorized => Level::Error,
        };
        let hint = match trouble.kind {
            TroubleKind::Slow | TroubleKind::Busy => None,
            TroubleKind::Unreachable => {
                Some("opdev keeps trying and goes on by itself once it answers".to_owned())
            }
            TroubleKind::Untrusted | TroubleKind::Unauthorized => Some(
                "log in again as you do for kubectl; opdev reads the kubeconfig again and goes on by itself"
                    .to_owned(),
            ),
        };
        let notice = Notice { at: Timestamp::now(), level, message: trouble.why.clone(), hint, object: None };
        events.emit(Event::Noticed(notice)).await;
    }
}

/// Returns true if two readings of the kubeconfig say the same about the connection.
fn same(a: &Target, b: &Target) -> bool {
    // kube compares no users; the text of one has all of its fields.
    let user = |target: &Target| serde_json::to_string(&target.user).unwrap_or_default();
    let server = |target: &Target| (target.config.cluster_url.clone(), target.config.root_cert.clone());
    server(a) == server(b) && user(a) == user(b)
}

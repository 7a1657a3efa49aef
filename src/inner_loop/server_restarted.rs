//! Notices that the API server which comes back is not the one that went: a server that keeps its objects in
//! memory starts empty. What a cluster is known by is the uid of its namespace `kube-system`.

use http::Method;
use jiff::Timestamp;
use kube::Client;
use opdev_client::read_only::ReadOnly;
use opdev_client::send;
use opdev_cluster::Connection;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Level, Notice};
use opdev_object::meta;
use opdev_requests::reload_request::Ask;
use tokio::sync::{mpsc, watch};

/// A look at a server that came back.
pub(crate) struct Returned {
    client: Client,
    events: EventSink,
    read_only: ReadOnly,
    /// The reloader, which installs the CRDs again.
    reloader: mpsc::Sender<Ask>,
    /// Changes when the API server answers again.
    awake: watch::Receiver<u64>,
}

impl Returned {
    pub(crate) fn of(
        connection: &Connection,
        events: &EventSink,
        reloader: &mpsc::Sender<Ask>,
        awake: &watch::Receiver<u64>,
    ) -> Returned {
        Returned {
            client: connection.client.clone(),
            events: events.clone(),
            read_only: connection.read_only.clone(),
            reloader: reloader.clone(),
            awake: awake.clone(),
        }
    }

    /// Looks whenever the API server answers again, until nobody tells that any more.
    pub(crate) async fn run(mut self) {
        let mut known = self.identity().await;
        while self.awake.changed().await.is_ok() {
            let now = self.identity().await;
            if known.is_some() && now.is_some() && now != known {
                self.tell().await;
                if !self.read_only.holds() {
                    let _ = self.reloader.send(Ask::Reload).await;
                }
            }
            known = now.or(known);
        }
    }

    /// `None` where it may not be read.
    async fn identity(&self) -> Option<String> {
        let path = "/api/v1/namespaces/kube-system";
        let (namespace, _) = send(&self.client, Method::GET, path, "application/json", None).await.ok()?;
        meta::uid(&namespace).map(str::to_owned)
    }

    async fn tell(&self) {
        let crds = if self.read_only.holds() { "" } else { "; the CRDs are installed again" };
        let message =
            format!("the API server has come back as another cluster, without what was on it{crds}");
        let hint = Some("apply the custom resources again (key a)".to_owned());
        let notice = Notice { at: Timestamp::now(), level: Level::Warn, message, hint, object: None };
        self.events.emit(Event::Noticed(notice)).await;
    }
}

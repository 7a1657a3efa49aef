//! The guard of a cluster that is not clearly local: nothing is written until the user has typed the
//! context's name. What lifts it reaches everything that writes, through one `ReadOnly`.

use crate::reload_request::Ask;
use anyhow::{Result, bail};
use jiff::Timestamp;
use opdev_client::read_only::ReadOnly;
use opdev_event::sink::EventSink;
use opdev_event::{Event, Protection, ProtectionChanged};
use opdev_operator::manager::ManagerRequest;
use tokio::sync::mpsc;

/// The guard of one cluster.
#[derive(Clone)]
pub struct Guard {
    pub context: String,
    pub read_only: ReadOnly,
    pub events: EventSink,
    pub operator: mpsc::Sender<ManagerRequest>,
    pub reloader: mpsc::Sender<Ask>,
}

impl Guard {
    /// Why nothing may be written, where that is so.
    pub(crate) fn refusal(&self) -> Option<String> {
        let name = &self.context;
        self.read_only.holds().then(|| {
            format!(
                "the context {name} is not clearly local, so nothing is written; unlock it with its name, or start opdev \
                 with --allow-context {name}"
            )
        })
    }

    /// Allows writing where the name is right: CRDs go to the server, and every object is reconciled.
    ///
    /// # Errors
    /// Where the name is another one.
    pub(crate) async fn unlock(&self, typed: &str) -> Result<String> {
        let name = &self.context;
        if typed.trim() != name {
            bail!("the context is named {name}, not {:?}; nothing was unlocked", typed.trim());
        }
        if !self.read_only.holds() {
            return Ok(format!("{name} is not locked"));
        }
        self.read_only.lift();
        let changed = ProtectionChanged { at: Timestamp::now(), protection: Protection::Confirmed };
        self.events.emit(Event::ProtectionChanged(changed)).await;
        // The CRDs first; objects of kinds that are served already need not wait for them.
        let _ = self.reloader.send(Ask::Reload).await;
        let _ = self
            .operator
            .send(ManagerRequest::ReconcileAll { why: "writes were held back until now".to_owned() })
            .await;
        Ok(format!("opdev writes to {name} until it ends"))
    }
}

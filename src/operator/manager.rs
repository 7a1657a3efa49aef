//! Runs the reconcilers: follows the sources, starts and stops kinds, hands objects to workers, reports passes.

use crate::sources::Sources;
use crate::tap::EventSink;
use opdev_object::meta::ObjectRef;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// What the manager needs.
pub struct ManagerInput {
    /// The API server to reconcile against.
    pub client: kube::Client,
    /// The newest sources.
    pub sources: watch::Receiver<Arc<Sources>>,
    /// Where facts go.
    pub events: EventSink,
    /// What the user asks for.
    pub requests: mpsc::Receiver<ManagerRequest>,
    /// How to run.
    pub settings: Settings,
    /// Fires when opdev stops.
    pub shutdown: CancellationToken,
}

/// What one can ask of a running manager.
#[derive(Clone, Debug)]
pub enum ManagerRequest {
    /// Reconcile an object now, whatever its back-off.
    ReconcileNow {
        /// Which object.
        object: ObjectRef,
    },
}

/// How the manager runs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The only namespace to watch; `None` means all.
    pub namespace: Option<String>,
    /// How often an object is reconciled without a cause, unless its watch says otherwise. Zero means never.
    pub reconcile_period: Duration,
    /// How many objects of one kind are reconciled at once, unless its watch says otherwise.
    pub max_concurrent: usize,
    /// Whose rendering the charts get.
    pub helm_compat: HelmCompat,
    /// How long one hook may take.
    pub hook_timeout: Duration,
    /// How many revisions of a release are kept.
    pub max_history: usize,
    /// Hides override values in Kubernetes events.
    pub suppress_override_values: bool,
    /// Nothing is written.
    pub read_only: bool,
}

/// Whose rendering the charts get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HelmCompat {
    /// Helm 3, which the Operator SDK links.
    #[default]
    V3,
    /// Helm 4.
    V4,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            namespace: None,
            reconcile_period: Duration::from_secs(60),
            max_concurrent: std::thread::available_parallelism().map_or(4, usize::from),
            helm_compat: HelmCompat::V3,
            hook_timeout: Duration::from_secs(300),
            max_history: 10,
            suppress_override_values: false,
            read_only: false,
        }
    }
}

/// Runs until the shutdown token fires.
pub async fn run(input: ManagerInput) -> anyhow::Result<()> {
    input.shutdown.cancelled().await;
    Ok(())
}

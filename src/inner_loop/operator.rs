//! How the operator runs on a cluster: its settings there, and its task.

use super::Input;
use super::survive::survive;
use opdev_client::read_only::ReadOnly;
use opdev_cluster::ConnectionMonitor;
use opdev_event::sink::EventSink;
use opdev_operator::manager;
use opdev_operator::manager::{ManagerInput, ManagerRequest};
use opdev_release::settings::Settings;
use opdev_release::unfit::UnfitWrite;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The operator's settings on this cluster. Programs whose writes do not fit are reported to `unfit`.
pub(super) fn settings_here(
    input: &Input,
    namespace: &Option<String>,
    read_only: ReadOnly,
    unfit: mpsc::Sender<UnfitWrite>,
) -> Settings {
    let (namespace, roles_kept) = (namespace.clone(), input.cluster.service_account.is_some());
    Settings { namespace, read_only, roles_kept, unfit: Some(unfit), ..input.operator.clone() }
}

/// Runs the operator; why it cannot go on is sent to `die`.
pub(super) fn start_operator(
    manager: ManagerInput,
    die: mpsc::Sender<anyhow::Error>,
    tasks: &TaskTracker,
) -> JoinHandle<()> {
    tasks.spawn(async move {
        if let Err(error) = survive("the operator", manager::run(manager)).await {
            let _ = die.send(error).await;
        }
    })
}

/// Looks after the connection where it can break, and tells the manager when it is lost.
pub(crate) fn monitor_connection(
    monitor: Option<ConnectionMonitor>,
    events: &EventSink,
    (manager, awake): (&mpsc::Sender<ManagerRequest>, &watch::Sender<u64>),
    (tasks, shutdown): (&TaskTracker, &CancellationToken),
) {
    let Some(monitor) = monitor else { return };
    let (lost, lost_now) = watch::channel(false);
    let monitoring = monitor.run(events.clone(), lost, awake.clone());
    tasks.spawn(shutdown.clone().run_until_cancelled_owned(monitoring));
    let following = opdev_operator::follow_connection(lost_now, manager.clone());
    tasks.spawn(shutdown.clone().run_until_cancelled_owned(following));
}

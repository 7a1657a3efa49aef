//! How the operator runs on a cluster: its settings there, and its task.

use super::Input;
use super::survive::survive;
use crate::client::read_only::ReadOnly;
use crate::operator::manager;
use crate::operator::manager::ManagerInput;
use crate::operator::release::settings::Settings;
use crate::operator::release::unfit::UnfitWrite;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
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

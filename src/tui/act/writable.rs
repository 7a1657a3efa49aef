//! Conditions of every request: the connection is there, and the cluster may be written to.

use opdev_event::Started;
use opdev_panes::disabled::NotNow;
use opdev_state::State;

/// The connection; why there is none.
pub(crate) fn connected(state: &State) -> Result<&Started, NotNow> {
    if state.stopping.is_some() {
        return Err(NotNow::Stopping);
    }
    state.started.as_deref().ok_or(NotNow::NotConnected)
}

/// Checks that writes are allowed; the error says why not.
///
/// # Errors
/// What allows them.
pub(crate) fn writes(state: &State) -> Result<(), NotNow> {
    let cluster = &connected(state)?.cluster;
    if cluster.read_only {
        return Err(NotNow::ReadOnly { context: cluster.name.clone() });
    }
    Ok(())
}

//! Conditions of every request: the connection is there, and the cluster may be written to.

use crate::view::ViewState;
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

/// Says whether there is a connection, as the rows of the registry ask for it.
pub(crate) fn is_connected(_: &ViewState, state: &State) -> Result<(), NotNow> {
    connected(state).map(drop)
}

/// Says whether writes are allowed, as the rows of the registry ask for it.
pub(crate) fn may_write(_: &ViewState, state: &State) -> Result<(), NotNow> {
    writes(state)
}

//! Whether anything can be asked for at all: the connection is there, and the cluster may be written to.

use crate::event::Started;
use crate::state::State;

/// The connection; why there is none.
pub(super) fn connected(state: &State) -> Result<&Started, String> {
    if state.stopping.is_some() {
        return Err("opdev is stopping".to_owned());
    }
    state.started.as_deref().ok_or_else(|| "opdev is not connected yet".to_owned())
}

/// Whether writes are allowed; if not, why.
///
/// # Errors
/// What allows them.
pub(super) fn writes(state: &State) -> Result<(), String> {
    let cluster = &connected(state)?.cluster;
    if cluster.read_only {
        return Err(format!("writes are held back on context {}; U unlocks it", cluster.name));
    }
    Ok(())
}

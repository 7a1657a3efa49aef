//! Questions before a cluster is left.

use opdev_state::{Seen, State};
use std::sync::Arc;

/// Returns true if custom resources would stay behind on a cluster that lives on, and nobody has said what
/// becomes of them.
pub(crate) fn asks_before_leaving(state: &State) -> bool {
    let Some(started) = &state.started else { return false };
    let open = !started.cluster.embedded && !started.cluster.read_only && started.on_exit.is_none();
    let reconciled = |seen: &Arc<Seen>| state.only_shown(&seen.key.group, &seen.key.kind).is_none();
    open && state.stopping.is_none() && state.objects.custom().any(reconciled)
}

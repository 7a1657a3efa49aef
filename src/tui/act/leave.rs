//! Leaving: what a cluster that lives on asks first, and the two keys that end opdev.

use crate::act::ask::ask;
use crate::command::Command;
use crate::dialog::Leave;
use crate::view::ViewState;
use opdev_event::{Asker, SessionRequest};
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

/// Leaves, after a question where custom resources would stay behind; at once where opdev is leaving already.
pub(crate) fn quit(view: &mut ViewState, state: &State) -> Vec<Command> {
    if !view.leaving && asks_before_leaving(state) {
        view.open(Leave::default());
        return Vec::new();
    }
    stop(view, state)
}

/// Leaves, whatever is open; at once where opdev is leaving already.
pub(crate) fn stop(view: &mut ViewState, _: &State) -> Vec<Command> {
    if view.leaving {
        return vec![Command::Leave];
    }
    view.leaving = true;
    view.layers.clear();
    ask(view, SessionRequest::Quit { by: Asker::User })
}

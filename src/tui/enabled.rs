//! Which actions are possible right now.

use super::action::Do;
use super::not_now::NotNow;
use super::view::ViewState;
use super::{acting, finding, seeing};
use crate::state::State;

/// Whether an action is possible right now; if not, why.
pub(super) fn enabled(does: Do, view: &ViewState, state: &State) -> Result<(), NotNow> {
    if let Do::Seek(seek) = does {
        return finding::enabled(seek, view, state);
    }
    if let Do::See(see) = does {
        return seeing::enabled(see, view, state);
    }
    if does == Do::OpenFile {
        return super::opening::enabled(view, state);
    }
    if let Do::Border(side) = does {
        return view.border(side).map(|_| ());
    }
    if let Do::Scale | Do::Delete | Do::Reconcile | Do::Pause | Do::Step = does
        && let Some(gone) = view.targets(state).into_iter().find(|seen| state.gone_at(&seen.key).is_some())
    {
        return Err(NotNow::Deleted { kind: gone.key.kind.clone(), name: gone.key.name.clone() });
    }
    acting::enabled(does, view, state)
}

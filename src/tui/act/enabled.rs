//! The actions that are possible right now.

use super::change_view;
use crate::find;
use crate::view::ViewState;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::Do;
use opdev_state::State;

/// Checks that an action is possible right now; the error says why not.
pub(crate) fn enabled(does: Do, view: &ViewState, state: &State) -> Result<(), NotNow> {
    if let Do::Seek(seek) = does {
        return find::enabled(seek, view, state);
    }
    if let Do::See(see) = does {
        return change_view::enabled(see, view, state);
    }
    if does == Do::OpenFile {
        return super::open_file::enabled(view, state);
    }
    if let Do::Border(side) = does {
        return view.border(side).map(|_| ());
    }
    if let Do::Scale | Do::Delete | Do::Reconcile | Do::Pause | Do::Step = does
        && let Some(gone) = view.targets(state).into_iter().find(|seen| state.gone_at(&seen.key).is_some())
    {
        return Err(NotNow::Deleted { kind: gone.key.kind.clone(), name: gone.key.name.clone() });
    }
    super::enabled(does, view, state)
}

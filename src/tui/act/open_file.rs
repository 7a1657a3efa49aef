//! The file that the key that opens a file means: the one that the selected failure names, else the one that
//! is broken.

use crate::command::Command;
use crate::view::ViewState;
use opdev_event::Place;
use opdev_panes::disabled::NotNow;
use opdev_panes::pane::Pane;
use opdev_state::State;
use std::path::Path;

/// The place to go to; none where nothing names one.
pub(crate) fn place(view: &ViewState, state: &State) -> Option<Place> {
    let failure = view.reconcile().filter(|_| matches!(view.focus, Pane::Reconciles | Pane::Detail));
    let failure =
        failure.and_then(|reconcile| reconcile.failure.as_ref()?.diagnostic.as_ref()?.place.clone());
    failure.or_else(|| state.problems().into_iter().find_map(|problem| problem.place))
}

/// Checks that there is one; the error says why not.
pub(crate) fn enabled(view: &ViewState, state: &State) -> Result<(), NotNow> {
    place(view, state)
        .map(|_| ())
        .ok_or_else(|| "no file is broken, and no failure that is selected names one".into())
}

/// Opens it.
pub(crate) fn open(view: &ViewState, state: &State) -> Vec<Command> {
    place(view, state).map(|place| command(&place, state)).into_iter().collect()
}

/// The program that opens a place in a file of the project.
pub(crate) fn command(place: &Place, state: &State) -> Command {
    let root = state.started.as_ref().map(|started| started.root.as_str()).unwrap_or_default();
    Command::OpenFile { path: Path::new(root).join(&place.file), line: place.line, column: place.column }
}

//! The file that the key that opens a file means: the one that the selected failure names, else the one that
//! is broken, else the place of the finding that is looked at.

use crate::command::Command;
use crate::view::ViewState;
use opdev_event::{FindingSeverity, Place, RuleFinding};
use opdev_panes::disabled::NotNow;
use opdev_panes::pane::Pane;
use opdev_state::State;
use std::path::Path;
use std::sync::Arc;

/// The place to go to; none where nothing names one.
pub(crate) fn place(view: &ViewState, state: &State) -> Option<Place> {
    let failure = view.reconcile().filter(|_| matches!(view.focus, Pane::Reconciles | Pane::Detail));
    let failure =
        failure.and_then(|reconcile| reconcile.failure.as_ref()?.diagnostic.as_ref()?.place.clone());
    failure
        .or_else(|| state.problems().into_iter().find_map(|problem| problem.place))
        .or_else(|| finding(view, state)?.place.clone())
}

/// The finding that is looked at: that of the selected reconcile, else that of the selected object, else the
/// worst.
pub(crate) fn finding<'a>(view: &ViewState, state: &'a State) -> Option<&'a Arc<RuleFinding>> {
    let reconcile = view.reconcile().filter(|_| matches!(view.focus, Pane::Reconciles | Pane::Detail));
    let open = |finding: &&Arc<RuleFinding>| finding.is_open() && finding.severity != FindingSeverity::Hint;
    let shown = reconcile.and_then(|reconcile| state.findings.shown_by(reconcile)).filter(open);
    let of_object = || view.root(state).and_then(|root| state.findings.of(&root.key));
    shown.or_else(of_object).or_else(|| state.findings.open().find(open))
}

/// Checks that there is one; the error says why not.
pub(crate) fn enabled(view: &ViewState, state: &State) -> Result<(), NotNow> {
    place(view, state)
        .map(|_| ())
        .ok_or_else(|| "no file is broken, and no failure or finding that is selected names one".into())
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

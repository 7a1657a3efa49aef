//! One action: its name, keys and words, when it is possible, and what it does. Nothing else has to know an action.

use crate::command::Command;
use crate::view::ViewState;
use opdev_panes::disabled::NotNow;
use opdev_panes::keys::action::{Action, Do};
use opdev_panes::pane::Tab;
use opdev_state::State;
use std::ops::Deref;

/// Says whether an action is possible right now; if not, why.
pub(crate) type When = fn(&ViewState, &State) -> Result<(), NotNow>;

/// Carries an action out.
#[derive(Clone, Copy, Debug)]
enum Run {
    /// It changes the view.
    View(fn(&mut ViewState, &State)),
    /// It may ask for something.
    Ask(fn(&mut ViewState, &State) -> Vec<Command>),
    /// It shows a tab of the detail pane.
    Show(Tab),
}

/// One action, whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    words: Action,
    when: When,
    run: Run,
}

/// An action that changes the view.
pub(super) const fn views(words: Action, run: fn(&mut ViewState, &State)) -> Row {
    Row { words, when: always, run: Run::View(run) }
}

/// An action that may ask for something.
pub(super) const fn asks(words: Action, run: fn(&mut ViewState, &State) -> Vec<Command>) -> Row {
    Row { words, when: always, run: Run::Ask(run) }
}

/// The action that shows a tab of the detail pane.
pub(super) const fn shows(words: Action, tab: Tab) -> Row {
    Row { words, when: always, run: Run::Show(tab) }
}

fn always(_: &ViewState, _: &State) -> Result<(), NotNow> {
    Ok(())
}

impl Row {
    /// It is not always possible.
    pub(super) const fn when(mut self, when: When) -> Self {
        self.when = when;
        self
    }

    /// Says whether it is possible right now; if not, why.
    pub(crate) fn possible(&self, view: &ViewState, state: &State) -> Result<(), NotNow> {
        (self.when)(view, state)
    }

    /// Carries it out.
    pub(crate) fn perform(&self, view: &mut ViewState, state: &State) -> Vec<Command> {
        match self.run {
            Run::View(run) => run(view, state),
            Run::Ask(run) => return run(view, state),
            // No reconcile has written a log of a table's objects; their pods may have.
            Run::Show(Tab::LOG) if view.browse.is_some() => view.show(Tab::PODS),
            Run::Show(tab) => view.show(tab),
        }
        Vec::new()
    }
}

impl Deref for Row {
    type Target = Action;

    fn deref(&self) -> &Action {
        &self.words
    }
}

impl ViewState {
    /// Says whether an action is possible right now; if not, why.
    pub(crate) fn possible(&self, does: Do, state: &State) -> Result<(), NotNow> {
        self.keys.map.by(does).map_or(Ok(()), |row| row.possible(self, state))
    }

    /// Carries an action out, possible or not: who asks for it has looked.
    pub(crate) fn perform(&mut self, does: Do, state: &State) -> Vec<Command> {
        self.keys.map.by(does).map(|row| row.perform(self, state)).unwrap_or_default()
    }
}

//! The line in which one types the filter of a pane. What is typed narrows the pane at once.

use super::answer::Answer;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::filter::Filter;
use opdev_panes::pane::Pane;
use opdev_panes::text::Row;
use opdev_panes::theme::Role;
use opdev_state::State;

/// The line.
#[derive(Debug)]
pub(crate) struct FilterLine {
    /// The pane that is filtered.
    pane: Pane,
    /// The filter before.
    before: String,
}

impl FilterLine {
    /// For the pane with the focus.
    pub(crate) fn of(view: &ViewState) -> Self {
        FilterLine { pane: view.focus, before: view.filter(view.focus).to_owned() }
    }
}

impl Layer for FilterLine {
    fn key(&mut self, key: Key, view: &mut ViewState, _state: &State) -> Answer {
        let text = view.part_mut(self.pane).filter_mut();
        match (key.code, key.typed()) {
            (KeyCode::Enter, _) => return Answer::Close,
            (KeyCode::Esc, _) => {
                self.before.clone_into(text);
                return Answer::Close;
            }
            (KeyCode::Backspace, _) => {
                text.pop();
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => text.clear(),
            (_, Some(c)) if text.len() < 200 => text.push(c),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, _state: &State, _view: &mut ViewState, _canvas: &mut Canvas<'_>) {}

    fn paste(&mut self, text: &str, view: &mut ViewState) {
        view.part_mut(self.pane).filter_mut().push_str(text);
    }

    fn footer(&self, view: &ViewState, _state: &State) -> Option<Row> {
        let row = Row::new(Role::Key, format!(" filter {}: ", self.pane.title().to_lowercase()))
            .and(Role::Text, format!("{}▏", view.filter(self.pane)))
            .and(Role::Dim, "   enter keeps, esc drops");
        let wrong = Filter::new(view.filter(self.pane)).problem.map(|why| format!("   {why}"));
        Some(row.and(Role::Bad, wrong.unwrap_or_default()))
    }
}

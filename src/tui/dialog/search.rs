//! The line in which one types what to search for in the detail pane.

use super::answer::Answer;
use crate::find::search_step::step;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_panes::keys::chord::Key;
use opdev_panes::pane::Pane;
use opdev_panes::text::Row;
use opdev_panes::theme::Role;
use opdev_state::State;

/// The line.
#[derive(Debug)]
pub(crate) struct SearchLine {
    /// The search before.
    before: String,
}

impl SearchLine {
    /// Goes on from what is searched for now.
    pub(crate) fn of(view: &ViewState) -> Self {
        SearchLine { before: view.detail.search.text.clone() }
    }
}

impl Layer for SearchLine {
    /// Enter goes to the first match.
    fn key(&mut self, key: Key, view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Enter, _) => {
                view.look_at(Pane::Detail);
                if !view.detail.search.text.is_empty() {
                    step(view, true);
                }
                return Answer::Close;
            }
            (KeyCode::Esc, _) => {
                view.detail.search.set(self.before.clone());
                return Answer::Close;
            }
            (KeyCode::Backspace, _) => {
                let mut text = view.detail.search.text.clone();
                text.pop();
                view.detail.search.set(text);
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => view.detail.search.set(String::new()),
            (_, Some(c)) => view.detail.search.type_text(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, _state: &State, _view: &mut ViewState, _canvas: &mut Canvas<'_>) {}

    fn paste(&mut self, text: &str, view: &mut ViewState) {
        view.detail.search.type_text(text);
    }

    fn footer(&self, view: &ViewState, _state: &State) -> Option<Row> {
        let row = Row::new(Role::Key, " find: ")
            .and(Role::Text, format!("{}▏", view.detail.search.text))
            .and(Role::Dim, "   words or /regex/; enter goes there, esc drops");
        Some(row)
    }
}

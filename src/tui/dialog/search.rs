//! The line in which one types what to search for in the detail pane.

use super::super::detail::search_step::step;
use super::super::keys::Key;
use super::super::view::ViewState;
use super::answer::Answer;
use crate::tui::pane::Pane;
use crossterm::event::KeyCode;

/// A key in that line. Enter goes to the first match.
pub(super) fn search(before: &str, key: Key, view: &mut ViewState) -> Answer {
    match (key.code, key.typed()) {
        (KeyCode::Enter, _) => {
            view.look_at(Pane::Detail);
            if !view.search.text.is_empty() {
                step(view, true);
            }
            return Answer::Close;
        }
        (KeyCode::Esc, _) => {
            view.search.set(before.to_owned());
            return Answer::Close;
        }
        (KeyCode::Backspace, _) => {
            let mut text = view.search.text.clone();
            text.pop();
            view.search.set(text);
        }
        (KeyCode::Char('u' | 'w'), None) if key.ctrl => view.search.set(String::new()),
        (_, Some(c)) => view.search.type_text(c.encode_utf8(&mut [0; 4])),
        _ => {}
    }
    Answer::Stay
}

//! What was done lately, newest first; enter shows what undoing it would change.

use super::answer::Answer;
use crate::event::Request;
use crate::state::State;
use crate::tui::keys::Key;
use crossterm::event::KeyCode;

pub(super) fn key(index: &mut usize, key: Key, state: &State) -> Answer {
    let last = state.undo.len().saturating_sub(1);
    *index = (*index).min(last);
    match (key.code, key.typed()) {
        (KeyCode::Esc, _) | (_, Some('q' | 'u')) => return Answer::Close,
        (KeyCode::Enter, _) => {
            let entry = state.undo.get(*index).filter(|entry| entry.why_not.is_none());
            return entry.map_or(Answer::Stay, |entry| Answer::Ask(Request::Undo { entry: entry.id }));
        }
        (KeyCode::Down, _) | (_, Some('j')) => *index = (*index + 1).min(last),
        (KeyCode::Up, _) | (_, Some('k')) => *index = index.saturating_sub(1),
        _ => {}
    }
    Answer::Stay
}

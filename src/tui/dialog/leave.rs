//! What becomes of the custom resources when opdev leaves a cluster that lives on.

use super::Answer;
use crate::event::{OnExit, Request};
use crate::tui::keys::Key;
use crossterm::event::KeyCode;

/// The answers, the safe one first: what, and what it means.
pub(in crate::tui) const WAYS: [(OnExit, &str, &str); 3] = [
    (
        OnExit::Leave,
        "Leave as is",
        "they stay; one that is deleted while no operator runs hangs on its finalizer",
    ),
    (OnExit::Uninstall, "Uninstall", "they are deleted, and opdev waits until their finalizers are answered"),
    (
        OnExit::Release,
        "Release finalizers",
        "they stay, and can be deleted later; what they made then stays behind",
    ),
];

pub(super) fn key(index: &mut usize, key: Key) -> Answer {
    match (key.code, key.typed()) {
        (KeyCode::Esc, _) => return Answer::Close,
        (KeyCode::Down | KeyCode::Tab, _) | (_, Some('j')) => *index = (*index + 1).min(WAYS.len() - 1),
        (KeyCode::Up | KeyCode::BackTab, _) | (_, Some('k')) => *index = index.saturating_sub(1),
        (_, Some('q')) => return Answer::Ask(Request::Leave { how: OnExit::Leave }),
        (KeyCode::Enter, _) => {
            return Answer::Ask(Request::Leave { how: WAYS[(*index).min(WAYS.len() - 1)].0 });
        }
        _ => {}
    }
    Answer::Stay
}

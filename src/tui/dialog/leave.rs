//! What becomes of the custom resources when opdev leaves a cluster that lives on, for good or for another one; and the
//! wait for that one.

use super::answer::Answer;
use crate::event::{Destination, OnExit, Request, RequestId};
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

/// A wish to go to another cluster that is under way.
#[derive(Clone, Debug)]
pub struct Switching {
    /// The request.
    pub(in crate::tui) id: RequestId,
    /// Where to.
    pub(in crate::tui) to: Destination,
}

impl Switching {
    /// Until the other cluster answers one can stay; after that, what is still done to custom resources can be left.
    pub(super) fn key(&self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => Answer::AskOn(Request::Cancel { id: self.id }),
            _ => Answer::Stay,
        }
    }
}

/// What leaving asks for.
fn leave(how: OnExit, to: Option<&Destination>) -> Answer {
    Answer::Ask(match to {
        Some(to) => Request::Switch { to: to.clone(), how },
        None => Request::Leave { how },
    })
}

pub(super) fn key(index: &mut usize, to: Option<&Destination>, key: Key) -> Answer {
    match (key.code, key.typed()) {
        (KeyCode::Esc, _) => return Answer::Close,
        (KeyCode::Down | KeyCode::Tab, _) | (_, Some('j')) => *index = (*index + 1).min(WAYS.len() - 1),
        (KeyCode::Up | KeyCode::BackTab, _) | (_, Some('k')) => *index = index.saturating_sub(1),
        (_, Some('q')) => return leave(OnExit::Leave, to),
        (KeyCode::Enter, _) => {
            return leave(WAYS[(*index).min(WAYS.len() - 1)].0, to);
        }
        _ => {}
    }
    Answer::Stay
}

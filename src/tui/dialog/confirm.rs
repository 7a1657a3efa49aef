//! A question about several objects, or about something with consequences: what, how many, yes or no.

use super::answer::Answer;
use crate::event::Request;
use crate::tui::keys::Key;
use crossterm::event::KeyCode;
use opdev_object::meta::ObjectRef;

/// A question.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// What is to be done, such as `Reconcile 3 objects`.
    pub title: String,
    /// Which objects.
    pub objects: Vec<ObjectRef>,
    /// The word on the button that does it.
    pub word: &'static str,
    /// What is asked for then.
    pub request: Request,
    /// Whether the focus is on that button.
    pub on_yes: bool,
}

impl Confirm {
    pub(super) fn key(&mut self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => Answer::Close,
            (KeyCode::Enter, _) if self.on_yes => Answer::Ask(self.request.clone()),
            (KeyCode::Enter, _) => Answer::Close,
            (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, _) | (_, Some('h' | 'l')) => {
                self.on_yes = !self.on_yes;
                Answer::Stay
            }
            _ => Answer::Stay,
        }
    }
}

//! A question about several objects, or about something with consequences: what, how many, yes or no.

use super::answer::Answer;
use crate::event::Request;
use crate::state::State;
use crate::tui::draw::boxes::{boxed, buttons, named};
use crate::tui::keys::Key;
use crate::tui::layer::{Canvas, Layer};
use crate::tui::text::Row;
use crate::tui::view::ViewState;
use crossterm::event::KeyCode;
use opdev_object::meta::ObjectRef;

/// A question.
#[derive(Clone, Debug)]
pub(in crate::tui) struct Confirm {
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

impl Layer for Confirm {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
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

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let roomy = canvas.body.height > 12;
        let mut rows = named(&self.objects, if roomy { 12 } else { 3 });
        rows.extend(roomy.then(Row::default));
        rows.push(buttons(self.on_yes, "Cancel", self.word));
        boxed(&self.title, &rows, None, view, canvas);
    }
}

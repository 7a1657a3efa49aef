//! A question about several objects, or about something with consequences: what, how many, yes or no.

use super::answer::Answer;
use crate::draw::boxes::{Choice, boxed, choices, named};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::Request;
use opdev_object::meta::ObjectRef;
use opdev_panes::keys::chord::Key;
use opdev_panes::theme::Role;
use opdev_state::State;

/// A question.
#[derive(Clone, Debug)]
pub(crate) struct Confirm {
    /// The action, such as `Reconcile 3 objects`.
    pub title: String,
    /// The objects.
    pub objects: Vec<ObjectRef>,
    /// The word of the answer that does it.
    pub word: &'static str,
    /// The request that follows a yes.
    pub request: Request,
    /// True if it destroys nothing: enter says yes, too.
    pub harmless: bool,
}

impl Layer for Confirm {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => Answer::Close,
            (_, Some('y')) => Answer::Ask(self.request.clone()),
            (KeyCode::Enter, _) if self.harmless => Answer::Ask(self.request.clone()),
            _ => Answer::Stay,
        }
    }

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let roomy = canvas.body.height > 12;
        let mut rows = named(&self.objects, if roomy { 12 } else { 3 });
        let (means, role) = if self.harmless { ("enter does it, too", Role::Text) } else { ("", Role::Bad) };
        let yes = Choice { key: "y", word: self.word, means, role };
        let no = Choice { key: "n", word: "Cancel", means: "", role: Role::Text };
        rows.extend(choices(&[yes, no], canvas.body.width as usize, roomy));
        boxed(&self.title, &rows, None, view, canvas);
    }
}

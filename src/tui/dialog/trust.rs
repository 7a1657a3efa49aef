//! The question what a project may do beyond rendering and applying. Refusing has the focus; the two other answers take a
//! second key. A dialog that came up by itself takes no answer until it is asked for: its keys were meant for something
//! else.

use super::answer::Answer;
use crate::event::{Permission, Request, TrustAnswer, TrustAsked};
use crate::state::State;
use crate::tui::keys::Key;
use crate::tui::layer::Layer;
use crate::tui::view::ViewState;
use crossterm::event::KeyCode;

/// The answers, the safe one first.
pub(in crate::tui) const ANSWERS: [(TrustAnswer, &str); 3] = [
    (TrustAnswer::Refuse, "Refuse"),
    (TrustAnswer::Once, "Allow once"),
    (TrustAnswer::Trust, "Trust this project"),
];

/// The dialog about what a project wants.
#[derive(Clone, Debug)]
pub struct TrustDialog {
    /// What is asked about.
    pub permissions: Vec<Permission>,
    /// The answer that has the focus, as an index of `ANSWERS`.
    pub focus: usize,
    /// The first visible line of the list.
    pub scroll: usize,
    /// Whether the user has asked for it, and so means it with the keys.
    pub asked_for: bool,
}

impl TrustDialog {
    /// For what the user wants to answer.
    pub(in crate::tui) fn of(asked: &TrustAsked) -> Self {
        TrustDialog { permissions: asked.unanswered.clone(), focus: 0, scroll: 0, asked_for: true }
    }

    /// For what is asked from now on.
    pub(in crate::tui) fn news(asked: &TrustAsked) -> Self {
        TrustDialog { asked_for: false, ..Self::of(asked) }
    }

    pub(super) fn key(&mut self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (_, Some('H')) if !self.asked_for => self.asked_for = true,
            (KeyCode::Esc, _) if !self.asked_for => return Answer::Close,
            _ if !self.asked_for => return Answer::Pass,
            (KeyCode::Down | KeyCode::PageDown, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::Up | KeyCode::PageUp, _) | (_, Some('k')) => {
                self.scroll = self.scroll.saturating_sub(1);
            }
            (KeyCode::Esc, _) | (_, Some('q' | 'H')) => return Answer::Close,
            (KeyCode::Enter, _) => {
                let (answer, _) = ANSWERS[self.focus.min(ANSWERS.len() - 1)];
                return Answer::Ask(Request::Trust { answer, permissions: self.permissions.clone() });
            }
            (KeyCode::Right | KeyCode::Tab, _) | (_, Some('l')) => {
                self.focus = (self.focus + 1).min(ANSWERS.len() - 1);
            }
            (KeyCode::Left | KeyCode::BackTab, _) | (_, Some('h')) => {
                self.focus = self.focus.saturating_sub(1);
            }
            _ => {}
        }
        Answer::Stay
    }
}

impl ViewState {
    /// Opens the dialog about what the project wants, in front of everything but another dialog, and closes one that is
    /// answered.
    pub(in crate::tui) fn open_trust(&mut self, state: &State) {
        let asked = state.trust.as_ref();
        let still = |dialog: &TrustDialog| asked.is_some_and(|asked| asked.unanswered == dialog.permissions);
        self.layers.retain(|layer| !matches!(layer, Layer::Trust(dialog) if !still(dialog)));
        if self.layers.is_empty()
            && !self.leaving
            && self.trust_asked != state.trust
            && let Some(asked) = asked
        {
            self.trust_asked.clone_from(&state.trust);
            self.layers.push(Layer::Trust(TrustDialog::news(asked)));
        }
        if asked.is_none() {
            self.trust_asked = None;
        }
    }
}

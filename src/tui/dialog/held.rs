//! The question about a held change: the safe answer has the focus, letting it through takes a second key. One that
//! came up by itself takes no answer until it is asked for: its keys were meant for something else.

use super::answer::Answer;
use crate::event::{Held, Request};
use crate::tui::keys::Key;
use crossterm::event::KeyCode;

/// The dialog about a held change.
#[derive(Clone, Debug)]
pub struct HeldDialog {
    /// Which.
    pub id: String,
    /// Whether the focus is on Apply; it starts on Discard.
    pub on_apply: bool,
    /// The first visible line of what changes.
    pub scroll: usize,
    /// Whether the user has asked for it, and so means it with the keys.
    pub asked_for: bool,
}

impl HeldDialog {
    /// For a held change that the user wants to answer.
    pub(in crate::tui) fn of(held: &Held) -> Self {
        HeldDialog { id: held.id.clone(), on_apply: false, scroll: 0, asked_for: true }
    }

    /// For a change that is held from now on.
    pub(in crate::tui) fn news(held: &Held) -> Self {
        HeldDialog { asked_for: false, ..Self::of(held) }
    }

    fn unasked(&mut self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (_, Some('H')) => {
                self.asked_for = true;
                Answer::Stay
            }
            (KeyCode::Esc, _) => Answer::Close,
            _ => Answer::Pass,
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Answer {
        if !self.asked_for {
            return self.unasked(key);
        }
        let id = self.id.clone();
        match (key.code, key.typed()) {
            (KeyCode::Enter, _) if self.on_apply => return Answer::Ask(Request::ApplyHeld { id }),
            (KeyCode::Enter, _) => return Answer::Ask(Request::DiscardHeld { id }),
            (KeyCode::Esc, _) | (_, Some('q' | 'H')) => return Answer::Close,
            (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, _) | (_, Some('h' | 'l')) => {
                self.on_apply = !self.on_apply;
            }
            (KeyCode::Down | KeyCode::PageDown, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::Up | KeyCode::PageUp, _) | (_, Some('k')) => {
                self.scroll = self.scroll.saturating_sub(1);
            }
            _ => {}
        }
        Answer::Stay
    }
}

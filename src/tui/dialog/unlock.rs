//! The question before the first write to a cluster that is not clearly local: its name has to be typed.

use super::answer::Answer;
use crate::event::Request;
use crate::state::State;
use crate::tui::keys::Key;
use crossterm::event::KeyCode;

/// The dialog.
#[derive(Clone, Debug)]
pub struct Unlock {
    /// The context's name.
    pub context: String,
    /// Its server.
    pub server: String,
    /// Why it is not clearly local.
    pub marks: String,
    /// What was typed so far.
    pub typed: String,
}

impl Unlock {
    /// For the cluster that opdev is connected to.
    pub(in crate::tui) fn of(state: &State) -> Option<Self> {
        let cluster = &state.started.as_ref()?.cluster;
        Some(Unlock {
            context: cluster.name.clone(),
            server: cluster.server.clone(),
            marks: cluster.marks.clone(),
            typed: String::new(),
        })
    }

    /// Whether the name is there.
    pub(in crate::tui) fn is_right(&self) -> bool {
        self.typed == self.context
    }

    pub(super) fn key(&mut self, key: Key) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Enter, _) if self.is_right() => {
                return Answer::Ask(Request::Unlock { context: self.typed.clone() });
            }
            (KeyCode::Backspace, _) => {
                self.typed.pop();
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => self.typed.clear(),
            (_, Some(c)) if self.typed.len() < 300 => self.typed.push(c),
            _ => {}
        }
        Answer::Stay
    }
}

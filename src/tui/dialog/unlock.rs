//! The question before the first write to a cluster that is not clearly local: its name has to be typed.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::ClusterTask;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The dialog.
#[derive(Clone, Debug)]
pub(crate) struct Unlock {
    /// The context's name.
    pub context: String,
    /// Its server.
    pub server: String,
    /// Why it is not clearly local.
    pub marks: String,
    /// The text typed so far.
    pub typed: String,
}

impl Unlock {
    /// For the cluster that opdev is connected to.
    pub(crate) fn of(state: &State) -> Option<Self> {
        let cluster = &state.started.as_ref()?.cluster;
        Some(Unlock {
            context: cluster.name.clone(),
            server: cluster.server.clone(),
            marks: cluster.marks.clone(),
            typed: String::new(),
        })
    }

    /// Returns true if the name is there.
    pub(crate) fn is_right(&self) -> bool {
        self.typed == self.context
    }
}

impl Layer for Unlock {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Enter, _) if self.is_right() => {
                return Answer::Ask(ClusterTask::Unlock { context: self.typed.clone() }.into());
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

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let cells = (canvas.body.width as usize).saturating_sub(8).min(70);
        let text = |text: &str, role: Role| {
            wrap(text, cells).into_iter().map(|line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
        };
        let mut rows = vec![Row::default()];
        let what = format!("{} is not clearly local: {}.", self.context, self.marks);
        rows.extend(text(&what, Role::Text));
        let then = format!(
            "Unlocked, opdev applies CRDs to {} and reconciles every custom resource of this project there, until it ends.",
            self.server
        );
        rows.extend(text(&then, Role::Busy));
        rows.push(Row::default());
        let role = if self.is_right() { Role::Good } else { Role::Key };
        rows.push(Row::new(Role::Text, " type the context's name  ").and(role, format!("{}▏", self.typed)));
        rows.push(Row::default());
        rows.push(
            Row::new(Role::Key, " enter")
                .and(if self.is_right() { Role::Text } else { Role::Dim }, " unlock  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " stay read-only "),
        );
        boxed(&format!("Unlock {}?", self.context), &rows, None, view, canvas);
    }
}

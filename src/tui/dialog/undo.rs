//! The last actions, newest first; enter shows what undoing one would change.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::draw::pieces::age;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{DraftTask, words};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, left, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The dialog.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    /// The chosen row.
    index: usize,
}

impl Layer for Undo {
    fn picks_rows(&self) -> bool {
        true
    }

    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let last = state.undo.len().saturating_sub(1);
        self.index = self.index.min(last);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'u')) => return Answer::Close,
            (KeyCode::Enter, _) => {
                let entry = state.undo.get(self.index).filter(|entry| entry.why_not.is_none());
                return entry
                    .map_or(Answer::Stay, |entry| Answer::Ask(DraftTask::Undo { entry: entry.id }.into()));
            }
            (KeyCode::Down, _) | (_, Some('j')) => self.index = (self.index + 1).min(last),
            (KeyCode::Up, _) | (_, Some('k')) => self.index = self.index.saturating_sub(1),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = &state.undo;
        let index = self.index.min(all.len().saturating_sub(1));
        let cells = (canvas.body.width as usize).saturating_sub(18).clamp(16, 84);
        let height = (canvas.body.height as usize).saturating_sub(6).max(1);
        let skip = (index + 1).saturating_sub(height);
        let mut rows = Vec::new();
        for entry in all.iter().skip(skip).take(height) {
            let age = age(view, Some(entry.at), canvas.now);
            let role = if entry.why_not.is_some() { Role::Dim } else { Role::Text };
            rows.push(
                Row::new(role, format!(" {} ", left(&entry.what, cells)))
                    .and(Role::Dim, format!("{age:>6} ")),
            );
        }
        if all.is_empty() {
            rows.push(Row::new(Role::Dim, " Nothing was applied, edited, scaled or deleted yet. "));
        }
        let selected = (!all.is_empty()).then_some(index - skip);
        let why = all.get(index).and_then(|entry| entry.why_not.as_ref());
        if let Some(why) = why {
            let lines =
                wrap(&format!("The chosen one cannot be undone: {}.", words::one_line(why)), cells + 6);
            rows.extend(lines.into_iter().map(|line| Row::new(Role::Busy, format!(" {line}"))));
        }
        rows.push(
            Row::new(if why.is_none() && !all.is_empty() { Role::Key } else { Role::Dim }, " enter")
                .and(Role::Text, " shows what changes  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " close "),
        );
        boxed("Undo", &rows, selected, view, canvas);
    }
}

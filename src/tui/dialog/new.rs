//! The start of a new object: the text of a sample, or what a kind's schema says.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{DraftTask, NewFrom};
use opdev_panes::keys::chord::Key;
use opdev_panes::lists::filter::passes;
use opdev_panes::text::{Row, cut_front, width};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The rows that reconcile what was typed: kinds by their schema first, then samples, each with its words and
/// its path.
fn beginnings(state: &State, typed: &str) -> Vec<(NewFrom, String, String)> {
    let kinds = state.kinds().iter().map(|kind| {
        let from = NewFrom::Kind { gvk: kind.gvk.clone() };
        (from, format!(" {}  from its schema ", kind.gvk.kind), String::new())
    });
    let samples = state.samples().iter().map(|sample| {
        let from = NewFrom::Sample { path: sample.path.clone() };
        let kind = sample.kind_among(state.samples());
        (from, format!(" {kind}  like {} of ", sample.object.name), sample.path.clone())
    });
    let shown = |(_, text, path): &(NewFrom, String, String)| passes(typed, &format!("{text}{path}"));
    kinds.chain(samples).filter(shown).collect()
}

/// The dialog.
#[derive(Debug, Default)]
pub(crate) struct New {
    /// The typed text that narrows the list.
    typed: String,
    /// The chosen row.
    index: usize,
}

impl Layer for New {
    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let all = beginnings(state, &self.typed);
        let last = all.len().saturating_sub(1);
        self.index = self.index.min(last);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Enter, _) => {
                let chosen = all.into_iter().nth(self.index);
                return chosen.map_or(Answer::Stay, |(from, ..)| Answer::Ask(DraftTask::New { from }.into()));
            }
            (KeyCode::Down | KeyCode::Tab, _) => self.index = (self.index + 1).min(last),
            (KeyCode::Up | KeyCode::BackTab, _) => self.index = self.index.saturating_sub(1),
            (KeyCode::Backspace, _) => {
                self.typed.pop();
                self.index = 0;
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => self.typed.clear(),
            (_, Some(c)) if self.typed.len() < 200 => {
                self.typed.push(c);
                self.index = 0;
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = beginnings(state, &self.typed);
        let index = self.index.min(all.len().saturating_sub(1));
        let hint = if self.typed.is_empty() { "type to narrow" } else { "" };
        let mut rows =
            vec![Row::new(Role::Key, " ▸ ").and(Role::Text, format!("{}▏", self.typed)).and(Role::Dim, hint)];
        let height = (canvas.body.height as usize).saturating_sub(5).max(1);
        let skip = (index + 1).saturating_sub(height);
        let cells = (canvas.body.width as usize).saturating_sub(5);
        rows.extend(all.iter().skip(skip).take(height).map(|(_, text, path)| {
            let path = cut_front(path, cells.saturating_sub(width(text)));
            Row::new(Role::Text, format!("{text}{path} "))
        }));
        if all.is_empty() {
            rows.push(Row::new(Role::Dim, " Neither a kind nor a sample matches. "));
        }
        rows.push(
            Row::new(Role::Key, " enter")
                .and(Role::Text, " opens the editor  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " cancel "),
        );
        boxed("New", &rows, (!all.is_empty()).then_some(1 + index - skip), view, canvas);
    }

    fn paste(&mut self, text: &str, _view: &mut ViewState) {
        self.typed.push_str(text.trim());
        self.index = 0;
    }
}

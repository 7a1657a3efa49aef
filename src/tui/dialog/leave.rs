//! The outcome for the custom resources when opdev leaves a cluster that lives on, for good or for another
//! one.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{Destination, OnExit, SessionRequest};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;

/// The answers, the safe one first: what, and what it means.
const WAYS: [(OnExit, &str, &str); 3] = [
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

/// The request that leaves, or changes to another cluster.
fn leave(how: OnExit, to: Option<&Destination>) -> Answer {
    let request = match to {
        Some(to) => SessionRequest::Switch { to: to.clone(), how },
        None => SessionRequest::Leave { how },
    };
    Answer::Ask(request.into())
}

/// The question.
#[derive(Debug, Default)]
pub(crate) struct Leave {
    /// The chosen row.
    index: usize,
    /// Where opdev goes; nowhere where it ends.
    to: Option<Destination>,
}

impl Leave {
    /// Before opdev goes to another cluster.
    pub(crate) fn to(to: Destination) -> Self {
        Leave { index: 0, to: Some(to) }
    }
}

impl Layer for Leave {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => return Answer::Close,
            (KeyCode::Down | KeyCode::Tab, _) | (_, Some('j')) => {
                self.index = (self.index + 1).min(WAYS.len() - 1);
            }
            (KeyCode::Up | KeyCode::BackTab, _) | (_, Some('k')) => self.index = self.index.saturating_sub(1),
            (_, Some('q')) => return leave(OnExit::Leave, self.to.as_ref()),
            (KeyCode::Enter, _) => {
                return leave(WAYS[self.index.min(WAYS.len() - 1)].0, self.to.as_ref());
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let cells = (canvas.body.width as usize).saturating_sub(8).min(72);
        let many = state.objects.custom_len();
        let cluster = state.started.as_ref().map_or("the cluster", |started| started.cluster.name.as_str());
        let roomy = canvas.body.height > 12;
        let mut rows = Vec::new();
        if roomy {
            let text = match many {
                1 => format!("1 custom resource lives on {cluster}. What becomes of it?"),
                _ => format!("{many} custom resources live on {cluster}. What becomes of them?"),
            };
            rows.extend(wrap(&text, cells).into_iter().map(|line| Row::new(Role::Text, format!(" {line} "))));
        }
        let mut selected = None;
        for (i, (_, name, means)) in WAYS.iter().enumerate() {
            if i == self.index {
                selected = Some(rows.len());
            }
            let mark = if i == self.index { "▸" } else { " " };
            rows.push(Row::new(Role::Key, format!(" {mark} {name} ")));
            if roomy || i == self.index {
                let lines = wrap(means, cells.saturating_sub(4)).into_iter().take(if roomy { 3 } else { 2 });
                rows.extend(lines.map(|line| Row::new(Role::Dim, format!("     {line} "))));
            }
        }
        rows.push(
            Row::new(Role::Key, " ↑↓")
                .and(Role::Dim, " choose  ")
                .and(Role::Key, "enter")
                .and(Role::Dim, " leaves  ")
                .and(Role::Key, "esc")
                .and(Role::Dim, " stays "),
        );
        let title = self
            .to
            .as_ref()
            .map_or_else(|| "Leave opdev?".to_owned(), |to| format!("Leave {cluster} for {to}?"));
        boxed(&title, &rows, selected, view, canvas);
    }
}

//! Review of a draft's changes before they are written: cancel, open the text again, write.

use super::answer::Answer;
use crate::draw::boxes::{Choice, boxed, choices, scrolled};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use jiff::Timestamp;
use opdev_event::{Action, Draft, DraftId, DraftStage, DraftTask, Review};
use opdev_panes::detail::change_rows;
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use std::sync::Arc;

/// The dialog.
#[derive(Clone, Debug)]
pub(crate) struct ReviewDialog {
    /// The draft.
    pub id: DraftId,
    /// The stage that is shown.
    pub at: Timestamp,
    /// The first visible line.
    pub scroll: usize,
}

/// The changes of a draft that waits for an answer.
pub(crate) fn review_of(state: &State, id: DraftId) -> Option<(&Arc<Draft>, &Review)> {
    let draft = state.drafts.get(id)?;
    match &draft.stage {
        DraftStage::Review(review) => Some((draft, review)),
        DraftStage::Editing { .. } | DraftStage::Closed => None,
    }
}

impl ReviewDialog {
    /// For a draft.
    pub(crate) fn of(draft: &Draft) -> Self {
        ReviewDialog { id: draft.id, at: draft.at, scroll: 0 }
    }
}

impl Layer for ReviewDialog {
    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let draft = self.id;
        let Some((_, review)) = review_of(state, draft) else { return Answer::Close };
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => {
                return Answer::Ask(DraftTask::Discard { draft }.into());
            }
            (_, Some('e')) if review.editable => return Answer::Ask(DraftTask::Reopen { draft }.into()),
            (_, Some('w' | 'y')) if review.problem.is_none() => {
                return Answer::Ask(DraftTask::Write { draft }.into());
            }
            // Where nothing can be written, nothing is lost.
            (KeyCode::Enter, _) if review.problem.is_some() && review.editable => {
                return Answer::Ask(DraftTask::Reopen { draft }.into());
            }
            // A deletion takes its letter.
            (KeyCode::Enter, _) if review.problem.is_none() && !deletes(review) => {
                return Answer::Ask(DraftTask::Write { draft }.into());
            }
            (KeyCode::Down, _) | (_, Some('j')) => self.scroll += 1,
            (KeyCode::PageDown, _) | (_, Some(' ')) => self.scroll += 10,
            (KeyCode::Up, _) | (_, Some('k')) => self.scroll = self.scroll.saturating_sub(1),
            (KeyCode::PageUp, _) => self.scroll = self.scroll.saturating_sub(10),
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let Some((draft, review)) = review_of(state, self.id) else { return };
        let cells = (canvas.body.width as usize).saturating_sub(8).min(100);
        let what = what(review, cells);
        let buttons = answers(review, cells, canvas.body.height > 12);
        let rows = scrolled(what, buttons, self.scroll, canvas.body);
        boxed(&draft.about, &rows, None, view, canvas);
    }

    fn is_open(&self, state: &State) -> bool {
        review_of(state, self.id).is_some_and(|(draft, _)| draft.at == self.at)
    }
}

fn what(review: &Review, cells: usize) -> Vec<Row> {
    let text = |role, text: &str| {
        let lines = text.lines().flat_map(|line| wrap(line, cells)).collect::<Vec<_>>();
        lines.into_iter().map(move |line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
    };
    let mut rows = Vec::new();
    if let Some(problem) = &review.problem {
        rows.extend(text(Role::Bad, &format!("✗ {problem}")));
    }
    for note in &review.notes {
        rows.extend(text(Role::Busy, note));
    }
    for warning in &review.warnings {
        rows.extend(text(Role::Busy, &format!("⚠ {warning}")));
    }
    for change in &review.changes {
        let (role, word) = match change.action {
            Action::Created => (Role::Added, "is created"),
            Action::Updated if change.changes.is_empty() => (Role::Dim, "stays as it is"),
            Action::Updated => (Role::Changed, "changes"),
            Action::Deleted => (Role::Bad, "is deleted"),
        };
        rows.push(Row::new(role, format!(" {} {word} ", change.object)));
        rows.extend(change_rows(&change.changes));
    }
    rows
}

fn deletes(review: &Review) -> bool {
    review.changes.iter().any(|change| change.action == Action::Deleted)
}

fn answers(review: &Review, cells: usize, roomy: bool) -> Vec<Row> {
    let deletes = deletes(review);
    let mut all = Vec::new();
    if review.problem.is_none() {
        let (word, means, role) = match deletes {
            true => ("Delete", "", Role::Bad),
            false => ("Write", "enter does it, too", Role::Text),
        };
        all.push(Choice { key: "w", word, means, role });
    }
    if review.editable {
        all.push(Choice { key: "e", word: "Edit again", means: "", role: Role::Text });
    }
    all.push(Choice { key: "esc", word: "Cancel", means: "nothing is written", role: Role::Text });
    choices(&all, cells, roomy)
}

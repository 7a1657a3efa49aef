//! What a draft would change, before it is written: cancel, open the text again, write.

use super::answer::Answer;
use crate::event::{Action, Draft, DraftId, DraftStage, DraftTask, Review};
use crate::state::State;
use crate::tui::detail::change_rows;
use crate::tui::draw::boxes::{boxed, scrolled};
use crate::tui::keys::Key;
use crate::tui::layer::{Canvas, Layer};
use crate::tui::text::{Row, wrap};
use crate::tui::theme::Role;
use crate::tui::view::ViewState;
use crossterm::event::KeyCode;
use jiff::Timestamp;
use std::sync::Arc;

/// A button.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tui) enum Button {
    Cancel,
    Reopen,
    Write,
}

/// The dialog.
#[derive(Clone, Debug)]
pub(in crate::tui) struct ReviewDialog {
    /// Which draft.
    pub id: DraftId,
    /// Which of its stages.
    pub at: Timestamp,
    /// The first visible line.
    pub scroll: usize,
    /// The button with the focus, counted from the left; `None` is where it starts.
    pub on: Option<usize>,
}

/// What a draft would change, while it waits for an answer.
pub(in crate::tui) fn review_of(state: &State, id: DraftId) -> Option<(&Arc<Draft>, &Review)> {
    let draft = state.drafts.get(id)?;
    match &draft.stage {
        DraftStage::Review(review) => Some((draft, review)),
        DraftStage::Editing { .. } | DraftStage::Closed => None,
    }
}

/// The buttons of a review, and the one with the focus at first: what deletes starts on Cancel.
pub(in crate::tui) fn buttons_of(review: &Review) -> (Vec<Button>, usize) {
    let mut all = vec![Button::Cancel];
    if review.editable {
        all.push(Button::Reopen);
    }
    if review.problem.is_none() {
        all.push(Button::Write);
    }
    let deletes = review.changes.iter().any(|change| change.action == Action::Deleted);
    let first = if deletes { 0 } else { all.len() - 1 };
    (all, first)
}

impl ReviewDialog {
    /// For a draft.
    pub(in crate::tui) fn of(draft: &Draft) -> Self {
        ReviewDialog { id: draft.id, at: draft.at, scroll: 0, on: None }
    }
}

impl Layer for ReviewDialog {
    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let draft = self.id;
        let Some((_, review)) = review_of(state, draft) else { return Answer::Close };
        let (buttons, first) = buttons_of(review);
        let on = self.on.unwrap_or(first).min(buttons.len() - 1);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => return Answer::Ask(DraftTask::Discard { draft }.into()),
            (_, Some('e')) if review.editable => return Answer::Ask(DraftTask::Reopen { draft }.into()),
            (KeyCode::Enter, _) => {
                let task = match buttons[on] {
                    Button::Cancel => DraftTask::Discard { draft },
                    Button::Reopen => DraftTask::Reopen { draft },
                    Button::Write => DraftTask::Write { draft },
                };
                return Answer::Ask(task.into());
            }
            (KeyCode::Right | KeyCode::Tab, _) | (_, Some('l')) => self.on = Some((on + 1) % buttons.len()),
            (KeyCode::Left | KeyCode::BackTab, _) | (_, Some('h')) => {
                self.on = Some((on + buttons.len() - 1) % buttons.len());
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
        let buttons = buttons(review, self.on, canvas.body.height > 12);
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

fn buttons(review: &Review, on: Option<usize>, roomy: bool) -> Vec<Row> {
    let (all, first) = buttons_of(review);
    let on = on.unwrap_or(first).min(all.len() - 1);
    let deletes = review.changes.iter().any(|change| change.action == Action::Deleted);
    let mut row = Row::new(Role::Text, " ");
    for (i, button) in all.iter().enumerate() {
        let name = match button {
            Button::Cancel => "Cancel",
            Button::Reopen if roomy => "Edit again",
            Button::Reopen => "Edit",
            Button::Write if deletes => "Delete",
            Button::Write => "Write",
        };
        let text = if i == on { format!("[ {name} ]") } else { format!("  {name}  ") };
        let role = match (i == on, button) {
            (true, Button::Write) if deletes => Role::Bad,
            (true, _) => Role::Selected,
            (false, _) => Role::Text,
        };
        row = row.and(role, text).and(Role::Text, "  ");
    }
    let mut rows = if roomy { vec![Row::default()] } else { Vec::new() };
    rows.push(row.and(Role::Dim, " ←→ choose, enter presses "));
    rows
}

//! What a draft would change, before it is written: cancel, open the text again, write.

use super::answer::Answer;
use crate::event::{Action, Draft, DraftId, DraftStage, Request, Review};
use crate::state::State;
use crate::tui::keys::Key;
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
pub struct ReviewDialog {
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

    pub(super) fn key(&mut self, key: Key, state: &State) -> Answer {
        let draft = self.id;
        let Some((_, review)) = review_of(state, draft) else { return Answer::Close };
        let (buttons, first) = buttons_of(review);
        let on = self.on.unwrap_or(first).min(buttons.len() - 1);
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q')) => return Answer::Ask(Request::Discard { draft }),
            (_, Some('e')) if review.editable => return Answer::Ask(Request::Reopen { draft }),
            (KeyCode::Enter, _) => {
                return Answer::Ask(match buttons[on] {
                    Button::Cancel => Request::Discard { draft },
                    Button::Reopen => Request::Reopen { draft },
                    Button::Write => Request::Write { draft },
                });
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
}

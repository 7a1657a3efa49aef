//! Requests under way and the last ones that ended, newest first. What is under way can be dropped.

use super::answer::Answer;
use crate::event::{Request, RequestFinished, RequestStarted};
use crate::state::State;
use crate::tui::keys::Key;
use crossterm::event::KeyCode;
use std::sync::Arc;

/// One row.
pub(in crate::tui) enum Task {
    /// Under way.
    Running(Arc<RequestStarted>),
    /// Ended.
    Ended(Arc<RequestFinished>),
}

/// All rows, those under way first.
pub(in crate::tui) fn tasks(state: &State) -> Vec<Task> {
    let running = state.requests.in_flight.values().rev().cloned().map(Task::Running);
    running.chain(state.requests.finished.iter().rev().cloned().map(Task::Ended)).collect()
}

pub(super) fn key(index: &mut usize, key: Key, state: &State) -> Answer {
    let all = tasks(state);
    let last = all.len().saturating_sub(1);
    *index = (*index).min(last);
    match (key.code, key.typed()) {
        (KeyCode::Esc | KeyCode::Enter, _) | (_, Some('q' | 'T')) => return Answer::Close,
        (KeyCode::Down, _) | (_, Some('j')) => *index = (*index + 1).min(last),
        (KeyCode::Up, _) | (_, Some('k')) => *index = index.saturating_sub(1),
        (KeyCode::PageDown, _) => *index = (*index + 10).min(last),
        (KeyCode::PageUp, _) => *index = index.saturating_sub(10),
        (_, Some('x')) => {
            if let Some(Task::Running(task)) = all.get(*index) {
                return Answer::AskOn(Request::Cancel { id: task.id });
            }
        }
        _ => {}
    }
    Answer::Stay
}

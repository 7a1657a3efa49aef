//! Requests under way and the last ones that ended, newest first. What is under way can be dropped.

use super::answer::Answer;
use crate::draw::boxes::boxed;
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{RequestFinished, RequestOutcome, RequestStarted, words};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, cut, left, right, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use std::sync::Arc;
use std::time::Duration;

/// One row.
enum Task {
    /// Under way.
    Running(Arc<RequestStarted>),
    /// Ended.
    Ended(Arc<RequestFinished>),
}

/// All rows, those under way first.
fn tasks(state: &State) -> Vec<Task> {
    let running = state.requests.in_flight.values().rev().cloned().map(Task::Running);
    running.chain(state.requests.finished.iter().rev().cloned().map(Task::Ended)).collect()
}

/// The dialog.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// The chosen row.
    index: usize,
}

impl Layer for Tasks {
    fn picks_rows(&self) -> bool {
        true
    }

    fn key(&mut self, key: Key, _view: &mut ViewState, state: &State) -> Answer {
        let all = tasks(state);
        let last = all.len().saturating_sub(1);
        self.index = self.index.min(last);
        match (key.code, key.typed()) {
            (KeyCode::Esc | KeyCode::Enter, _) | (_, Some('q' | 'T')) => return Answer::Close,
            (KeyCode::Down, _) | (_, Some('j')) => self.index = (self.index + 1).min(last),
            (KeyCode::Up, _) | (_, Some('k')) => self.index = self.index.saturating_sub(1),
            (KeyCode::PageDown, _) => self.index = (self.index + 10).min(last),
            (KeyCode::PageUp, _) => self.index = self.index.saturating_sub(10),
            (_, Some('x')) => {
                if let Some(Task::Running(task)) = all.get(self.index) {
                    return Answer::AskOn(opdev_event::Task::Cancel { id: task.id }.into());
                }
            }
            _ => {}
        }
        Answer::Stay
    }

    fn draw(&self, state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let all = tasks(state);
        let index = self.index.min(all.len().saturating_sub(1));
        let cells = (canvas.body.width as usize).saturating_sub(6).min(100);
        let height = (canvas.body.height as usize).saturating_sub(7).max(1);
        let skip = (index + 1).saturating_sub(height);
        let what = cells.saturating_sub(24);
        let mut rows = Vec::new();
        for task in all.iter().skip(skip).take(height) {
            rows.push(match task {
                Task::Running(task) => {
                    let elapsed = Duration::try_from(canvas.now.duration_since(task.at)).unwrap_or_default();
                    // It counts on, tenths for the first ten seconds.
                    view.wake_in(Duration::from_millis(if elapsed.as_secs() < 10 { 100 } else { 1000 }));
                    let took = words::took(elapsed);
                    Row::new(
                        Role::Busy,
                        format!(" … {} {} under way ", left(&task.what, what), right(&took, 8)),
                    )
                }
                Task::Ended(task) => {
                    let (role, sign, word) = match &task.outcome {
                        RequestOutcome::Done { warnings, .. } if !warnings.is_empty() => {
                            (Role::Busy, "⚠", "warned")
                        }
                        RequestOutcome::Done { .. } => (Role::Good, "✓", "done"),
                        RequestOutcome::Failed { .. } => (Role::Bad, "✗", "failed"),
                        RequestOutcome::Cancelled { .. } => (Role::Dim, "–", "cancelled"),
                    };
                    let took = words::took(task.took);
                    Row::new(role, format!(" {sign} {} {} ", left(&task.what, what), right(&took, 8)))
                        .and(Role::Dim, format!("{} ", left(word, 9)))
                }
            });
        }
        if all.is_empty() {
            rows.push(Row::new(Role::Dim, " Nothing was asked for yet. What keys ask for shows here. "));
        }
        let selected = (!all.is_empty()).then_some(index - skip);
        let about = all.get(index).map(|task| about(task, cells, height.clamp(1, 3))).unwrap_or_default();
        rows.extend(about);
        let cancel = matches!(all.get(index), Some(Task::Running(_)));
        let role = |possible| if possible { Role::Key } else { Role::Dim };
        rows.push(
            Row::new(role(cancel), " x")
                .and(Role::Text, " cancel  ")
                .and(Role::Key, "esc")
                .and(Role::Text, " close "),
        );
        boxed(
            &format!("Tasks · {} under way", state.requests.in_flight.len()),
            &rows,
            selected,
            view,
            canvas,
        );
    }
}

/// How the selected one ended.
fn about(task: &Task, cells: usize, most: usize) -> Vec<Row> {
    let Task::Ended(task) = task else { return Vec::new() };
    let (role, text) = match &task.outcome {
        RequestOutcome::Done { summary, warnings } if warnings.is_empty() => (Role::Dim, summary.clone()),
        RequestOutcome::Done { summary, warnings } => {
            (Role::Busy, format!("{summary}; {}", warnings.join("; ")))
        }
        RequestOutcome::Failed { message, .. } => (Role::Bad, message.clone()),
        RequestOutcome::Cancelled { message } => (Role::Dim, message.clone()),
    };
    // It stands below the list, so it names its task.
    let text = format!("{}: {}", task.what, words::one_line(&text));
    let lines = wrap(&text, cells.saturating_sub(4));
    lines.iter().take(most).map(|line| Row::new(role, format!("   {}", cut(line, cells)))).collect()
}

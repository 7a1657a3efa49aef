//! The list of requests. What its keys do is in `dialog/tasks`.

use super::super::dialog::{Task, tasks};
use super::super::text::{Row, cut, left, right, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{RequestOutcome, words};
use crate::state::State;
use crate::tui::draw::boxes::boxed;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Duration;

/// Draws it.
pub(super) fn draw(
    index: usize,
    state: &State,
    view: &mut ViewState,
    buffer: &mut Buffer,
    body: Rect,
    now: Timestamp,
) {
    let all = tasks(state);
    let index = index.min(all.len().saturating_sub(1));
    let cells = (body.width as usize).saturating_sub(6).min(100);
    let height = (body.height as usize).saturating_sub(7).max(1);
    let skip = (index + 1).saturating_sub(height);
    let what = cells.saturating_sub(24);
    let mut rows = Vec::new();
    for task in all.iter().skip(skip).take(height) {
        rows.push(match task {
            Task::Running(task) => {
                let elapsed = Duration::try_from(now.duration_since(task.at)).unwrap_or_default();
                // It counts on, tenths for the first ten seconds.
                view.wake_in(Duration::from_millis(if elapsed.as_secs() < 10 { 100 } else { 1000 }));
                let took = words::took(elapsed);
                Row::new(Role::Busy, format!(" … {} {} under way ", left(&task.what, what), right(&took, 8)))
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
        buffer,
        body,
    );
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
    let lines = wrap(&words::one_line(&text), cells.saturating_sub(4));
    lines.iter().take(most).map(|line| Row::new(role, format!("   {}", cut(line, cells)))).collect()
}

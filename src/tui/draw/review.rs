//! The dialogs around drafts: what would be written, what a new object begins with, what can be undone.

use super::super::detail::change_rows;
use super::super::dialog::{Button, ReviewDialog, beginnings, buttons_of, review_of};
use super::super::text::{Row, left, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{Action, Review, words};
use crate::state::State;
use crate::tui::draw::boxes::{boxed, scrolled};
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws what a draft would change; nothing where it waits no longer.
pub(super) fn draw(dialog: &ReviewDialog, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let Some((draft, review)) = review_of(state, dialog.id) else { return };
    let cells = (body.width as usize).saturating_sub(8).min(100);
    let what = what(review, cells);
    let buttons = buttons(review, dialog.on, body.height > 12);
    let rows = scrolled(what, buttons, dialog.scroll, body);
    boxed(&draft.about, &rows, None, view, buffer, body);
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

/// Draws what a new object can begin with.
pub(super) fn new(
    typed: &str,
    index: usize,
    state: &State,
    view: &ViewState,
    buffer: &mut Buffer,
    body: Rect,
) {
    let all = beginnings(state, typed);
    let index = index.min(all.len().saturating_sub(1));
    let hint = if typed.is_empty() { "type to narrow" } else { "" };
    let mut rows = vec![Row::new(Role::Key, " ▸ ").and(Role::Text, format!("{typed}▏")).and(Role::Dim, hint)];
    let height = (body.height as usize).saturating_sub(5).max(1);
    let skip = (index + 1).saturating_sub(height);
    rows.extend(
        all.iter().skip(skip).take(height).map(|(_, text)| Row::new(Role::Text, format!(" {text} "))),
    );
    if all.is_empty() {
        rows.push(Row::new(Role::Dim, " Neither a kind nor a sample matches. "));
    }
    rows.push(
        Row::new(Role::Key, " enter")
            .and(Role::Text, " opens the editor  ")
            .and(Role::Key, "esc")
            .and(Role::Text, " cancel "),
    );
    boxed("New", &rows, (!all.is_empty()).then_some(1 + index - skip), view, buffer, body);
}

/// Draws what can be undone.
pub(super) fn undo(
    index: usize,
    state: &State,
    view: &mut ViewState,
    buffer: &mut Buffer,
    body: Rect,
    now: Timestamp,
) {
    let all = &state.undo;
    let index = index.min(all.len().saturating_sub(1));
    let cells = (body.width as usize).saturating_sub(18).clamp(16, 84);
    let height = (body.height as usize).saturating_sub(6).max(1);
    let skip = (index + 1).saturating_sub(height);
    let mut rows = Vec::new();
    for entry in all.iter().skip(skip).take(height) {
        let age = crate::tui::draw::pieces::age(view, Some(entry.at), now);
        let role = if entry.why_not.is_some() { Role::Dim } else { Role::Text };
        rows.push(
            Row::new(role, format!(" {} ", left(&entry.what, cells))).and(Role::Dim, format!("{age:>6} ")),
        );
    }
    if all.is_empty() {
        rows.push(Row::new(Role::Dim, " Nothing was applied, edited, scaled or deleted yet. "));
    }
    let selected = (!all.is_empty()).then_some(index - skip);
    let why = all.get(index).and_then(|entry| entry.why_not.as_ref());
    if let Some(why) = why {
        let lines = wrap(&format!("It cannot be undone: {}.", words::one_line(why)), cells + 6);
        rows.extend(lines.into_iter().map(|line| Row::new(Role::Busy, format!(" {line}"))));
    }
    rows.push(
        Row::new(if why.is_none() && !all.is_empty() { Role::Key } else { Role::Dim }, " enter")
            .and(Role::Text, " shows what changes  ")
            .and(Role::Key, "esc")
            .and(Role::Text, " close "),
    );
    boxed("Undo", &rows, selected, view, buffer, body);
}

//! The dialog about what a project may do: each permission with the setting that asks for it, and the three answers.

use super::super::dialog::{TRUST_ANSWERS, TrustDialog};
use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::boxes::{boxed, scrolled};
use crate::event::{TrustAsked, words};
use crate::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it; nothing where nothing is asked any more.
pub(super) fn draw(dialog: &TrustDialog, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let Some(asked) = &state.trust else { return };
    let cells = (body.width as usize).saturating_sub(8).min(96);
    let buttons = if dialog.asked_for { buttons(dialog.focus) } else { invitation() };
    let rows = scrolled(what(asked, cells), buttons, dialog.scroll, body);
    boxed("Trust this project?", &rows, None, view, buffer, body);
}

fn what(asked: &TrustAsked, cells: usize) -> Vec<Row> {
    let text = |role, text: &str| {
        let text = words::visible_line(text);
        wrap(&text, cells)
            .into_iter()
            .map(move |line| Row::new(role, format!(" {line} ")))
            .collect::<Vec<_>>()
    };
    let mut rows = vec![Row::default()];
    rows.extend(text(Role::Text, &format!("{} wants more than to render and to apply:", asked.root)));
    rows.push(Row::default());
    for permission in &asked.wanted {
        let is_new = asked.unanswered.contains(permission);
        let (role, mark) = if is_new { (Role::Busy, "▸") } else { (Role::Dim, "allowed:") };
        rows.extend(text(role, &format!("{mark} {permission}")));
        rows.extend(text(Role::Dim, &format!("  {}", permission.setting())));
    }
    rows.push(Row::default());
    rows.extend(text(
        Role::Dim,
        "Until you answer, nothing new of the project's files is used. A change of these settings asks again.",
    ));
    rows
}

fn buttons(focus: usize) -> Vec<Row> {
    let mut row = Row::new(Role::Text, " ");
    for (i, (_, name)) in TRUST_ANSWERS.iter().enumerate() {
        let role = match (i == focus, i) {
            (true, 0) => Role::Selected,
            (true, _) => Role::Bad,
            (false, _) => Role::Text,
        };
        row = row.and(role, if i == focus { format!("[ {name} ]") } else { format!("  {name}  ") });
        row = row.and(Role::Text, " ");
    }
    vec![
        Row::default(),
        row,
        Row::new(Role::Key, " ←→")
            .and(Role::Dim, " choose  ")
            .and(Role::Key, "enter")
            .and(Role::Dim, " presses  ")
            .and(Role::Key, "↑↓")
            .and(Role::Dim, " scroll  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " later "),
    ]
}

/// Below what came up by itself: keys that were on their way answer nothing.
fn invitation() -> Vec<Row> {
    vec![
        Row::default(),
        Row::new(Role::Key, " H")
            .and(Role::Dim, " answer  ")
            .and(Role::Key, "esc")
            .and(Role::Dim, " later; any other key closes this and does what it always does "),
    ]
}

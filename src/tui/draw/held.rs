//! The dialog about a held change: why it waits, what changes, whom it hurts, and the two answers.

use super::super::detail::impact;
use super::super::dialog::HeldDialog;
use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{Held, HeldChange, words};
use crate::state::State;
use crate::tui::draw::boxes::{boxed, scrolled};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it; nothing where the change waits no longer.
pub(super) fn draw(dialog: &HeldDialog, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let Some(held) = state.impact.held.iter().find(|held| held.id == dialog.id) else { return };
    let cells = (body.width as usize).saturating_sub(8).min(96);
    let what = what(held, cells);
    let buttons = if dialog.asked_for { buttons(held, dialog.on_apply) } else { invitation() };
    let rows = scrolled(what, buttons, dialog.scroll, body);
    let file =
        if held.files.is_empty() { String::new() } else { format!(" · {}", words::files(&held.files)) };
    boxed(&format!("{} held{file}", held.kind.kind), &rows, None, view, buffer, body);
}

fn what(held: &Held, cells: usize) -> Vec<Row> {
    let text = |role, text: &str| {
        wrap(text, cells).into_iter().map(move |line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
    };
    let mut rows = vec![Row::default()];
    rows.extend(text(Role::Busy, &held.why));
    if !held.findings.is_empty() {
        rows.push(Row::new(Role::Title, " What changes"));
        rows.extend(impact::findings(&held.findings, cells));
    }
    if !held.objects.is_empty() {
        let title = match held.change {
            HeldChange::Type | HeldChange::Reconciler => " Whom it hurts",
            HeldChange::Chart => " What it would do",
        };
        rows.push(Row::new(Role::Title, title));
        rows.extend(impact::hurts(&held.objects, held.more, cells));
    }
    rows.push(Row::default());
    let goes_on = match held.change {
        HeldChange::Type => {
            "Until you answer, the API server keeps the type as it was. Undoing the edit clears this."
        }
        HeldChange::Reconciler => {
            "Until you answer, the older reconciler keeps running. Undoing the edit clears this."
        }
        HeldChange::Chart => {
            "Until you answer, the older chart keeps serving. Undoing the edit clears this; the impact tab has every field."
        }
    };
    rows.extend(text(Role::Dim, goes_on));
    rows
}

fn buttons(held: &Held, on_apply: bool) -> Vec<Row> {
    let button = |on: bool, name: &str| if on { format!("[ {name} ]") } else { format!("  {name}  ") };
    let apply = match held.change {
        HeldChange::Type => "Apply all the same",
        HeldChange::Reconciler => "Switch all the same",
        HeldChange::Chart => "Let it go live",
    };
    vec![
        Row::default(),
        Row::new(Role::Text, " ")
            .and(if on_apply { Role::Text } else { Role::Selected }, button(!on_apply, "Discard"))
            .and(Role::Text, "   ")
            .and(if on_apply { Role::Bad } else { Role::Text }, button(on_apply, apply)),
        Row::new(Role::Key, " ←→")
            .and(Role::Dim, " choose  ")
            .and(Role::Key, "enter")
            .and(Role::Dim, " presses  ")
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

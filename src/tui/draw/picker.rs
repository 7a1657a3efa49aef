//! A list to choose from: what is typed, the best matches with their letters marked, how many there are.

use super::super::action::by;
use super::super::text::{Row, cut, right, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::frame::plain_box;
use crate::state::State;
use crate::tui::candidates::{Item, Picker, What};
use crate::tui::enabled::enabled;
use crate::tui::programs::possible;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the box over the upper part of the panes.
pub(super) fn draw(picker: &Picker, state: &State, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let cells = body.width.saturating_sub(4).clamp(20.min(body.width), 110);
    let lines = picker.best.len().clamp(1, 18) as u16;
    let height = (lines + 4).min(body.height);
    let area = Rect { x: body.x + (body.width - cells) / 2, y: body.y, width: cells, height };
    let (title, prompt) = match picker.what {
        What::Palette => ("Palette", ":"),
        What::Jump => ("Jump", "▸"),
        What::Namespace => ("Namespace", "▸"),
        What::Context => ("Context", "▸"),
        What::Theme => ("Theme", "▸"),
        What::Commands => ("Your own commands", "▸"),
        What::Ports => ("Forward a port (8080:80 takes any other)", "▸"),
        What::Failure => ("Make it fail", "▸"),
        What::Disturbance => ("Disturb the program's calls", "rule"),
    };
    let inner = plain_box(buffer, view, area, title);
    let room = (inner.width as usize).saturating_sub(1);
    let typed = Row::new(Role::Key, format!(" {prompt} "))
        .and(if picker.resumed { Role::Selected } else { Role::Text }, picker.typed.clone())
        .and(Role::Text, "▏")
        .and(Role::Dim, format!("  {} of {}", picker.matching(), picker.of.len()));
    typed.draw(buffer, view.theme, (inner.x, inner.y), room, false);
    let height = (inner.height as usize).saturating_sub(2);
    let skip = (picker.index + 1).saturating_sub(height);
    for (i, at) in picker.best.iter().enumerate().skip(skip).take(height) {
        let row = line(picker, *at, state, view, room);
        let y = inner.y + 1 + (i - skip) as u16;
        row.draw(buffer, view.theme, (inner.x, y), room, i == picker.index);
    }
    if picker.best.is_empty() {
        let text = if picker.of.len() == 0 { " There is nothing to choose. " } else { " Nothing matches. " };
        Row::new(Role::Dim, text).draw(buffer, view.theme, (inner.x, inner.y + 1), room, false);
    }
    let keys = Row::new(Role::Key, " enter")
        .and(Role::Text, " chooses  ")
        .and(Role::Key, "↑↓")
        .and(Role::Text, " move  ");
    let keys = keys.and(Role::Key, "esc").and(Role::Text, " closes");
    if inner.height >= 3 {
        keys.draw(buffer, view.theme, (inner.x, inner.bottom() - 1), room, false);
    }
}

/// One line: its text with the matching letters marked, and the keys of an action or why it is not possible.
fn line(picker: &Picker, at: u32, state: &State, view: &ViewState, room: usize) -> Row {
    let (mut role, mut tail) = (Role::Text, String::new());
    if let Item::Action(does) = picker.of.item(at) {
        tail = view.keymap.text(*does);
        if let Err(why) = enabled(*does, view, state) {
            (role, tail) = (Role::Dim, format!("not now: {why}"));
        } else if by(*does).is_none() {
            role = Role::Dim;
        }
    }
    if let Item::Own(own) = picker.of.item(at)
        && let Some(own) = view.own_commands.get(*own)
        && let Err(why) = possible(own, view, state)
    {
        (role, tail) = (Role::Dim, format!("not now: {why}"));
    }
    let tail = cut(&tail, room / 2);
    let text = picker.of.shown(at);
    let shown = cut(text, room.saturating_sub(width(&tail) + 3));
    let hits = picker.of.matches(at, &picker.query());
    let mut row = Row::new(Role::Text, " ");
    let mut piece = String::new();
    let mut marked = false;
    for (byte, c) in shown.char_indices() {
        // What was cut ends in an ellipsis, which matches nothing.
        let hit = hits.binary_search(&byte).is_ok() && text[byte..].starts_with(c);
        if hit != marked && !piece.is_empty() {
            row = row.and(if marked { Role::Match } else { role }, std::mem::take(&mut piece));
        }
        marked = hit;
        piece.push(c);
    }
    row = row.and(if marked { Role::Match } else { role }, piece);
    let used = width(&row.text());
    row.and(Role::Dim, right(&tail, room.saturating_sub(used + 1))).and(Role::Text, " ")
}

//! The boxes of dialogs, with their rows and buttons.

use super::super::text::{Row, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::frame::plain_box;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A box in the middle, as large as its rows need and the body allows.
pub(super) fn boxed(
    title: &str,
    rows: &[Row],
    selected: Option<usize>,
    view: &ViewState,
    buffer: &mut Buffer,
    body: Rect,
) {
    let widest = rows.iter().map(|row| width(&row.text())).max().unwrap_or(0).max(width(title) + 2);
    // A few columns of what lies below would only look like a second border.
    let cells = match (widest + 4).min(body.width as usize) as u16 {
        cells if body.width - cells < 6 => body.width,
        cells => cells,
    };
    let height = (rows.len() + 2).min(body.height as usize) as u16;
    let area = Rect {
        x: body.x + (body.width - cells) / 2,
        y: body.y + (body.height - height) / 2,
        width: cells,
        height,
    };
    let inner = plain_box(buffer, view, area, title);
    // Where not all rows fit, the last ones do: they hold the buttons.
    let skip = rows.len().saturating_sub(inner.height as usize);
    let skip = if selected.is_some() { skip.min(selected.unwrap_or(0)) } else { skip };
    for (i, row) in rows.iter().enumerate().skip(skip).take(inner.height as usize) {
        let at = (inner.x + 1, inner.y + (i - skip) as u16);
        row.draw(buffer, view.theme, at, (inner.width as usize).saturating_sub(2), selected == Some(i));
    }
}

/// A text above buttons that always show: what of it fits, and how many lines follow.
pub(super) fn scrolled(what: Vec<Row>, buttons: Vec<Row>, scroll: usize, body: Rect) -> Vec<Row> {
    let room = (body.height as usize).saturating_sub(2 + buttons.len()).max(1);
    let last = what.len().saturating_sub(room);
    let scroll = scroll.min(last);
    let below = last - scroll;
    let mut rows: Vec<Row> = what.into_iter().skip(scroll).take(room).collect();
    if below > 0
        && let Some(row) = rows.last_mut()
    {
        *row = Row::new(Role::Dim, format!(" ↓ {} more lines ", below + 1));
    }
    rows.extend(buttons);
    rows
}

/// The two buttons of a question: the safe one first.
pub(super) fn buttons(on_second: bool, first: &str, second: &str) -> Row {
    let button = |on: bool, name: &str| if on { format!("[ {name} ]") } else { format!("  {name}  ") };
    Row::new(Role::Text, " ")
        .and(if on_second { Role::Text } else { Role::Selected }, button(!on_second, first))
        .and(Role::Text, "   ")
        .and(if on_second { Role::Bad } else { Role::Text }, button(on_second, second))
        .and(Role::Dim, "   ←→ choose, enter presses ")
}

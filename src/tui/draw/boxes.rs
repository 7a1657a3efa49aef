//! The boxes of dialogs, with their rows and buttons.

use super::super::layer::Canvas;
use super::super::text::{Row, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use super::frame::plain_box;
use opdev_object::meta::ObjectRef;
use ratatui::layout::Rect;

/// A box in the middle, as large as its rows need and the body allows.
pub(in crate::tui) fn boxed(
    title: &str,
    rows: &[Row],
    selected: Option<usize>,
    view: &ViewState,
    canvas: &mut Canvas<'_>,
) {
    let Canvas { buffer, body, .. } = canvas;
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
        row.draw(buffer, view.look.theme, at, (inner.width as usize).saturating_sub(2), selected == Some(i));
    }
}

/// A text above buttons that always show: what of it fits, and how many lines follow.
pub(in crate::tui) fn scrolled(what: Vec<Row>, buttons: Vec<Row>, scroll: usize, body: Rect) -> Vec<Row> {
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
pub(in crate::tui) fn buttons(on_second: bool, first: &str, second: &str) -> Row {
    let button = |on: bool, name: &str| if on { format!("[ {name} ]") } else { format!("  {name}  ") };
    Row::new(Role::Text, " ")
        .and(if on_second { Role::Text } else { Role::Selected }, button(!on_second, first))
        .and(Role::Text, "   ")
        .and(if on_second { Role::Bad } else { Role::Text }, button(on_second, second))
        .and(Role::Dim, "   ←→ choose, enter presses ")
}

/// The names of several objects; one is in the title.
pub(in crate::tui) fn named(objects: &[ObjectRef], most: usize) -> Vec<Row> {
    if objects.len() < 2 {
        return Vec::new();
    }
    let shown = if objects.len() > most { most } else { objects.len() };
    let mut rows: Vec<Row> =
        objects.iter().take(shown).map(|object| Row::new(Role::Text, format!(" {object} "))).collect();
    if objects.len() > shown {
        rows.push(Row::new(Role::Dim, format!(" and {} more ", objects.len() - shown)));
    }
    rows
}

//! The boxes of dialogs, with their rows and buttons.

use super::super::layer::Canvas;
use super::super::view::ViewState;
use super::frame::plain_box;
use opdev_object::meta::ObjectRef;
use opdev_panes::click_targets::{Dialog, Spot};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, cut, left, width, wrap};
use opdev_panes::theme::Role;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// A box in the middle, as large as its rows need and the body allows.
pub(crate) fn boxed(
    title: &str,
    rows: &[Row],
    selected: Option<usize>,
    view: &mut ViewState,
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
        clickable(row, at, view);
    }
    let chosen = selected.map(|at| inner.y + (at.saturating_sub(skip)) as u16);
    view.screen.spots.dialog = Some(Dialog { area, chosen, below: area.bottom() });
}

/// Notes what a click on the keys of a row presses.
fn clickable(row: &Row, (x, y): (u16, u16), view: &mut ViewState) {
    let mut at = x;
    let mut open: Option<(Key, u16)> = None;
    for (role, text) in &row.0 {
        if *role == Role::Key {
            if let Some((key, from)) = open.take() {
                view.screen.spots.answers.push(Spot { y, from, to: at, what: key });
            }
            let name = text.trim().trim_matches(['[', ']']);
            open = Key::parse(name).map(|key| (key, at));
        }
        at += width(text) as u16;
    }
    if let Some((key, from)) = open {
        view.screen.spots.answers.push(Spot { y, from, to: at, what: key });
    }
}

/// A box as wide as the body and as high as its rows, at the top: a list that is read.
pub(crate) fn full(
    title: &str,
    rows: &[Row],
    selected: Option<usize>,
    view: &mut ViewState,
    canvas: &mut Canvas<'_>,
) {
    let Canvas { buffer, body, .. } = canvas;
    let height = (rows.len() + 2).min(body.height as usize) as u16;
    let area = Rect { height, ..*body };
    let inner = plain_box(buffer, view, area, title);
    for (i, row) in rows.iter().enumerate().take(inner.height as usize) {
        let at = (inner.x, inner.y + i as u16);
        row.draw(buffer, view.look.theme, at, inner.width as usize, selected == Some(i));
        clickable(row, at, view);
    }
    let chosen = selected.map(|at| inner.y + at as u16);
    view.screen.spots.dialog = Some(Dialog { area, chosen, below: area.bottom() });
}

/// Keys with their words, for the last line.
pub(crate) fn key_row(keys: &[(&str, &str)]) -> Row {
    keys.iter().fold(Row::new(Role::Text, " "), |row, (key, word)| {
        row.and(Role::Key, *key).and(Role::Text, format!(" {word}  "))
    })
}

/// A border across a box, with a title.
pub(crate) fn divider(
    buffer: &mut Buffer,
    view: &ViewState,
    area: Rect,
    y: u16,
    (border, title): (Role, &str),
) {
    let cells = area.width as usize;
    let line = format!("├{}┤", "─".repeat(cells.saturating_sub(2)));
    buffer.set_stringn(area.x, y, line, cells, view.look.theme.style(border));
    let room = cells.saturating_sub(4);
    let title = format!(" {} ", cut(title, room.saturating_sub(2)));
    buffer.set_stringn(area.x + 2, y, title, room, view.look.theme.style(Role::Title));
}

/// A text above buttons that always show: what of it fits, and how many lines follow.
pub(crate) fn scrolled(what: Vec<Row>, buttons: Vec<Row>, scroll: usize, body: Rect) -> Vec<Row> {
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

/// An answer to a question: its key, its word, what it means, and how loud it is.
pub(crate) struct Choice<'a> {
    pub(crate) key: &'a str,
    pub(crate) word: &'a str,
    pub(crate) means: &'a str,
    pub(crate) role: Role,
}

/// The answers of a question, a line each: letters answer, and enter alone does nothing. Side by side where
/// there is little room.
pub(crate) fn choices(all: &[Choice<'_>], cells: usize, roomy: bool) -> Vec<Row> {
    if !roomy {
        let mut rows = vec![Row::default()];
        for choice in all {
            let text = format!(" {}  ", choice.word);
            let size = width(&text) + width(choice.key) + 3;
            let used = rows.last().map_or(0, |row| width(&row.text()));
            if used > 0 && used + size > cells + 2 {
                rows.push(Row::default());
            }
            if let Some(row) = rows.last_mut() {
                row.0.push((Role::Key, format!(" [{}]", choice.key)));
                row.0.push((choice.role, text));
            }
        }
        return rows;
    }
    let longest = all.iter().map(|choice| width(choice.word) + width(choice.key)).max().unwrap_or(0);
    let lines = all.iter().flat_map(|choice| {
        let head = format!(" {}", left(choice.word, longest.saturating_sub(width(choice.key))));
        let before = longest + 4;
        let means = wrap(choice.means, cells.saturating_sub(before + 2).max(12));
        let means = if choice.means.is_empty() { vec![String::new()] } else { means };
        means.into_iter().enumerate().map(move |(at, line)| match at {
            0 => Row::new(Role::Key, format!(" [{}]", choice.key))
                .and(choice.role, head.clone())
                .and(Role::Dim, format!("  {line} ")),
            _ => Row::new(Role::Dim, format!(" {}  {line} ", " ".repeat(before - 1))),
        })
    });
    std::iter::once(Row::default()).chain(lines).collect()
}

/// The names of several objects; one is in the title.
pub(crate) fn named(objects: &[ObjectRef], most: usize) -> Vec<Row> {
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

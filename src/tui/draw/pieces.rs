//! Pieces that several panes draw: ages, empty cells, the tabs of the detail pane.

use super::super::view::ViewState;
use jiff::Timestamp;
use opdev_event::words;
use opdev_panes::detail::TABS;
use opdev_panes::detail::page::DetailTab;
use opdev_panes::pane::Tab;
use opdev_panes::text::{Row, width};
use opdev_panes::theme::Role;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::time::Duration;

/// Draws a row over the whole of a line.
pub(super) fn line(buffer: &mut Buffer, view: &ViewState, area: Rect, row: &Row) {
    row.draw(buffer, view.look.theme, (area.x, area.y), area.width as usize, false);
}

/// An age, and a note of when it will read differently.
pub(crate) fn age(view: &mut ViewState, since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return String::new() };
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    view.wake_in(words::short_age_changes_in(age));
    words::short_age(age)
}

/// The rows of an area below so many.
pub(super) fn below(area: Rect, rows: usize) -> Rect {
    let used = (rows as u16).min(area.height);
    Rect { y: area.y + used, height: area.height - used, ..area }
}

pub(super) fn clear(buffer: &mut Buffer, area: Rect) {
    for y in area.top()..area.bottom() {
        for x in area.left()..area.right() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.reset();
                cell.set_style(Style::reset());
            }
        }
    }
}

/// The title of the detail pane: its tabs, as many as fit around the open one; how many more there are
/// stands at the ends.
pub(super) fn tabs(view: &ViewState, cells: usize, own: Role) -> Vec<(Role, String, Option<Tab>)> {
    let one = |part: &&dyn DetailTab| {
        let open = part.tab() == view.detail.tab;
        let text = if open { format!("[{}]", part.title()) } else { format!(" {} ", part.title()) };
        (if open { own } else { Role::Dim }, text, Some(part.tab()))
    };
    let all: Vec<(Role, String, Option<Tab>)> = TABS.iter().map(one).collect();
    let sizes: Vec<usize> = all.iter().map(|(_, text, _)| width(text)).collect();
    if sizes.iter().sum::<usize>() <= cells {
        return all;
    }
    let open = TABS.iter().position(|part| part.tab() == view.detail.tab).unwrap_or(0);
    let (mut from, mut to) = (open, open + 1);
    // Hidden pieces are counted on their side: `+4`.
    let room = cells.saturating_sub(if open == 0 { 4 } else { 7 });
    let mut used = sizes[open];
    // Neighbours in turn, the next ones first.
    loop {
        let right = to < sizes.len() && used + sizes[to] <= room;
        if right {
            used += sizes[to];
            to += 1;
        }
        let left = from > 0 && used + sizes[from - 1] <= room;
        if left {
            from -= 1;
            used += sizes[from];
        }
        if !right && !left {
            break;
        }
    }
    // A click on a count shows the next one of those that it counts.
    let count = |out: usize, next: Option<usize>| {
        let text = if out > 0 { format!("+{out} ") } else { String::new() };
        (Role::Dim, text, next.and_then(|at| all[at].2))
    };
    let mut row = vec![count(from, from.checked_sub(1))];
    row.extend(all[from..to].iter().cloned());
    row.push(count(all.len() - to, (to < all.len()).then_some(to)));
    row
}

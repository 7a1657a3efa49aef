//! What several panes draw: ages, empty cells, the tabs of the detail pane.

use super::super::detail::TABS;
use super::super::detail::page::DetailTab;
use super::super::pane::Tab;
use super::super::text::width;
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::words;
use jiff::Timestamp;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use std::time::Duration;

/// An age, and a note of when it will read differently.
pub(in crate::tui) fn age(view: &mut ViewState, since: Option<Timestamp>, now: Timestamp) -> String {
    let Some(since) = since else { return String::new() };
    let age = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    view.wake_in(words::age_changes_in(age));
    words::age(age)
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

/// The title of the detail pane: its tabs, as many as fit around the open one; marks say where more are.
pub(super) fn tabs(view: &ViewState, cells: usize) -> Vec<(Role, String, Option<Tab>)> {
    let one = |part: &&dyn DetailTab| {
        let open = part.tab() == view.detail.tab;
        let text = if open { format!("[{}]", part.title()) } else { format!(" {} ", part.title()) };
        (if open { Role::Focus } else { Role::Dim }, text, Some(part.tab()))
    };
    let all: Vec<(Role, String, Option<Tab>)> = TABS.iter().map(one).collect();
    let sizes: Vec<usize> = all.iter().map(|(_, text, _)| width(text)).collect();
    if sizes.iter().sum::<usize>() <= cells {
        return all;
    }
    let open = TABS.iter().position(|part| part.tab() == view.detail.tab).unwrap_or(0);
    let (mut from, mut to) = (open, open + 1);
    let room = cells.saturating_sub(2);
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
    let mark = |there: bool, sign: &str| (Role::Dim, if there { sign } else { "" }.to_owned(), None);
    let mut row = vec![mark(from > 0, "‹")];
    row.extend(all[from..to].iter().cloned());
    row.push(mark(to < all.len(), "›"));
    row
}

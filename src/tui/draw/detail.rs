//! The detail pane: a window over its lines, what is searched for made to stand out, and how much there is.

use super::super::view::ViewState;
use opdev_panes::detail::search;
use opdev_panes::pane::{Pane, Tab};
use opdev_panes::text::{Row, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the visible lines. The log sticks to its end unless one scrolled up or holds it.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let (cells, height) = (area.width as usize, area.height as usize);
    view.refresh_lines(state, cells);
    let last = view.detail.lines.rows.len().saturating_sub(height);
    view.screen.heights[Pane::Detail.index()] = height.max(1);
    if view.detail.tab != Tab::LOG || view.detail.stick {
        view.detail.log_followed = state.log.total;
    }
    let sticks = view.detail.tab.part().follows_end() && view.detail.stick;
    view.detail.scroll = if sticks { last } else { view.detail.scroll.min(last) };
    for (i, row) in view.detail.lines.rows.iter().skip(view.detail.scroll).take(height).enumerate() {
        let at = (area.x, area.y + i as u16);
        if view.detail.search.filter.is_empty() {
            row.draw(buffer, view.look.theme, at, cells, false);
        } else {
            search::highlight(row, &view.detail.search.filter).draw(
                buffer,
                view.look.theme,
                at,
                cells,
                false,
            );
        }
    }
    let text = below(state, view, height, last);
    if width(&text.text()) > 0 {
        let size = width(&text.text()).min(cells);
        let at = (area.right().saturating_sub(size as u16 + 1).max(area.x), area.bottom());
        text.draw(buffer, view.look.theme, at, size, false);
    }
}

/// The text of the lower border: the search, what is held back, which lines are seen.
fn below(state: &State, view: &mut ViewState, height: usize, last: usize) -> Row {
    let mut row = Row::default();
    if !view.detail.search.text.is_empty() {
        let (at, all) = view.detail.search.count(&view.detail.lines.rows);
        let text = match (at, all) {
            (_, 0) => format!(" {} not found ", view.detail.search.text),
            (0, all) => format!(" {}: {all} lines ", view.detail.search.text),
            (at, all) => format!(" {}: {at} of {all} ", view.detail.search.text),
        };
        row = row.and(if all > 0 { Role::Match } else { Role::Bad }, text);
    }
    row.0.extend(view.detail.tab.part().note(&view.page(state, 0)).0);
    if last > 0 {
        let all = view.detail.lines.rows.len();
        row = row.and(
            Role::Dim,
            format!(" {}-{} of {all} ", view.detail.scroll + 1, (view.detail.scroll + height).min(all)),
        );
    }
    row
}

//! The detail pane: a window over its lines.

use super::super::detail;
use super::super::view::{Pane, Tab, ViewState};
use crate::state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws the visible lines. The log sticks to its end unless one scrolled up.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let (cells, height) = (area.width as usize, area.height as usize);
    detail::refresh(view, state, cells);
    let last = view.lines.rows.len().saturating_sub(height);
    view.heights[Pane::Detail.index()] = height.max(1);
    view.scroll = if view.tab == Tab::Log && view.stick { last } else { view.scroll.min(last) };
    for (i, row) in view.lines.rows.iter().skip(view.scroll).take(height).enumerate() {
        row.draw(buffer, view.theme, (area.x, area.y + i as u16), cells, false);
    }
    if last > 0 {
        let text = format!(
            " {}-{} of {} ",
            view.scroll + 1,
            view.scroll + height.min(view.lines.rows.len()),
            view.lines.rows.len()
        );
        let style = view.theme.style(super::Role::Dim);
        let at = area.right().saturating_sub(text.len() as u16 + 1).max(area.x);
        buffer.set_stringn(at, area.bottom(), &text, cells, style);
    }
}

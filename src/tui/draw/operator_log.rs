//! The pane of the operator log: a window over its lines, at their end unless one has scrolled up.

use super::super::view::ViewState;
use super::lists::{put, words_of};
use opdev_panes::pane::Pane;
use opdev_panes::text::Row;
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let height = area.height as usize;
    view.log.refresh(state, &view.look.zone);
    if view.log.rows.is_empty() {
        let text = match view.log.filter.is_empty() {
            true => "The operator has logged nothing yet. What it prints shows here.",
            false => "No line passes the filter. esc clears it.",
        };
        return put(&words_of(&[text.to_owned()], area), view, buffer, area);
    }
    let last = view.log.rows.len().saturating_sub(height);
    view.log.scroll = if view.log.held { view.log.scroll.min(last) } else { last };
    for (i, row) in view.log.rows.iter().skip(view.log.scroll).take(height).enumerate() {
        let at = (area.x, area.y + i as u16);
        row.draw(buffer, view.look.theme, at, area.width as usize, false);
    }
    let below = last - view.log.scroll;
    if view.log.held && below > 0 {
        let text = format!(" scroll lock · {below} below (G) ");
        let cells = (area.width as usize).min(text.chars().count());
        let x = area.right().saturating_sub(cells as u16 + 1).max(area.x);
        Row::new(Role::Busy, text).draw(buffer, view.look.theme, (x, area.bottom()), cells, false);
    }
    view.screen.heights[Pane::Log.index()] = height.max(1);
}

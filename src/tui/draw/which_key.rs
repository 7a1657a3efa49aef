//! Keys that may follow those typed so far, in a box above the footer. Who types on quickly never sees it.

use super::super::view::ViewState;
use super::frame::plain_box;
use crate::act::programs;
use jiff::Timestamp;
use opdev_panes::keys::chord::Chord;
use opdev_panes::text::{Row, cut, left, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use std::time::Duration;

/// How long one may think before being told.
const PAUSE: Duration = Duration::from_millis(200);

/// Draws the box, or asks to be woken when it is due.
pub(super) fn draw(view: &mut ViewState, state: &State, buffer: &mut Buffer, body: Rect, now: Timestamp) {
    if view.keys.typed.is_empty() {
        return;
    }
    let since = *view.keys.typed_at.get_or_insert(now);
    let waited = now.duration_since(since).unsigned_abs();
    if let Some(left) = PAUSE.checked_sub(waited).filter(|left| !left.is_zero()) {
        return view.wake_in(left);
    }
    let follow_ups = follow_ups(view, state);
    let keys = follow_ups.iter().map(|(keys, ..)| width(keys)).max().unwrap_or(1);
    let titles = follow_ups.iter().map(|(_, title, _)| width(title)).max().unwrap_or(1);
    let cell = keys + titles + 4;
    let columns = ((body.width as usize).saturating_sub(4) / cell).clamp(1, 4);
    let lines = follow_ups.len().div_ceil(columns).min((body.height as usize).saturating_sub(2));
    let height = (lines + 2).min(body.height as usize) as u16;
    let area = Rect { y: body.bottom() - height, height, ..body };
    let title = format!("{} … · esc leaves", Chord(view.keys.typed.clone()));
    let inner = plain_box(buffer, view, area, &title);
    for line in 0..lines {
        let mut row = Row::default();
        for (key, title, possible) in follow_ups.iter().skip(line).step_by(lines.max(1)).take(columns) {
            let (key_role, role) = if *possible { (Role::Key, Role::Text) } else { (Role::Dim, Role::Dim) };
            row = row
                .and(key_role, format!(" {} ", left(key, keys)))
                .and(role, format!("{}  ", left(title, titles)));
        }
        let cells = inner.width as usize;
        let row =
            if width(&row.text()) > cells { Row::new(Role::Text, cut(&row.text(), cells)) } else { row };
        row.draw(buffer, view.look.theme, (inner.x, inner.y + line as u16), cells, false);
    }
}

/// What may follow: the keys, what they do, and whether that is possible now. The user's own commands come
/// last.
fn follow_ups(view: &ViewState, state: &State) -> Vec<(String, String, bool)> {
    let actions = view
        .keys
        .map
        .follow_ups(&view.keys.typed)
        .into_iter()
        .map(|(keys, action)| (keys, action.title.to_owned(), action.possible(view, state).is_ok()));
    let own = view.keys.own.iter().filter_map(|own| {
        let rest = own.key.as_ref()?.0.strip_prefix(view.keys.typed.as_slice())?.to_vec();
        let possible = programs::possible(own, view, state).is_ok();
        (!rest.is_empty()).then(|| (Chord(rest).to_string(), own.command.name.clone(), possible))
    });
    actions.chain(own).collect()
}

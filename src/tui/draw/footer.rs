//! The last line: keys of the focused pane on the left, what is under way on the right. The keys that lead to
//! all others are the last ones to go.

use super::super::view::ViewState;
use super::pieces::line;
use crate::keys::row::Row as Action;
use opdev_panes::click_targets::Spot;
use opdev_panes::keys::action::{Do, Seek};
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it.
pub(super) fn draw(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    if let Some(row) = view.layers.last().and_then(|layer| layer.footer(view, state)) {
        return line(buffer, view, area, &row);
    }
    let cells = area.width as usize;
    let mut right = under_way(state, view);
    let keymap = view.keys.map.clone();
    let size = |action: &Action| {
        let key = keymap.keys(action.does).first().map(ToString::to_string);
        key.map_or(0, |key| width(&key) + width(action.title) + 3)
    };
    let on_page = view.focus == Pane::Detail;
    let back = on_page.then_some(Do::Back);
    let always: Vec<Do> = back.into_iter().chain([Do::Seek(Seek::Palette), Do::Help]).collect();
    let mut reserved: usize = always.iter().filter_map(|does| view.keys.map.by(*does)).map(size).sum();
    while !right.0.is_empty() && width(&right.text()) + 1 + reserved > cells {
        right.0.pop();
    }
    let room = cells.saturating_sub(width(&right.text()) + 1);
    let mut left = Row::default();
    let (mut used, mut full) = (0, false);
    // Findings come first, while there are any.
    let found = state.findings.counts() != (0, 0);
    let first = |action: &Action| found && action.does == Do::Findings;
    let mut shown: Vec<&Action> = view
        .keys
        .map
        .rows()
        .iter()
        .filter(|action| {
            action.footer.contains(&view.focus) || first(action) || always.contains(&action.does)
        })
        // A key of another tab would only take the place of one that does something here.
        .filter(|action| {
            !(on_page && matches!(action.does, Do::See(_))) || action.possible(view, state).is_ok()
        })
        .collect();
    shown.sort_by_key(|action| {
        let last = always.iter().position(|does| *does == action.does).map_or(0, |at| at + 1);
        (last, !first(action))
    });
    for action in shown {
        let Some(key) = view.keys.map.keys(action.does).first().map(ToString::to_string) else { continue };
        let size = size(action);
        if always.contains(&action.does) {
            reserved -= size;
        }
        let fits = used + size + reserved <= room || (action.does == Do::Help && used + size <= cells);
        // From the right: a short one never takes the place of a longer one before it.
        full |= !fits;
        if full && !always.contains(&action.does) || !fits {
            continue;
        }
        let from = area.x + used as u16;
        used += size;
        view.screen.spots.keys.push(Spot { y: area.y, from, to: area.x + used as u16, what: action.does });
        let possible = action.possible(view, state).is_ok();
        left = left
            .and(if possible { Role::Key } else { Role::Dim }, format!(" {key}"))
            .and(if possible { Role::Text } else { Role::Dim }, format!(" {} ", action.title));
    }
    let gap = cells.saturating_sub(used + width(&right.text()) + 1);
    left = left.and(Role::Text, " ".repeat(gap));
    left.0.extend(right.0);
    line(buffer, view, area, &left);
}

/// Work under way: each part in its own role, the one that is needed least last.
fn under_way(state: &State, view: &ViewState) -> Row {
    let queue = &state.queue;
    let mut parts: Vec<(Role, String)> = Vec::new();
    let key = |does: Do| view.keys.map.keys(does).first().map(ToString::to_string).unwrap_or_default();
    match (&state.trust, state.impact.held.len()) {
        (Some(_), _) => parts.push((Role::Busy, format!("? not trusted yet ({})", key(Do::Held)))),
        (None, 0) => {}
        (None, 1) => parts.push((Role::Busy, format!("? needs your answer ({})", key(Do::Held)))),
        (None, many) => parts.push((Role::Busy, format!("? {many} need your answer ({})", key(Do::Held)))),
    }
    let storm = state.findings.open().filter(|finding| finding.storm).find_map(|finding| finding.per_second);
    let busy = u32::try_from(state.running.len()).unwrap_or(u32::MAX).max(queue.running);
    if queue.backing_off > 0 {
        parts.push((Role::Bad, format!("✗ {} retrying", queue.backing_off)));
    }
    if let Some(rate) = storm {
        parts.push((Role::Focus, format!("↻ {rate} reconciles/s")));
    } else if busy > 0 {
        parts.push((Role::Focus, format!("↻ {busy} running")));
    }
    if queue.waiting > 0 {
        parts.push((Role::Dim, format!("queue {}", queue.waiting)));
    }
    if parts.is_empty() && state.started.is_some() {
        let is_reading = state.reload.live.is_none() && state.trust.is_none();
        parts.push((Role::Dim, if is_reading { "reading the project" } else { "idle" }.to_owned()));
    }
    let mut row = Row::default();
    for (at, (role, text)) in parts.into_iter().enumerate() {
        row = row.and(role, if at > 0 { format!("  {text}") } else { text });
    }
    row
}

//! The tree of owned objects, and what all lists share: signs, marks, paragraphs for empty ones. The custom
//! resources are in `resources`, the reconciles in `reconciles`.

use super::super::view::ViewState;
use crate::draw::pieces::age;
use jiff::Timestamp;
use opdev_event::words;
use opdev_object::meta::ObjectKey;
use opdev_panes::detail::parts::clock;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, cut, cut_front, left, width, wrap};
use opdev_panes::theme::Role;
use opdev_state::State;
use opdev_state::health::Level;
use opdev_state::tree::Node;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// The symbol and the role of a level.
pub(super) fn sign(level: Level) -> (&'static str, Role) {
    match level {
        Level::Plain => ("○", Role::Dim),
        Level::Done => ("✓", Role::Good),
        Level::Good => ("●", Role::Good),
        Level::Busy => ("◐", Role::Busy),
        Level::Bad => ("✗", Role::Bad),
    }
}

pub(super) fn put(rows: &[Row], view: &ViewState, buffer: &mut Buffer, area: Rect) {
    for (i, row) in rows.iter().take(area.height as usize).enumerate() {
        row.draw(buffer, view.look.theme, (area.x, area.y + i as u16), area.width as usize, false);
    }
}

/// A paragraph for an empty pane; an empty text makes an empty line.
pub(super) fn words_of(texts: &[String], area: Rect) -> Vec<Row> {
    let lines = texts.iter().flat_map(|text| wrap(text, (area.width as usize).saturating_sub(2)));
    lines.map(|line| Row::new(Role::Dim, format!(" {line}"))).collect()
}

/// The mark in front of a row: the selection, also without colours and focus.
pub(super) fn mark(selected: bool) -> &'static str {
    if selected { "▸" } else { " " }
}

/// The mark of a row that the user has marked.
pub(super) fn star(view: &ViewState, key: &ObjectKey) -> &'static str {
    if view.marks.has(key) { "*" } else { " " }
}

/// The owned objects as a tree.
pub(super) fn owned(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    let root = view.root(state).cloned();
    let fault = root.and_then(|root| view.row(state, &root).fault);
    let mut list = area;
    if let Some(fault) = fault.filter(|_| area.height > 2) {
        let lines = wrap(&words::one_line(&fault), (area.width as usize).saturating_sub(4));
        let most = if area.height > 8 { 2 } else { 1 };
        let cut_off = lines.len() > most;
        let rows: Vec<Row> = lines
            .into_iter()
            .take(most)
            .enumerate()
            .map(|(i, text)| {
                let text = if cut_off && i + 1 == most { format!("{text} …") } else { text };
                Row::new(Role::Bad, format!(" {} {text}", if i == 0 { "✗" } else { " " }))
            })
            .collect();
        put(&rows, view, buffer, area);
        list = Rect { y: area.y + rows.len() as u16, height: area.height - rows.len() as u16, ..area };
    }
    view.screen.heights[Pane::Owned.index()] = (list.height as usize).max(1);
    if view.owned.nodes.is_empty() {
        let text = match view.root(state) {
            _ if !view.filter(Pane::Owned).is_empty() => "No owned object passes the filter. esc clears it.",
            Some(_) => "Nothing is owned yet. What a reconcile creates shows here, with its pods.",
            None => "What the selected custom resource owns shows here.",
        };
        return put(&words_of(&[text.to_owned()], list), view, buffer, list);
    }
    let window = view.owned.selection.window(view.owned.nodes.len(), list.height as usize);
    for (line, i) in window.enumerate().take(list.height as usize) {
        let node = view.owned.nodes[i].clone();
        let selected = i == view.owned.selection.index;
        // Nothing of it is chosen until one has moved in it.
        let chosen = selected && (view.owned.moved || view.focus == Pane::Owned);
        // One blank stands before the border where there is room for it.
        let room = if list.width >= 40 { list.width - 1 } else { list.width };
        let row = node_row(&node, chosen, view, room as usize, now);
        let at = (list.x, list.y + line as u16);
        row.draw(buffer, view.look.theme, at, list.width as usize, selected && view.focus == Pane::Owned);
    }
}

fn node_row(node: &Node, selected: bool, view: &mut ViewState, cells: usize, now: Timestamp) -> Row {
    let mut branch = String::new();
    if let Some((own, above)) = node.more.split_last()
        && !above.is_empty()
    {
        branch.extend(above[1..].iter().map(|more| if *more { "│ " } else { "  " }));
        branch.push_str(if *own { "├─" } else { "└─" });
    }
    let (symbol, role) = if node.gone.is_some() { ("○", Role::Dim) } else { sign(node.seen.health.level) };
    let older = if node.older > 0 { format!(" (+{} older)", node.older) } else { String::new() };
    let age = match node.gone {
        Some(at) => format!("deleted {}", clock(at, &view.look.zone)),
        None => age(view, node.seen.created, now),
    };
    let word = if node.gone.is_some() { String::new() } else { words::one_line(&node.seen.health.word) };
    let word_room = (cells / 3).clamp(8, 28);
    let counts = if node.gone.is_some() { String::new() } else { node.seen.health.counts() };
    let tail = [cut(&word, word_room), counts.clone(), age.clone()];
    let tail_text = tail.iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(" ");
    let head = width(&branch) + 4;
    let room = cells.saturating_sub(head + width(&tail_text) + 1);
    let name = if node.seen.key.name.starts_with("sh.helm.release.v1.") && room < 40 {
        node.seen.key.name.replacen("sh.helm.release.v1.", "…", 1)
    } else {
        node.seen.key.name.clone()
    };
    let label = format!("{} {name}{older}", node.seen.key.kind);
    let label = if width(&label) > room { shorten(&node.seen.key.kind, &name, &older, room) } else { label };
    let row = Row::new(Role::Text, format!("{}{}", mark(selected), star(view, &node.seen.key)))
        .and(Role::Dim, branch)
        .and(role, format!("{symbol} "));
    let row = row.and(Role::Text, format!("{} ", left(&label, room)));
    let mut row = row;
    if !word.is_empty() {
        row = row
            .and(role, cut(&word, word_room))
            .and(Role::Text, if counts.is_empty() && age.is_empty() { "" } else { " " });
    }
    if !counts.is_empty() {
        row = row.and(role, counts).and(Role::Text, if age.is_empty() { "" } else { " " });
    }
    row.and(Role::Dim, age)
}

/// The kind and the end of the name: generated names differ at the end.
fn shorten(kind: &str, name: &str, older: &str, room: usize) -> String {
    let rest = room.saturating_sub(width(kind) + width(older) + 1);
    if rest < 6 {
        return cut(&format!("{kind} {name}{older}"), room);
    }
    format!("{kind} {}{older}", cut_front(name, rest))
}

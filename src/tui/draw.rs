//! A state and a view become a frame. Draws only what is visible, and notes when something on it will have changed
//! by itself. Nothing is decided here: what is shown comes from `view`, what it means from the state.

pub(super) mod boxes;
mod detail;
pub(in crate::tui) mod findings;
pub(super) mod frame;
mod header;
mod kind_table;
mod lists;
pub(super) mod pieces;
mod process;
mod resources;
mod which_key;

use super::enabled::enabled;
pub(super) use resources::shown_columns;

use super::action::Seek;
use super::action::{self, Do};
use super::actions;
use super::dialog::progress;
use super::layer::Canvas;
use super::layout::{self, Shape};
use super::opening;
use super::pane::Pane;
use super::spots::{Shown, Spot, Spots};
use super::text::{Row, cut_front, width, wrap};
use super::theme::Role;
use super::toast::{Toast, toast};
use super::view::ViewState;
use crate::event::{Diagnostic, words};
use crate::state::{Program, State};
use jiff::Timestamp;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Below this nothing useful fits.
const LEAST: (u16, u16) = (30, 8);

/// Draws one frame.
pub fn draw(state: &State, view: &mut ViewState, frame: &mut Frame<'_>, now: Timestamp) {
    let area = frame.area();
    paint(state, view, frame.buffer_mut(), area, now);
}

/// Draws into a buffer.
pub(super) fn paint(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    view.screen.wake = None;
    if area.width < LEAST.0 || area.height < LEAST.1 {
        return too_small(view, buffer, area);
    }
    view.refresh(state);
    view.layers.retain(|layer| layer.is_open(state));
    view.open_trust(state);
    view.open_held(state);
    super::drafts::open_reviews(view, state);
    view.screen.shape = Shape::of(area.width, area.height);
    view.screen.compact = view.screen.shape == Shape::One;
    view.screen.spots = Spots::default();
    let top = header::header(state, view, area.width as usize, now);
    line(buffer, view, Rect { height: 1, ..area }, &top);
    let banner = banner(state, view, area);
    for (i, row) in banner.iter().enumerate() {
        row.draw(buffer, view.look.theme, (area.x, area.y + 1 + i as u16), area.width as usize, false);
    }
    let top = 1 + banner.len() as u16;
    let body = Rect { y: area.y + top, height: area.height - top - 1, ..area };
    panes(state, view, buffer, body, now);
    let bottom = Rect { y: area.bottom() - 1, height: 1, ..area };
    footer(state, view, buffer, bottom);
    if let Some(toast) = toast(view, state, now) {
        if let Some(left) = toast.left {
            view.wake_in(left);
        }
        say(&toast, view, buffer, body);
    }
    which_key::draw(view, state, buffer, body, now);
    let mut canvas = Canvas { buffer, body, now };
    progress(state, view, &mut canvas);
    for layer in std::mem::take(&mut view.layers) {
        layer.draw(state, view, &mut canvas);
        view.layers.push(layer);
    }
}

fn too_small(view: &ViewState, buffer: &mut Buffer, area: Rect) {
    let text = format!(
        "opdev needs {}x{}, this is {}x{}. It keeps running.",
        LEAST.0, LEAST.1, area.width, area.height
    );
    let lines = wrap(&text, area.width as usize);
    for (i, text) in lines.iter().take(area.height as usize).enumerate() {
        buffer.set_stringn(
            area.x,
            area.y + i as u16,
            text,
            area.width as usize,
            view.look.theme.style(Role::Text),
        );
    }
}

fn line(buffer: &mut Buffer, view: &ViewState, area: Rect, row: &Row) {
    row.draw(buffer, view.look.theme, (area.x, area.y), area.width as usize, false);
}

/// What is wrong with the files, until it is mended.
fn banner(state: &State, view: &ViewState, area: Rect) -> Vec<Row> {
    let problems = state.problems();
    let Some(first) = problems.first() else { return Vec::new() };
    let of_build = |program: &&Program| {
        program.build_failed.as_ref().is_some_and(|failed| failed.diagnostics.contains(first))
    };
    let built = state.programs.iter().find(of_build);
    let most = if view.screen.compact { 2 + area.height as usize / 12 } else { 9 };
    let cells = area.width as usize;
    let more = if problems.len() > 1 { format!(" (1 of {})", problems.len()) } else { String::new() };
    let mut rows = Vec::new();
    if let Some(place) = &first.place {
        let place = place.to_string();
        let room = |opens: &str| cells.saturating_sub(4 + width(&more) + width(opens));
        let said = opens(first, state, view);
        let opens = said.iter().find(|opens| width(&place) <= room(opens)).or(said.last());
        let opens = opens.cloned().unwrap_or_default();
        let place = cut_front(&place, room(&opens));
        rows.push(Row::new(Role::Banner, format!(" ✗ {place}{more}")).and(Role::Dim, opens));
    }
    let sign = if rows.is_empty() { " ✗ " } else { "   " };
    let message = wrap(&first.message, cells.saturating_sub(4));
    let lines = message.into_iter().enumerate().map(|(i, text)| (if i == 0 { sign } else { "   " }, text));
    rows.extend(lines.map(|(sign, text)| Row::new(Role::Banner, format!("{sign}{text}"))));
    rows.extend(excerpt(first));
    let still = match (built, &state.reload.live) {
        (Some(program), _) => process::goes_on(program),
        (None, Some(live)) if live.sources > 1 => format!("sources {} keep serving", live.sources),
        (None, _) => "the other kinds keep serving".to_owned(),
    };
    let hint = first
        .hint
        .as_deref()
        .map_or_else(|| "save the file again once it is mended".to_owned(), words::one_line);
    rows.truncate(most.saturating_sub(1));
    rows.push(Row::new(Role::Dim, format!("   {still}; {hint}")));
    rows
}

/// Which key opens the editor at the place of a problem, in many words and in few; nothing where the key means another place.
fn opens(of: &Diagnostic, state: &State, view: &ViewState) -> Vec<String> {
    let key = view.keys.map.keys(Do::OpenFile).first().map(ToString::to_string);
    let key = key.filter(|_| opening::place(view, state) == of.place);
    let words = ["opens it in your editor", "opens it"];
    key.map(|key| words.map(|words| format!("  {key} {words}")).to_vec()).unwrap_or_default()
}

fn excerpt(of: &Diagnostic) -> Vec<Row> {
    let lines = of.excerpt.as_deref().unwrap_or("").lines();
    lines.map(|line| Row::new(Role::Text, format!("   │ {line}"))).collect()
}

fn panes(state: &State, view: &mut ViewState, buffer: &mut Buffer, body: Rect, now: Timestamp) {
    view.screen.places = [Rect::default(); 4];
    if view.screen.compact {
        tab_bar(state, view, buffer, Rect { height: 1, ..body });
        let below = Rect { y: body.y + 1, height: body.height - 1, ..body };
        return pane(view.focus, state, view, buffer, below, now);
    }
    if view.zoom {
        return pane(view.focus, state, view, buffer, body, now);
    }
    view.screen.body = body;
    if view.browse.is_some() {
        return beside_table(state, view, buffer, body, now);
    }
    let asked = resources::asked(view, state, view.screen.shape == Shape::Three);
    let areas = layout::areas(body, view.screen.shape, asked, &view.screen.borders);
    let focus = view.focus;
    for which in Pane::ALL.into_iter().filter(|which| *which != focus).chain([focus]) {
        pane(which, state, view, buffer, areas[which.index()], now);
    }
}

/// An open table has the whole width; below it stands its selected object, and what that owns, where it owns something.
fn beside_table(state: &State, view: &mut ViewState, buffer: &mut Buffer, body: Rect, now: Timestamp) {
    let upper = (body.height * 11 / 20).max(5);
    let below = Rect { y: body.y + upper - 1, height: body.height - upper + 1, ..body };
    let owns = !view.owned.nodes.is_empty() || view.focus == Pane::Owned;
    let left = if owns { (body.width * 2 / 5).max(20) } else { 1 };
    let places = [
        (Pane::Resources, Rect { height: upper, ..body }),
        (Pane::Owned, Rect { width: left, ..below }),
        (Pane::Detail, Rect { x: below.x + left - 1, width: below.width - left + 1, ..below }),
    ];
    let focus = view.focus;
    let shown = places.into_iter().filter(|(which, _)| owns || *which != Pane::Owned);
    let (last, first): (Vec<_>, Vec<_>) = shown.partition(|(which, _)| *which == focus);
    for (which, area) in first.into_iter().chain(last) {
        pane(which, state, view, buffer, area, now);
    }
}

fn pane(which: Pane, state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect, now: Timestamp) {
    view.screen.places[which.index()] = area;
    let inner = frame::border(which, state, view, buffer, area);
    view.screen.heights[which.index()] = (inner.height as usize).max(1);
    match which {
        Pane::Resources if view.browse.is_some() => kind_table::draw(state, view, buffer, inner, now),
        Pane::Resources => resources::draw(state, view, buffer, inner, now),
        Pane::Owned => lists::owned(state, view, buffer, inner, now),
        Pane::Reconciles => lists::reconciles(state, view, buffer, inner),
        Pane::Detail => detail::draw(state, view, buffer, inner),
    }
}

fn tab_bar(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let narrow = area.width < 60;
    let mut row = Row::default();
    let table = kind_table::title(view, state);
    for pane in Pane::ALL {
        let short = ["CRs", "Owned", "Passes", "Detail"];
        let title = match (&table, pane) {
            (Some(_), Pane::Reconciles) => continue,
            (Some((name, _)), Pane::Resources) => name.as_str(),
            _ if narrow => short[pane.index()],
            _ => pane.title(),
        };
        let open = pane == view.focus;
        let text = if open {
            format!("[{} {title}]", pane.index() + 1)
        } else {
            format!(" {} {title} ", pane.index() + 1)
        };
        let from = area.x + width(&row.text()) as u16;
        let what = Shown::Pane(pane);
        view.screen.spots.tabs.push(Spot { y: area.y, from, to: from + width(&text) as u16, what });
        row = row.and(if open { Role::Focus } else { Role::Dim }, text);
    }
    line(buffer, view, area, &row);
}

/// Keys of the focused pane on the left, the queue on the right.
fn footer(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    if let Some(row) = view.layers.last().and_then(|layer| layer.footer(view)) {
        return line(buffer, view, area, &row);
    }
    let queue = &state.queue;
    let narrow = area.width < 90;
    let mut parts = Vec::new();
    let held = state.impact.held.len() + usize::from(state.trust.is_some());
    if held > 0 {
        let key = view.keys.map.keys(Do::Held).first().map(ToString::to_string).unwrap_or_default();
        parts.push(match state.trust {
            Some(_) => format!("⚠ not trusted yet ({key})"),
            None => format!("⚠ {held} held ({key})"),
        });
    }
    let busy = u32::try_from(state.running.len()).unwrap_or(u32::MAX).max(queue.running);
    if busy > 0 {
        parts.push(if narrow { format!("⟳{busy}") } else { format!("⟳ {busy} running") });
    }
    if queue.backing_off > 0 {
        let many = queue.backing_off;
        parts.push(if narrow { format!("⚠{many}") } else { format!("⚠ {many} backing off") });
    }
    let (role, sign) = match (busy, queue.backing_off) {
        (_, 1..) => (Role::Bad, ""),
        _ if held > 0 => (Role::Busy, ""),
        (1.., 0) => (Role::Busy, ""),
        (0, 0) => (Role::Good, if queue.waiting == 0 { "✓ " } else { "" }),
    };
    parts.push(format!("{sign}{} waiting", queue.waiting));
    let right = parts.join(if narrow { " " } else { " · " });
    let cells = area.width as usize;
    let room = cells.saturating_sub(width(&right) + 3);
    let keymap = view.keys.map.clone();
    let size = |action: &action::Action| {
        let key = keymap.keys(action.does).first().map(ToString::to_string);
        key.map_or(0, |key| width(&key) + width(action.title) + 3)
    };
    // Whatever else there is no room for: the keys that lead to all others, and the one out.
    let always: &[Do] = if cells < 60 { &[Do::Help] } else { &[Do::Seek(Seek::Palette), Do::Help, Do::Quit] };
    let mut reserved: usize = always.iter().filter_map(|does| actions::by(*does)).map(size).sum();
    let mut left = Row::default();
    let mut used = 0;
    for action in actions::ACTIONS.iter().filter(|action| action.footer.contains(&view.focus)) {
        let Some(key) = view.keys.map.keys(action.does).first().map(ToString::to_string) else { continue };
        let size = size(action);
        if always.contains(&action.does) {
            reserved -= size;
        }
        if used + size + reserved > room {
            continue;
        }
        let from = area.x + used as u16;
        used += size;
        view.screen.spots.keys.push(Spot { y: area.y, from, to: area.x + used as u16, what: action.does });
        let possible = enabled(action.does, view, state).is_ok();
        left = left
            .and(if possible { Role::Key } else { Role::Dim }, format!(" {key}"))
            .and(if possible { Role::Text } else { Role::Dim }, format!(" {} ", action.title));
    }
    let gap = cells.saturating_sub(used + width(&right) + 1);
    line(buffer, view, area, &left.and(Role::Text, " ".repeat(gap)).and(role, right));
}

/// A message: one short line over the lower border, anything longer in a box above the footer.
fn say(toast: &Toast, view: &ViewState, buffer: &mut Buffer, body: Rect) {
    let cells = body.width as usize;
    if toast.lines.len() == 1 && width(&toast.lines[0]) + 6 <= cells {
        let text = format!(" {} ", toast.lines[0]);
        let x = body.right() - 2 - width(&text) as u16;
        buffer.set_stringn(x, body.bottom() - 1, &text, cells, view.look.theme.style(toast.role));
        return;
    }
    let mut rows: Vec<String> =
        toast.lines.iter().flat_map(|text| wrap(text, cells.saturating_sub(6))).collect();
    rows.truncate((body.height as usize).saturating_sub(3).clamp(1, 10));
    let area = Rect {
        y: body.bottom().saturating_sub(rows.len() as u16 + 2),
        height: rows.len() as u16 + 2,
        ..body
    };
    let area = area.intersection(body);
    let inner = frame::plain_box(buffer, view, area, "esc dismisses");
    for (i, text) in rows.iter().take(inner.height as usize).enumerate() {
        Row::new(toast.role, format!(" {text}")).draw(
            buffer,
            view.look.theme,
            (inner.x, inner.y + i as u16),
            inner.width as usize,
            false,
        );
    }
}

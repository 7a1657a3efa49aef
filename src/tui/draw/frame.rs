//! Borders and titles. Neighbours share a border; the joint is the character that fits both.

use super::super::view::ViewState;
use crate::draw::kind_table;
use crate::draw::pieces::tabs;
use opdev_event::Protection;
use opdev_panes::click_targets::{Shown, Spot};
use opdev_panes::keys::action::Do;
use opdev_panes::keys::action::See;
use opdev_panes::layout::Shape;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, cut, cut_apart, width};
use opdev_panes::theme::Role;
use opdev_state::{State, tree};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::merge::MergeStrategy;
use ratatui::widgets::{Block, Widget};

/// The cells of a name beside the tabs of a page.
const MOST_WHOSE: usize = 24;

/// Draws the border of a pane.
pub(super) fn edge(which: Pane, state: &State, view: &ViewState, buffer: &mut Buffer, area: Rect) {
    let role = if which == view.focus { Role::Focus } else { protection(state) };
    shared(buffer, view, area, role);
}

/// Draws the border of what stands below the panes.
pub(super) fn block(buffer: &mut Buffer, view: &ViewState, area: Rect) {
    let inside = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    crate::draw::pieces::clear(buffer, inside);
    shared(buffer, view, area, Role::Border);
}

fn shared(buffer: &mut Buffer, view: &ViewState, area: Rect, role: Role) {
    let style = view.look.theme.style(role);
    Block::bordered().merge_borders(MergeStrategy::Exact).border_style(style).render(area, buffer);
}

/// The area inside the border of a pane.
pub(super) fn inside(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width.saturating_sub(2),
        height: area.height.saturating_sub(2),
    }
}

/// The panes that share the place of one, in the order of their numbers.
fn beside(which: Pane, view: &ViewState) -> &'static [Pane] {
    let alone = view.zoom || view.browse.is_some();
    match (view.screen.shape, which) {
        _ if alone => &[],
        (Shape::Stacked, Pane::Resources | Pane::Owned) => &[Pane::Resources, Pane::Owned],
        (Shape::Stacked, Pane::Reconciles | Pane::Detail | Pane::Log) => {
            &[Pane::Reconciles, Pane::Detail, Pane::Log]
        }
        _ => &[],
    }
}

/// Draws what stands in the upper border of a pane: its number and name, what it is about, what narrows it;
/// beside it the panes that share its place.
pub(super) fn title(which: Pane, state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let focused = which == view.focus;
    let own = if focused { Role::Focus } else { Role::Title };
    let cells = (area.width as usize).saturating_sub(4);
    let together = beside(which, view);
    let mut row = Row::new(own, if focused { "▸" } else { " " });
    // The filter of a list is never cut away by its subject.
    let mut tail = Row::default();
    for part in narrowed(which, view) {
        tail = tail.and(Role::Changed, format!("{part} "));
    }
    let filter = view.filter(which);
    if !filter.is_empty() {
        tail = tail.and(Role::Changed, format!("/{filter} "));
    }
    let mut room = cells.saturating_sub(1 + width(&tail.text()));
    let others: Vec<(Pane, String)> =
        together.iter().filter(|pane| **pane != which).map(|pane| (*pane, other(*pane, view))).collect();
    room = room.saturating_sub(others.iter().map(|(_, text)| width(text)).sum());
    let spot = |view: &mut ViewState, row: &Row, text: &str, what: Shown| {
        let from = area.x + 2 + width(&row.text()) as u16;
        view.screen.spots.tabs.push(Spot { y: area.y, from, to: from + width(text) as u16, what });
    };
    let alone = [which];
    for pane in if together.is_empty() { &alone } else { together }.iter().copied() {
        if let Some((pane, text)) = others.iter().find(|(other, _)| *other == pane) {
            spot(view, &row, text, Shown::Pane(*pane));
            row = row.and(Role::Dim, text.clone());
            continue;
        }
        if which == Pane::Detail {
            // Beside other panes the name comes before more tabs: nothing else says whose page it is.
            let whose = about(which, state, view).map_or(0, |about| width(&about).min(MOST_WHOSE) + 4);
            let most = if together.is_empty() { room } else { room.saturating_sub(whose).max(room / 2) };
            for (role, text, tab) in tabs(view, most, own) {
                if let Some(tab) = tab {
                    spot(view, &row, &text, Shown::Tab(tab));
                }
                row = row.and(role, text);
            }
            let left = room.saturating_sub(width(&row.text()));
            if let Some(about) = about(which, state, view).filter(|_| left > 9) {
                row = row.and(Role::Dim, cut_apart(&[format!(" · {about} ").as_str()], left).concat());
            }
            continue;
        }
        let text = named(which, state, view, room, !together.is_empty());
        spot(view, &row, &text, Shown::Pane(which));
        row = row.and(own, text);
    }
    if row.0.last().is_some_and(|(_, text)| text.ends_with(']')) {
        row = row.and(own, " ");
    }
    row.0.extend(tail.0);
    let taken = width(&row.text()).min(cells);
    row.draw(buffer, view.look.theme, (area.x + 2, area.y), taken, false);
}

/// A pane that shares the place of the shown one.
fn other(pane: Pane, view: &ViewState) -> String {
    match pane {
        Pane::Owned if !view.owned.nodes.is_empty() => format!(" 2 Owned · {} ", view.owned.nodes.len()),
        Pane::Log => " 5 Log ".to_owned(),
        _ => format!(" {} {} ", pane.index() + 1, short(pane)),
    }
}

/// The name of a pane where little room is.
fn short(pane: Pane) -> &'static str {
    match pane {
        Pane::Resources => "Resources",
        Pane::Log => "Log",
        Pane::Owned | Pane::Reconciles | Pane::Detail => pane.title(),
    }
}

/// Number, name and what a pane is about, in so many cells; in brackets where others stand beside it.
fn named(which: Pane, state: &State, view: &ViewState, room: usize, bracketed: bool) -> String {
    let table = kind_table::title(view, state).filter(|_| which == Pane::Resources);
    let title = table.map_or_else(|| which.title().to_owned(), |(name, _)| name);
    let mut text = format!("{} {title}", which.index() + 1);
    if let Some(about) = about(which, state, view) {
        let left = room.saturating_sub(width(&text) + 5);
        if left > 3 {
            text = format!("{text} · {}", cut_apart(&[about.as_str()], left).concat());
        }
    }
    if bracketed { format!("[{text}]") } else { format!("{text} ") }
}

/// The limits of the list of custom resources beside its filter.
fn narrowed(which: Pane, view: &ViewState) -> Vec<String> {
    if which != Pane::Resources {
        return Vec::new();
    }
    let namespace = view.namespace.as_ref().map(|namespace| format!("n:{namespace}"));
    namespace
        .into_iter()
        .chain((view.resources.faults && view.browse.is_none()).then(|| "faults".to_owned()))
        .collect()
}

/// The border's role: how far the cluster is protected shows all around.
fn protection(state: &State) -> Role {
    match state.started.as_ref().map(|started| started.cluster.protection) {
        None | Some(Protection::Local) => Role::Border,
        Some(Protection::Confirmed) => Role::BorderConfirmed,
        Some(Protection::ReadOnly) => Role::BorderReadOnly,
    }
}

/// The subject of a pane.
fn about(which: Pane, state: &State, view: &ViewState) -> Option<String> {
    let name = |object: Option<&std::sync::Arc<opdev_state::Seen>>| object.map(|seen| seen.key.name.clone());
    match which {
        Pane::Resources if view.browse.is_some() => {
            kind_table::title(view, state).map(|(_, about)| about).filter(|about| !about.is_empty())
        }
        Pane::Resources => {
            let (shown, all) = (view.resources.rows.len(), state.objects.custom_len());
            match all {
                0 => None,
                _ if shown == all => Some(all.to_string()),
                _ => Some(format!("{shown} of {all}")),
            }
        }
        Pane::Owned => {
            let root = view.root(state)?;
            let gone = if view.gone { 0 } else { tree::gone_below(state, &root.key).len() };
            let key = view.keys.map.keys(Do::See(See::Deleted)).first().map(ToString::to_string);
            let name = &root.key.name;
            let mut about = match view.owned.nodes.len() {
                0 => name.clone(),
                many if many >= tree::MOST => format!("the first {many} of {name}"),
                many => format!("{name} · {many}"),
            };
            if let (1.., Some(key)) = (gone, key) {
                // In front: where there is no room for all of it, the key is what nobody would guess.
                about = format!("{gone} deleted ({key}) · {about}");
            }
            Some(about)
        }
        Pane::Reconciles => {
            let of = if view.all { Some("all objects".to_owned()) } else { name(view.root(state)) };
            let key = view.keys.map.keys(Do::Top).last().map(ToString::to_string).unwrap_or_default();
            match (view.reconciles.newer(), of) {
                (0, of) => of,
                (newer, of) => Some(format!("{} · ↑ {newer} newer ({key})", of.unwrap_or_default())),
            }
        }
        Pane::Detail => view.detail.tab.part().about(&view.page(state, 0)),
        Pane::Log => None,
    }
}

/// An empty box over whatever was there.
pub(crate) fn plain_box(buffer: &mut Buffer, view: &ViewState, area: Rect, title: &str) -> Rect {
    crate::draw::pieces::clear(buffer, area);
    let block = Block::bordered().border_style(view.look.theme.style(Role::Focus));
    let inner = block.inner(area);
    block.render(area, buffer);
    let text = format!(" {title} ");
    let cells = (area.width as usize).saturating_sub(4);
    buffer.set_stringn(area.x + 2, area.y, cut(&text, cells), cells, view.look.theme.style(Role::Title));
    inner
}

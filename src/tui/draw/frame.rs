//! Borders and titles. Neighbours share a border; the joint is the character that fits both.

use super::super::action::Do;
use super::super::text::{Row, cut, width};
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::Protection;
use crate::state::{State, tree};
use crate::tui::action::See;
use crate::tui::draw::kind_table;
use crate::tui::draw::pieces::tabs;
use crate::tui::pane::Pane;
use crate::tui::spots::{Shown, Spot};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::merge::MergeStrategy;
use ratatui::widgets::{Block, Widget};

/// Draws the border of a pane and gives back what is inside.
pub(super) fn border(
    which: Pane,
    state: &State,
    view: &mut ViewState,
    buffer: &mut Buffer,
    area: Rect,
) -> Rect {
    let focused = which == view.focus;
    let style = view.look.theme.style(if focused { Role::Focus } else { protection(state) });
    let block = Block::bordered().merge_borders(MergeStrategy::Exact).border_style(style);
    let inner = block.inner(area);
    block.render(area, buffer);
    let cells = (area.width as usize).saturating_sub(4);
    let sign = if focused { "▸" } else { " " };
    let mut row = Row::new(if focused { Role::Focus } else { Role::Title }, sign);
    match which {
        Pane::Detail => {
            let tabs = tabs(view, cells.saturating_sub(1));
            let mut at = area.x + 2 + width(sign) as u16;
            for (role, text, tab) in tabs {
                let to = at + width(&text) as u16;
                if let Some(tab) = tab {
                    view.screen.spots.tabs.push(Spot { y: area.y, from: at, to, what: Shown::Tab(tab) });
                }
                at = to;
                row = row.and(role, text);
            }
        }
        _ => {
            let table = kind_table::title(view, state).filter(|_| which == Pane::Resources);
            let title = table.map_or_else(|| which.title().to_owned(), |(name, _)| name);
            row = row.and(if focused { Role::Focus } else { Role::Title }, format!("{title} "));
        }
    }
    // What narrows a list is never cut away by what the list is about.
    let mut tail = Row::default();
    for part in narrowed(which, view) {
        tail = tail.and(Role::Changed, format!("{part} "));
    }
    let filter = view.filter(which);
    if !filter.is_empty() {
        tail = tail.and(Role::Changed, format!("/{filter} "));
    }
    if let Some(about) = about(which, state, view) {
        let room = cells.saturating_sub(width(&row.text()) + width(&tail.text()) + 2);
        if room > 7 {
            row = row.and(Role::Dim, cut(&format!("· {about} "), room));
        }
    }
    row.0.extend(tail.0);
    let taken = width(&row.text()).min(cells);
    row.draw(buffer, view.look.theme, (area.x + 2, area.y), taken, false);
    inner
}

/// What narrows the list of custom resources beside its filter.
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

/// What a pane is about.
fn about(which: Pane, state: &State, view: &ViewState) -> Option<String> {
    let name = |object: Option<&std::sync::Arc<crate::state::Seen>>| object.map(|seen| seen.key.name.clone());
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
            let mut about = root.key.name.clone();
            if view.owned.nodes.len() >= tree::MOST {
                about = format!("the first {} of {about}", tree::MOST);
            }
            if let (1.., Some(key)) = (gone, key) {
                // In front: where there is no room for all of it, the key is what nobody would guess.
                about = format!("{gone} deleted ({key}) · {about}");
            }
            Some(about)
        }
        Pane::Reconciles if view.all => Some("all objects".to_owned()),
        Pane::Reconciles => name(view.root(state)),
        Pane::Detail => view.detail.tab.part().about(&view.page(state, 0)),
    }
}

/// An empty box over whatever was there.
pub(in crate::tui) fn plain_box(buffer: &mut Buffer, view: &ViewState, area: Rect, title: &str) -> Rect {
    crate::tui::draw::pieces::clear(buffer, area);
    let block = Block::bordered().border_style(view.look.theme.style(Role::Focus));
    let inner = block.inner(area);
    block.render(area, buffer);
    let text = format!(" {title} ");
    let cells = (area.width as usize).saturating_sub(4);
    buffer.set_stringn(area.x + 2, area.y, cut(&text, cells), cells, view.look.theme.style(Role::Title));
    inner
}

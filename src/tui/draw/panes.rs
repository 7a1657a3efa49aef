//! The body: which panes are in sight, where they stand, and what each of them shows. Borders come first and
//! titles last, so that a shared border belongs to the focused pane and its titles to whom they name.

use super::super::view::ViewState;
use super::pieces::line;
use super::{detail, frame, kind_table, lists, operator_log, reconciles, resources};
use jiff::Timestamp;
use opdev_panes::click_targets::{Shown, Spot};
use opdev_panes::layout;
use opdev_panes::layout::Shape;
use opdev_panes::pane::Pane;
use opdev_panes::text::{Row, width};
use opdev_panes::theme::Role;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Draws it; from the row `end` on something else stands, whose border the panes share.
pub(super) fn draw(
    state: &State,
    view: &mut ViewState,
    buffer: &mut Buffer,
    body: Rect,
    end: u16,
    now: Timestamp,
) {
    view.screen.places = [Rect::default(); Pane::COUNT];
    view.screen.body = body;
    let mut places = places(view, body);
    if view.screen.shape == Shape::One {
        tab_bar(state, view, buffer, Rect { height: 1, ..body });
    }
    for area in &mut places {
        area.height = area.height.min((end + 1).saturating_sub(area.y));
        if area.height < 2 {
            *area = Rect::default();
        }
    }
    let shown = || Pane::ALL.into_iter().filter(|pane| places[pane.index()].area() > 0);
    view.screen.places = places;
    let focus = view.focus;
    let last = shown().filter(|which| *which == focus);
    for which in shown().filter(|which| *which != focus).chain(last) {
        frame::edge(which, state, view, buffer, places[which.index()]);
    }
    for which in shown() {
        frame::title(which, state, view, buffer, places[which.index()]);
        let inner = frame::inside(places[which.index()]);
        view.screen.heights[which.index()] = (inner.height as usize).max(1);
        match which {
            Pane::Resources if view.browse.is_some() => kind_table::draw(state, view, buffer, inner, now),
            Pane::Resources => resources::draw(state, view, buffer, inner, now),
            Pane::Owned => lists::owned(state, view, buffer, inner, now),
            Pane::Reconciles => reconciles::draw(state, view, buffer, inner),
            Pane::Detail => detail::draw(state, view, buffer, inner),
            Pane::Log => operator_log::draw(state, view, buffer, inner),
        }
    }
}

/// Where each pane stands.
fn places(view: &ViewState, body: Rect) -> [Rect; Pane::COUNT] {
    let mut places = [Rect::default(); Pane::COUNT];
    if view.screen.shape == Shape::One {
        places[view.focus.index()] = Rect { y: body.y + 1, height: body.height - 1, ..body };
        return places;
    }
    if view.zoom {
        places[view.focus.index()] = body;
        return places;
    }
    if view.browse.is_some() {
        return beside_table(view, body);
    }
    places = layout::areas(body, view.screen.shape, view.pair(), &view.screen.borders);
    if view.log_covers_detail() {
        places.swap(Pane::Log.index(), Pane::Detail.index());
    }
    places
}

/// An open table has the whole width; below it stands its selected object, and what that owns, where it owns
/// something.
fn beside_table(view: &ViewState, body: Rect) -> [Rect; Pane::COUNT] {
    let upper = (body.height * 11 / 20).max(5);
    let below = Rect { y: body.y + upper - 1, height: body.height - upper + 1, ..body };
    let narrow = view.screen.shape == Shape::Stacked;
    let owns = !view.owned.nodes.is_empty() || view.focus == Pane::Owned;
    let left = match (owns, narrow) {
        (false, _) => 1,
        (true, true) if view.focus == Pane::Owned => body.width,
        (true, true) => 1,
        (true, false) => (body.width * 2 / 5).max(20),
    };
    let mut places = [Rect::default(); Pane::COUNT];
    places[Pane::Resources.index()] = Rect { height: upper, ..body };
    if left > 1 {
        places[Pane::Owned.index()] = Rect { width: left, ..below };
    }
    if left < body.width {
        let area = Rect { x: below.x + left - 1, width: below.width - left + 1, ..below };
        let which = if view.focus == Pane::Log { Pane::Log } else { Pane::Detail };
        places[which.index()] = area;
    }
    places
}

/// The panes by their numbers, where only one of them is in sight.
fn tab_bar(state: &State, view: &mut ViewState, buffer: &mut Buffer, area: Rect) {
    let narrow = area.width < 76;
    let mut row = Row::default();
    let table = kind_table::title(view, state);
    for pane in Pane::ALL {
        let short = ["CRs", "Owned", "Why", "Detail", "Log"];
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

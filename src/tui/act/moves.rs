//! Moving about: lines and pages, panes and tabs, deeper into what is selected and back.

use super::change_view;
use super::writable::writes;
use crate::dialog::Samples;
use crate::toast;
use crate::view::ViewState;
use opdev_panes::detail::TABS;
use opdev_panes::layout::Shape;
use opdev_panes::pane::{Pane, Tab};
use opdev_state::State;

/// How many rows the focused pane shows at once.
pub(crate) fn page(view: &ViewState) -> usize {
    view.screen.heights[view.focus.index()].max(1)
}

/// Marks a row; in panes that show no objects, goes a page down.
pub(crate) fn mark(view: &mut ViewState, _: &State) {
    if matches!(view.focus, Pane::Reconciles | Pane::Detail | Pane::Log) {
        return view.go(view.at() + page(view));
    }
    view.mark();
}

/// The pane so many steps after the focused one, among those that have a place of their own.
pub(crate) fn beside(view: &ViewState, steps: usize) -> Pane {
    let shape = view.screen.shape;
    let has_place = |pane: Pane| match pane {
        Pane::Reconciles => view.browse.is_none(),
        Pane::Log => view.browse.is_none() && (shape == Shape::One || shape.has_log()),
        Pane::Resources | Pane::Owned | Pane::Detail => true,
    };
    let mut at = view.focus.index();
    loop {
        at = (at + steps) % Pane::COUNT;
        if has_place(Pane::ALL[at]) {
            return Pane::ALL[at];
        }
    }
}

/// To the pane or the tab on one side.
pub(crate) fn sideways(view: &mut ViewState, right: bool) {
    if view.focus == Pane::Detail && (right || view.detail.tab != Tab::STATUS) {
        return tab(view, right);
    }
    if view.focus == Pane::Reconciles && change_view::fold_reconcile(view, right) {
        return;
    }
    if view.browse.is_some() {
        return view.look_at(if right { Pane::Detail } else { Pane::Resources });
    }
    let shape = view.screen.shape;
    let to = match (view.focus, right) {
        (Pane::Resources, true) if shape.has_pages() => Pane::Owned,
        (Pane::Owned, false) if shape.has_pages() => Pane::Resources,
        (Pane::Detail | Pane::Log, false) if shape.has_pages() => Pane::Reconciles,
        (Pane::Reconciles, true) if shape.has_pages() => Pane::Detail,
        (Pane::Resources, true) => Pane::Reconciles,
        (Pane::Owned, true) if shape == Shape::Three => Pane::Reconciles,
        (Pane::Owned, true) => Pane::Detail,
        (Pane::Reconciles | Pane::Log, true) if shape == Shape::Three => Pane::Detail,
        (Pane::Log, true) if shape == Shape::Logged => Pane::Detail,
        (Pane::Log, false) if shape != Shape::Logged => Pane::Owned,
        (Pane::Reconciles, false) => Pane::Resources,
        (Pane::Detail, false) if shape == Shape::Three => Pane::Reconciles,
        (Pane::Detail, false) => Pane::Owned,
        (pane, _) => pane,
    };
    view.look_at(to);
}

/// Shows the next tab of the detail pane, or the one before.
pub(crate) fn tab(view: &mut ViewState, next: bool) {
    let at = TABS.iter().position(|tab| tab.tab() == view.detail.tab).unwrap_or(0);
    let to = if next { at + 1 } else { at + TABS.len() - 1 };
    view.detail.open(TABS[to % TABS.len()].tab());
}

/// Shows more of what is selected.
pub(crate) fn open(view: &mut ViewState, state: &State) {
    match view.focus {
        Pane::Resources if view.browse.is_some() => {
            if view.subject(state).is_some() {
                view.show(Tab::YAML);
            }
        }
        Pane::Resources if view.resources.rows.is_empty() => {
            if writes(state).is_ok() {
                view.open(Samples::default());
            }
        }
        // Its page says why it ran last; the tabs beside it say what it is.
        Pane::Resources if view.screen.shape.has_pages() => view.show(Tab::STATUS),
        Pane::Resources => view.look_at(Pane::Reconciles),
        Pane::Owned => view.show(Tab::YAML),
        Pane::Reconciles if view.screen.shape.has_pages() && !view.reconciles.stands_for_many() => {
            view.show(Tab::STATUS);
        }
        Pane::Reconciles => change_view::open_reconcile(view),
        Pane::Detail | Pane::Log => view.zoom = !view.zoom,
    }
}

/// The first of these that there is: a dismissable message, a filter, the zoom, a pane to go back to.
pub(crate) fn back(view: &mut ViewState, state: &State) {
    let panicked = view.told.panicked.take().is_some() || view.look.following.dismiss();
    let lasting = toast::lasting(view, state);
    view.told.dismissed = lasting.max(view.told.dismissed);
    if panicked || lasting.is_some() {
        return;
    }
    let problems = state.problems();
    if !problems.is_empty() && view.told.hidden.as_ref() != Some(&problems) {
        view.told.hidden = Some(problems);
        return;
    }
    if view.marks.clear() {
        return;
    }
    if view.focus == Pane::Detail && !view.detail.search.text.is_empty() {
        view.detail.search.set(String::new());
    } else if !view.filter(view.focus).is_empty() {
        view.part_mut(view.focus).filter_mut().clear();
    } else if (view.focus == Pane::Reconciles && view.reconciles.fold_selected()) || view.close_page() {
    } else if view.zoom {
        view.zoom = false;
    } else if view.browse.is_some() && view.focus == Pane::Resources {
        view.close_table();
    } else if view.browse.is_some() {
        view.look_at(Pane::Resources);
    } else if view.focus == Pane::Log && !view.screen.shape.has_log() {
        view.look_at(Pane::Detail);
    } else if view.focus == Pane::Detail {
        let to = if view.chosen_in == Pane::Owned && view.detail.tab == Tab::YAML {
            Pane::Owned
        } else {
            Pane::Reconciles
        };
        view.look_at(to);
    } else {
        view.look_at(Pane::Resources);
    }
}

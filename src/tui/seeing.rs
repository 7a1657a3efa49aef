//! How things are looked at: which reconciles are open, how the log is grouped, what the YAML shows, which version.
//! View changes only; nothing here asks for anything. `update` hands the keys of these actions to `perform`.

use super::action::See;
use super::detail::pods;
use super::layer::Need;
use super::looks::Grouping;
use super::pane::{Pane, Tab};
use super::view::{Lists, ViewState};
use super::waterfall::{self, Line};
use crate::event::{LogSource, Reconcile, Request};
use crate::state::State;
use std::sync::Arc;

/// Whether one is possible right now; if not, why.
pub(super) fn enabled(see: See, view: &ViewState, state: &State) -> Result<(), String> {
    match see {
        See::OlderVersion | See::NewerVersion => {
            let seen = view.subject(state).ok_or("nothing is selected that could have versions")?;
            let versions = state.versions(&seen.key).ok_or("no version of the selected object was seen")?;
            if view.tab != Tab::History {
                return Ok(());
            }
            let at = view.seeing.version(&seen.key).unwrap_or(versions.newest());
            if see == See::OlderVersion && at <= versions.oldest() {
                return Err("no older version is kept".to_owned());
            }
            if see == See::NewerVersion && at >= versions.newest() {
                return Err("this is the newest version".to_owned());
            }
            Ok(())
        }
        See::FieldOwners => view
            .subject(state)
            .map(|_| ())
            .ok_or_else(|| "nothing is selected that could have owners".to_owned()),
        See::Deleted if !view.seeing.gone && state.archive.gone().is_empty() => {
            Err("nothing was deleted since opdev began".to_owned())
        }
        See::NextContainer if view.tab == Tab::Pods && pods::sources(view, state).is_empty() => {
            Err("there is no container that has run".to_owned())
        }
        See::FoldLog | See::ManagedFields | See::Deleted | See::NextContainer | See::Previous => Ok(()),
    }
}

/// Does one of them.
pub(super) fn perform(view: &mut ViewState, see: See, state: &State) {
    match see {
        See::FoldLog => {
            if view.tab != Tab::Log {
                return view.show(Tab::Log);
            }
            let grouping = &mut view.seeing.how.grouping[usize::from(view.all)];
            *grouping = match *grouping {
                Grouping::Open => Grouping::Folded,
                Grouping::Folded => Grouping::Flat,
                Grouping::Flat => Grouping::Open,
            };
        }
        See::ManagedFields => {
            view.seeing.how.managed = !view.seeing.how.managed;
            if !matches!(view.tab, Tab::Yaml | Tab::History) {
                view.show(Tab::Yaml);
            }
        }
        See::FieldOwners => {
            view.seeing.how.owners = view.tab != Tab::Yaml || !view.seeing.how.owners;
            view.show(Tab::Yaml);
        }
        See::OlderVersion => step(view, state, false),
        See::NewerVersion => step(view, state, true),
        See::Deleted => view.seeing.gone = !view.seeing.gone,
        See::NextContainer => next_container(view, state),
        See::Previous => {
            view.seeing.how.previous = view.tab != Tab::Pods || !view.seeing.how.previous;
            view.show(Tab::Pods);
            (view.scroll, view.stick) = (0, true);
        }
    }
}

/// The next container alone; after the last one all of them.
fn next_container(view: &mut ViewState, state: &State) {
    if view.tab != Tab::Pods {
        return view.show(Tab::Pods);
    }
    let all = pods::sources(view, state);
    let name = |source: &LogSource| (source.pod.clone(), source.container.clone());
    let at = view.seeing.container.as_ref().and_then(|chosen| all.iter().position(|s| name(s) == *chosen));
    view.seeing.container = all.get(at.map_or(0, |at| at + 1)).map(name);
    (view.scroll, view.stick) = (0, true);
}

/// What to ask for so that the logs are followed that are in sight, where that has changed.
pub(super) fn follow(view: &mut ViewState, state: &State) -> Option<Request> {
    let wanted = pods::wanted(view, state);
    if wanted == view.seeing.following {
        return None;
    }
    view.seeing.following.clone_from(&wanted);
    Some(Request::PodLogs { sources: wanted })
}

/// What to ask for so that the selected object is read whole while more than its metadata is in sight, where that has
/// changed. Where all objects come whole there is nothing to ask for.
pub(super) fn look(view: &mut ViewState, state: &State) -> Option<Request> {
    let hidden = (view.zoom || view.compact) && view.focus != Pane::Detail;
    let shown = matches!(view.tab, Tab::Yaml | Tab::History | Tab::Describe | Tab::Conditions) && !hidden;
    let copied = view.needs(Need::WholeObject);
    let wanted = view.subject(state).filter(|seen| {
        let asked = view.seeing.looked_at.as_ref() == Some(&seen.object_ref);
        (shown || copied)
            && !view.leaving
            && (seen.metadata_only || asked)
            && state.gone_at(&seen.key).is_none()
    });
    let wanted = wanted.map(|seen| seen.object_ref.clone());
    if wanted == view.seeing.looked_at {
        return None;
    }
    view.seeing.looked_at.clone_from(&wanted);
    Some(Request::Look { object: wanted })
}

/// To the version before or after; the first time, the history is shown as it is.
fn step(view: &mut ViewState, state: &State, newer: bool) {
    let Some(key) = view.subject(state).map(|seen| seen.key.as_ref().clone()) else { return };
    let Some(versions) = state.versions(&key) else { return };
    if view.tab != Tab::History {
        view.show(Tab::History);
        if newer {
            return;
        }
    }
    let at =
        view.seeing.version(&key).unwrap_or(versions.newest()).clamp(versions.oldest(), versions.newest());
    let to = if newer { at + 1 } else { at - 1 };
    // Who looks at the newest follows it.
    view.seeing.how.version = (to < versions.newest()).then(|| (key, to.max(versions.oldest())));
    view.scroll = 0;
}

/// Opens or closes the selected reconcile; on one of its lines, shows more of that.
pub(super) fn open_pass(view: &mut ViewState) {
    let Some((pass, line)) = view.selected_line() else { return };
    let id = pass.id;
    match line {
        Some(line) => view.show(waterfall::tab(line)),
        None if view.seeing.open.contains(&id) => close(view, id),
        None => {
            view.seeing.open.insert(id);
            view.passes.key = Some((id, 0));
        }
    }
}

fn close(view: &mut ViewState, id: u64) {
    view.seeing.open.remove(&id);
    view.passes.key = Some((id, 0));
    // Closed, it may stand behind a newer retry again.
    if let Some(row) = view.lists.pass_rows.iter().position(|row| view.lists.passes[row.pass].id == id) {
        view.passes.index = row;
    }
}

/// Right opens the selected reconcile, left closes it; false where there was nothing to open or close.
pub(super) fn fold_pass(view: &mut ViewState, open: bool) -> bool {
    let Some((pass, line)) = view.selected_line() else { return false };
    let id = pass.id;
    let is_open = view.seeing.open.contains(&id);
    match (open, is_open) {
        (true, false) => open_pass(view),
        (true, true) if line.is_some() => open_pass(view),
        (false, true) => close(view, id),
        (true, true) | (false, false) => return false,
    }
    true
}

/// Closes the selected reconcile; false where it is not open.
pub(super) fn close_selected(view: &mut ViewState) -> bool {
    let open = view.selected_line().map(|(pass, _)| pass.id).filter(|id| view.seeing.open.contains(id));
    open.is_some_and(|id| {
        close(view, id);
        true
    })
}

impl Lists {
    /// What the selection of a row of the reconciles holds on to.
    pub(super) fn pass_key(&self, row: usize) -> (u64, usize) {
        let row = &self.pass_rows[row];
        (row.oldest, row.number)
    }
}

impl ViewState {
    /// The selected reconcile, and the line below it that is selected.
    pub(super) fn selected_line(&self) -> Option<(&Arc<Reconcile>, Option<Line>)> {
        let row = self.lists.pass_rows.get(self.passes.index)?;
        Some((self.lists.passes.get(row.pass)?, row.line))
    }

    /// Shows a tab of the detail pane.
    pub(super) fn show(&mut self, tab: Tab) {
        self.set_tab(tab);
        self.look_at(Pane::Detail);
    }

    /// Opens a tab, its first lines in sight.
    pub(super) fn set_tab(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.scroll = 0;
            self.stick = true;
        }
    }
}

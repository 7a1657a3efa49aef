//! How things are looked at: which reconciles are open, how the log is grouped, what the YAML shows, which version.
//! View changes only; nothing here asks for anything.

use crate::asked::ValuesOf;
use crate::layer::Need;
use crate::view::ViewState;
use opdev_event::{LogSource, ViewRequest};
use opdev_panes::detail::pods;
use opdev_panes::disabled::NotNow;
use opdev_panes::folds::Grouping;
use opdev_panes::pane::{Pane, Tab};
use opdev_panes::waterfall;
use opdev_state::State;
use opdev_state::versions::Versions;
use std::sync::Arc;

/// The versions of the selected object that are kept.
fn versions<'a>(view: &ViewState, state: &'a State) -> Result<(&'a Arc<Versions>, u64), NotNow> {
    let seen = view.subject(state).ok_or(NotNow::NoTarget { could: "have versions" })?;
    let versions = state.versions(&seen.key).ok_or("no version of the selected object was seen")?;
    Ok((versions, view.detail.how.version_of(&seen.key).unwrap_or(versions.newest())))
}

pub(crate) fn has_older(view: &ViewState, state: &State) -> Result<(), NotNow> {
    let (versions, at) = versions(view, state)?;
    if view.detail.tab == Tab::HISTORY && at <= versions.oldest() {
        return Err("no older version is kept".into());
    }
    Ok(())
}

pub(crate) fn has_newer(view: &ViewState, state: &State) -> Result<(), NotNow> {
    let (versions, at) = versions(view, state)?;
    if view.detail.tab == Tab::HISTORY && at >= versions.newest() {
        return Err("this is the newest version".into());
    }
    Ok(())
}

pub(crate) fn has_owners(view: &ViewState, state: &State) -> Result<(), NotNow> {
    view.subject(state).map(drop).ok_or(NotNow::NoTarget { could: "have owners" })
}

pub(crate) fn has_deleted(view: &ViewState, state: &State) -> Result<(), NotNow> {
    if !view.gone && state.archive.gone().is_empty() {
        return Err("nothing was deleted since opdev began".into());
    }
    Ok(())
}

pub(crate) fn has_container(view: &ViewState, state: &State) -> Result<(), NotNow> {
    if view.detail.tab == Tab::PODS && pods::sources(&view.page(state, 0)).is_empty() {
        return Err("there is no container that has run".into());
    }
    Ok(())
}

/// Shows the log; there, groups it in the next way.
pub(crate) fn fold_log(view: &mut ViewState, _: &State) {
    if view.detail.tab != Tab::LOG {
        return view.show(Tab::LOG);
    }
    let grouping = &mut view.detail.how.grouping[usize::from(view.all)];
    *grouping = match *grouping {
        Grouping::Open => Grouping::Folded,
        Grouping::Folded => Grouping::Flat,
        Grouping::Flat => Grouping::Open,
    };
}

/// Shows `managedFields`, or folds them.
pub(crate) fn managed_fields(view: &mut ViewState, _: &State) {
    view.detail.how.managed = !view.detail.how.managed;
    if !matches!(view.detail.tab, Tab::YAML | Tab::HISTORY) {
        view.show(Tab::YAML);
    }
}

/// Shows who owns each line of the YAML, or the YAML alone.
pub(crate) fn field_owners(view: &mut ViewState, _: &State) {
    view.detail.how.owners = view.detail.tab != Tab::YAML || !view.detail.how.owners;
    view.show(Tab::YAML);
}

/// Shows the logs of the runs before the last restarts, or those of now.
pub(crate) fn previous_logs(view: &mut ViewState, _: &State) {
    view.detail.how.previous = view.detail.tab != Tab::PODS || !view.detail.how.previous;
    view.show(Tab::PODS);
    (view.detail.scroll, view.detail.stick) = (0, true);
}

/// The next container alone; after the last one all of them.
pub(crate) fn next_container(view: &mut ViewState, state: &State) {
    if view.detail.tab != Tab::PODS {
        return view.show(Tab::PODS);
    }
    let all = pods::sources(&view.page(state, 0));
    let name = |source: &LogSource| (source.pod.clone(), source.container.clone());
    let at = view.detail.container.as_ref().and_then(|chosen| all.iter().position(|s| name(s) == *chosen));
    view.detail.container = all.get(at.map_or(0, |at| at + 1)).map(name);
    (view.detail.scroll, view.detail.stick) = (0, true);
}

/// The request that follows the logs in sight, where they have changed.
pub(crate) fn follow(view: &mut ViewState, state: &State) -> Option<ViewRequest> {
    let in_sight = view.detail.tab == Tab::PODS && view.sees_detail();
    let wanted = if in_sight && !view.leaving && !pods::simulated(state) {
        pods::shown(&view.page(state, 0))
    } else {
        Vec::new()
    };
    if wanted == view.asked.logs {
        return None;
    }
    view.asked.logs.clone_from(&wanted);
    Some(ViewRequest::PodLogs { sources: wanted })
}

/// What to ask for so that the selected object is read whole while more than its metadata is in sight, where
/// that has changed. Where all objects come whole there is nothing to ask for.
pub(crate) fn look(view: &mut ViewState, state: &State) -> Option<ViewRequest> {
    let shown = view.detail.tab.part().shows_whole_object() && view.sees_detail();
    let copied = view.needs(Need::WholeObject);
    let wanted = view.subject(state).filter(|seen| {
        let asked = view.asked.whole.as_ref() == Some(&seen.object_ref);
        (shown || copied)
            && !view.leaving
            && (seen.metadata_only || asked)
            && state.gone_at(&seen.key).is_none()
    });
    let wanted = wanted.map(|seen| seen.object_ref.clone());
    if wanted == view.asked.whole {
        return None;
    }
    view.asked.whole.clone_from(&wanted);
    Some(ViewRequest::Look { object: wanted })
}

/// The request for the values in sight as they are now, where that has changed.
pub(crate) fn follow_values(view: &mut ViewState, state: &State) -> Option<ViewRequest> {
    let wanted = view.root(state).filter(|seen| {
        view.detail.tab == Tab::VALUES
            && view.sees_detail()
            && !view.leaving
            && state.gone_at(&seen.key).is_none()
    });
    let sources = state.reload.live.as_ref().map_or(0, |live| live.sources);
    let wanted = wanted.map(|seen| ValuesOf { seen: Arc::clone(seen), sources });
    if wanted == view.asked.values {
        return None;
    }
    view.asked.values.clone_from(&wanted);
    wanted.map(|asked| ViewRequest::ExplainValues { object: asked.seen.object_ref.clone() })
}

/// To the version before or after; the first time, the history is shown as it is.
pub(crate) fn step(view: &mut ViewState, state: &State, newer: bool) {
    let Some(key) = view.subject(state).map(|seen| seen.key.as_ref().clone()) else { return };
    let Some(versions) = state.versions(&key) else { return };
    if view.detail.tab != Tab::HISTORY {
        view.show(Tab::HISTORY);
        if newer {
            return;
        }
    }
    let at = view
        .detail
        .how
        .version_of(&key)
        .unwrap_or(versions.newest())
        .clamp(versions.oldest(), versions.newest());
    let to = if newer { at + 1 } else { at - 1 };
    // The newest version is followed by a view that shows it.
    view.detail.how.version = (to < versions.newest()).then(|| (key, to.max(versions.oldest())));
    view.detail.scroll = 0;
}

/// Opens or closes the selected reconcile; on one of its lines, shows more of that.
pub(crate) fn open_reconcile(view: &mut ViewState) {
    let Some((reconcile, line)) = view.reconciles.selected_line() else { return };
    let id = reconcile.id;
    match line {
        Some(line) => view.show(waterfall::tab(line)),
        None if view.reconciles.open.contains(&id) => view.reconciles.fold(id),
        None => view.reconciles.unfold(id),
    }
}

/// Right opens the selected reconcile, left closes it; false where there was nothing to open or close.
pub(crate) fn fold_reconcile(view: &mut ViewState, open: bool) -> bool {
    let Some((reconcile, line)) = view.reconciles.selected_line() else { return false };
    let id = reconcile.id;
    let is_open = view.reconciles.open.contains(&id);
    match (open, is_open) {
        (true, false) => open_reconcile(view),
        (true, true) if line.is_some() => open_reconcile(view),
        (false, true) => view.reconciles.fold(id),
        (true, true) | (false, false) => return false,
    }
    true
}

impl ViewState {
    /// Shows a tab of the detail pane.
    pub(crate) fn show(&mut self, tab: Tab) {
        self.detail.open(tab);
        self.open_page(Pane::Detail);
    }
}

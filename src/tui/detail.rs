//! The lines of the detail pane, tab by tab. Pure: a view and a state in, coloured rows out; made anew only when
//! what they are made of has changed. How differences look is in `detail/changes.rs`.

mod changes;
mod conditions;
mod describe;
mod history;
pub(super) mod impact;
mod log;
mod log_groups;
pub(super) mod made_of;
pub(super) mod parts;
mod pass;
pub(super) mod pods;
pub(super) mod search;
pub(super) mod search_step;
pub(super) mod values;
mod yaml;

use super::detail_pane::Lines;
use super::filter::Filter;
use super::looks::Grouping;
use super::pane::Tab;
use super::text::Row;
use super::theme::Role;
use super::view::ViewState;
use crate::event::{Level, words};
use crate::state::{Recorded, State};
use jiff::Timestamp;
use made_of::{MadeOf, Object};
use parts::clock;
use std::sync::Arc;

/// The rows of changes, for a dialog.
pub(super) fn change_rows(changes: &[opdev_object::diff::Change]) -> Vec<Row> {
    changes::rows(changes, 0)
}

/// Brings the lines of the detail pane up to a state.
pub(super) fn refresh(view: &mut ViewState, state: &State, width: usize) {
    let subject = view.subject(state);
    let grouped = view.detail.how.grouping(view.all) != Grouping::Flat;
    let made_of = MadeOf {
        tab: view.detail.tab,
        pass: view.pass().map(|pass| pass.id),
        object: subject
            .filter(|_| !matches!(view.detail.tab, Tab::Objects | Tab::Calls | Tab::Log))
            .cloned()
            .map(Object),
        stamp: match view.detail.tab {
            Tab::Log if grouped => state.log.total.wrapping_add(state.history.total),
            Tab::Log => state.log.total,
            Tab::Pods => state.pod_logs.total.wrapping_add(state.version),
            // Made of versions that may be large: only what is new of the object itself, or who wrote it, counts.
            Tab::History => state.history.total,
            Tab::Events | Tab::Impact | Tab::Values | Tab::Describe | Tab::Conditions | Tab::Objects => {
                state.version
            }
            Tab::Status if view.pass().is_none() => state.version,
            Tab::Status => state.log.total,
            Tab::Calls | Tab::Yaml => 0,
        },
        dropped: if view.detail.tab == Tab::Log { state.log.dropped } else { 0 },
        width,
        wrap: view.detail.wrap,
        all: view.all,
        how: view.detail.how.clone(),
        container: view.detail.container.clone(),
        filter: view.detail.filter.clone(),
        level: view.detail.log_level,
    };
    let made_of = held(made_of, view);
    if view.detail.lines.made_of.as_ref() == Some(&made_of) {
        return;
    }
    let old = std::mem::take(&mut view.detail.lines);
    let rows = match view.detail.tab {
        Tab::Log if grouped => grouped_log(view, state, &made_of, &old),
        Tab::Log => log::rows(view, state, &made_of, old),
        Tab::Status => finish(pass::status(view, state, width), &made_of),
        Tab::Objects => finish(pass::objects(view, state, width), &made_of),
        Tab::Calls => finish(pass::calls(view, width), &made_of),
        Tab::Describe => finish(describe::rows(view, state, width), &made_of),
        Tab::Yaml => finish(yaml::rows(view, state, width), &made_of),
        Tab::Conditions => finish(conditions::rows(view, state, width), &made_of),
        Tab::History => finish(history::rows(view, state, width), &made_of),
        Tab::Pods => finish(pods::rows(view, state, width), &made_of),
        Tab::Impact => finish(impact::rows(view, state, width), &made_of),
        Tab::Values => finish(values::rows(view, state, width), &made_of),
        Tab::Events => finish(events(view, state), &made_of),
    };
    view.detail.lines = Lines { rows, made_of: Some(made_of) };
    view.detail.search.forget_lines();
}

/// A log that is held shows what it showed: new lines only count.
fn held(made_of: MadeOf, view: &ViewState) -> MadeOf {
    match &view.detail.lines.made_of {
        Some(known) if made_of.tab == Tab::Log && !view.detail.stick => {
            let same = MadeOf { stamp: known.stamp, dropped: known.dropped, ..made_of.clone() };
            if same == *known { same } else { made_of }
        }
        Some(_) | None => made_of,
    }
}

/// The log by reconcile. It begins at the selected pass when that has changed, unless the newest is followed.
fn grouped_log(view: &mut ViewState, state: &State, made_of: &MadeOf, old: &Lines) -> Vec<Row> {
    let (rows, anchor) = log_groups::rows(view, state, made_of);
    let before = old.made_of.as_ref().filter(|before| before.tab == Tab::Log);
    if before.is_none_or(|before| before.pass != made_of.pass)
        && let (Some(anchor), true) = (anchor, view.passes.selection.key.is_some())
    {
        (view.detail.scroll, view.detail.stick) = (anchor, false);
    }
    rows
}

/// The filter and the wrapping, the same for every tab.
fn finish(rows: Vec<Row>, made_of: &MadeOf) -> Vec<Row> {
    let filter = Filter::new(&made_of.filter);
    let rows = rows.into_iter().filter(|row| filter.is_empty() || filter.text(&row.text()));
    if made_of.wrap { rows.flat_map(|row| row.wrapped(made_of.width)).collect() } else { rows.collect() }
}

fn events(view: &ViewState, state: &State) -> Vec<Row> {
    let subject = view.subject(state);
    let is_about = |kind: &str, namespace: Option<&str>, name: &str| {
        subject.is_none_or(|seen| {
            seen.key.kind == kind && seen.key.name == name && seen.key.namespace.as_deref() == namespace
        })
    };
    let mut lines: Vec<(Timestamp, Row)> = Vec::new();
    let shown = |e: &&Arc<Recorded>| view.all || is_about(&e.kind, e.namespace.as_deref(), &e.name);
    for event in state.objects.recorded().filter(shown) {
        let at = event.at.unwrap_or_default();
        let (sign, role) = if event.warning { ("⚠", Role::Bad) } else { ("·", Role::Text) };
        let times = if event.count > 1 { format!(" ×{}", event.count) } else { String::new() };
        let about = if view.all { format!("{} {}: ", event.kind, event.name) } else { String::new() };
        let row = Row::new(Role::Dim, clock(at, &view.look.zone))
            .and(role, format!(" {sign} {}{times}  ", event.reason))
            .and(Role::Text, format!("{about}{}", words::one_line(&event.message)))
            .and(Role::Dim, format!("  {}", event.from));
        lines.push((at, row));
    }
    for notice in state.notices.iter() {
        let about = notice.object.as_ref();
        let elsewhere = about.is_some_and(|o| !is_about(&o.gvk.kind, o.namespace.as_deref(), &o.name));
        if elsewhere && !view.all {
            continue;
        }
        let (sign, role) = match notice.level {
            Level::Error | Level::Warn => ("⚠", Role::Bad),
            Level::Info | Level::Debug | Level::Trace => ("·", Role::Text),
        };
        let hint =
            notice.hint.as_ref().map_or_else(String::new, |hint| format!("  {}", words::one_line(hint)));
        let row = Row::new(Role::Dim, clock(notice.at, &view.look.zone))
            .and(role, format!(" {sign} "))
            .and(Role::Text, words::one_line(&notice.message))
            .and(Role::Dim, hint);
        lines.push((notice.at, row));
    }
    lines.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    if lines.is_empty() {
        return vec![Row::new(
            Role::Dim,
            " No Events of this object yet. What the operator and Kubernetes record shows here.",
        )];
    }
    lines.into_iter().map(|(_, row)| row).collect()
}

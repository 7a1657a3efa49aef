//! The log tab: newest lines at the bottom, missing ones counted. New lines are added to the ones already made.

use super::super::detail_pane::Lines;
use super::super::filter::Filter;
use super::super::text::Row;
use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{Level, LogLine, words};
use crate::state::State;
use crate::tui::detail::{made_of::MadeOf, parts::clock_millis};

/// Rows are made anew when this many have gathered.
const MOST: usize = 12_000;

/// The rows of the log.
pub(super) fn rows(view: &ViewState, state: &State, made_of: &MadeOf, old: Lines) -> Vec<Row> {
    let lines = state.log.lines();
    let known = old.made_of.filter(|known| {
        let same = MadeOf { stamp: made_of.stamp, ..known.clone() } == *made_of;
        same && (2..MOST).contains(&old.rows.len()) && known.stamp <= made_of.stamp
    });
    let fresh =
        known.map_or(usize::MAX, |known| usize::try_from(made_of.stamp - known.stamp).unwrap_or(usize::MAX));
    let (mut rows, skip) = match lines.len().checked_sub(fresh) {
        Some(skip) => (old.rows, skip),
        None => (Vec::new(), 0),
    };
    if rows.is_empty() && state.log.dropped > 0 {
        rows.push(Row::new(
            Role::Bad,
            format!("⚠ {} lines came too fast and are not here", state.log.dropped),
        ));
    }
    let filter = Filter::new(&made_of.filter);
    for line in lines.iter().skip(skip).filter(|line| line.level <= view.detail.log_level) {
        if !view.all && made_of.pass.is_some() && line.reconcile.is_some() && line.reconcile != made_of.pass {
            continue;
        }
        let row = row(line, view, true);
        if !filter.is_empty() && !filter.text(&row.text()) {
            continue;
        }
        if made_of.wrap { rows.extend(row.wrapped(made_of.width)) } else { rows.push(row) }
    }
    if rows.is_empty() {
        rows.push(Row::new(Role::Dim, " Nothing logged yet. Lines of opdev and of the operator show here."));
    }
    rows
}

/// One line, with the number of its reconcile unless a heading says it.
pub(super) fn row(line: &LogLine, view: &ViewState, numbered: bool) -> Row {
    let role = match line.level {
        Level::Error => Role::Bad,
        Level::Warn => Role::Busy,
        Level::Info => Role::Good,
        Level::Debug | Level::Trace => Role::Dim,
    };
    let pass = line.reconcile.filter(|_| numbered).map_or_else(String::new, |id| format!("#{id} "));
    Row::new(Role::Dim, format!("{} ", clock_millis(line.at, &view.look.zone)))
        .and(role, format!("{:5} ", words::level(line.level)))
        .and(Role::Dim, pass)
        .and(Role::Text, words::one_line(&line.message))
        .and(Role::Dim, format!("  {}", line.target))
}

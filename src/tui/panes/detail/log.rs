//! The log tab: newest lines at the bottom, missing ones counted. New lines are added to the ones already
//! made.

use super::super::detail_pane::Lines;
use super::super::text::Row;
use super::super::theme::Role;
use super::log_groups;
use super::page::{DetailTab, Made, Page, Stamp};
use crate::detail::made_of::MadeOf;
use crate::detail::parts::clock_millis;
use crate::folds::Grouping;
use crate::keys::action::{Action, Do, Section, action};
use crate::lists::filter::Filter;
use crate::pane::{Pane, Tab};
use jiff::tz::TimeZone;
use opdev_event::{Level, LogLine, words};

/// Rows are made anew when this many have gathered.
const MOST: usize = 12_000;

impl Tab {
    pub const LOG: Tab = Tab("log");
}

/// The tab.
pub(super) struct Log;

impl DetailTab for Log {
    fn tab(&self) -> Tab {
        Tab::LOG
    }

    fn title(&self) -> &'static str {
        "Log"
    }

    fn action(&self) -> Action {
        action(Tab::LOG.0, Do::Show(Tab::LOG), &["L"], Section::Look)
            .about("log", "Show the log.")
            .footer(&[Pane::Reconciles])
    }

    fn place(&self) -> u8 {
        2
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        if page.all { Some("all".to_owned()) } else { page.reconcile_name() }
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        let (log, history) = (&page.state.log, &page.state.history);
        let number = if is_grouped(page) { log.total.wrapping_add(history.total) } else { log.total };
        Stamp { object: None, number, dropped: log.dropped }
    }

    /// Its lines are always made with those of before at hand.
    fn rows(&self, _page: &Page<'_>) -> Vec<Row> {
        Vec::new()
    }

    /// By reconcile it begins at the selected one when that has changed, unless the newest is followed.
    fn lines(&self, page: &Page<'_>, made_of: &MadeOf, before: Lines) -> Made {
        if !is_grouped(page) {
            return Made { rows: flat(page, made_of, before), first: None };
        }
        let (rows, anchor) = log_groups::rows(page, made_of);
        let before = before.made_of.as_ref().filter(|before| before.tab == Tab::LOG);
        let moved =
            before.is_none_or(|before| before.reconcile != made_of.reconcile) && page.reconcile_chosen;
        Made { rows, first: anchor.filter(|_| moved) }
    }

    fn holds_still(&self) -> bool {
        true
    }

    fn follows_end(&self) -> bool {
        true
    }

    fn file_ending(&self) -> &'static str {
        "log"
    }

    /// The levels that are shown, the lines that came since it is held, and the lines that were dropped.
    fn note(&self, page: &Page<'_>) -> Row {
        let (mut row, log) = (Row::default(), &page.state.log);
        if page.log_level != Level::Trace {
            row = row.and(Role::Changed, format!(" {} and worse ", words::level(page.log_level)));
        }
        let new = log.total.saturating_sub(page.log_followed);
        if !page.stick && new > 0 {
            let s = if new == 1 { "" } else { "s" };
            row = row.and(Role::Busy, format!(" held, {new} new line{s} "));
        } else if !page.stick {
            row = row.and(Role::Busy, " held ");
        }
        if log.dropped > 0 {
            row = row.and(Role::Bad, format!(" {} dropped ", log.dropped));
        }
        row
    }
}

/// Returns true if the lines stand by reconcile.
fn is_grouped(page: &Page<'_>) -> bool {
    page.how.grouping(page.all) != Grouping::Flat
}

/// The lines as they came.
fn flat(page: &Page<'_>, made_of: &MadeOf, old: Lines) -> Vec<Row> {
    let state = page.state;
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
    for line in lines.iter().skip(skip).filter(|line| line.level <= page.log_level) {
        if !page.all
            && made_of.reconcile.is_some()
            && line.reconcile.is_some()
            && line.reconcile != made_of.reconcile
        {
            continue;
        }
        let row = row(line, page.zone, true);
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
pub(super) fn row(line: &LogLine, zone: &TimeZone, numbered: bool) -> Row {
    let role = match line.level {
        Level::Error => Role::Bad,
        Level::Warn => Role::Busy,
        Level::Info => Role::Good,
        Level::Debug | Level::Trace => Role::Dim,
    };
    let reconcile = line.reconcile.filter(|_| numbered).map_or_else(String::new, |id| format!("#{id} "));
    Row::new(Role::Dim, format!("{} ", clock_millis(line.at, zone)))
        .and(role, format!("{:5} ", words::level(line.level)))
        .and(Role::Dim, reconcile)
        .and(Role::Text, words::one_line(&line.message))
        .and(Role::Dim, format!("  {}", line.target))
}

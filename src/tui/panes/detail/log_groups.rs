//! The log by reconcile: a heading for each reconcile with what came of it, its lines below, in the order of
//! time. Lines that belong to no reconcile stand between. Folded, only the selected reconcile shows its
//! lines.

use super::super::text::Row;
use super::super::theme::Role;
use super::super::waterfall::outcome_role;
use super::log;
use super::page::Page;
use crate::detail::made_of::MadeOf;
use crate::detail::parts::clock;
use crate::folds::Grouping;
use crate::lists::filter::Filter;
use jiff::Timestamp;
use opdev_event::{Level, LogLine, Reconcile, words};
use opdev_state::State;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The rows, and the one where the selected reconcile begins.
pub(super) fn rows(page: &Page<'_>, made_of: &MadeOf) -> (Vec<Row>, Option<usize>) {
    let state = page.state;
    let known: HashMap<u64, &Arc<Reconcile>> =
        state.history.all().iter().map(|reconcile| (reconcile.id, reconcile)).collect();
    let running: HashSet<u64> = state.running.values().map(|reconcile| reconcile.id).collect();
    let mine: Option<HashSet<u64>> = (!page.all).then(|| {
        let root = page.root.map(|seen| seen.key.as_ref());
        let ended =
            root.and_then(|root| state.history.of(root)).into_iter().flatten().map(|reconcile| reconcile.id);
        let begun = root.and_then(|root| state.running.get(root)).map(|reconcile| reconcile.id);
        ended.chain(begun).collect()
    });
    let filter = Filter::new(&made_of.filter);
    let groups = groups(state, mine.as_ref());
    let folded = page.how.grouping(page.all) == Grouping::Folded;
    let mut rows = Vec::new();
    let mut anchor = None;
    let dropped = state.log.dropped;
    if dropped > 0 {
        rows.push(Row::new(Role::Bad, format!("⚠ {dropped} lines came too fast and are not here")));
    }
    for Group { id, lines, .. } in groups {
        let selected = id.is_some() && id == made_of.reconcile;
        let open = !folded || id.is_none() || selected;
        let shown: Vec<Row> = lines
            .iter()
            .filter(|line| line.level <= made_of.level)
            .map(|line| log::row(line, page.zone, false))
            .filter(|row| filter.is_empty() || filter.text(&row.text()))
            .collect();
        if shown.is_empty() && (!filter.is_empty() || made_of.level != Level::Trace) {
            continue;
        }
        if let Some(id) = id {
            if selected {
                anchor = Some(rows.len());
            }
            let reconcile = known.get(&id).map(AsRef::as_ref);
            rows.push(heading(page, id, reconcile, running.contains(&id), (open, selected), lines.len()));
        }
        if open {
            let indented = shown.into_iter().map(|mut row| {
                if id.is_some() {
                    row.0.insert(0, (Role::Dim, "  ".to_owned()));
                }
                row
            });
            if made_of.wrap {
                rows.extend(indented.flat_map(|row| row.wrapped(made_of.width)));
            } else {
                rows.extend(indented);
            }
        }
    }
    if rows.is_empty() {
        let text = " Nothing logged yet. Lines of opdev and of the operator show here, by reconcile.";
        rows.push(Row::new(Role::Dim, text));
    }
    (rows, anchor)
}

/// A reconcile with its lines, or a line that belongs to none.
struct Group<'a> {
    at: Timestamp,
    id: Option<u64>,
    lines: Vec<&'a LogLine>,
}

/// Reconciles and lines in the order of time. Reconciles of one object are there even where they logged
/// nothing, so that each has its place.
fn groups<'a>(state: &'a State, mine: Option<&HashSet<u64>>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut place: HashMap<u64, usize> = HashMap::new();
    let known =
        state.history.all().iter().filter(|reconcile| mine.is_some_and(|mine| mine.contains(&reconcile.id)));
    for reconcile in known {
        place.insert(reconcile.id, groups.len());
        groups.push(Group { at: reconcile.at, id: Some(reconcile.id), lines: Vec::new() });
    }
    for line in state.log.lines() {
        let Some(id) = line.reconcile else {
            groups.push(Group { at: line.at, id: None, lines: vec![line] });
            continue;
        };
        if mine.is_some_and(|mine| !mine.contains(&id)) {
            continue;
        }
        let at = *place.entry(id).or_insert(groups.len());
        if at == groups.len() {
            groups.push(Group { at: line.at, id: Some(id), lines: Vec::new() });
        }
        groups[at].lines.push(line);
    }
    groups.sort_by_key(|group| group.at);
    groups
}

fn heading(
    page: &Page<'_>,
    id: u64,
    reconcile: Option<&Reconcile>,
    running: bool,
    (open, selected): (bool, bool),
    lines: usize,
) -> Row {
    let fold = if open { "▾" } else { "▸" };
    let row = Row::new(if selected { Role::Focus } else { Role::Title }, format!("{fold} #{id} "));
    let many = match lines {
        0 => "no lines".to_owned(),
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    };
    match reconcile {
        Some(reconcile) => {
            let what =
                if page.all { format!("{} ", words::short_ref(&reconcile.object)) } else { String::new() };
            row.and(Role::Dim, format!("{} ", clock(reconcile.at, page.zone)))
                .and(Role::Text, what)
                .and(outcome_role(reconcile.outcome), words::outcome(reconcile.outcome))
                .and(Role::Dim, format!(" {} · {many} · ", words::took(reconcile.took)))
                .and(Role::Text, words::causes_of(&reconcile.object, &reconcile.causes))
        }
        None if running => row.and(Role::Busy, "⟳ running").and(Role::Dim, format!(" · {many}")),
        None => row.and(Role::Dim, format!("{many}, its reconcile is no longer kept")),
    }
}

//! The page of one finding: what is wrong, where, the code, the cure, and the reconciles that show it.

use crate::detail::parts::clock;
use crate::finding_sign::role;
use crate::text::{Row, clean, right, wrap};
use crate::theme::Role;
use jiff::tz::TimeZone;
use opdev_event::{RuleFinding, words};
use opdev_state::State;

/// The width of the names before the texts.
const NAME: usize = 9;

/// The rows above those of the reconciles.
pub fn page(finding: &RuleFinding, cells: usize, zone: &TimeZone) -> Vec<Row> {
    let because = match finding.explains.as_slice() {
        [] => String::new(),
        rules => format!(" · also {}", rules.join(", ")),
    };
    let mut rows = vec![
        Row::new(role(finding), format!(" {}", finding.severity.name()))
            .and(Role::Dim, format!(" · {}{because} · since {}", finding.rule, clock(finding.first, zone))),
    ];
    if let Some(ended) = &finding.ended {
        rows.extend(plain(Role::Good, &format!("{} ({})", ended.how, clock(ended.at, zone)), cells));
    }
    rows.extend(plain(Role::Text, &finding.why, cells));
    let about = finding.about.as_ref().unwrap_or(&finding.object);
    rows.extend(named(("Object", NAME), Role::Text, &about.to_string(), cells));
    if !finding.field.is_empty() {
        rows.extend(named(("Field", NAME), Role::Text, &finding.field, cells));
    }
    if let Some(place) = &finding.place {
        rows.extend(named(("Code", NAME), Role::Changed, &place.to_string(), cells));
    }
    rows.extend(named(("Fix", NAME), Role::Text, &finding.fix, cells));
    rows.extend(named(("More", NAME), Role::Dim, &format!("opdev explain {}", finding.rule), cells));
    rows
}

fn plain(role: Role, text: &str, cells: usize) -> Vec<Row> {
    let lines = wrap(&clean(text), cells.saturating_sub(2).max(10));
    lines.into_iter().map(|line| Row::new(role, format!(" {line}"))).collect()
}

/// A text behind its name, which has so many cells; its further lines stand below it.
pub fn named((name, most): (&str, usize), role: Role, text: &str, cells: usize) -> Vec<Row> {
    let lines = wrap(&clean(text), cells.saturating_sub(most + 2).max(10)).into_iter().enumerate();
    lines
        .map(|(at, line)| {
            let name = if at == 0 { name } else { "" };
            Row::new(Role::Dim, format!(" {name:<most$}")).and(role, line)
        })
        .collect()
}

/// The head of the list of reconciles that show a finding.
pub fn shown_by(finding: &RuleFinding) -> String {
    match finding.times {
        1 => "Seen once, in reconcile".to_owned(),
        many => format!("Seen {many} times, newest reconciles"),
    }
}

/// The newest reconciles that show it, newest first, and below them the first one.
pub fn reconciles(finding: &RuleFinding, state: &State, chosen: Option<usize>, zone: &TimeZone) -> Vec<Row> {
    let own = state.history.of(&finding.object.key());
    let kept = |id: &u64| own.into_iter().flatten().rev().find(|reconcile| reconcile.id == *id);
    let mut rows = Vec::new();
    for (at, id) in ids(finding).iter().enumerate() {
        let mark = if chosen == Some(at) { "▸" } else { " " };
        let row = Row::new(Role::Text, format!(" {mark} #{id:<6}"));
        rows.push(match kept(id) {
            None => row.and(Role::Dim, "is no longer kept"),
            Some(reconcile) => row
                .and(Role::Dim, format!("{}  ", clock(reconcile.at, zone)))
                .and(Role::Text, words::came_to(reconcile))
                .and(Role::Dim, right(&words::took(reconcile.took), 8)),
        });
    }
    if finding.since > 0 && !finding.reconciles.contains(&finding.since) {
        let at = clock(finding.first, zone);
        rows.push(Row::new(Role::Dim, format!("   the first was #{} at {at}", finding.since)));
    }
    rows
}

/// The reconciles that a page lists, newest first.
pub fn ids(finding: &RuleFinding) -> Vec<u64> {
    let mut ids = finding.reconciles.clone();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids
}

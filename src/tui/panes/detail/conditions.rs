//! The conditions of the selected object over time: a bar for each, and its transitions below. True, False
//! and Unknown are told apart by their characters, not by colour alone.

use super::super::text::{Row, left, width, wrap};
use super::super::theme::Role;
use super::page::{DetailTab, Page};
use super::yaml;
use crate::detail::parts::{clock, nothing};
use crate::keys::action::Do;
use crate::keys::action::{Action, Section, action};
use crate::pane::Tab;
use jiff::Timestamp;
use opdev_event::words;
use opdev_state::conditions::{Line, Span, Truth};
use opdev_state::{State, health};
use std::time::Duration;

fn look(truth: Truth) -> (char, Role) {
    match truth {
        Truth::True => ('█', Role::Good),
        Truth::False => ('░', Role::Busy),
        Truth::Unknown => ('▒', Role::Changed),
        Truth::Absent => (' ', Role::Dim),
    }
}

impl Tab {
    pub(crate) const CONDITIONS: Tab = Tab("conditions");
}

/// The tab.
pub(super) struct Conditions;

impl DetailTab for Conditions {
    fn tab(&self) -> Tab {
        Tab::CONDITIONS
    }

    fn title(&self) -> &'static str {
        "Conditions"
    }

    fn action(&self) -> Action {
        action(Tab::CONDITIONS.0, Do::Show(Tab::CONDITIONS), &["C"], Section::Look)
            .about("conditions", "Show the conditions of the selected object over time.")
    }

    fn place(&self) -> u8 {
        5
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let (state, cells) = (page.state, page.cells);
        let Some(seen) = page.subject else {
            return nothing(
                "Nothing is selected. The conditions of a custom resource or of an owned object show here.",
                cells,
            );
        };
        let lines = state.conditions_of(&seen.key);
        let Some((from, to)) = extent(state, lines) else {
            let text = format!(
                "{} {} has no conditions. Those in its status show here over time.",
                seen.key.kind, seen.key.name
            );
            return nothing(&text, cells);
        };
        let longest = lines.iter().map(|line| width(&line.name)).max().unwrap_or(0);
        let label = longest.min((cells / 3).max(8));
        let bar = cells.saturating_sub(label + 4).max(4);
        let mut rows = yaml::gone(page, state, seen);
        let (start, end) = (clock(from, page.zone), clock(to, page.zone));
        let gap = bar.saturating_sub(width(&start) + width(&end));
        rows.push(Row::new(Role::Dim, format!(" {} {start}{}{end}", " ".repeat(label), " ".repeat(gap))));
        for line in lines {
            let mut row = Row::new(Role::Text, format!(" {} ", left(&line.name, label)));
            row.0.extend(pieces(line, from, to, bar));
            rows.push(row);
        }
        rows.push(
            Row::new(Role::Good, format!(" {} █ ", " ".repeat(label)))
                .and(Role::Dim, "True  ")
                .and(Role::Busy, "░ ")
                .and(Role::Dim, "False  ")
                .and(Role::Changed, "▒ ")
                .and(Role::Dim, "Unknown"),
        );
        for line in lines {
            rows.push(Row::default());
            rows.extend(transitions(page, line, to, &seen.object, cells));
        }
        rows
    }

    fn is_of_object(&self) -> bool {
        true
    }

    fn shows_whole_object(&self) -> bool {
        true
    }
}

/// From the first transition, but not from before opdev began, to the newest time that is known.
fn extent(state: &State, lines: &[Line]) -> Option<(Timestamp, Timestamp)> {
    let first = lines.iter().filter_map(|line| line.spans.first()).map(|span| span.from).min()?;
    let begun = state.started.as_ref().map_or(first, |started| started.at);
    let last = lines.iter().filter_map(|line| line.spans.last()).map(|span| span.from).max()?;
    let to = state.latest.unwrap_or(last).max(last);
    let from = first.max(begun).min(last);
    Some((from, to.max(from.checked_add(Duration::from_secs(1)).unwrap_or(from))))
}

/// The bar of a condition, as runs of one look each. A cell shows what was so at its end.
fn pieces(line: &Line, from: Timestamp, to: Timestamp, cells: usize) -> Vec<(Role, String)> {
    let total = to.duration_since(from).as_millis().max(1);
    let mut pieces: Vec<(Role, String)> = Vec::new();
    for cell in 0..cells {
        let at = from.as_millisecond() as i128 + total * (cell as i128 + 1) / cells as i128;
        let span = line.spans.iter().rev().find(|span| i128::from(span.from.as_millisecond()) <= at);
        let (sign, role) = span.map_or((' ', Role::Dim), |span| look(span.truth));
        match pieces.last_mut() {
            Some((known, text)) if *known == role => text.push(sign),
            _ => pieces.push((role, sign.to_string())),
        }
    }
    pieces
}

/// Earlier states of a condition, the newest first, each with how long it lasted.
fn transitions(
    page: &Page<'_>,
    line: &Line,
    to: Timestamp,
    object: &serde_json::Value,
    cells: usize,
) -> Vec<Row> {
    let mut rows = vec![Row::new(Role::Title, format!(" {}", line.name))];
    let mut end = to;
    let mut newest = true;
    let longest = line.spans.iter().map(|span| width(&span.reason)).max().unwrap_or(0);
    let reasons = longest.min(cells.saturating_sub(42).max(10));
    for Span { from, truth, reason } in line.spans.iter().rev() {
        let lasted = Duration::try_from(end.duration_since(*from)).unwrap_or_default();
        let lasted = if lasted < Duration::from_secs(1) { words::took(lasted) } else { words::age(lasted) };
        let lasted = if newest { format!("for {lasted} now") } else { format!("for {lasted}") };
        let (sign, role) = look(*truth);
        rows.push(
            Row::new(Role::Dim, format!("   {} ", clock(*from, page.zone)))
                .and(role, format!("{sign} {} ", left(truth.word(), 7)))
                .and(Role::Text, format!(" {} ", left(reason, reasons)))
                .and(Role::Dim, format!(" {lasted}")),
        );
        if newest && let Some((_, _, message)) = health::condition(object, &line.name) {
            let message = words::one_line(message);
            let lines = if message.is_empty() {
                Vec::new()
            } else {
                wrap(&message, cells.saturating_sub(14).max(10))
            };
            rows.extend(
                lines.into_iter().take(4).map(|text| Row::new(Role::Dim, format!("            {text}"))),
            );
        }
        newest = false;
        end = *from;
    }
    rows
}

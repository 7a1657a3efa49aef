//! Parts that the tabs of a reconcile share: its headline, its calls on a scale of time, a place in a file.

use super::super::text::{Row, wrap};
use super::super::theme::Role;
use super::super::waterfall::{self, Line, outcome_role};
use super::page::Page;
use opdev_event::{Diagnostic, Reconcile, words};

pub(super) const NO_PASS: &str = "No reconcile yet. Apply a custom resource (a), or ask for one (r).";

/// Steps and calls as bars on the scale of the reconcile.
pub(super) fn timeline(reconcile: &Reconcile, page: &Page<'_>) -> Vec<Row> {
    let lines = waterfall::lines(reconcile, waterfall::MANY).into_iter();
    lines
        .filter(|line| matches!(line, Line::Scale | Line::Queue | Line::Step(_) | Line::Call(_)))
        .map(|line| waterfall::row(line, reconcile, page.zone, page.cells))
        .collect()
}

/// The head of a reconcile: its object, its causes and its result.
pub(super) fn headline(reconcile: &Reconcile) -> Row {
    let mut text = format!(" in {}{}", words::took(reconcile.took), calls(reconcile));
    if reconcile.queued.as_millis() > 0 {
        text.push_str(&format!(", queued {}", words::took(reconcile.queued)));
    }
    if let Some(words) = &reconcile.waiting {
        text.push_str(&format!(", waits: {}", words::one_line(words)));
    }
    if let Some(requeue) = &reconcile.requeue {
        let why = words::one_line(requeue.reason.words());
        text.push_str(&format!(", again in {} ({why})", words::took(requeue.after)));
    }
    Row::new(Role::Dim, format!(" #{} of {} ", reconcile.id, reconcile.object.name))
        .and(outcome_role(reconcile.outcome), words::result(reconcile))
        .and(Role::Text, text)
}

/// The number of its calls, and of those that were refused. Nothing where it wrote, but its calls were not
/// seen.
fn calls(reconcile: &Reconcile) -> String {
    let made = reconcile.calls.len();
    if made == 0 && !(reconcile.objects.is_empty() && reconcile.status.is_empty()) {
        return String::new();
    }
    let refused: Vec<u16> =
        reconcile.calls.iter().map(|call| call.status).filter(|code| *code >= 400 && *code != 404).collect();
    let word = if made == 1 { "call" } else { "calls" };
    match refused.as_slice() {
        [] => format!(", {made} {word}"),
        [code, ..] => format!(", {made} {word}, {} refused ({code})", refused.len()),
    }
}

/// A diagnostic: place, message where asked for, excerpt, hint.
pub(super) fn diagnostic(of: &Diagnostic, width: usize, message: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(place) = &of.place {
        rows.push(Row::new(Role::Key, format!("   {place}")));
    }
    if message {
        rows.extend(
            wrap(&of.message, width.saturating_sub(4))
                .into_iter()
                .map(|l| Row::new(Role::Bad, format!("   {l}"))),
        );
    }
    if let Some(excerpt) = &of.excerpt {
        rows.extend(excerpt.lines().map(|line| Row::new(Role::Text, format!("   │ {line}"))));
    }
    if let Some(hint) = &of.hint {
        rows.extend(
            wrap(hint, width.saturating_sub(4)).into_iter().map(|l| Row::new(Role::Dim, format!("   {l}"))),
        );
    }
    rows
}

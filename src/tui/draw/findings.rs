//! What is wrong with the operator, in short: the badge of the header, and the mark of a row.

use crate::event::{FindingSeverity, RuleFinding};
use crate::state::State;
use crate::tui::panes::text::Row;
use crate::tui::panes::theme::Role;

/// The colour of a finding.
pub(in crate::tui) fn role(finding: &RuleFinding) -> Role {
    match finding.severity {
        _ if !finding.is_open() => Role::Good,
        FindingSeverity::Error => Role::Bad,
        FindingSeverity::Warning => Role::Busy,
        FindingSeverity::Hint => Role::Dim,
    }
}

/// The sign of a finding.
pub(in crate::tui) fn sign(finding: &RuleFinding) -> &'static str {
    if finding.is_open() { finding.severity.sign() } else { "✓" }
}

/// How many errors and warnings are open, for the end of the first line; empty where none is.
pub(super) fn badge(state: &State) -> Row {
    let (errors, warnings) = state.findings.counts();
    let mut badge = Row::default();
    if errors > 0 {
        badge = badge.and(Role::Bad, format!("✗ {errors} "));
    }
    if warnings > 0 {
        badge = badge.and(Role::Busy, format!("⚠ {warnings} "));
    }
    badge
}

//! Findings in short: the badge of the header, and the mark of a row.

use crate::text::Row;
use crate::theme::Role;
use opdev_event::{FindingSeverity, RuleFinding};
use opdev_state::State;

/// The colour of a finding.
pub fn role(finding: &RuleFinding) -> Role {
    if finding.is_open() { role_of(finding.severity) } else { Role::Good }
}

/// The colour of a severity.
pub fn role_of(severity: FindingSeverity) -> Role {
    match severity {
        FindingSeverity::Error => Role::Bad,
        FindingSeverity::Warning => Role::Busy,
        FindingSeverity::Hint => Role::Dim,
    }
}

/// The sign of a finding.
pub fn sign(finding: &RuleFinding) -> &'static str {
    if finding.is_open() { finding.severity.sign() } else { "✓" }
}

/// The numbers of open errors and warnings for the end of the first line, in words where there is room; empty
/// where none is open.
pub fn badge(state: &State, words: bool) -> Row {
    let (errors, warnings) = state.findings.counts();
    let named = |count: usize, word: &str| match (words, count) {
        (false, _) => count.to_string(),
        (true, 1) => format!("1 {word}"),
        (true, _) => format!("{count} {word}s"),
    };
    let mut badge = Row::default();
    if errors > 0 {
        badge = badge.and(Role::Bad, format!("✗ {} ", named(errors, "error")));
    }
    if warnings > 0 {
        badge = badge.and(Role::Busy, format!("⚠ {} ", named(warnings, "warning")));
    }
    badge
}

//! Findings fail a scenario: what is wrong with the operator, though each step went well.

use super::report::{Case, Outcome};
use opdev_event::{FindingSeverity, RuleFinding};
use std::sync::Arc;
use std::time::Duration;

/// The findings that fail a scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gate {
    /// Errors.
    #[default]
    Error,
    /// Errors and warnings.
    Warning,
    /// None.
    None,
}

impl Gate {
    fn fails(self, finding: &RuleFinding) -> bool {
        match self {
            Gate::Error => finding.severity == FindingSeverity::Error,
            Gate::Warning => finding.severity != FindingSeverity::Hint,
            Gate::None => false,
        }
    }
}

/// The case that fails, where there is one. A finding that another one has taken in is told with that one.
pub(crate) fn case(findings: &[Arc<RuleFinding>], gate: Gate) -> Option<Case> {
    let taken_in = |finding: &RuleFinding| {
        finding.ended.as_ref().is_some_and(|ended| ended.how.starts_with("explained by "))
    };
    let wrong: Vec<&Arc<RuleFinding>> =
        findings.iter().filter(|finding| gate.fails(finding) && !taken_in(finding)).collect();
    let first = wrong.first()?;
    let more = match wrong.len() {
        1 => String::new(),
        many => format!(" and {} more", many - 1),
    };
    let details: Vec<String> = wrong.iter().map(|finding| details(finding)).collect();
    let outcome =
        Outcome::Failed { message: format!("{}{more}", first.title), details: details.join("\n\n") };
    Some(Case { name: "findings".to_owned(), took: Duration::ZERO, outcome })
}

fn details(finding: &RuleFinding) -> String {
    let place = finding.place.as_ref().map_or_else(String::new, |place| format!("\n  at {place}"));
    format!(
        "{} {} ({}, ×{}): {}{place}\n  fix: {}\n  opdev explain {}",
        finding.severity.name(),
        finding.title,
        finding.object,
        finding.times,
        finding.why,
        finding.fix,
        finding.rule
    )
}

//! The outcome of the scenarios: data, lines for people, and annotations for GitHub.

use opdev_event::words;
use opdev_event::words::visible_line;
use std::fmt::Write as _;
use std::time::Duration;

/// The outcome of all scenarios.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// A suite for each scenario that ran, in the order of their names.
    pub suites: Vec<Suite>,
    /// The number of scenarios.
    pub wanted: usize,
    /// From the first start to the last end.
    pub took: Duration,
    /// Somebody has broken it off.
    pub interrupted: bool,
}

/// One scenario.
#[derive(Clone, Debug)]
pub struct Suite {
    /// Its file, relative to the project's root.
    pub name: String,
    /// Its steps.
    pub cases: Vec<Case>,
    /// From the start of its control plane to the end of its last step.
    pub took: Duration,
    /// Why it could not even begin.
    pub error: Option<String>,
}

/// One step of a scenario.
#[derive(Clone, Debug)]
pub struct Case {
    /// The expected behaviour.
    pub name: String,
    /// The time it took.
    pub took: Duration,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Passed,
    /// It was left out, and why.
    Skipped(String),
    /// Otherwise than it should.
    Failed {
        /// In one line.
        message: String,
        /// All that is known.
        details: String,
    },
}

impl Suite {
    /// Returns true if every step ended as it should.
    pub fn passed(&self) -> bool {
        self.error.is_none() && self.failure().is_none()
    }

    /// The first step that did not.
    pub fn failure(&self) -> Option<(&Case, &str, &str)> {
        self.cases.iter().find_map(|case| match &case.outcome {
            Outcome::Failed { message, details } => Some((case, message.as_str(), details.as_str())),
            Outcome::Passed | Outcome::Skipped(_) => None,
        })
    }
}

impl Report {
    /// How many scenarios went as they should.
    pub fn passed(&self) -> usize {
        self.suites.iter().filter(|suite| suite.passed()).count()
    }

    /// Returns true if some scenario failed.
    pub fn failed(&self) -> bool {
        self.suites.iter().any(|suite| suite.failure().is_some())
    }

    /// Why the first scenario that could not begin could not.
    pub fn error(&self) -> Option<&str> {
        self.suites.iter().find_map(|suite| suite.error.as_deref())
    }
}

/// Writes a text that began on a line: its further lines stand below, farther in.
pub fn below(out: &mut String, text: &str) {
    let mut lines = text.lines();
    let _ = writeln!(out, "{}", visible_line(lines.next().unwrap_or_default()));
    for line in lines {
        let _ = writeln!(out, "        {}", visible_line(line.trim_start()));
    }
}

/// The lines for people.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    let width = report.suites.iter().map(|suite| suite.name.chars().count()).max().unwrap_or(0);
    for suite in &report.suites {
        let took = words::took(suite.took);
        let name = visible_line(&suite.name);
        match (&suite.error, suite.failure()) {
            (Some(why), _) => {
                let _ = write!(out, "error {name:width$}  {took}  ");
                below(&mut out, why);
            }
            (None, Some((case, message, details))) => {
                let _ = write!(out, "FAIL  {name:width$}  {took}  {}: ", visible_line(&case.name));
                below(&mut out, message);
                for line in details.lines() {
                    let _ = writeln!(out, "        {}", visible_line(line));
                }
            }
            (None, None) => {
                let _ = writeln!(out, "ok    {name:width$}  {took}{}", skipped(suite));
            }
        }
    }
    let (passed, wanted) = (report.passed(), report.wanted);
    let end = if report.interrupted { ", broken off" } else { "" };
    let _ = writeln!(out, "{passed} of {wanted} scenarios passed in {}{end}", words::took(report.took));
    out
}

/// The steps that were left out.
fn skipped(suite: &Suite) -> String {
    let left_out = suite.cases.iter().filter_map(|case| match &case.outcome {
        Outcome::Skipped(why) => Some(format!("  ({} left out: {why})", visible_line(&case.name))),
        Outcome::Passed | Outcome::Failed { .. } => None,
    });
    left_out.collect()
}

/// The annotations that GitHub shows beside the files of a pull request.
pub fn annotations(report: &Report) -> String {
    let mut out = String::new();
    for suite in &report.suites {
        let message = match (&suite.error, suite.failure()) {
            (Some(why), _) => why.clone(),
            (None, Some((case, message, details))) => format!("{}: {message}\n{details}", case.name),
            (None, None) => continue,
        };
        let _ =
            writeln!(out, "::error file={},line=1::{}", property(&suite.name), escaped(message.trim_end()));
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_are_one_line_each() {
        let outcome = Outcome::Failed { message: "100 %".to_owned(), details: "one\ntwo".to_owned() };
        let case = Case { name: "settled".to_owned(), took: Duration::ZERO, outcome };
        let suite =
            Suite { name: "a,b.yaml".to_owned(), cases: vec![case], took: Duration::ZERO, error: None };
        let report = Report { suites: vec![suite], wanted: 1, ..Report::default() };
        assert_eq!(annotations(&report), "::error file=a%2Cb.yaml,line=1::settled: 100 %25%0Aone%0Atwo\n");
        let said = text(&report);
        assert!(
            said.starts_with("FAIL  a,b.yaml") && said.ends_with("0 of 1 scenarios passed in 0.1 ms\n"),
            "{said}"
        );
    }
}

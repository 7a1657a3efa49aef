//! A report as JUnit XML, which every CI reads: a suite for each scenario, a case for each step.

use super::report::{Case, Outcome, Report, Suite};
use std::fmt::Write as _;
use std::time::Duration;

/// The report as JUnit XML. `properties` are told of every suite.
pub fn junit(report: &Report, properties: &[(&str, String)]) -> String {
    let count = |pick: fn(&Suite) -> usize| report.suites.iter().map(pick).sum::<usize>();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"opdev ci\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">",
        count(tests),
        count(failures),
        count(errors),
        seconds(report.took)
    );
    for one in &report.suites {
        suite(&mut out, one, properties);
    }
    out.push_str("</testsuites>\n");
    out
}

fn tests(suite: &Suite) -> usize {
    suite.cases.len() + errors(suite)
}

fn failures(suite: &Suite) -> usize {
    suite.cases.iter().filter(|case| matches!(case.outcome, Outcome::Failed { .. })).count()
}

fn errors(suite: &Suite) -> usize {
    usize::from(suite.error.is_some())
}

fn skips(suite: &Suite) -> usize {
    suite.cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count()
}

fn suite(out: &mut String, suite: &Suite, properties: &[(&str, String)]) {
    let name = attribute(&suite.name);
    let _ = writeln!(
        out,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        tests(suite),
        failures(suite),
        errors(suite),
        skips(suite),
        seconds(suite.took)
    );
    out.push_str("    <properties>\n");
    for (key, value) in properties {
        let _ = writeln!(out, "      <property name=\"{}\" value=\"{}\"/>", attribute(key), attribute(value));
    }
    out.push_str("    </properties>\n");
    if let Some(why) = &suite.error {
        let _ = writeln!(
            out,
            "    <testcase name=\"start\" classname=\"{name}\" time=\"0.000\">\n      <error message=\"{}\">{}</error>\n    \
             </testcase>",
            attribute(why.lines().next().unwrap_or_default()),
            content(why)
        );
    }
    for (at, one) in suite.cases.iter().enumerate() {
        case(out, &name, at, one);
    }
    out.push_str("  </testsuite>\n");
}

fn case(out: &mut String, class: &str, at: usize, case: &Case) {
    let head = format!(
        "    <testcase name=\"{at:02}-{}\" classname=\"{class}\" time=\"{}\"",
        attribute(&case.name),
        seconds(case.took)
    );
    let _ = match &case.outcome {
        Outcome::Passed => writeln!(out, "{head}/>"),
        Outcome::Skipped(why) => {
            writeln!(out, "{head}>\n      <skipped message=\"{}\"/>\n    </testcase>", attribute(why))
        }
        Outcome::Failed { message, details } => writeln!(
            out,
            "{head}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
            attribute(message),
            content(details)
        ),
    };
}

fn seconds(took: Duration) -> String {
    format!("{:.3}", took.as_secs_f64())
}

/// Text as XML and HTML have it; what neither may hold is left out.
pub fn content(text: &str) -> String {
    let allowed =
        |c: &char| (!c.is_control() || matches!(c, '\n' | '\t')) && !matches!(c, '\u{fffe}' | '\u{ffff}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars().filter(allowed) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Line breaks would become spaces.
fn attribute(text: &str) -> String {
    content(text).replace('\n', "&#10;").replace('\t', "&#9;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_told_and_counted() {
        let case =
            |name: &str, outcome| Case { name: name.to_owned(), took: Duration::from_millis(12), outcome };
        let failed =
            Outcome::Failed { message: "a < \"b\"".to_owned(), details: "line 1\nline \u{1b}2".to_owned() };
        let cases = vec![
            case("apply", Outcome::Passed),
            case("settled", failed),
            case("second reconcile", Outcome::Skipped("a program".to_owned())),
        ];
        let one = Suite { name: "a.yaml".to_owned(), cases, took: Duration::from_secs(1), error: None };
        let two = Suite {
            name: "b.yaml".to_owned(),
            cases: Vec::new(),
            took: Duration::ZERO,
            error: Some("no & plane".to_owned()),
        };
        let report = Report {
            suites: vec![one, two],
            wanted: 2,
            took: Duration::from_millis(1500),
            interrupted: false,
        };
        let text = junit(&report, &[("plane", "embedded".to_owned())]);
        assert_eq!(
            text,
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="opdev ci" tests="4" failures="1" errors="1" time="1.500">
  <testsuite name="a.yaml" tests="3" failures="1" errors="0" skipped="1" time="1.000">
    <properties>
      <property name="plane" value="embedded"/>
    </properties>
    <testcase name="00-apply" classname="a.yaml" time="0.012"/>
    <testcase name="01-settled" classname="a.yaml" time="0.012">
      <failure message="a &lt; &quot;b&quot;">line 1
line 2</failure>
    </testcase>
    <testcase name="02-second reconcile" classname="a.yaml" time="0.012">
      <skipped message="a program"/>
    </testcase>
  </testsuite>
  <testsuite name="b.yaml" tests="1" failures="0" errors="1" skipped="0" time="0.000">
    <properties>
      <property name="plane" value="embedded"/>
    </properties>
    <testcase name="start" classname="b.yaml" time="0.000">
      <error message="no &amp; plane">no &amp; plane</error>
    </testcase>
  </testsuite>
</testsuites>
"#
        );
    }
}

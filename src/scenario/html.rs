//! A report as one HTML file, for people: no script, nothing loaded from elsewhere. `page` is the frame that
//! other reports take, too.

use super::junit::content;
use super::report::{Case, Outcome, Report, Suite};
use opdev_event::words;
use std::fmt::Write as _;

/// The property `plane` where no cluster was named.
pub const EMBEDDED: &str = "embedded";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:70em;padding:0 1em}\
                     summary{cursor:pointer;padding:.2em 0}pre{background:#8882;padding:.6em;overflow-x:auto;white-space:pre-wrap}\
                     td{padding:.1em 1em .1em 0;vertical-align:top}.ok{color:#287d3c}.bad{color:#c0262d;font-weight:600}\
                     .warn{color:#8a5a00;font-weight:600}.out{color:#777}\
                     @media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}.ok{color:#6cc24a}.bad{color:#ff6b6b}\
                     .warn{color:#e3a72f}}";

/// A whole page around the HTML of its body, in the style of all reports. The classes `ok`, `bad`, `warn` and
/// `out` colour words.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{}</title><style>{STYLE}</style></head>\n\
         <body>\n{body}</body>\n</html>\n",
        content(title)
    )
}

/// The report as HTML.
pub fn html(report: &Report, properties: &[(&str, String)]) -> String {
    let (passed, wanted) = (report.passed(), report.wanted);
    let class = if passed == wanted { "ok" } else { "bad" };
    let end = if report.interrupted { ", broken off" } else { "" };
    let mut out = format!(
        "<h1>opdev ci</h1>\n<p class=\"{class}\">{passed} of {wanted} scenarios passed in \
         {}{end}</p>\n<p>",
        words::took(report.took)
    );
    for (key, value) in properties {
        let _ = write!(out, "{} {} · ", content(key), content(value));
    }
    let embedded = properties.iter().any(|(key, value)| *key == "plane" && value == EMBEDDED);
    let place = if embedded { "on a control plane" } else { "in a namespace" };
    let _ = writeln!(out, "each scenario {place} of its own</p>");
    for one in &report.suites {
        suite(&mut out, one);
    }
    page(&format!("opdev ci: {passed} of {wanted}"), &out)
}

fn suite(out: &mut String, suite: &Suite) {
    let (class, word, open) = if suite.passed() { ("ok", "ok", "") } else { ("bad", "failed", " open") };
    let took = words::took(suite.took);
    let name = content(&suite.name);
    let _ = writeln!(
        out,
        "<details{open}><summary><span class=\"{class}\">{word}</span> {name} · {took}</summary>"
    );
    if let Some(why) = &suite.error {
        let _ = writeln!(
            out,
            "<p class=\"bad\">It could not begin, or did not end as it should.</p><pre>{}</pre>",
            content(why)
        );
    }
    out.push_str("<table>\n");
    for one in &suite.cases {
        case(out, one);
    }
    out.push_str("</table>\n</details>\n");
}

fn case(out: &mut String, case: &Case) {
    let (class, word, more) = match &case.outcome {
        Outcome::Passed => ("ok", "ok", String::new()),
        Outcome::Skipped(why) => ("out", "left out", content(why)),
        Outcome::Failed { message, details } => {
            ("bad", "failed", format!("{}<pre>{}</pre>", content(message), content(details)))
        }
    };
    let (name, took) = (content(&case.name), words::took(case.took));
    let _ = writeln!(
        out,
        "<tr><td class=\"{class}\">{word}</td><td>{name}</td><td>{took}</td><td>{more}</td></tr>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_failed_is_open_and_escaped() {
        let outcome = Outcome::Failed { message: "a < b".to_owned(), details: "<script>".to_owned() };
        let case = Case { name: "settled".to_owned(), took: Duration::from_millis(3), outcome };
        let suite =
            Suite { name: "a&b.yaml".to_owned(), cases: vec![case], took: Duration::ZERO, error: None };
        let report = Report { suites: vec![suite], wanted: 1, ..Report::default() };
        let text = html(&report, &[("plane", "embedded".to_owned())]);
        assert!(
            text.contains("<details open><summary><span class=\"bad\">failed</span> a&amp;b.yaml"),
            "{text}"
        );
        assert!(text.contains("a &lt; b<pre>&lt;script&gt;</pre>") && !text.contains("<script"), "{text}");
        assert!(text.contains("0 of 1 scenarios passed") && !text.contains("http"), "{text}");
    }
}

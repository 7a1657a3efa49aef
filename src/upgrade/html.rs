//! Reports as one HTML file, for people: the same facts as the text, nothing cut. No script, nothing loaded
//! from elsewhere.

use super::finding::{Finding, Level};
use super::report::{Report, by_level, counts, many, result_of};
use opdev_event::words;
use opdev_scenario::html::page;
use opdev_scenario::junit::content;
use std::fmt::Write as _;

/// One step of a rehearsal, and the command that repeats it.
#[derive(Clone, Debug)]
pub struct Rehearsed<'a> {
    /// The findings of the step.
    pub report: &'a Report,
    /// `opdev upgrade --from v1.0.0`, without variants.
    pub command: String,
}

/// The steps as HTML, in their order.
pub fn html(steps: &[Rehearsed<'_>]) -> String {
    let mut out = String::from("<h1>opdev upgrade</h1>\n");
    steps.iter().for_each(|step| one(&mut out, step));
    let title = match steps {
        [step] => format!("{} → {}", step.report.from, step.report.to),
        _ => format!("{} upgrades", steps.len()),
    };
    page(&format!("opdev upgrade: {title}"), &out)
}

fn class(level: Option<Level>) -> &'static str {
    match level {
        Some(Level::Error) => "bad",
        Some(Level::Warning) => "warn",
        Some(Level::Hint) => "out",
        None => "ok",
    }
}

fn one(out: &mut String, step: &Rehearsed<'_>) {
    let report = step.report;
    let _ = writeln!(out, "<h2>{} → {}</h2>", content(&report.from), content(&report.to));
    let worst = report.findings.first().map(|finding| finding.level);
    let found = by_level(report.findings.iter());
    let result = if found.is_empty() { "nothing is wrong".to_owned() } else { counts(&found) };
    let _ = writeln!(
        out,
        "<p><span class=\"{}\">{result}</span> · rehearsed in {} with {} of samples, {} of {}</p>\n<table>",
        class(worst),
        words::took(report.took),
        many(report.samples, "object"),
        many(report.objects, "object"),
        content(&report.from)
    );
    for told in &report.told {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"{}\">{}</td></tr>",
            told.variant.name(),
            content(told.variant.what()),
            class(told.found.first().map(|(level, _)| *level)),
            content(&result_of(told))
        );
    }
    out.push_str("</table>\n");
    report.findings.iter().for_each(|finding| told(out, finding, &step.command));
    for told in
        report.told.iter().filter(|told| !told.tally.changed.is_empty() || !told.tally.created.is_empty())
    {
        let tally = &told.tally;
        let _ = writeln!(
            out,
            "<details><summary>{}: {} updated, {} new, {} the same</summary><pre>",
            told.variant.name(),
            many(tally.changed.len(), "object"),
            tally.created.len(),
            tally.same
        );
        tally.changed.iter().for_each(|line| out.push_str(&format!("updated {}\n", content(line))));
        tally.created.iter().for_each(|line| out.push_str(&format!("new     {}\n", content(line))));
        out.push_str("</pre></details>\n");
    }
    if !report.notes.is_empty() {
        out.push_str("<h3>Notes</h3>\n<ul>\n");
        report.notes.iter().for_each(|note| out.push_str(&format!("<li>{}</li>\n", content(note))));
        out.push_str("</ul>\n");
    }
}

/// A finding; an error is open.
fn told(out: &mut String, finding: &Finding, command: &str) {
    let open = if finding.level == Level::Error { " open" } else { "" };
    let _ = writeln!(
        out,
        "<details{open}><summary><span class=\"{}\">{}</span> {}</summary>\n<pre>{}</pre>",
        class(Some(finding.level)),
        finding.level.name(),
        content(&finding.title),
        content(&finding.lines.join("\n"))
    );
    if !finding.fix.is_empty() {
        let _ = writeln!(out, "<p>Fix: {}</p>", content(&finding.fix));
    }
    if !finding.others.is_empty() {
        let _ = writeln!(out, "<p>Also: {}</p>", content(&finding.others.join(", ")));
    }
    let variants: Vec<&str> = finding.variants.iter().map(|variant| variant.name()).collect();
    let first = variants.first().copied().unwrap_or_default();
    let _ = writeln!(
        out,
        "<p class=\"out\">In {}. Again: <code>{} --only {first}</code></p></details>",
        variants.join(", "),
        content(command)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Class;
    use crate::judge::Tally;
    use crate::report::Told;
    use crate::swap::Variant;
    use std::time::Duration;

    #[test]
    fn an_error_is_open_and_what_users_wrote_is_escaped() {
        let mut finding =
            Finding::new(Level::Error, Class::WriteRefused, "Deployment a/b".to_owned(), "x < y".to_owned());
        finding.lines.push("<script>".to_owned());
        finding.variants.push(Variant::Plain);
        let told = |variant| Told { variant, tally: Tally::default(), found: Vec::new() };
        let mut report = Report {
            from: "v1".to_owned(),
            to: "a&b".to_owned(),
            samples: 1,
            objects: 2,
            told: vec![told(Variant::Plain), told(Variant::Same)],
            findings: vec![finding],
            notes: vec!["a > b".to_owned()],
            took: Duration::from_secs(1),
            building: Duration::ZERO,
        };
        report.count();
        let text = html(&[Rehearsed { report: &report, command: "opdev upgrade --from v1".to_owned() }]);
        for part in [
            "<title>opdev upgrade: v1 → a&amp;b</title>",
            "<details open><summary><span class=\"bad\">error</span> x &lt; y</summary>",
            "&lt;script&gt;",
            "<td class=\"bad\">1 error</td>",
            "<td class=\"ok\">changes nothing</td>",
            "<li>a &gt; b</li>",
            "<code>opdev upgrade --from v1 --only plain</code>",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        assert!(!text.contains("<script") && !text.contains("http"), "{text}");
    }
}

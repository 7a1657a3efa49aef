//! A report for programs: JSON, and JUnit XML with a suite for each variant and a case for each finding.

use super::finding::{Finding, Level};
use super::report::{Progress, Report, result_of};
use super::swap::Variant;
use opdev_scenario::junit::content;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// The report as JSON.
pub fn json(report: &Report) -> Value {
    let names = |variants: &[Variant]| variants.iter().map(|variant| variant.name()).collect::<Vec<_>>();
    let finding = |finding: &Finding| {
        json!({
            "level": finding.level.name(),
            "class": finding.class.name(),
            "object": finding.object,
            "others": finding.others,
            "fields": finding.fields,
            "title": finding.title,
            "lines": finding.lines,
            "fix": finding.fix,
            "variants": names(&finding.variants),
        })
    };
    let variants: Vec<Value> = report
        .told
        .iter()
        .map(|told| {
            let tally = &told.tally;
            json!({
                "variant": told.variant.name(),
                "what": told.variant.what(),
                "result": result_of(told),
                "same": tally.same,
                "versionLabelsOnly": tally.labels,
                "updated": tally.changed,
                "new": tally.created,
            })
        })
        .collect();
    json!({
        "from": report.from,
        "to": report.to,
        "samples": report.samples,
        "objects": report.objects,
        "tookMs": u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX),
        "buildMs": u64::try_from(report.building.as_millis()).unwrap_or(u64::MAX),
        "variants": variants,
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "notes": report.notes,
    })
}

impl Progress {
    /// As a line of JSON.
    pub fn json(&self) -> Value {
        match self {
            Progress::Begun { from, to, variants } => {
                let one = |variant: &Variant| json!({ "variant": variant.name(), "what": variant.what() });
                let variants: Vec<Value> = variants.iter().map(one).collect();
                json!({ "event": "upgrade.begun", "from": from, "to": to, "variants": variants })
            }
            Progress::Over { variant } => json!({ "event": "upgrade.over", "variant": variant.name() }),
        }
    }
}

/// A report as the last line of JSON, with the command that rehearses the same again.
pub fn json_line(report: &Report, again: &str) -> Value {
    let mut line = json(report);
    if let Some(line) = line.as_object_mut() {
        line.insert("event".to_owned(), "upgrade.done".into());
        line.insert("again".to_owned(), again.into());
    }
    line
}

/// The findings of a variant, each under the first one that it was found in.
fn of(report: &Report, variant: Variant) -> impl Iterator<Item = &Finding> {
    report.findings.iter().filter(move |finding| finding.variants.first() == Some(&variant))
}

/// Reports as one JUnit XML. Findings from `fails` on are failures; the others are told in cases that
/// succeed.
pub fn junit(reports: &[Report], fails: Level) -> String {
    let failing = |report: &Report| report.findings.iter().filter(|finding| finding.level >= fails).count();
    let cases = |report: &Report| -> usize {
        report.told.iter().map(|told| of(report, told.variant).count().max(1)).sum()
    };
    let failures: usize = reports.iter().map(failing).sum();
    let tests: usize = reports.iter().map(cases).sum();
    let seconds = reports.iter().map(|report| report.took).sum::<Duration>().as_secs_f64();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites name=\"opdev upgrade\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" time=\"{seconds:.3}\">"
    );
    for report in reports {
        let step = match reports {
            [_] => String::new(),
            _ => format!("{} → {}: ", report.from, report.to),
        };
        suites(report, &step, fails, &mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

/// A suite for each variant of a report.
fn suites(report: &Report, step: &str, fails: Level, out: &mut String) {
    let attribute = |text: &str| content(text).replace('\n', "&#10;").replace('\t', "&#9;");
    for told in &report.told {
        let name = attribute(&format!("{step}{}", told.variant.name()));
        let cases: Vec<&Finding> = of(report, told.variant).collect();
        let failed = cases.iter().filter(|finding| finding.level >= fails).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"0\" time=\"0.000\">",
            cases.len().max(1)
        );
        if cases.is_empty() {
            let _ = writeln!(
                out,
                "    <testcase name=\"{}\" classname=\"{name}\" time=\"0.000\"/>",
                told.variant.what()
            );
        }
        for finding in cases {
            let title = attribute(&finding.title);
            let _ = write!(out, "    <testcase name=\"{title}\" classname=\"{name}\" time=\"0.000\"");
            let details = content(&format!("{}\nfix: {}", finding.lines.join("\n"), finding.fix));
            let _ = match finding.level >= fails {
                true => writeln!(
                    out,
                    ">\n      <failure message=\"{title}\">{details}</failure>\n    </testcase>"
                ),
                false => writeln!(out, ">\n      <system-out>{details}</system-out>\n    </testcase>"),
            };
        }
        out.push_str("  </testsuite>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Class;
    use crate::report::{Told, text};
    use expect_test::expect;

    fn report() -> Report {
        let mut finding =
            Finding::new(Level::Error, Class::WriteRefused, "Deployment a/b", "<it> may not change")
                .fields(vec![".spec.selector".to_owned()])
                .line("update answered 422")
                .fix("keep it");
        finding.variants = vec![Variant::Plain, Variant::CrdLeftOld];
        let told = |variant| Told { variant, tally: Default::default(), found: Vec::new() };
        let mut report = Report {
            from: "v1".to_owned(),
            to: "your working tree".to_owned(),
            samples: 1,
            objects: 2,
            told: [Variant::Plain, Variant::CrdLeftOld, Variant::Same].map(told).to_vec(),
            findings: vec![finding],
            notes: vec!["a note".to_owned()],
            took: Duration::from_millis(1200),
            building: Duration::ZERO,
        };
        report.count();
        report
    }

    #[test]
    fn all_forms_tell_the_same() {
        let report = report();
        let value = json(&report);
        assert_eq!(value["findings"][0]["class"], "write-refused");
        assert_eq!(value["findings"][0]["variants"], json!(["plain", "crd-left-old"]));
        let xml = junit(std::slice::from_ref(&report), Level::Error);
        expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="opdev upgrade" tests="3" failures="1" errors="0" time="1.200">
              <testsuite name="plain" tests="1" failures="1" errors="0" skipped="0" time="0.000">
                <testcase name="&lt;it&gt; may not change" classname="plain" time="0.000">
                  <failure message="&lt;it&gt; may not change">update answered 422
            fix: keep it</failure>
                </testcase>
              </testsuite>
              <testsuite name="crd-left-old" tests="1" failures="0" errors="0" skipped="0" time="0.000">
                <testcase name="the operator alone, as helm upgrade does" classname="crd-left-old" time="0.000"/>
              </testsuite>
              <testsuite name="same" tests="1" failures="0" errors="0" skipped="0" time="0.000">
                <testcase name="the old version again: the baseline" classname="same" time="0.000"/>
              </testsuite>
            </testsuites>
        "#]]
        .assert_eq(&xml);
        assert!(
            junit(std::slice::from_ref(&report), Level::Error)
                .contains("<testcase name=\"the old version again: the baseline\"")
        );
        let told = text(&report, false, "opdev upgrade --from v1");
        let expected = "v1 → your working tree: rehearsed in 1.2 s with 1 object of samples, 2 objects of v1\n  \
                        plain          CRDs and operator are swapped              1 error\n  \
                        crd-left-old   the operator alone, as helm upgrade does   1 error\n  \
                        same           the old version again: the baseline        changes nothing\n\n\
                        error   <it> may not change\n        update answered 422\n        fix: keep it\n        \
                        in: plain, crd-left-old; again: opdev upgrade --from v1 --only plain\n\n\
                        plain: 0 objects the same\nnote: a note\n";
        assert_eq!(told, expected);
    }
}

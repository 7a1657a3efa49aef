//! The lines of `opdev upgrade --output json-lines`, as a run for the screen.

use super::lines::{LineLevel, Lines, many};
use opdev_event::{BackgroundFinding, BackgroundRow, BackgroundRun, FindingSeverity, words};
use serde::Deserialize;
use std::time::Duration;

/// Objects that a finding names beside the first one.
const OTHERS: usize = 4;

/// A line.
#[derive(Debug, Deserialize)]
#[serde(tag = "event")]
enum UpgradeLine {
    #[serde(rename = "upgrade.begun")]
    Begun { from: String, to: String, variants: Vec<Variant> },
    #[serde(rename = "upgrade.over")]
    Over { variant: String },
    #[serde(rename = "upgrade.done")]
    Done(Box<Report>),
}

#[derive(Debug, Deserialize)]
struct Variant {
    variant: String,
    what: String,
    #[serde(default)]
    result: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    from: String,
    samples: usize,
    objects: usize,
    took_ms: u64,
    variants: Vec<Variant>,
    findings: Vec<UpgradeFound>,
    notes: Vec<String>,
    again: String,
}

#[derive(Debug, Deserialize)]
struct UpgradeFound {
    level: LineLevel,
    object: String,
    others: Vec<String>,
    fields: Vec<String>,
    title: String,
    lines: Vec<String>,
    fix: String,
    variants: Vec<String>,
}

/// All that the lines have told so far.
#[derive(Debug, Default)]
pub(super) struct Upgrade {
    variants: Vec<Variant>,
    over: Vec<String>,
    whole: bool,
}

impl Lines for Upgrade {
    fn take(&mut self, line: &str, run: &mut BackgroundRun) {
        let Ok(line) = serde_json::from_str(line) else { return };
        match line {
            UpgradeLine::Begun { from, to, variants } => {
                run.about = format!("{from} → {to}");
                self.variants = variants;
                run.columns = ["VARIANT", "WHAT HAPPENS", "RESULT"].map(str::to_owned).to_vec();
                self.tell(run);
            }
            UpgradeLine::Over { variant } => {
                self.over.push(variant);
                self.tell(run);
            }
            UpgradeLine::Done(report) => {
                self.whole = true;
                over(*report, run);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.whole
    }
}

impl Upgrade {
    fn tell(&self, run: &mut BackgroundRun) {
        let is_over = |variant: &Variant| self.over.contains(&variant.variant);
        let mut waits = false;
        run.rows = Vec::new();
        for variant in &self.variants {
            let result = match is_over(variant) {
                true => "done; judged at the end",
                false if waits => "",
                false => "under way",
            };
            waits |= !is_over(variant);
            let cells = vec![variant.variant.clone(), variant.what.clone(), result.to_owned()];
            run.rows.push(BackgroundRow { over: is_over(variant), worst: None, cells });
        }
        let over = self.variants.iter().filter(|variant| is_over(variant)).count();
        let done = (over * 1000).checked_div(self.variants.len()).unwrap_or(0);
        run.done = u16::try_from(done).unwrap_or(1000);
        run.now = match self.variants.iter().find(|variant| !is_over(variant)) {
            Some(next) => format!("{} of {}; now: {}", over, many(self.variants.len(), "variant"), next.what),
            None => "all variants are judged together".to_owned(),
        };
    }
}

fn over(report: Report, run: &mut BackgroundRun) {
    run.done = 1000;
    run.now = format!(
        "rehearsed in {} with {} of samples, {} of {}",
        words::took(Duration::from_millis(report.took_ms)),
        many(report.samples, "object"),
        many(report.objects, "object"),
        report.from
    );
    let worst = |variant: &str| {
        let of = report.findings.iter().filter(|found| found.variants.iter().any(|name| name == variant));
        of.map(|found| FindingSeverity::from(found.level)).min()
    };
    let rows = report.variants.iter().map(|variant| BackgroundRow {
        over: true,
        worst: worst(&variant.variant),
        cells: vec![variant.variant.clone(), variant.what.clone(), variant.result.clone()],
    });
    run.rows = rows.collect();
    run.findings = report.findings.into_iter().map(|found| finding(found, &report.again)).collect();
    run.notes = report.notes;
}

fn finding(found: UpgradeFound, again: &str) -> BackgroundFinding {
    let mut about = Vec::new();
    let mut objects = found.object;
    for other in found.others.iter().take(OTHERS) {
        objects.push_str(&format!(", {other}"));
    }
    if found.others.len() > OTHERS {
        objects.push_str(&format!(" and {} more", found.others.len() - OTHERS));
    }
    about.push(("Object".to_owned(), objects));
    if !found.fields.is_empty() {
        about.push(("Field".to_owned(), found.fields.join(", ")));
    }
    about.extend(found.lines.into_iter().map(|line| (String::new(), line)));
    if !found.fix.is_empty() {
        about.push(("Fix".to_owned(), found.fix));
    }
    about.push(("Seen in".to_owned(), found.variants.join(", ")));
    let only = found.variants.first().map(|variant| format!(" --only {variant}")).unwrap_or_default();
    BackgroundFinding {
        severity: found.level.into(),
        title: found.title,
        times: String::new(),
        about,
        place: None,
        writes: (Vec::new(), Vec::new()),
        replay: format!("{again}{only}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::begun;
    use super::*;
    use opdev_event::BackgroundCommand;

    #[test]
    fn lines_become_variants_and_findings() {
        let mut run = begun(BackgroundCommand::Upgrade { from: None });
        let mut upgrade = Upgrade::default();
        let lines = [
            r#"{"event":"upgrade.begun","from":"v1","to":"your working tree","variants":[
                {"variant":"plain","what":"all is swapped"},{"variant":"back","what":"the old one again"}]}"#,
            r#"{"event":"upgrade.over","variant":"plain"}"#,
        ];
        lines.iter().for_each(|line| upgrade.take(&line.replace('\n', " "), &mut run));
        assert_eq!(run.about, "v1 → your working tree");
        assert_eq!((run.done, run.now.as_str()), (500, "1 of 2 variants; now: the old one again"));
        assert_eq!(run.rows[0].cells[2], "done; judged at the end");
        assert_eq!(run.rows[1].cells[2], "under way");
        let done = r#"{"event":"upgrade.done","again":"opdev upgrade --from v1","from":"v1","to":"your working tree",
            "samples":1,"objects":2,"tookMs":1200,"buildMs":0,"notes":["a note"],
            "variants":[{"variant":"plain","what":"all is swapped","result":"1 error"},
                {"variant":"back","what":"the old one again","result":"nothing is wrong"}],
            "findings":[{"level":"error","class":"write-refused","object":"Deployment a/b","others":["Deployment a/c"],
                "fields":[".spec.selector"],"title":"it may not change","lines":["update answered 422"],"fix":"keep it",
                "variants":["plain"]}]}"#;
        upgrade.take(&done.replace('\n', " "), &mut run);
        assert!(upgrade.is_whole());
        assert_eq!(run.now, "rehearsed in 1.2 s with 1 object of samples, 2 objects of v1");
        assert_eq!((run.rows[0].worst, run.rows[1].worst), (Some(FindingSeverity::Error), None));
        let found = &run.findings[0];
        assert_eq!(found.about[0].1, "Deployment a/b, Deployment a/c");
        assert_eq!(found.replay, "opdev upgrade --from v1 --only plain");
    }
}

//! The report of a rehearsal, in lines for people: the variants, then the findings, worst first.

use super::end::End;
use super::finding::{Class, Finding, Level};
use super::judge::Tally;
use super::swap::Variant;
use opdev_event::words::{self, visible_line};
use std::fmt::Write as _;
use std::time::Duration;

/// Findings that are told whole without `--verbose`; of the others there is one line.
const WHOLE: usize = 6;

/// A variant and what it gave.
#[derive(Clone, Debug)]
pub struct Told {
    /// The variant.
    pub variant: Variant,
    /// What differs beside the findings.
    pub tally: Tally,
    /// How many findings of each level it has, the worst first.
    pub found: Vec<(Level, usize)>,
}

/// What a rehearsal found.
#[derive(Clone, Debug)]
pub struct Report {
    /// How the user calls the two versions.
    pub from: String,
    /// The newer one.
    pub to: String,
    /// Objects of samples that were applied.
    pub samples: usize,
    /// Objects that the old version had made.
    pub objects: usize,
    /// The variants, in their order.
    pub told: Vec<Told>,
    /// Worst first.
    pub findings: Vec<Finding>,
    /// What was left out, and why.
    pub notes: Vec<String>,
    /// From the first start to the last end.
    pub took: Duration,
    /// How much of it went into builds.
    pub building: Duration,
}

/// A step of a rehearsal.
#[derive(Clone, Debug)]
pub enum Progress {
    /// Both versions were read.
    Begun {
        /// The old version, as the user calls it.
        from: String,
        /// The newer one.
        to: String,
        /// The variants that the report will tell of, in its order.
        variants: Vec<Variant>,
    },
    /// The operators have settled in a variant. All of them are judged together, at the end.
    Over {
        /// The variant.
        variant: Variant,
    },
}

impl Progress {
    pub(super) fn begun(from: &End, to: &End, variants: Vec<Variant>) -> Progress {
        Progress::Begun { from: from.name.clone(), to: to.name.clone(), variants }
    }
}

impl Report {
    pub(super) fn new(from: &End, to: &End, mut notes: Vec<String>) -> Report {
        for end in [from, to] {
            notes.extend(end.problems.iter().map(|problem| format!("{}: {problem}", end.name)));
        }
        Report {
            from: from.name.clone(),
            to: to.name.clone(),
            samples: 0,
            objects: 0,
            told: Vec::new(),
            findings: Vec::new(),
            notes,
            took: Duration::ZERO,
            building: Duration::ZERO,
        }
    }

    /// Counts the findings of each variant.
    pub(super) fn count(&mut self) {
        for told in &mut self.told {
            let of_variant = |finding: &&Finding| finding.variants.contains(&told.variant);
            told.found = by_level(self.findings.iter().filter(of_variant));
        }
    }

    /// Pods that are made anew are errors from now on.
    pub fn forbid_restarts(&mut self) {
        for finding in self.findings.iter_mut().filter(|finding| finding.class == Class::PodsRoll) {
            finding.level = Level::Error;
        }
        self.findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        self.count();
    }

    /// Returns true if a finding is at least as bad as this.
    pub fn has(&self, level: Level) -> bool {
        self.findings.iter().any(|finding| finding.level >= level)
    }
}

/// How many findings each level has, the worst first; levels without any are left out.
pub(super) fn by_level<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<(Level, usize)> {
    let mut all = [Level::Error, Level::Warning, Level::Hint].map(|level| (level, 0));
    for finding in findings {
        let of = all.iter_mut().filter(|(level, _)| *level == finding.level);
        of.for_each(|(_, count)| *count += 1);
    }
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// `1 error, 2 warnings`.
pub(super) fn counts(found: &[(Level, usize)]) -> String {
    let one = |(level, count): &(Level, usize)| {
        let s = if *count == 1 { "" } else { "s" };
        format!("{count} {}{s}", level.name())
    };
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The lines for people. `replay` is the command that was called.
pub fn text(report: &Report, verbose: bool, replay: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} → {}: rehearsed in {} with {} of samples, {} of {}",
        visible_line(&report.from),
        visible_line(&report.to),
        words::took(report.took),
        many(report.samples, "object"),
        many(report.objects, "object"),
        visible_line(&report.from)
    );
    for told in &report.told {
        let result = result_of(told);
        let (name, what) = (told.variant.name(), told.variant.what());
        let _ = writeln!(out, "  {name:<14} {what:<42} {result}");
    }
    for (at, finding) in report.findings.iter().enumerate() {
        out.push('\n');
        one(&mut out, finding, verbose || at < WHOLE, replay);
    }
    tallied(&mut out, report, verbose);
    for note in &report.notes {
        let _ = writeln!(out, "note: {}", visible_line(note));
    }
    out
}

/// The result of a variant, in a few words.
pub(super) fn result_of(told: &Told) -> String {
    match (told.variant, told.found.as_slice()) {
        (Variant::Same, _) => baseline(&told.tally),
        (_, []) => "nothing is wrong".to_owned(),
        (_, found) => counts(found),
    }
}

fn baseline(tally: &Tally) -> String {
    match tally.changed.len() + tally.created.len() {
        0 => "changes nothing".to_owned(),
        count => format!("changes {}, left out everywhere", many(count, "object")),
    }
}

pub(super) fn many(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn one(out: &mut String, finding: &Finding, whole: bool, replay: &str) {
    let others = match finding.others.as_slice() {
        [] => String::new(),
        [other] => format!(" (and {other})"),
        some => format!(" (and {} more objects)", some.len()),
    };
    let _ =
        writeln!(out, "{:<8}{}{}", finding.level.name(), visible_line(&finding.title), visible_line(&others));
    if !whole {
        return;
    }
    for line in &finding.lines {
        let _ = writeln!(out, "        {}", visible_line(line));
    }
    if !finding.fix.is_empty() {
        let _ = writeln!(out, "        fix: {}", visible_line(&finding.fix));
    }
    let variants: Vec<&str> = finding.variants.iter().map(|variant| variant.name()).collect();
    let first = variants.first().copied().unwrap_or_default();
    let _ =
        writeln!(out, "        in: {}; again: {} --only {first}", variants.join(", "), visible_line(replay));
}

/// What else differs, of the first variant.
fn tallied(out: &mut String, report: &Report, verbose: bool) {
    let Some(told) = report.told.first().filter(|told| told.variant != Variant::Same) else { return };
    let tally = &told.tally;
    let mut parts = Vec::new();
    parts.push(format!("{} the same", many(tally.same, "object")));
    if tally.labels > 0 {
        parts.push(format!("{} in labels of the version only", tally.labels));
    }
    if !tally.changed.is_empty() {
        parts.push(format!("{} updated", tally.changed.len()));
    }
    if !tally.created.is_empty() {
        parts.push(format!("{} new", tally.created.len()));
    }
    let more = if verbose || tally.changed.is_empty() && tally.created.is_empty() {
        ""
    } else {
        " (--verbose names them)"
    };
    let _ = writeln!(out, "\n{}: {}{more}", told.variant.name(), parts.join(", "));
    if verbose {
        tally.changed.iter().for_each(|line| out.push_str(&format!("  updated {}\n", visible_line(line))));
        tally.created.iter().for_each(|line| out.push_str(&format!("  new     {}\n", visible_line(line))));
    }
}

/// What GitHub shows in a pull request.
pub fn annotations(report: &Report) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let mut out = String::new();
    for finding in &report.findings {
        let word = match finding.level {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Hint => "notice",
        };
        let text = format!("{}\n{}\nfix: {}", finding.title, finding.lines.join("\n"), finding.fix);
        let _ = writeln!(out, "::{word} title=opdev upgrade::{}", escaped(text.trim()));
    }
    out
}

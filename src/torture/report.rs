//! What came of it all: data, lines for people, and cases for CI.

use super::judge::Difference;
use super::plan::Class;
use super::writes_beside::WritesBeside;
use opdev_event::words::visible_line;
use opdev_scenario::junit as ci_junit;
use opdev_scenario::report::{Case, Outcome, Report as CiReport, Suite, below};
use opdev_steps::scenario::Scenario;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Differences of a finding that are told; the rest is counted.
const DIFFERENCES: usize = 6;

/// A scenario that was learned.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// Its name.
    pub scenario: String,
    /// The file of its sample.
    pub sample: String,
    /// How many fields vary by themselves, so that they are not compared.
    pub masked: usize,
    /// The number of undisturbed runs.
    pub runs: u32,
    /// How long the undisturbed runs took.
    pub took: Duration,
    /// How many plans of each kind were tried.
    pub plans: BTreeMap<Class, usize>,
}

/// A finding: something that goes wrong under a disturbance, again and again.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Counted from 1.
    pub number: usize,
    /// The scenario.
    pub scenario: String,
    /// The file of its sample.
    pub sample: String,
    /// The kind of disturbance; nothing where none is needed.
    pub class: Option<Class>,
    /// The disturbance in words.
    pub how: String,
    /// The steps of the scenario in words.
    pub steps: Vec<String>,
    /// What is different.
    pub differences: Vec<Difference>,
    /// The place in the operator's code of the call at which it was disturbed, where the program tells it.
    pub place: Option<String>,
    /// The place in the operator's code that writes what differs, in words.
    pub code: Option<String>,
    /// Writes of the operator undisturbed, and here.
    pub writes: WritesBeside,
    /// How often it came, of how many runs.
    pub times: (u32, u32),
    /// How many other plans end with the same differences.
    pub alike: usize,
    /// True if it is known already, so that it fails nothing.
    pub known: bool,
    /// The file to run it again with.
    pub file: Option<String>,
}

/// The outcome of all plans.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Scenarios that were learned.
    pub learned: Vec<Learnt>,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Runs that ended otherwise than undisturbed ones.
    pub alarms: usize,
    /// The number of those that never came again.
    pub flaky: usize,
    /// Plans whose disturbance never took place.
    pub unmet: usize,
    /// Changes of fields that the API server refused.
    pub refused: usize,
    /// Changes of fields that reached nothing.
    pub without_effect: Vec<String>,
    /// Plans and scenarios that were left out because the time was over.
    pub left_out: usize,
    /// What could not be run, and why.
    pub problems: Vec<String>,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// The number that random functions draw by.
    pub seed: u64,
    /// From the first start to the last end.
    pub took: Duration,
    /// Somebody has broken it off.
    pub interrupted: bool,
}

impl Finding {
    /// The finding in one line.
    pub fn title(&self) -> String {
        self.differences.first().map(Difference::words).unwrap_or_default()
    }

    /// What tells it apart from other findings, run after run.
    pub fn key(&self) -> String {
        let words: Vec<String> = self.differences.iter().map(Difference::words).collect();
        words.join("; ")
    }
}

impl Report {
    /// How many plans were tried.
    pub fn plans(&self) -> usize {
        self.learned.iter().flat_map(|learnt| learnt.plans.values()).sum()
    }

    /// Findings that are not known already.
    pub fn new_findings(&self) -> usize {
        self.findings.iter().filter(|finding| !finding.known).count()
    }

    /// Counts a plan of the scenario that was learned last.
    pub(super) fn count(&mut self, class: Class) {
        if let Some(learnt) = self.learned.last_mut() {
            *learnt.plans.entry(class).or_default() += 1;
        }
    }

    /// Counts a plan of a scenario that was learned.
    pub(super) fn count_of(&mut self, scenario: &Scenario, class: Class) {
        let is_its =
            |learnt: &&mut Learnt| learnt.scenario == scenario.name && learnt.sample == scenario.sample.path;
        if let Some(learnt) = self.learned.iter_mut().rfind(is_its) {
            *learnt.plans.entry(class).or_default() += 1;
        }
    }

    /// Adds notes that are not there yet.
    pub(super) fn note_once(&mut self, notes: impl Iterator<Item = String>) {
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
    }

    /// Marks what a baseline knows.
    pub fn mark_known(&mut self, baseline: &[String]) {
        for finding in &mut self.findings {
            finding.known = baseline.contains(&finding.key());
        }
    }
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

pub fn many(count: usize, one: &str, more: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {more}") }
}

/// The report for people.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    learned_text(&mut out, &report.learned);
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    for (class, count) in report.learned.iter().flat_map(|learnt| &learnt.plans) {
        *classes.entry(*class).or_default() += count;
    }
    let counts: Vec<String> =
        classes.iter().map(|(class, count)| format!("{count} {}", class.name())).collect();
    let _ = writeln!(out, "plans    {}: {}   {}", report.plans(), counts.join(" · "), seconds(report.took));
    for finding in &report.findings {
        finding_text(&mut out, finding);
    }
    if !report.without_effect.is_empty() {
        let count = many(report.without_effect.len(), "change", "changes");
        let some: Vec<String> =
            report.without_effect.iter().take(DIFFERENCES).map(|one| visible_line(one)).collect();
        let more = if report.without_effect.len() > DIFFERENCES { ", …" } else { "" };
        let _ = writeln!(out, "no effect  {count}: {}{more}", some.join(", "));
    }
    for problem in &report.problems {
        out.push_str("not run  ");
        below(&mut out, problem);
    }
    let _ = write!(
        out,
        "{} in {} ({}, {} flaky)",
        many(report.findings.len(), "finding", "findings"),
        many(report.plans(), "plan", "plans"),
        many(report.alarms, "alarm", "alarms"),
        report.flaky
    );
    if report.unmet > 0 {
        let _ = write!(out, "; {} never met their point", many(report.unmet, "plan", "plans"));
    }
    if report.refused > 0 {
        let _ = write!(out, "; the API server refused {}", many(report.refused, "change", "changes"));
    }
    if report.left_out > 0 {
        let _ = write!(out, "; {} left out for lack of time", report.left_out);
    }
    out.push('\n');
    out
}

/// A line for each sample, and for each number of runs.
fn learned_text(out: &mut String, learned: &[Learnt]) {
    let mut groups: Vec<(&str, u32)> = Vec::new();
    for learnt in learned {
        let group = (learnt.sample.as_str(), learnt.runs);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (sample, runs) in groups {
        let is_of = |learnt: &&Learnt| learnt.sample == sample && learnt.runs == runs;
        let of: Vec<&Learnt> = learned.iter().filter(is_of).collect();
        let mut names: Vec<&str> = of.iter().map(|learnt| learnt.scenario.as_str()).collect();
        names.dedup();
        let masked: usize = of.iter().map(|learnt| learnt.masked).sum();
        let took: Duration = of.iter().map(|learnt| learnt.took).sum();
        let but = match (runs, masked) {
            (1, _) => "1 run each".to_owned(),
            (_, 0) => format!("{runs} runs each, equal"),
            (_, some) => {
                let vary = many(some, "field that varies", "fields that vary");
                format!("{runs} runs each, equal but for {vary}")
            }
        };
        let (names, sample) = (names.join(", "), visible_line(sample));
        let _ = writeln!(out, "learned  {names} of {sample}   {but}   {}", seconds(took));
    }
}

fn finding_text(out: &mut String, finding: &Finding) {
    let mark = if finding.known { "known" } else { "✗" };
    let (came, of) = finding.times;
    let _ = writeln!(out, "{mark} {}  {}   {came} of {of}", finding.number, visible_line(&finding.title()));
    let _ = writeln!(out, "     scenario      {} of {}", finding.scenario, visible_line(&finding.sample));
    let at = finding.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
    let _ = writeln!(out, "     disturbance   {}", visible_line(&format!("{}{at}", finding.how)));
    if finding.steps.len() > 1 {
        let _ = writeln!(out, "     steps         {}", visible_line(&finding.steps.join(" · ")));
    }
    if let Some(code) = &finding.code {
        let _ = writeln!(out, "     code          {}", visible_line(code));
    }
    for difference in finding.differences.iter().skip(1).take(DIFFERENCES) {
        let _ = writeln!(out, "     also          {}", visible_line(&difference.words()));
    }
    let more = finding.differences.len().saturating_sub(DIFFERENCES + 1);
    if more > 0 {
        let _ = writeln!(out, "     also          {}", many(more, "more difference", "more differences"));
    }
    if let Some(fix) = finding.differences.iter().find_map(Difference::fix) {
        let _ = writeln!(out, "     fix           {fix}");
    }
    if finding.alike > 0 {
        let _ = writeln!(
            out,
            "     alike         {} like that",
            many(finding.alike, "other plan ends", "other plans end")
        );
    }
    if let Some(file) = &finding.file {
        let _ = writeln!(out, "     replay        opdev torture --replay {file}");
    }
}

/// The report as JUnit XML: a suite for each scenario, a case for each kind of disturbance.
pub fn junit(report: &Report) -> String {
    let suites = report.learned.iter().map(|learnt| {
        let of = |class: Option<Class>| {
            let found = report.findings.iter().filter(move |finding| {
                finding.class == class
                    && finding.scenario == learnt.scenario
                    && finding.sample == learnt.sample
                    && !finding.known
            });
            found.collect::<Vec<_>>()
        };
        let mut cases = vec![case("undisturbed", &of(None))];
        cases.extend(learnt.plans.keys().map(|class| case(class.name(), &of(Some(*class)))));
        Suite {
            name: format!("{} of {}", learnt.scenario, learnt.sample),
            cases,
            took: learnt.took,
            error: None,
        }
    });
    let broken = report.problems.iter().map(|problem| Suite {
        name: problem.split(':').next().unwrap_or_default().to_owned(),
        cases: Vec::new(),
        took: Duration::ZERO,
        error: Some(problem.clone()),
    });
    let suites: Vec<Suite> = suites.chain(broken).collect();
    let wanted = suites.len();
    let all = CiReport { suites, wanted, took: report.took, interrupted: report.interrupted };
    let properties = [("opdev", env!("CARGO_PKG_VERSION").to_owned()), ("seed", report.seed.to_string())];
    ci_junit(&all, &properties).replacen("name=\"opdev ci\"", "name=\"opdev torture\"", 1)
}

fn case(name: &str, findings: &[&Finding]) -> Case {
    let outcome = match findings {
        [] => Outcome::Passed,
        [first, ..] => {
            let mut details = String::new();
            for finding in findings {
                finding_text(&mut details, finding);
            }
            Outcome::Failed { message: first.title(), details }
        }
    };
    Case { name: name.to_owned(), took: Duration::ZERO, outcome }
}

/// What happens meanwhile, and each as a line of JSON.
#[derive(Clone, Debug)]
pub enum Progress {
    /// All samples were read.
    Begun {
        /// The number of scenarios.
        scenarios: usize,
    },
    /// The plans of the scenario that was learned last are known.
    Planned {
        /// Their number.
        plans: usize,
    },
    /// A scenario was learned.
    Learned(Learnt),
    /// A plan was tried.
    Tried {
        /// The scenario.
        scenario: String,
        /// The kind of disturbance.
        class: Class,
        /// The disturbance in words.
        plan: String,
        /// How many differences there are.
        differences: usize,
        /// How long it took.
        took: Duration,
    },
    /// There is a finding.
    Found(Finding),
    /// All is over.
    Done(Report),
}

impl Progress {
    /// As a line of JSON.
    pub fn json(&self) -> Value {
        let millis = |took: &Duration| u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        match self {
            Progress::Begun { scenarios } => json!({ "event": "torture.begun", "scenarios": scenarios }),
            Progress::Planned { plans } => json!({ "event": "torture.planned", "plans": plans }),
            Progress::Learned(learnt) => json!({
                "event": "torture.learned", "scenario": learnt.scenario, "sample": learnt.sample,
                "masked": learnt.masked, "tookMs": millis(&learnt.took),
            }),
            Progress::Tried { scenario, class, plan, differences, took } => json!({
                "event": "torture.plan", "scenario": scenario, "disturbance": class.name(), "plan": plan,
                "differences": differences, "tookMs": millis(took),
            }),
            Progress::Found(finding) => json!({
                "event": "torture.finding", "number": finding.number, "title": finding.title(),
                "scenario": finding.scenario, "sample": finding.sample,
                "disturbance": finding.class.map(Class::name), "plan": finding.how,
                "differences": finding.differences,
                "also": finding.differences.iter().skip(1).map(Difference::words).collect::<Vec<_>>(),
                "fix": finding.differences.iter().find_map(Difference::fix), "steps": finding.steps, "place": finding.place, "code": finding.code,
                "writes": { "undisturbed": finding.writes.undisturbed, "disturbed": finding.writes.disturbed },
                "came": finding.times.0, "runs": finding.times.1,
                "replay": finding.file,
            }),
            Progress::Done(report) => json!({
                "event": "torture.done", "findings": report.findings.len(), "plans": report.plans(),
                "alarms": report.alarms, "flaky": report.flaky, "unmet": report.unmet, "leftOut": report.left_out,
                "refused": report.refused, "withoutEffect": report.without_effect, "problems": report.problems, "notes": report.notes, "seed": report.seed, "interrupted": report.interrupted,
                "tookMs": millis(&report.took),
            }),
        }
    }
}

//! The lines of `opdev torture --json`, as a run for the screen.

use super::lines::{Lines, many, place};
use opdev_event::{
    BackgroundCommand, BackgroundFinding, BackgroundRow, BackgroundRun, FindingSeverity, words,
};
use serde::Deserialize;
use std::time::Duration;

/// Differences of a finding that are told beside the first one.
const DIFFERENCES: usize = 6;

/// A line.
#[derive(Debug, Deserialize)]
#[serde(tag = "event")]
enum TortureLine {
    #[serde(rename = "torture.begun")]
    Begun { scenarios: usize },
    #[serde(rename = "torture.learned")]
    Learned { scenario: String, sample: String },
    #[serde(rename = "torture.planned")]
    Planned { plans: usize },
    #[serde(rename = "torture.plan")]
    Tried { disturbance: String, differences: usize },
    #[serde(rename = "torture.finding")]
    Found(Box<TortureFound>),
    #[serde(rename = "torture.done")]
    Done(Ended),
}

#[derive(Debug, Deserialize)]
struct TortureFound {
    title: String,
    scenario: String,
    sample: String,
    plan: String,
    steps: Vec<String>,
    also: Vec<String>,
    place: Option<String>,
    code: Option<String>,
    fix: Option<String>,
    writes: Writes,
    came: u32,
    runs: u32,
    replay: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Writes {
    undisturbed: Vec<String>,
    disturbed: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    plans: usize,
    alarms: usize,
    flaky: usize,
    left_out: usize,
    problems: Vec<String>,
    notes: Vec<String>,
    took_ms: u64,
    interrupted: bool,
}

/// A scenario: how many plans of each disturbance were tried.
#[derive(Debug, Default)]
struct Scenario {
    name: String,
    sample: String,
    tried: Vec<(String, usize)>,
    planned: usize,
    found: usize,
}

impl Scenario {
    fn count(&self) -> usize {
        self.tried.iter().map(|(_, count)| count).sum()
    }
}

/// All that the lines have told so far.
#[derive(Debug, Default)]
pub(super) struct Torture {
    wanted: usize,
    scenarios: Vec<Scenario>,
    whole: bool,
    problem: Option<String>,
}

impl Lines for Torture {
    fn take(&mut self, line: &str, run: &mut BackgroundRun) {
        let Ok(line) = serde_json::from_str(line) else { return };
        let mut shrinks = false;
        match line {
            TortureLine::Begun { scenarios } => {
                self.wanted = scenarios;
                "undisturbed runs of the first scenario".clone_into(&mut run.now);
            }
            TortureLine::Learned { scenario, sample } => {
                self.scenarios.push(Scenario { name: scenario, sample, ..Scenario::default() });
            }
            TortureLine::Planned { plans } => {
                self.scenarios.iter_mut().last().into_iter().for_each(|one| one.planned = plans);
            }
            TortureLine::Tried { disturbance, differences } => {
                shrinks = differences > 0;
                let Some(scenario) = self.scenarios.last_mut() else { return };
                match scenario.tried.iter_mut().find(|(name, _)| *name == disturbance) {
                    Some((_, count)) => *count += 1,
                    None => scenario.tried.push((disturbance, 1)),
                }
            }
            TortureLine::Found(found) => {
                let same = |one: &&mut Scenario| one.name == found.scenario && one.sample == found.sample;
                self.scenarios.iter_mut().filter(same).for_each(|one| one.found += 1);
                run.findings.push(finding(*found));
            }
            TortureLine::Done(ended) => {
                self.whole = true;
                self.over(&ended, run);
                return;
            }
        }
        self.tell(run);
        if shrinks {
            run.now.push_str("; one ended otherwise, and the smallest plan that does is looked for");
        }
    }

    fn is_whole(&self) -> bool {
        self.whole
    }

    fn problem(&self) -> Option<String> {
        self.problem.clone()
    }
}

impl Torture {
    fn tell(&self, run: &mut BackgroundRun) {
        run.about = match &run.command {
            BackgroundCommand::Torture { sample: Some(sample) } => sample.clone(),
            _ => "all samples".to_owned(),
        };
        (run.columns, run.rows) = self.table();
        let Some(last) = self.scenarios.last() else { return };
        let over = self.scenarios.len() - 1;
        let part = (last.count().min(last.planned) * 1000).checked_div(last.planned).unwrap_or(0);
        let done = (over * 1000 + part) / self.wanted.max(self.scenarios.len());
        run.done = u16::try_from(done).unwrap_or(1000).min(1000);
        run.now =
            format!("{} of {}, {} of {}", last.name, last.sample, last.count(), many(last.planned, "plan"));
    }

    /// A row for each scenario, a column for each disturbance that was tried.
    fn table(&self) -> (Vec<String>, Vec<BackgroundRow>) {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.scenarios.iter().flat_map(|scenario| &scenario.tried) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let several = self.scenarios.iter().any(|one| one.sample != self.scenarios[0].sample);
        let mut columns = vec!["SCENARIO".to_owned()];
        columns.extend(names.iter().map(|name| name.to_uppercase()));
        columns.push("FOUND".to_owned());
        let last = self.scenarios.len().saturating_sub(1);
        let rows = self.scenarios.iter().enumerate().map(|(at, scenario)| {
            let of =
                |name: &&str| scenario.tried.iter().find(|(tried, _)| tried == name).map_or(0, |(_, n)| *n);
            let number = |count: usize| if count == 0 { String::new() } else { count.to_string() };
            let name = match several {
                true => format!("{} {}", words::file_name(&scenario.sample), scenario.name),
                false => scenario.name.clone(),
            };
            let mut cells = vec![name];
            cells.extend(names.iter().map(of).map(number));
            cells.push(number(scenario.found));
            let worst = (scenario.found > 0).then_some(FindingSeverity::Error);
            BackgroundRow { over: at < last || self.whole, worst, cells }
        });
        (columns, rows.collect())
    }

    fn over(&mut self, ended: &Ended, run: &mut BackgroundRun) {
        self.tell(run);
        run.done = if ended.interrupted { run.done } else { 1000 };
        run.now = format!(
            "{} in {} in {}; {} did not come again",
            many(run.findings.len(), "finding"),
            many(ended.plans, "plan"),
            words::took(Duration::from_millis(ended.took_ms)),
            many(ended.flaky, "difference"),
        );
        if ended.interrupted {
            self.problem = Some("broken off".to_owned());
        } else if ended.plans == 0 && run.findings.is_empty() {
            let why = ended.problems.first().map(|problem| format!(": {problem}")).unwrap_or_default();
            self.problem = Some(format!("no plan could be tried{why}"));
        } else if ended.alarms == 0 && run.findings.is_empty() {
            run.now = format!(
                "{} in {}: each ends as it does undisturbed",
                many(ended.plans, "plan"),
                words::took(Duration::from_millis(ended.took_ms))
            );
        }
        if ended.left_out > 0 {
            run.notes.push(format!("{} left out for lack of time", many(ended.left_out, "plan")));
        }
        run.notes.extend(ended.notes.iter().cloned());
        run.notes.extend(ended.problems.iter().map(|problem| format!("not run: {problem}")));
    }
}

fn finding(found: TortureFound) -> BackgroundFinding {
    let at = found.place.as_ref().map(|place| format!(", at {place}")).unwrap_or_default();
    let mut about = vec![
        ("Disturbed".to_owned(), format!("{}{at}", found.plan)),
        ("Scenario".to_owned(), format!("{} of {}", found.scenario, found.sample)),
    ];
    if found.steps.len() > 1 {
        about.push(("Steps".to_owned(), found.steps.join(" · ")));
    }
    if let Some(code) = &found.code {
        about.push(("Code".to_owned(), code.clone()));
    }
    let more = found.also.len().saturating_sub(DIFFERENCES);
    about.extend(found.also.into_iter().take(DIFFERENCES).map(|text| ("Also".to_owned(), text)));
    if more > 0 {
        about.push((String::new(), format!("and {more} more")));
    }
    about.extend(found.fix.map(|fix| ("Fix".to_owned(), fix)));
    BackgroundFinding {
        severity: FindingSeverity::Error,
        title: found.title,
        times: format!("{} of {}", found.came, found.runs),
        about,
        place: found.code.as_deref().and_then(place).or_else(|| found.place.as_deref().and_then(place)),
        writes: (found.writes.undisturbed, found.writes.disturbed),
        replay: found.replay.map(|file| format!("opdev torture --replay {file}")).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lines::tests::begun;
    use super::*;

    #[test]
    fn lines_become_a_table_a_bar_and_findings() {
        let mut run = begun(BackgroundCommand::Torture { sample: None });
        let mut torture = Torture::default();
        let lines = [
            r#"{"event":"torture.begun","scenarios":4}"#,
            r#"{"event":"torture.learned","scenario":"recreate","sample":"s/db.yaml","masked":0,"tookMs":9}"#,
            r#"{"event":"torture.planned","plans":4}"#,
            r#"{"event":"torture.plan","scenario":"recreate","disturbance":"crash","plan":"p","differences":0,"tookMs":1}"#,
            r#"{"event":"torture.plan","scenario":"recreate","disturbance":"crash","plan":"p","differences":1,"tookMs":1}"#,
            r#"{"event":"torture.finding","number":1,"title":"ConfigMap a is missing","scenario":"recreate","sample":"s/db.yaml",
               "disturbance":"crash","plan":"killed after create b","steps":["apply"],"place":"a.go:7","code":null,
               "also":["Service b has no .spec"],
               "writes":{"undisturbed":["x"],"disturbed":["y"]},"came":3,"runs":3,"replay":".opdev/torture/1.yaml"}"#,
            "what is no JSON is left",
        ];
        lines.iter().for_each(|line| torture.take(&line.replace('\n', " "), &mut run));
        assert_eq!((run.done, run.now.as_str()), (125, "recreate of s/db.yaml, 2 of 4 plans"));
        assert_eq!(run.columns, ["SCENARIO", "CRASH", "FOUND"]);
        assert_eq!(run.rows[0].cells, ["recreate", "2", "1"]);
        assert!(!run.rows[0].over && !torture.is_whole());
        let found = &run.findings[0];
        assert_eq!((found.title.as_str(), found.times.as_str()), ("ConfigMap a is missing", "3 of 3"));
        assert_eq!(found.about.last().unwrap().1, "Service b has no .spec");
        assert_eq!(found.place.as_ref().unwrap().to_string(), "a.go:7");
        let done = r#"{"event":"torture.done","findings":1,"plans":2,"alarms":1,"flaky":0,"unmet":0,"leftOut":0,"refused":0,
            "withoutEffect":[],"problems":["grow: no quantity"],"notes":["b.yaml is left out"],"seed":1,"interrupted":false,"tookMs":1500}"#;
        torture.take(&done.replace('\n', " "), &mut run);
        assert!(torture.is_whole() && run.rows[0].over);
        assert_eq!(
            (run.done, run.now.as_str()),
            (1000, "1 finding in 2 plans in 1.5 s; 0 differences did not come again")
        );
        assert_eq!(run.notes, ["b.yaml is left out", "not run: grow: no quantity"]);
        assert_eq!(torture.problem(), None);
    }

    #[test]
    fn a_run_that_tried_nothing_is_no_success() {
        let ended = |plans: usize, interrupted: bool| {
            let mut run = begun(BackgroundCommand::Torture { sample: None });
            let mut torture = Torture::default();
            let line = format!(
                r#"{{"event":"torture.done","findings":0,"plans":{plans},"alarms":0,"flaky":0,"leftOut":0,"notes":[],
                "problems":["recreate: it never settled"],"interrupted":{interrupted},"tookMs":9}}"#
            );
            torture.take(&line.replace('\n', " "), &mut run);
            torture.problem()
        };
        assert_eq!(ended(0, false).unwrap(), "no plan could be tried: recreate: it never settled");
        assert_eq!(ended(7, true).unwrap(), "broken off");
        assert_eq!(ended(7, false), None);
    }
}

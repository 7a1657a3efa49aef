//! The whole of it: learns each scenario from undisturbed runs, and tries its plans. `schedule` says which
//! scenario is tried when, `learn` runs scenarios, `attempt` tries plans, and again what ended otherwise;
//! `alarm` makes findings of those that come again, and `log` keeps what was told. `checks` are scenarios
//! that follow from what the operator has made: `stranger`, `names` and `rollout` say which, and judge them.

pub(crate) mod alarm;
pub(crate) mod attempt;
pub(crate) mod bad_pods;
mod checks;
pub(crate) mod learn;
mod log;
mod names;
mod rollout;
mod schedule;
mod stranger;

use super::fields::campaign::{fields, replay_field};
use super::input::{NoEnvironment, TortureInput, unlearned};
use super::plan::Class;
use super::replay::{Replay, Replayed};
use super::report::{Progress, Report};
use super::subject::{Prepared, prepare};
use anyhow::Result;
use checks::replay_check;
use learn::{Deadline, UNDISTURBED, learn, once, words};
use log::Log;
use opdev_pace::windows::FIRST_WINDOW;
use opdev_steps::scenario::{Sample, Scenario, is_named};
use schedule::try_all;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Tortures the operator of a project.
///
/// # Errors
/// Where there is nothing to torture: the project does not load, or no scenario can be run at all.
pub async fn torture(input: &TortureInput, mut tell: impl FnMut(&Progress)) -> Result<Report> {
    let began = Instant::now();
    let prepared = Arc::new(prepare(input).await?);
    let report = Report { notes: prepared.notes.clone(), seed: input.seed, ..Report::default() };
    let mut log = Log::new(report, &mut tell);
    // A build is no plan.
    let until = input.time.map(|time| Instant::now() + time);
    let deadline = Deadline { until, shutdown: input.shutdown.clone() };
    if input.fields {
        log.tell(&Progress::Begun { scenarios: prepared.samples.len() });
        let (alarms, report, tell) = log.parts();
        for (sample, _) in &prepared.samples {
            let over = || deadline.is_over();
            fields(input, &prepared, sample, over, alarms, report, tell).await?;
        }
    } else {
        let scenarios = wanted(input, &prepared);
        let checks = prepared.samples.len() * checks::wanted(input).len();
        log.tell(&Progress::Begun { scenarios: scenarios.len() + checks });
        try_all(input, &prepared, scenarios, &deadline, &log).await?;
    }
    let mut report = log.into_report();
    report.interrupted = input.shutdown.is_cancelled();
    report.took = began.elapsed();
    if report.learned.is_empty() && !report.interrupted {
        let mut why = report.problems.join("\n");
        if why.is_empty() {
            let of =
                |(sample, scale): &(Sample, Option<String>)| prepared.scenarios(sample, scale.as_deref());
            let all = prepared.samples.iter().flat_map(of);
            why = unlearned(&input.scenarios, all.map(|one| one.name).collect(), report.left_out);
        }
        return Err(NoEnvironment(why).into());
    }
    report.note_once(prepared.alone(input).into_iter());
    tell(&Progress::Done(report.clone()));
    Ok(report)
}

/// The scenarios that are to be learned, each with the number of its sample.
fn wanted(input: &TortureInput, prepared: &Prepared) -> Vec<(usize, Scenario)> {
    let of = |(number, (sample, scale)): (usize, &(Sample, Option<String>))| {
        let all = prepared.scenarios(sample, scale.as_deref()).into_iter();
        let wanted = all.filter(|scenario| is_wanted(input, &scenario.name));
        wanted.map(|scenario| (number, scenario)).collect::<Vec<_>>()
    };
    prepared.samples.iter().enumerate().flat_map(of).collect()
}

fn is_wanted(input: &TortureInput, scenario: &str) -> bool {
    input.scenarios.is_empty() || input.scenarios.iter().any(|name| is_named(scenario, name))
}

/// Runs the plan of a file again, after undisturbed runs to compare with.
///
/// # Errors
/// Where the file is none of opdev's, or the project cannot be run.
pub async fn replay(input: &TortureInput, file: &Path) -> Result<Replayed> {
    let replay = Replay::read(file)?;
    let exec = replay.answers(&input.exec)?;
    let input = &TortureInput { seed: replay.seed, exec, ..input.clone() };
    let prepared = Arc::new(prepare(input).await?);
    let scenario = Arc::new(replay.scenario);
    if let Some(mutation) = replay.field {
        return replay_field(input, &prepared, &scenario, mutation, &replay.differences).await;
    }
    if scenario.is_check() {
        return replay_check(input, &prepared, &scenario, &replay.differences).await;
    }
    let known = learn(input, &prepared, &scenario, (UNDISTURBED, FIRST_WINDOW)).await?;
    let Some(disturbance) = replay.disturbance else {
        let differences = known.learned.own();
        let again = differences.iter().any(|one| replay.differences.contains(one));
        return Ok(Replayed { how: "nothing disturbs it".to_owned(), differences, again, met: true });
    };
    let class: Class = disturbance.class();
    let how = disturbance.words(&scenario.steps);
    let (steps, from) = (words(&scenario), disturbance.effective_from());
    let ran =
        once(input, &prepared, &scenario, Some(disturbance), (input.seed, known.patient().into())).await?;
    let differences = known.learned.judge(&ran.outcome, class, (&steps, from), &input.ignored);
    let again = differences.iter().any(|one| replay.differences.contains(one));
    Ok(Replayed { how, differences, again, met: ran.met })
}

//! The whole of it: learns each scenario from undisturbed runs, and tries its plans. `learn` runs scenarios,
//! `attempt` tries plans, and again what ended otherwise; `alarm` makes findings of those that come again.
//! `checks` are scenarios that follow from what the operator has made: `stranger`, `names` and `rollout` say
//! which, and judge them.

pub(crate) mod alarm;
pub(crate) mod attempt;
pub(crate) mod bad_pods;
mod checks;
pub(crate) mod learn;
mod names;
mod rollout;
mod stranger;

use super::fields::campaign::{fields, replay_field};
use super::input::{NoEnvironment, TortureInput, unlearned};
use super::plan::{Class, plans};
use super::replay::{Replay, Replayed};
use super::report::{Progress, Report};
use super::ruled::by_chance;
use super::scenario::{Sample, scenarios};
use super::shrink::code;
use super::subject::{Prepared, prepare};
use super::writes_beside::WritesBeside;
use alarm::{Alarm, found};
use anyhow::Result;
use attempt::tried;
use checks::{checks, replay_check};
use learn::{Facts, UNDISTURBED, learn, once, words};
use opdev_pace::windows::FIRST_WINDOW;
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
    let mut report = Report { notes: prepared.notes.clone(), seed: input.seed, ..Report::default() };
    let mut alarms: Vec<Alarm> = Vec::new();
    // A build is no plan.
    let until = input.time.map(|time| Instant::now() + time);
    tell(&Progress::Begun { scenarios: wanted_scenarios(input, &prepared) });
    let over = || until.is_some_and(|until| Instant::now() >= until) || input.shutdown.is_cancelled();
    for (sample, scale) in &prepared.samples {
        if input.fields {
            fields(input, &prepared, sample, over, &mut alarms, &mut report, &mut tell).await?;
            continue;
        }
        let of = (sample, scale.as_deref());
        all_of(input, &prepared, of, over, &mut alarms, &mut report, &mut tell).await?;
    }
    report.interrupted = input.shutdown.is_cancelled();
    report.took = began.elapsed();
    if report.learned.is_empty() && !report.interrupted {
        let mut why = report.problems.join("\n");
        if why.is_empty() {
            let all = prepared.samples.iter().flat_map(|(sample, scale)| scenarios(sample, scale.as_deref()));
            why = unlearned(&input.scenarios, all.map(|one| one.name).collect(), report.left_out);
        }
        return Err(NoEnvironment(why).into());
    }
    tell(&Progress::Done(report.clone()));
    Ok(report)
}

/// All scenarios of a sample. Those that follow from what the operator makes come once that is known: they
/// take little time.
async fn all_of(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (sample, scale): (&Sample, Option<&str>),
    over: impl Fn() -> bool + Copy,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<()> {
    let mut checked = false;
    for scenario in scenarios(sample, scale) {
        let wanted = is_wanted(input, &scenario.name);
        if !wanted || over() {
            report.left_out += usize::from(wanted);
            continue;
        }
        let scenario = Arc::new(scenario);
        let known = match learn(input, prepared, &scenario, (UNDISTURBED, FIRST_WINDOW)).await {
            Ok(known) => known,
            Err(_) if input.shutdown.is_cancelled() => return Ok(()),
            Err(error) => {
                report.problems.push(format!("{}: {error:#}", scenario.title()));
                continue;
            }
        };
        let learnt = known.learnt(&scenario);
        tell(&Progress::Learned(learnt.clone()));
        report.learned.push(learnt);
        report.note_once(known.runs.iter().flat_map(|run| by_chance(&run.outcome.opened)));
        let own = known.learned.own();
        if !own.is_empty() {
            let times = (known.runs.len() as u32, known.runs.len() as u32);
            let new = Alarm {
                scenario: Arc::clone(&scenario),
                disturbance: None,
                field: None,
                small: None,
                code: (None, code(&own, &[], known.writes())),
                writes: WritesBeside::default(),
                differences: own,
                times,
            };
            found(input, new, alarms, report, tell)?;
        }
        let writes: Vec<_> = known.runs.iter().map(|run| run.writes.clone()).collect();
        let possible = known.runs.first().map(|run| run.possible.clone()).unwrap_or_default();
        let all = plans(&writes, &scenario.steps, &possible, input.level, &input.only);
        tried(input, prepared, (&scenario, &known, all), over, alarms, report, tell).await?;
        // A scenario may have its sample in another place.
        if !checked && scenario.sample == *sample {
            checked = true;
            let facts = Some(Facts::of(&known));
            checks(input, prepared, (sample, facts), over, alarms, report, tell).await?;
        }
    }
    if !checked {
        checks(input, prepared, (sample, None), over, alarms, report, tell).await?;
    }
    Ok(())
}

/// The number of scenarios to be learned.
fn wanted_scenarios(input: &TortureInput, prepared: &Prepared) -> usize {
    let of = |(sample, scale): &(Sample, Option<String>)| match input.fields {
        true => 1,
        false => {
            let all = scenarios(sample, scale.as_deref());
            all.iter().filter(|one| is_wanted(input, &one.name)).count() + checks::wanted(input).len()
        }
    };
    prepared.samples.iter().map(of).sum()
}

fn is_wanted(input: &TortureInput, scenario: &str) -> bool {
    input.scenarios.is_empty() || input.scenarios.iter().any(|name| name == scenario)
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

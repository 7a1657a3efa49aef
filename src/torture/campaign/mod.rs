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
use super::plan::{Class, Disturbance, plans};
use super::replay::{Replay, Replayed};
use super::report::{Progress, Report};
use super::ruled::by_chance;
use super::shrink::code;
use super::subject::{Prepared, prepare};
use super::writes_beside::WritesBeside;
use alarm::{Alarm, found};
use anyhow::Result;
use attempt::tried;
use checks::{checks, replay_check};
use learn::{Facts, Known, UNDISTURBED, learn, once, words};
use opdev_pace::shares::Shares;
use opdev_pace::windows::FIRST_WINDOW;
use opdev_steps::scenario::{Sample, Scenario, is_named};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let (scenarios, checks) = wanted(input, &prepared);
    tell(&Progress::Begun { scenarios: scenarios + checks });
    let over = || until.is_some_and(|until| Instant::now() >= until) || input.shutdown.is_cancelled();
    let mut shares = Shares::new(until, scenarios);
    let mut rest = Vec::new();
    for (sample, scale) in &prepared.samples {
        if input.fields {
            fields(input, &prepared, sample, over, &mut alarms, &mut report, &mut tell).await?;
            continue;
        }
        let of = (sample, scale.as_deref());
        let pace = (&mut shares, over);
        rest.extend(all_of(input, &prepared, of, pace, &mut alarms, &mut report, &mut tell).await?);
    }
    for (scenario, known, left) in rest {
        let of = (&scenario, &known, left);
        let left = tried(input, &prepared, of, over, &mut alarms, &mut report, &mut tell).await?;
        report.left_out += left.len();
    }
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

/// A scenario, and its plans for which its share of the time was too short.
type Rest = (Arc<Scenario>, Known, Vec<Disturbance>);

/// All scenarios of a sample, and what is left of them. The next one is learned while the plans of one are
/// tried. Scenarios that follow from what the operator makes come once that is known: they take little time.
async fn all_of(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (sample, scale): (&Sample, Option<&str>),
    (shares, over): (&mut Shares, impl Fn() -> bool + Copy),
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<Vec<Rest>> {
    let (mut checked, mut rest) = (false, Vec::new());
    let all = prepared.scenarios(sample, scale).into_iter();
    let mut all = all.filter(|scenario| is_wanted(input, &scenario.name)).map(Arc::new);
    let mut next = learned(input, prepared, all.next(), over).await;
    while let Some((scenario, known)) = next {
        // Once the time is over, nothing more is learned.
        let shutdown = input.shutdown.child_token();
        let of_next = TortureInput { shutdown: shutdown.clone(), ..input.clone() };
        let (share, next_is_known) = (shares.next(Instant::now()), AtomicBool::new(false));
        // While the next one is not known, there is nothing better to do.
        let share_over = || {
            let is_over = share.is_some_and(|share| Instant::now() >= share);
            over() || (is_over && next_is_known.load(Ordering::Relaxed))
        };
        let plans_of = async {
            match known {
                Some(Ok(known)) => {
                    let of = (&scenario, &known);
                    let left = all_plans(input, prepared, of, share_over, alarms, report, tell).await?;
                    // A scenario may have its sample in another place.
                    if !checked && scenario.sample == *sample {
                        checked = true;
                        let facts = Some(Facts::of(&known));
                        checks(input, prepared, (sample, facts), over, alarms, report, tell).await?;
                    }
                    if !left.is_empty() {
                        rest.push((Arc::clone(&scenario), known, left));
                    }
                }
                Some(Err(error)) if !over() => {
                    report.problems.push(format!("{}: {error:#}", scenario.title()));
                }
                _ => report.left_out += 1,
            }
            if over() {
                shutdown.cancel();
            }
            anyhow::Ok(())
        };
        let of_next = async {
            let next = learned(&of_next, prepared, all.next(), over).await;
            next_is_known.store(true, Ordering::Relaxed);
            next
        };
        let (ended, after) = tokio::join!(plans_of, of_next);
        ended?;
        next = after;
    }
    if !checked && !input.shutdown.is_cancelled() {
        checks(input, prepared, (sample, None), over, alarms, report, tell).await?;
    }
    Ok(rest)
}

/// Learns a scenario, unless the time is over.
async fn learned(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: Option<Arc<Scenario>>,
    over: impl Fn() -> bool,
) -> Option<(Arc<Scenario>, Option<Result<Known>>)> {
    let scenario = scenario?;
    if over() {
        return Some((scenario, None));
    }
    let known = learn(input, prepared, &scenario, (UNDISTURBED, FIRST_WINDOW)).await;
    Some((scenario, Some(known)))
}

/// Tells of a scenario that was learned, and tries its plans; gives those back for which there was no time.
async fn all_plans(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (scenario, known): (&Arc<Scenario>, &Known),
    over: impl Fn() -> bool,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<Vec<Disturbance>> {
    let learnt = known.learnt(scenario);
    tell(&Progress::Learned(learnt.clone()));
    report.learned.push(learnt);
    report.note_once(known.runs.iter().flat_map(|run| by_chance(&run.outcome.opened)));
    let own = known.learned.own();
    if !own.is_empty() {
        let times = (known.runs.len() as u32, known.runs.len() as u32);
        let new = Alarm {
            scenario: Arc::clone(scenario),
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
    tell(&Progress::Planned { plans: all.len() });
    tried(input, prepared, (scenario, known, all), over, alarms, report, tell).await
}

/// The number of scenarios to be learned, and of checks.
fn wanted(input: &TortureInput, prepared: &Prepared) -> (usize, usize) {
    let samples = prepared.samples.len();
    if input.fields {
        return (samples, 0);
    }
    let all =
        prepared.samples.iter().flat_map(|(sample, scale)| prepared.scenarios(sample, scale.as_deref()));
    let scenarios = all.filter(|one| is_wanted(input, &one.name)).count();
    (scenarios, samples * checks::wanted(input).len())
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

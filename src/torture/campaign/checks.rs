//! Scenarios that follow from what the operator makes of a sample. Most are judged by themselves: one run,
//! and two more where it finds something.

use super::alarm::Alarm;
use super::attempt::{AGAIN, tried};
use super::learn::{Facts, Known, learn, once, words};
use super::log::Campaign;
use super::rollout::{self, rollouts};
use super::{names, stranger};
use crate::acts::is_refused;
use crate::input::TortureInput;
use crate::judge::{Difference, Outcome};
use crate::plan::{Class, Disturbance, Level};
use crate::replay::Replayed;
use crate::report::{Learnt, Progress};
use crate::shrink::code;
use crate::subject::Prepared;
use crate::writes_beside::WritesBeside;
use anyhow::Result;
use opdev_pace::windows::FIRST_WINDOW;
use opdev_steps::scenario::{BAD_ROLLOUT, NAMES, STRANGER, Sample, Scenario, Step};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Runs from which the objects are learned where no other scenario has learned them, and those of a rollout.
const RUNS: u32 = 2;

/// The checks that are asked for.
pub(super) fn wanted(input: &TortureInput) -> Vec<&'static str> {
    let is_named = |name: &str| input.scenarios.iter().any(|one| one == name);
    let is_wanted = |name: &&'static str| match input.scenarios.is_empty() {
        // A user that asks for disturbances asks for no check.
        true => input.only.is_empty() || (*name == BAD_ROLLOUT && input.only.contains(&Class::BadPods)),
        false => is_named(name) && (*name != BAD_ROLLOUT || takes_bad_pods(input)),
    };
    [STRANGER, NAMES, BAD_ROLLOUT].into_iter().filter(is_wanted).collect()
}

fn takes_bad_pods(input: &TortureInput) -> bool {
    input.only.is_empty() || input.only.contains(&Class::BadPods)
}

/// Runs the checks of a sample. `facts` is none where no other scenario was learned.
pub(super) async fn checks(campaign: Campaign<'_, '_>, sample: &Sample, facts: Option<Facts>) -> Result<()> {
    let Campaign { input, prepared, deadline, log } = campaign;
    let wanted = wanted(input);
    if wanted.is_empty() || deadline.is_over() {
        log.report(|report| report.left_out += wanted.len());
        return Ok(());
    }
    let facts = match facts {
        Some(facts) => facts,
        // All others failed, and told why.
        None if input.scenarios.is_empty() => return Ok(()),
        None => {
            let steps = vec![Step::Apply(sample.all())];
            let plain = Scenario { name: wanted.join(", "), sample: sample.clone(), steps };
            match learn(input, prepared, &Arc::new(plain), (RUNS, FIRST_WINDOW)).await {
                Ok(known) => Facts::of(&known),
                Err(_) if input.shutdown.is_cancelled() => return Ok(()),
                Err(error) => {
                    let problem = format!("{} of {}: {error:#}", wanted.join(", "), sample.path);
                    log.report(|report| report.problems.push(problem));
                    return Ok(());
                }
            }
        }
    };
    if facts.made.is_empty() && wanted.iter().any(|name| [STRANGER, NAMES].contains(name)) {
        let why = "the operator makes nothing of it, so that no other owner and no long name was tried";
        log.report(|report| report.notes.push(format!("{}: {why}", sample.path)));
    }
    let mut all = Vec::new();
    if wanted.contains(&STRANGER) {
        all.extend(stranger::scenarios(sample, &facts.made, input.level));
    }
    if wanted.contains(&NAMES) {
        all.extend(names::scenarios(sample, &facts.made, input.level));
    }
    for scenario in all {
        if deadline.is_over() {
            log.report(|report| report.left_out += 1);
            continue;
        }
        check(campaign, &Arc::new(scenario), facts.windows).await?;
    }
    if wanted.contains(&BAD_ROLLOUT) {
        bad_rollouts(campaign, sample, &facts).await?;
    }
    Ok(())
}

/// Runs a scenario that is judged by itself; once more and again where it finds something.
async fn check(
    Campaign { input, prepared, log, .. }: Campaign<'_, '_>,
    scenario: &Arc<Scenario>,
    windows: (Duration, Duration),
) -> Result<()> {
    let once = |window: Duration| once(input, prepared, scenario, None, (input.seed, window.into()));
    let ran = match once(windows.0).await {
        Ok(ran) => ran,
        Err(_) if input.shutdown.is_cancelled() => return Ok(()),
        Err(error) => {
            log.report(|report| report.problems.push(format!("{}: {error:#}", scenario.title())));
            return Ok(());
        }
    };
    let learnt = Learnt {
        scenario: scenario.name.clone(),
        sample: scenario.sample.path.clone(),
        masked: 0,
        runs: 1,
        took: ran.took,
        plans: BTreeMap::new(),
    };
    log.tell(&Progress::Learned(learnt.clone()));
    log.tell(&Progress::Planned { plans: 1 });
    log.report(|report| {
        report.learned.push(learnt);
        report.count(Class::Check);
    });
    let mut faults = faults(input, scenario, &ran.outcome);
    log.tell(&Progress::Tried {
        scenario: scenario.name.clone(),
        class: Class::Check,
        plan: words(scenario).join(" · "),
        differences: faults.found.len(),
        took: ran.took,
    });
    log.report(|report| report.alarms += usize::from(!faults.found.is_empty()));
    let (mut times, tries) = ((1, 1), if faults.found.is_empty() { 1 } else { AGAIN });
    let mut again = Faults::default();
    for _ in 0..tries {
        if faults.is_empty() || input.shutdown.is_cancelled() {
            return Ok(());
        }
        times.1 += 1;
        let Ok(ran) = once(windows.1).await else { continue };
        let new = self::faults(input, scenario, &ran.outcome);
        times.0 += u32::from(faults.found.iter().any(|one| new.found.iter().any(|other| alike(one, other))));
        again.found.extend(new.found);
        again.hints.extend(new.hints);
    }
    faults.keep(&again);
    // The first one of each kind of name says why; fewer objects follow from it.
    faults.hints.dedup_by(|later, first| later.object == first.object);
    let hints = faults.hints.iter().map(|hint| format!("{}: {}", scenario.title(), hint.words()));
    log.report(|report| report.notes.extend(hints));
    if times.0 == 1 || faults.found.is_empty() {
        log.report(|report| report.flaky += usize::from(tries > 1));
        return Ok(());
    }
    let new = Alarm {
        scenario: Arc::clone(scenario),
        disturbance: None,
        field: None,
        small: None,
        code: (None, code(&faults.found, &ran.writes, &[])),
        writes: WritesBeside::default(),
        differences: faults.found,
        times,
    };
    log.found(input, new)
}

/// The faults of one run.
#[derive(Default)]
pub(super) struct Faults {
    /// Findings.
    pub(super) found: Vec<Difference>,
    /// Hints: hardly any operator is without them.
    pub(super) hints: Vec<Difference>,
}

impl Faults {
    fn is_empty(&self) -> bool {
        self.found.is_empty() && self.hints.is_empty()
    }

    /// Keeps those that came again.
    fn keep(&mut self, again: &Faults) {
        self.found.retain(|one| again.found.iter().any(|other| alike(one, other)));
        self.hints.retain(|one| again.hints.iter().any(|other| alike(one, other)));
    }
}

/// Returns true if two differences are about one field of one object. The words of an error may differ.
fn alike(one: &Difference, other: &Difference) -> bool {
    one.rule == other.rule && one.path == other.path && one.object == other.object
}

fn faults(input: &TortureInput, scenario: &Scenario, outcome: &Outcome) -> Faults {
    let mut faults = match scenario.steps.iter().any(|step| matches!(step, Step::Stranger(_))) {
        true => stranger::faults(&scenario.steps, outcome),
        false => names::faults(&scenario.steps, outcome),
    };
    for all in [&mut faults.found, &mut faults.hints] {
        all.retain(|one| !input.ignored.iter().any(|ignored| ignored.takes(one)));
        all.sort();
        all.dedup();
    }
    faults
}

/// Runs the check of a file again.
pub(super) async fn replay_check(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    before: &[Difference],
) -> Result<Replayed> {
    let tells = !prepared.subject.is_program() || prepared.subject.tells();
    let window = if tells { FIRST_WINDOW } else { FIRST_WINDOW * 2 };
    let ran = once(input, prepared, scenario, None, (input.seed, window.into())).await?;
    let differences = faults(input, scenario, &ran.outcome).found;
    let again = differences.iter().any(|one| before.iter().any(|other| alike(one, other)));
    Ok(Replayed { how: words(scenario).join(" · "), differences, again, met: true })
}

/// Changes a field that reaches pods, which then do not start, and changes it back.
async fn bad_rollouts(campaign: Campaign<'_, '_>, sample: &Sample, facts: &Facts) -> Result<()> {
    let Campaign { input, prepared, deadline, log } = campaign;
    for rollout in rollouts(sample, &facts.made) {
        if deadline.is_over() {
            log.report(|report| report.left_out += 1);
            return Ok(());
        }
        let scenario = Arc::new(rollout::scenario(sample, &rollout));
        let known = match learn(input, prepared, &scenario, (RUNS, facts.windows.1)).await {
            // An operator that takes no such value is not asked to live with it.
            Ok(known) if !known.learned.own().is_empty() => continue,
            Ok(known) => known,
            Err(_) if input.shutdown.is_cancelled() => return Ok(()),
            Err(error) if is_refused(&error) => continue,
            Err(error) => {
                log.report(|report| report.problems.push(format!("{}: {error:#}", scenario.title())));
                continue;
            }
        };
        bad_rollout(campaign, (&scenario, &known, rollout.bad)).await?;
        if input.level != Level::Deep {
            break;
        }
    }
    Ok(())
}

async fn bad_rollout(
    campaign: Campaign<'_, '_>,
    (scenario, known, bad): (&Arc<Scenario>, &Known, Disturbance),
) -> Result<()> {
    let (log, learnt) = (campaign.log, known.learnt(scenario));
    log.tell(&Progress::Learned(learnt.clone()));
    log.report(|report| report.learned.push(learnt));
    log.tell(&Progress::Planned { plans: 1 });
    let over = || campaign.deadline.is_over();
    let left = tried(campaign, (scenario, known, vec![bad]), over).await?;
    log.report(|report| report.left_out += left.len());
    Ok(())
}

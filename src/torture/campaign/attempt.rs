//! One plan: run once, and where it ends otherwise than undisturbed, twice more with more patience. Plans are
//! tried beside one another, their further runs, too.

use super::alarm::{Alarm, Symptom};
use super::learn::{Known, in_turn, words};
use super::log::{Campaign, Log};
use crate::input::TortureInput;
use crate::judge::{Difference, Rule};
use crate::plan::{Class, Disturbance};
use crate::report::Progress;
use crate::ruled::by_chance;
use crate::run::{Ran, run};
use crate::shrink::{code, shrink};
use crate::subject::Prepared;
use crate::writes_beside::beside;
use anyhow::Result;
use futures::future::join_all;
use futures::stream::{self, FuturesOrdered, StreamExt as _};
use opdev_pace::turns::Turn;
use opdev_pace::windows::Windows;
use opdev_steps::scenario::Scenario;
use std::sync::Arc;

/// Further runs of a plan whose first one ended otherwise.
pub(super) const AGAIN: u32 = 2;

/// Plans that wait for their turn, or for the end of one before: results are taken in order, and kept until
/// then.
pub(crate) fn waiting(prepared: &Prepared) -> usize {
    prepared.most * 8
}

/// The end of a plan.
pub(super) struct Attempt {
    pub(super) ran: Ran,
    pub(super) differences: Vec<Difference>,
    /// The runs with one of the differences, of all.
    pub(super) times: (u32, u32),
}

impl Attempt {
    /// Returns true if it ended as undisturbed runs do, or was not disturbed at all.
    pub(super) fn is_quiet(&self) -> bool {
        self.differences.is_empty() || !self.ran.met
    }

    /// Returns true if what was different never came again, or was not looked for: it was broken off.
    pub(super) fn is_flaky(&self) -> bool {
        self.times.0 == 1
    }
}

/// The undisturbed runs that a plan is compared with.
pub(super) struct Bench<'a> {
    pub(super) input: &'a TortureInput,
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) scenario: &'a Arc<Scenario>,
    pub(super) known: &'a Known,
    pub(super) steps: &'a [String],
}

impl Bench<'_> {
    /// Tries a plan, beginning with this turn.
    ///
    /// # Errors
    /// Where its first run cannot be made.
    pub(super) async fn attempt(&self, disturbance: &Disturbance, turn: Turn) -> Result<Attempt> {
        let Bench { input, known, .. } = self;
        let once = |turn, windows| {
            let wanted = Some(disturbance.clone());
            let seed = (input.seed, windows);
            in_turn(turn, input, self.prepared, self.scenario, wanted, seed, async |input| run(&input).await)
        };
        let ran = once(turn, known.windows.clone()).await?;
        let differences = self.judge(&ran, disturbance);
        let mut attempt = Attempt { ran, differences, times: (1, 1) };
        if attempt.is_quiet() || input.shutdown.is_cancelled() {
            return Ok(attempt);
        }
        // It may have been about to go on.
        let windows = Windows::from(known.patient());
        let windows = if self.may_be_late(&attempt) { windows.lingering() } else { windows };
        let again = async || once(self.prepared.turns.urgent().await, windows.clone()).await;
        for again in join_all((0..AGAIN).map(|_| again())).await {
            attempt.times.1 += 1;
            let same = again.is_ok_and(|ran| {
                let again = self.judge(&ran, disturbance);
                ran.met && attempt.differences.iter().any(|one| again.contains(one))
            });
            attempt.times.0 += u32::from(same);
        }
        Ok(attempt)
    }

    /// Returns true if all that differs is the status of something, which a program may look at again later.
    fn may_be_late(&self, attempt: &Attempt) -> bool {
        let is_status = |one: &Difference| one.path.starts_with(".status") && one.rule == Rule::End;
        self.prepared.subject.is_program() && attempt.differences.iter().all(is_status)
    }

    /// Notes that a plan was tried.
    fn count(&self, attempt: &Attempt, disturbance: &Disturbance, log: &Log<'_>) {
        let class = disturbance.class();
        log.report(|report| {
            report.count_of(self.scenario, class);
            report.note_once(by_chance(&attempt.ran.outcome.opened));
            report.unmet += usize::from(!attempt.ran.met);
        });
        log.tell(&Progress::Tried {
            scenario: self.scenario.name.clone(),
            class,
            plan: disturbance.words(&self.scenario.steps),
            differences: attempt.differences.len(),
            took: attempt.ran.took,
        });
    }

    /// The alarm of a plan that ended otherwise, and did so again.
    fn alarm(&self, attempt: Attempt, disturbance: &Disturbance, log: &Log<'_>) -> Option<Alarm> {
        if attempt.is_quiet() {
            return None;
        }
        log.report(|report| {
            report.alarms += 1;
            report.flaky += usize::from(attempt.is_flaky());
        });
        if attempt.is_flaky() {
            return None;
        }
        let Attempt { ran, differences, times } = attempt;
        let undisturbed = self.known.writes();
        Some(Alarm {
            scenario: Arc::clone(self.scenario),
            writes: beside(undisturbed, &ran.writes, (disturbance, &disturbance.words(&self.scenario.steps))),
            code: (ran.met_at, code(&differences, &ran.writes, undisturbed)),
            small: None,
            disturbance: Some(disturbance.clone()),
            field: None,
            differences,
            times,
        })
    }

    fn judge(&self, ran: &Ran, disturbance: &Disturbance) -> Vec<Difference> {
        let (class, from): (Class, usize) = (disturbance.class(), disturbance.effective_from());
        self.known.learned.judge(&ran.outcome, class, (self.steps, from), &self.input.ignored)
    }
}

/// Tries the plans of a scenario, and gives those back for which there was no time. What ends otherwise is
/// made smaller beside the plans that follow.
pub(super) async fn tried(
    Campaign { input, prepared, log, .. }: Campaign<'_, '_>,
    (scenario, known, all): (&Arc<Scenario>, &Known, Vec<Disturbance>),
    over: impl Fn() -> bool,
) -> Result<Vec<Disturbance>> {
    let steps = words(scenario);
    let over = &over;
    let bench = &Bench { input, prepared, scenario, known, steps: &steps };
    let one = |disturbance: Disturbance| async move {
        let turn = prepared.turns.plan().await;
        if over() {
            return (disturbance, None);
        }
        let attempt = bench.attempt(&disturbance, turn).await;
        (disturbance, Some(attempt))
    };
    // One after the other: the turns of all of them would come before new plans.
    let one_by_one = &tokio::sync::Mutex::new(());
    let smaller = |mut new: Alarm, disturbance: Disturbance| async move {
        let _alone = one_by_one.lock().await;
        let plan = (scenario, known.patient());
        new.small = shrink(input, prepared, plan, &disturbance, &new.differences, over).await;
        new
    };
    let mut runs = stream::iter(all).map(one).buffered(waiting(prepared));
    let (mut shrinking, mut alike) = (FuturesOrdered::new(), Vec::new());
    let mut left = Vec::new();
    loop {
        let ended = tokio::select! {
            Some(new) = shrinking.next(), if !shrinking.is_empty() => {
                log.found(input, new)?;
                continue;
            }
            ended = runs.next() => ended,
        };
        let Some((disturbance, attempt)) = ended else { break };
        let attempt = match attempt {
            None => {
                left.push(disturbance);
                continue;
            }
            Some(Ok(attempt)) => attempt,
            Some(Err(_)) if input.shutdown.is_cancelled() => continue,
            Some(Err(error)) => {
                let words = disturbance.words(&scenario.steps);
                let problem = format!("{}, {words}: {error:#}", scenario.title());
                log.report(|report| report.problems.push(problem));
                continue;
            }
        };
        bench.count(&attempt, &disturbance, log);
        let Some(new) = bench.alarm(attempt, &disturbance, log) else { continue };
        if log.begins(Symptom::of(&new)) {
            shrinking.push_back(smaller(new, disturbance));
        } else {
            alike.push(new);
        }
    }
    while let Some(new) = shrinking.next().await {
        log.found(input, new)?;
    }
    alike.into_iter().try_for_each(|new| log.found(input, new))?;
    Ok(left)
}

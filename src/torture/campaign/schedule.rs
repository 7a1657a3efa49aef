//! The order of scenarios. Runs of a program mostly wait for it to be quiet. So all scenarios that are
//! learned are tried at once, and the turns say who runs. Runs in process keep the cores busy: there the
//! scenarios come one after the other, and what is told comes in one order.

use super::alarm::Alarm;
use super::attempt::tried;
use super::checks::checks;
use super::learn::{Deadline, Facts, Known, Learners, Lesson};
use super::log::{Campaign, Log};
use crate::input::TortureInput;
use crate::plan::{Disturbance, plans};
use crate::report::Progress;
use crate::ruled::by_chance;
use crate::shrink::code;
use crate::subject::Prepared;
use crate::writes_beside::WritesBeside;
use anyhow::Result;
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use opdev_pace::shares::Shares;
use opdev_steps::scenario::Scenario;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A scenario, and its plans for which its share of the time was too short.
struct Rest {
    scenario: Arc<Scenario>,
    known: Known,
    plans: Vec<Disturbance>,
}

/// A part of the campaign that has ended.
enum Ended {
    /// A scenario of the sample with this number.
    Scenario(usize, Option<Box<Rest>>),
    Other,
}

/// The scenarios of one sample.
struct OfSample {
    /// These have not ended yet.
    left: Cell<usize>,
    /// Its checks were begun.
    checked: Cell<bool>,
}

/// The scenarios of a campaign, and the time for them.
struct Schedule<'a, 'log> {
    campaign: Campaign<'a, 'log>,
    shares: RefCell<Shares>,
    samples: Vec<OfSample>,
}

/// Tries all plans of these scenarios, each with the number of its sample, and the checks of all samples.
///
/// # Errors
/// Where a finding cannot be written, or where opdev tripped over a bug of its own.
pub(super) async fn try_all(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenarios: Vec<(usize, Scenario)>,
    deadline: &Deadline,
    log: &Log<'_>,
) -> Result<()> {
    let of = |sample: usize| OfSample {
        left: Cell::new(scenarios.iter().filter(|(number, _)| *number == sample).count()),
        checked: Cell::new(false),
    };
    let schedule = &Schedule {
        campaign: Campaign { input, prepared, deadline, log },
        shares: RefCell::new(Shares::new(deadline.until, scenarios.len())),
        samples: (0..prepared.samples.len()).map(of).collect(),
    };
    let learners = Learners::begin(input, prepared, scenarios, deadline);
    schedule.run(learners).await
}

impl Schedule<'_, '_> {
    async fn run(&self, mut learners: Learners) -> Result<()> {
        let at_once = if self.campaign.prepared.subject.is_program() { usize::MAX } else { 1 };
        let mut running: FuturesUnordered<LocalBoxFuture<'_, Result<Ended>>> = FuturesUnordered::new();
        let mut waiting: VecDeque<LocalBoxFuture<'_, Result<Ended>>> = VecDeque::new();
        let mut rest: VecDeque<Box<Rest>> = VecDeque::new();
        // No other scenario says what the operator makes of these.
        let bare = self.samples.iter().enumerate().filter(|(_, sample)| sample.left.get() == 0);
        waiting.extend(bare.map(|(number, _)| self.boxed_checks(number)));
        loop {
            if learners.is_empty() && running.len() + waiting.len() < at_once {
                waiting.extend(rest.pop_front().map(|rest| self.boxed_rest(*rest)));
            }
            while running.len() < at_once
                && let Some(next) = waiting.pop_front()
            {
                running.push(next);
            }
            let room = running.len() < at_once;
            if room && learners.is_empty() && !rest.is_empty() {
                continue;
            }
            if running.is_empty() && learners.is_empty() {
                return Ok(());
            }
            let deadline = self.campaign.deadline;
            let ended = tokio::select! {
                // Once the time is over, nothing more is learned.
                () = deadline.passed(), if !learners.is_stopped() => {
                    learners.stop();
                    continue;
                }
                Some(ended) = running.next(), if !running.is_empty() => ended?,
                lesson = learners.next(), if room && !learners.is_empty() => {
                    running.extend(lesson?.map(|lesson| self.boxed_scenario(lesson)));
                    continue;
                }
            };
            if let Ended::Scenario(number, left) = ended {
                rest.extend(left);
                let sample = &self.samples[number];
                sample.left.set(sample.left.get().saturating_sub(1));
                if sample.left.get() == 0 && !sample.checked.get() {
                    waiting.push_back(self.boxed_checks(number));
                }
            }
        }
    }

    fn boxed_scenario(&self, lesson: Lesson) -> LocalBoxFuture<'_, Result<Ended>> {
        Box::pin(self.scenario(lesson))
    }

    /// The checks of a sample of which no scenario was learned.
    fn boxed_checks(&self, number: usize) -> LocalBoxFuture<'_, Result<Ended>> {
        Box::pin(async move {
            self.samples[number].checked.set(true);
            if !self.campaign.input.shutdown.is_cancelled() {
                checks(self.campaign, &self.campaign.prepared.samples[number].0, None).await?;
            }
            Ok(Ended::Other)
        })
    }

    /// The plans of a scenario for which its share of the time was too short.
    fn boxed_rest(&self, rest: Rest) -> LocalBoxFuture<'_, Result<Ended>> {
        Box::pin(async move {
            let of = (&rest.scenario, &rest.known, rest.plans);
            let left = tried(self.campaign, of, || self.campaign.deadline.is_over()).await?;
            self.campaign.log.report(|report| report.left_out += left.len());
            Ok(Ended::Other)
        })
    }

    /// Tries the plans of a scenario that is learned, and the checks of its sample, if it is the first one.
    async fn scenario(&self, lesson: Lesson) -> Result<Ended> {
        let Lesson { sample, scenario, known, .. } = &lesson;
        let known = match known {
            Some(Ok(known)) => known,
            failed => {
                self.shares.borrow_mut().next(Instant::now());
                self.campaign.log.report(|report| match failed {
                    Some(Err(error)) if !self.campaign.deadline.is_over() => {
                        report.problems.push(format!("{}: {error:#}", scenario.title()));
                    }
                    _ => report.left_out += 1,
                });
                return Ok(Ended::Scenario(*sample, None));
            }
        };
        // Its share begins with its first plan.
        let share = OnceCell::new();
        let share_over = || {
            let share = *share.get_or_init(|| self.shares.borrow_mut().next(Instant::now()));
            // While the next one is not known, there is nothing better to do.
            let is_over = share.is_some_and(|share| Instant::now() >= share) && lesson.is_next_known();
            self.campaign.deadline.is_over() || is_over
        };
        let of_sample = &self.samples[*sample];
        let plain = &self.campaign.prepared.samples[*sample].0;
        // A scenario may have its sample in another place.
        let first = !of_sample.checked.get() && scenario.sample == *plain;
        if first {
            of_sample.checked.set(true);
        }
        let checked =
            async { if first { checks(self.campaign, plain, Some(Facts::of(known))).await } else { Ok(()) } };
        let tried = self.plans(scenario, known, share_over);
        let left = if self.campaign.prepared.subject.is_program() {
            let (left, checked) = tokio::join!(tried, checked);
            checked?;
            left?
        } else {
            let left = tried.await?;
            checked.await?;
            left
        };
        let Lesson { sample, scenario, known, .. } = lesson;
        let rest = match known {
            Some(Ok(known)) if !left.is_empty() => Some(Box::new(Rest { scenario, known, plans: left })),
            _ => None,
        };
        Ok(Ended::Scenario(sample, rest))
    }

    /// Tells of a scenario that was learned, and tries its plans; gives those back for which there was no
    /// time.
    async fn plans(
        &self,
        scenario: &Arc<Scenario>,
        known: &Known,
        over: impl Fn() -> bool,
    ) -> Result<Vec<Disturbance>> {
        let learnt = known.learnt(scenario);
        self.campaign.log.tell(&Progress::Learned(learnt.clone()));
        self.campaign.log.report(|report| {
            report.learned.push(learnt);
            report.note_once(known.runs.iter().flat_map(|run| by_chance(&run.outcome.opened)));
        });
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
            self.campaign.log.found(self.campaign.input, new)?;
        }
        let writes: Vec<_> = known.runs.iter().map(|run| run.writes.clone()).collect();
        let possible = known.runs.first().map(|run| run.possible.clone()).unwrap_or_default();
        let all =
            plans(&writes, &scenario.steps, &possible, self.campaign.input.level, &self.campaign.input.only);
        self.campaign.log.tell(&Progress::Planned { plans: all.len() });
        tried(self.campaign, (scenario, known, all), over).await
    }
}

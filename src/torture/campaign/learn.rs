//! Runs of a scenario that nothing disturbs, and what they have in common. Several scenarios are learned at
//! once, in tasks of their own, while the plans of others are tried.

use crate::input::TortureInput;
use crate::judge::{Learned, Outcome};
use crate::operator::Subject;
use crate::plan::{Disturbance, Write};
use crate::report::Learnt;
use crate::run::{Ran, RunInput, run};
use crate::subject::Prepared;
use anyhow::{Context as _, Result, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use opdev_object::meta::ObjectRef;
use opdev_pace::learning::Learning;
use opdev_pace::turns::Turn;
use opdev_pace::windows::{self, FIRST_WINDOW, Windows, patient};
use opdev_steps::scenario::{Scenario, Step};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Undisturbed runs of each scenario.
pub(crate) const UNDISTURBED: u32 = 3;

/// Runs one scenario.
pub(crate) async fn once(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    disturbance: Option<Disturbance>,
    (seed, windows): (u64, Windows),
) -> Result<Ran> {
    let turn = prepared.turns.urgent().await;
    in_turn(turn, input, prepared, scenario, disturbance, (seed, windows), async |input| run(&input).await)
        .await
}

/// Does something with a plane on a thread of its own, so that whatever it does follows from its seed. The
/// caller has waited for the turn.
pub(crate) async fn in_turn<T: Send + 'static>(
    turn: Turn,
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    disturbance: Option<Disturbance>,
    (seed, windows): (u64, Windows),
    work: impl AsyncFnOnce(RunInput<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (of_run, scenario) = (Arc::clone(prepared), Arc::clone(scenario));
    let (limit, exec, shutdown) = (input.limit, input.exec.clone(), input.shutdown.clone());
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let subject = seeded(&of_run.subject, seed);
        let input = RunInput {
            subject: &subject,
            definitions: &of_run.definitions,
            scenario: &scenario,
            disturbance: disturbance.as_ref(),
            windows,
            limit,
            exec: &exec,
            shutdown,
        };
        let ran = runtime.block_on(work(input));
        runtime.shutdown_background();
        ran
    };
    let ended = tokio::task::spawn_blocking(work).await.context("a run tripped over a bug in opdev")?;
    prepared.has_run();
    drop(turn);
    ended
}

fn seeded(subject: &Subject, seed: u64) -> Subject {
    match subject {
        Subject::Own { sources, settings } => {
            let mut settings = settings.clone();
            settings.fresh_randomness = Some(seed);
            Subject::Own { sources: Arc::clone(sources), settings }
        }
        Subject::Program(_) => subject.clone(),
    }
}

/// A scenario that was learned.
pub(crate) struct Known {
    pub(crate) learned: Learned,
    pub(crate) runs: Vec<Ran>,
    pub(crate) windows: Windows,
}

impl Known {
    /// The window where an alarm is tried again.
    pub(crate) fn patient(&self) -> Duration {
        patient(self.windows.longest())
    }

    /// The report's line of it.
    pub(crate) fn learnt(&self, scenario: &Scenario) -> Learnt {
        Learnt {
            scenario: scenario.name.clone(),
            sample: scenario.sample.path.clone(),
            masked: self.learned.masked(),
            runs: self.runs.len() as u32,
            took: self.runs.iter().map(|run| run.took).sum(),
            plans: BTreeMap::new(),
        }
    }

    /// The writes of the first undisturbed run.
    pub(crate) fn writes(&self) -> &[Write] {
        self.runs.first().map(|run| run.writes.as_slice()).unwrap_or_default()
    }
}

/// Runs a scenario undisturbed, so often and with this window for the first run, and takes what its runs have
/// in common.
pub(crate) async fn learn(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    (count, mut window): (u32, Duration),
) -> Result<Known> {
    let one = |number: u32, window: Duration| {
        let seed = input.seed.wrapping_add(u64::from(number));
        once(input, prepared, scenario, None, (seed, window.into()))
    };
    let tells = prepared.subject.tells();
    window = windows::first(window, tells || !prepared.subject.is_program());
    let mut runs = vec![one(0, window).await?];
    // All else is compared with it, so it is never judged too early.
    window = windows::after(window, runs[0].gap());
    let others = stream::iter(1..count).map(|number| one(number, window)).buffered(prepared.most);
    runs.extend(others.try_collect::<Vec<Ran>>().await?);
    let gaps: Vec<&[Duration]> = runs.iter().map(|run| run.gaps.as_slice()).collect();
    let windows = Windows::learned(tells, &gaps);
    let outcomes: Vec<Outcome> = runs.iter().map(|run| run.outcome.clone()).collect();
    let learned = Learned::from(&outcomes);
    if learned.is_unsteady() {
        let some: Vec<&str> = learned.unsteady().take(3).map(String::as_str).collect();
        bail!("undisturbed runs differ too much to compare anything with them: {}", some.join(", "));
    }
    Ok(Known { learned, runs, windows })
}

/// When nothing more is begun: the time is over, or the user has broken it off.
#[derive(Clone)]
pub(crate) struct Deadline {
    pub(crate) until: Option<Instant>,
    pub(crate) shutdown: CancellationToken,
}

impl Deadline {
    /// Waits for the end of the time; for ever where there is none.
    pub(crate) async fn passed(&self) {
        match self.until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until) || self.shutdown.is_cancelled()
    }
}

/// A scenario that was to be learned.
pub(crate) struct Lesson {
    /// Its place among all scenarios.
    number: usize,
    /// The number of its sample.
    pub(crate) sample: usize,
    pub(crate) scenario: Arc<Scenario>,
    /// That in which its undisturbed runs agree; `None` where the time was over before.
    pub(crate) known: Option<Result<Known>>,
    /// True for each scenario that was learned so far.
    learned: Arc<[AtomicBool]>,
}

impl Lesson {
    /// Returns true if nobody has to wait for the scenario that follows.
    pub(crate) fn is_next_known(&self) -> bool {
        self.learned.get(self.number + 1).is_none_or(|learned| learned.load(Ordering::Relaxed))
    }
}

/// All scenarios of a campaign, which are learned in their order. Learning ends where this is dropped.
pub(crate) struct Learners {
    tasks: VecDeque<AbortOnDropHandle<Lesson>>,
    learning: Arc<Learning>,
    /// Ends the runs, once the time is over.
    shutdown: CancellationToken,
}

impl Learners {
    /// Begins to learn these scenarios, each with the number of its sample.
    pub(crate) fn begin(
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        scenarios: Vec<(usize, Scenario)>,
        deadline: &Deadline,
    ) -> Learners {
        let shutdown = input.shutdown.child_token();
        let input = Arc::new(TortureInput { shutdown: shutdown.clone(), ..input.clone() });
        let learning = Arc::new(Learning::new(&prepared.turns, UNDISTURBED as usize));
        let learned: Arc<[AtomicBool]> = scenarios.iter().map(|_| AtomicBool::new(false)).collect();
        let learner = |(number, (sample, scenario)): (usize, (usize, Scenario))| {
            let (input, prepared, learning) =
                (Arc::clone(&input), Arc::clone(prepared), Arc::clone(&learning));
            let (deadline, scenario, learned) = (deadline.clone(), Arc::new(scenario), Arc::clone(&learned));
            AbortOnDropHandle::new(tokio::spawn(async move {
                learning.may_begin(number).await;
                let how = (UNDISTURBED, FIRST_WINDOW);
                let known = match deadline.is_over() {
                    true => None,
                    false => Some(learn(&input, &prepared, &scenario, how).await),
                };
                if let Some(learned) = learned.get(number) {
                    learned.store(true, Ordering::Relaxed);
                }
                Lesson { number, sample, scenario, known, learned }
            }))
        };
        let tasks = scenarios.into_iter().enumerate().map(learner).collect();
        Learners { tasks, learning, shutdown }
    }

    /// Returns true if all of them were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The next scenario, once it is learned. May be broken off: then it is the next one again.
    ///
    /// # Errors
    /// Where opdev tripped over a bug of its own.
    pub(crate) async fn next(&mut self) -> Result<Option<Lesson>> {
        let Some(task) = self.tasks.front_mut() else { return Ok(None) };
        let lesson = task.await.context("learning a scenario tripped over a bug in opdev");
        self.tasks.pop_front();
        self.learning.take();
        lesson.map(Some)
    }

    /// Ends all runs that are still under way.
    pub(crate) fn stop(&self) {
        self.shutdown.cancel();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shutdown.is_cancelled()
    }
}

impl Drop for Learners {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The steps in words.
pub(crate) fn words(scenario: &Scenario) -> Vec<String> {
    scenario.steps.iter().map(Step::words).collect()
}

/// The objects that the operator makes of a sample, and how long one waits for it.
pub(crate) struct Facts {
    /// Objects with the same name in each run, at the end of the first step.
    pub(crate) made: Vec<Arc<Value>>,
    /// How long a program has to be quiet: in a first run, and where it is tried again.
    pub(crate) windows: (Duration, Duration),
}

impl Facts {
    /// From runs that nothing disturbed.
    pub(crate) fn of(known: &Known) -> Facts {
        let all: Vec<&[Arc<Value>]> = known.runs.iter().map(|run| run.made.as_slice()).collect();
        Facts { made: in_each(&all), windows: (known.windows.longest(), known.patient()) }
    }
}

/// Objects that each run made under the same name.
fn in_each(runs: &[&[Arc<Value>]]) -> Vec<Arc<Value>> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let key = |object: &Arc<Value>| ObjectRef::of(object).map(|found| found.key());
    let in_all =
        |object: &&Arc<Value>| others.iter().all(|run| run.iter().any(|other| key(object) == key(other)));
    first.iter().filter(in_all).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_objects_with_one_name_in_every_run_are_known() {
        let map = |name: &str, data: &str| {
            Arc::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "uid": data},
                "data": {"a": data}}))
        };
        let one = [map("fixed", "1"), map("x-abc", "1")];
        let other = [map("x-def", "2"), map("fixed", "2")];
        let found = in_each(&[&one, &other]);
        let names: Vec<_> = found.iter().map(|object| object["metadata"]["name"].as_str()).collect();
        assert_eq!(names, [Some("fixed")]);
    }
}

//! The whole of it: learns each scenario from undisturbed runs, tries its plans, tries alarms again, and
//! makes findings of those that come again.

use super::attempt::{Attempt, Bench};
use super::fields::campaign::{fields, replay_field};
use super::fields::mutation::Mutation;
use super::input::{NoEnvironment, TortureInput, unlearned};
use super::judge::{Difference, Learned, Outcome};
use super::operator::Subject;
use super::plan::{Class, Disturbance, Write, plans};
use super::replay::Replay;
use super::report::Progress;
use super::report::{Finding, Learnt, Report};
use super::run::{Ran, RunInput, run};
use super::scenario::{Sample, Scenario, Step, scenarios};
use super::shrink::{Small, code, shrink};
use super::subject::{Prepared, prepare};
use super::writes_beside::{WritesBeside, beside};
use anyhow::{Context as _, Result, bail};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Undisturbed runs of each scenario.
pub(super) const UNDISTURBED: u32 = 3;
/// How long a program has to be quiet in the first run.
pub(super) const FIRST_WINDOW: Duration = Duration::from_millis(1500);
/// The first window of a program that tells nothing of its reconciles.
const UNTOLD: Duration = Duration::from_millis(3500);
/// The shortest and the longest time for that in all others.
const WINDOWS: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(5));
/// The shortest one for a program that tells of its reconciles: while one is under way or comes soon, it is
/// not quiet.
const TOLD: Duration = Duration::from_millis(150);
/// A program is given more time where it ended otherwise: it may have been about to go on.
const PATIENT: (u32, Duration) = (3, Duration::from_secs(2));

/// Runs one scenario.
pub(super) async fn once(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    disturbance: Option<Disturbance>,
    (seed, window): (u64, Duration),
) -> Result<Ran> {
    on_a_thread(input, prepared, scenario, disturbance, (seed, window), async |input| run(&input).await).await
}

/// Does something with a plane on a thread of its own, so that whatever it does follows from its seed.
pub(super) async fn on_a_thread<T: Send + 'static>(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    disturbance: Option<Disturbance>,
    (seed, window): (u64, Duration),
    work: impl AsyncFnOnce(RunInput<'_>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let (prepared, scenario) = (Arc::clone(prepared), Arc::clone(scenario));
    let (limit, exec, shutdown) = (input.limit, input.exec.clone(), input.shutdown.clone());
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let subject = seeded(&prepared.subject, seed);
        let input = RunInput {
            subject: &subject,
            definitions: &prepared.definitions,
            scenario: &scenario,
            disturbance: disturbance.as_ref(),
            window,
            limit,
            exec: &exec,
            shutdown,
        };
        let ran = runtime.block_on(work(input));
        runtime.shutdown_background();
        ran
    };
    tokio::task::spawn_blocking(work).await.context("a run tripped over a bug in opdev")?
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

/// An alarm on its way to a finding.
pub(super) struct Alarm {
    pub(super) scenario: Arc<Scenario>,
    pub(super) disturbance: Option<Disturbance>,
    pub(super) field: Option<Mutation>,
    pub(super) differences: Vec<Difference>,
    /// How often it came, of how many runs.
    pub(super) times: (u32, u32),
    /// The places in the operator's code: where it was disturbed, and where what differs is written.
    pub(super) code: (Option<String>, Option<String>),
    /// Writes of the operator undisturbed and disturbed.
    pub(super) writes: WritesBeside,
    /// The smallest plan with the same difference, where there is a smaller one.
    pub(super) small: Option<Small>,
}

/// A scenario that was learned.
pub(super) struct Known {
    pub(super) learned: Learned,
    runs: Vec<Ran>,
    pub(super) window: Duration,
}

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
        for scenario in scenarios(sample, scale.as_deref()) {
            let wanted = is_wanted(input, &scenario.name);
            if !wanted || over() {
                report.left_out += usize::from(wanted);
                continue;
            }
            let scenario = Arc::new(scenario);
            let name = format!("{} of {}", scenario.name, scenario.sample.path);
            let known = match learn(input, &prepared, &scenario, (UNDISTURBED, FIRST_WINDOW)).await {
                Ok(known) => known,
                Err(_) if input.shutdown.is_cancelled() => break,
                Err(error) => {
                    report.problems.push(format!("{name}: {error:#}"));
                    continue;
                }
            };
            let learnt = Learnt {
                scenario: scenario.name.clone(),
                sample: scenario.sample.path.clone(),
                masked: known.learned.masked(),
                took: known.runs.iter().map(|run| run.took).sum(),
                plans: BTreeMap::new(),
            };
            tell(&Progress::Learned(learnt.clone()));
            report.learned.push(learnt);
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
                found(input, new, &mut alarms, &mut report, &mut tell)?;
            }
            tried(input, &prepared, (&scenario, &known), over, &mut alarms, &mut report, &mut tell).await?;
        }
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

/// The number of scenarios to be learned.
fn wanted_scenarios(input: &TortureInput, prepared: &Prepared) -> usize {
    let of = |(sample, scale): &(Sample, Option<String>)| match input.fields {
        true => 1,
        false => scenarios(sample, scale.as_deref()).iter().filter(|one| is_wanted(input, &one.name)).count(),
    };
    prepared.samples.iter().map(of).sum()
}

fn is_wanted(input: &TortureInput, scenario: &str) -> bool {
    input.scenarios.is_empty() || input.scenarios.iter().any(|name| name == scenario)
}

impl Known {
    /// The window where an alarm is tried again.
    pub(super) fn patient(&self) -> Duration {
        (self.window * PATIENT.0).clamp(PATIENT.1, WINDOWS.1)
    }

    /// The writes of the first undisturbed run.
    fn writes(&self) -> &[Write] {
        self.runs.first().map(|run| run.writes.as_slice()).unwrap_or_default()
    }
}

/// Runs a scenario undisturbed, so often and with this window for the first run, and takes what its runs have
/// in common.
pub(super) async fn learn(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Arc<Scenario>,
    (count, mut window): (u32, Duration),
) -> Result<Known> {
    let one = |number: u32, window| {
        once(input, prepared, scenario, None, (input.seed.wrapping_add(u64::from(number)), window))
    };
    if prepared.subject.is_program() && !prepared.subject.tells() {
        window = window.max(UNTOLD);
    }
    let mut runs = vec![one(0, window).await?];
    // All else is compared with it, so it is never judged too early.
    window = window.max(runs[0].gap * 3 / 2).min(WINDOWS.1);
    let others = stream::iter(1..count).map(|number| one(number, window)).buffered(input.parallel.max(1));
    runs.extend(others.try_collect::<Vec<Ran>>().await?);
    let gap = runs.iter().map(|run| run.gap).max().unwrap_or_default();
    let least = if prepared.subject.tells() { TOLD } else { WINDOWS.0 };
    let window = (gap * 3 / 2).clamp(least, WINDOWS.1);
    let outcomes: Vec<Outcome> = runs.iter().map(|run| run.outcome.clone()).collect();
    let learned = Learned::from(&outcomes);
    if learned.is_unsteady() {
        let some: Vec<&str> = learned.unsteady().take(3).map(String::as_str).collect();
        bail!("undisturbed runs differ too much to compare anything with them: {}", some.join(", "));
    }
    Ok(Known { learned, runs, window })
}

/// Tries the plans of a scenario.
async fn tried(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    (scenario, known): (&Arc<Scenario>, &Known),
    over: impl Fn() -> bool,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<()> {
    let writes: Vec<_> = known.runs.iter().map(|run| run.writes.clone()).collect();
    let possible = known.runs.first().map(|run| run.possible.clone()).unwrap_or_default();
    let all = plans(&writes, &scenario.steps, &possible, input.level, &input.only);
    tell(&Progress::Planned { plans: all.len() });
    let steps = words(scenario);
    let over = &over;
    let bench = &Bench { input, prepared, scenario, known, steps: &steps };
    let one = |disturbance: Disturbance| async move {
        if over() {
            return None;
        }
        let attempt = bench.attempt(&disturbance).await;
        Some((disturbance, attempt))
    };
    let mut runs = stream::iter(all).map(one).buffered(input.parallel.max(1));
    while let Some(ended) = runs.next().await {
        let Some((disturbance, attempt)) = ended else {
            report.left_out += 1;
            continue;
        };
        let class = disturbance.class();
        let attempt = match attempt {
            Ok(attempt) => attempt,
            Err(_) if input.shutdown.is_cancelled() => continue,
            Err(error) => {
                let words = disturbance.words(&scenario.steps);
                report
                    .problems
                    .push(format!("{} of {}, {words}: {error:#}", scenario.name, scenario.sample.path));
                continue;
            }
        };
        report.count(class);
        if !attempt.ran.met {
            report.unmet += 1;
        }
        tell(&Progress::Tried {
            scenario: scenario.name.clone(),
            class,
            plan: disturbance.words(&scenario.steps),
            differences: attempt.differences.len(),
            took: attempt.ran.took,
        });
        if attempt.is_quiet() {
            continue;
        }
        report.alarms += 1;
        if attempt.is_flaky() {
            report.flaky += 1;
            continue;
        }
        let Attempt { ran, differences, times } = attempt;
        let mut new = Alarm {
            scenario: Arc::clone(scenario),
            writes: beside(known.writes(), &ran.writes, (&disturbance, &disturbance.words(&scenario.steps))),
            code: (ran.met_at, code(&differences, &ran.writes, known.writes())),
            small: None,
            disturbance: Some(disturbance.clone()),
            field: None,
            differences,
            times,
        };
        if !alarms.iter().any(|known| known.differences == new.differences) {
            let plan = (scenario, known.patient());
            new.small = shrink(input, prepared, plan, &disturbance, &new.differences, over).await;
        }
        found(input, new, alarms, report, tell)?;
    }
    Ok(())
}

/// The steps in words.
pub(super) fn words(scenario: &Scenario) -> Vec<String> {
    scenario.steps.iter().map(Step::words).collect()
}

/// Makes a finding of an alarm, unless it is one that is known: those with the same differences are one.
pub(super) fn found(
    input: &TortureInput,
    new: Alarm,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<()> {
    let same = |known: &Alarm| known.differences == new.differences;
    if let Some(at) = alarms.iter().position(same) {
        report.findings[at].alike += 1;
        return Ok(());
    }
    let (scenario, disturbance, differences) = match &new.small {
        Some(small) => (&small.scenario, Some(&small.disturbance), &small.differences),
        None => (&new.scenario, new.disturbance.as_ref(), &new.differences),
    };
    // Other plans may have one smallest plan.
    let is_smallest = |known: &Alarm| {
        let small = known.small.as_ref();
        small
            .is_some_and(|known| known.differences == *differences && Some(&known.disturbance) == disturbance)
    };
    if let Some(at) = alarms.iter().position(is_smallest) {
        report.findings[at].alike += 1;
        return Ok(());
    }
    let number = alarms.len() + 1;
    let replay = Replay {
        seed: input.seed,
        scenario: (**scenario).clone(),
        disturbance: disturbance.cloned(),
        field: new.field.clone(),
        exec: input.exec.iter().map(ToString::to_string).collect(),
        differences: differences.clone(),
    };
    let file = match &input.folder {
        Some(folder) => {
            let path = format!(".opdev/torture/{number}.yaml");
            folder.write(&format!("{number}.yaml"), replay.text(&path)?.as_bytes())?;
            Some(path)
        }
        None => None,
    };
    let finding = Finding {
        number,
        scenario: new.scenario.name.clone(),
        sample: new.scenario.sample.path.clone(),
        class: match &new.field {
            Some(_) => Some(Class::Field),
            None => new.disturbance.as_ref().map(Disturbance::class),
        },
        how: match (&new.field, disturbance) {
            (Some(field), _) => field.to_string(),
            (None, Some(disturbance)) => disturbance.words(&scenario.steps),
            (None, None) => "nothing disturbed it: each undisturbed run ends like that".to_owned(),
        },
        steps: words(scenario),
        differences: differences.clone(),
        place: new.code.0.clone(),
        code: new.code.1.clone(),
        writes: new.writes.clone(),
        times: new.times,
        alike: 0,
        known: false,
        file,
    };
    tell(&Progress::Found(finding.clone()));
    report.findings.push(finding);
    alarms.push(new);
    Ok(())
}

/// The outcome of running the file of a finding again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The disturbance in words.
    pub how: String,
    /// What is different now.
    pub differences: Vec<Difference>,
    /// True if some of it was different then, too.
    pub again: bool,
    /// True if the disturbance took place.
    pub met: bool,
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
    let known = learn(input, &prepared, &scenario, (UNDISTURBED, FIRST_WINDOW)).await?;
    let Some(disturbance) = replay.disturbance else {
        let differences = known.learned.own();
        let again = differences.iter().any(|one| replay.differences.contains(one));
        return Ok(Replayed { how: "nothing disturbs it".to_owned(), differences, again, met: true });
    };
    let class: Class = disturbance.class();
    let how = disturbance.words(&scenario.steps);
    let (steps, from) = (words(&scenario), disturbance.effective_from());
    let ran = once(input, &prepared, &scenario, Some(disturbance), (input.seed, known.patient())).await?;
    let differences = known.learned.judge(&ran.outcome, class, (&steps, from), &input.ignored);
    let again = differences.iter().any(|one| replay.differences.contains(one));
    Ok(Replayed { how, differences, again, met: ran.met })
}

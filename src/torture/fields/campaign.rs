//! One field at a time: what changes by itself is learned, then each field of a sample is changed by itself.

use super::mutation::{self, Mutation, changed, of_references, optional_parts};
use super::reach::Reach;
use super::run::{FieldRan, effect, judge, run_field, varying};
use crate::campaign::alarm::{Alarm, found};
use crate::campaign::attempt::waiting;
use crate::campaign::learn::{UNDISTURBED, in_turn};
use crate::input::TortureInput;
use crate::judge::Difference;
use crate::plan::{Class, Level};
use crate::replay::Replayed;
use crate::report::{Learnt, Progress, Report};
use crate::subject::Prepared;
use crate::writes_beside::WritesBeside;
use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use opdev_pace::turns::Turn;
use opdev_pace::windows::{FIRST_WINDOW, learned_window, patient};
use opdev_steps::scenario::{Sample, Scenario};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Parts that a sample lacks, as far as they are tried at level normal.
const MOST_PARTS: usize = 6;

/// A sample whose fields are changed.
struct FieldWork {
    scenario: Arc<Scenario>,
    schema: Arc<Value>,
    /// Fields that differ without any change.
    varying: BTreeSet<(String, String)>,
    /// True if the operator cannot serve the sample as it is.
    fails: bool,
    /// True if the operator makes pods, or what has a template for them.
    makes_pods: bool,
    window: Duration,
    took: Duration,
}

/// The schema of what a sample is about.
fn schema_of(prepared: &Prepared, sample: &Sample) -> Result<Value> {
    prepared.schema(sample).cloned().context("its kind has no CRD in this project")
}

impl FieldWork {
    /// Learns what differs by itself.
    async fn learn(
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        schema: &Arc<Value>,
        (name, sample): (String, Sample),
    ) -> Result<FieldWork> {
        let scenario = Scenario { name, sample, steps: Vec::new() };
        let mut work = FieldWork {
            scenario: Arc::new(scenario),
            schema: Arc::clone(schema),
            varying: BTreeSet::new(),
            makes_pods: false,
            fails: false,
            window: FIRST_WINDOW,
            took: Duration::ZERO,
        };
        let undisturbed = |number: u32| {
            let seed = input.seed.wrapping_add(u64::from(number));
            work.run(input, prepared, None, (seed, work.window))
        };
        let runs = stream::iter(0..UNDISTURBED).map(undisturbed).buffered(prepared.most);
        let runs: Vec<FieldRan> = runs.try_collect().await?;
        work.varying = varying(&runs);
        work.fails = runs.iter().any(|run| run.failed_before);
        work.makes_pods = runs.iter().flat_map(|run| &run.base).any(|(id, fields)| {
            id.starts_with("Pod ") || fields.keys().any(|path| path.starts_with(".spec.template.spec"))
        });
        work.took = runs.iter().map(|run| run.took).sum();
        let window = learned_window(prepared.subject.tells(), runs.iter().map(|run| run.gap));
        // A program that only prints its errors needs the time to do so again and again.
        work.window = if prepared.subject.tells() { window } else { window.max(FIRST_WINDOW) };
        Ok(work)
    }

    /// Makes a change, and again where that ends otherwise.
    async fn attempt(
        &self,
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        (mutation, turn): (Mutation, Turn),
    ) -> Result<FieldAttempt> {
        let one =
            |turn, window| self.run_in(turn, input, prepared, Some(mutation.clone()), (input.seed, window));
        let ran = one(turn, self.window).await?;
        let differences = match ran.refused {
            Some(_) => Vec::new(),
            None => judge(&ran, &self.varying, &input.ignored),
        };
        let mut times = (1, 1);
        if !differences.is_empty() {
            for _ in 0..2 {
                let again = one(prepared.turns.urgent().await, patient(self.window)).await;
                let same = again.is_ok_and(|again| {
                    let again = judge(&again, &self.varying, &input.ignored);
                    differences.iter().any(|one| again.contains(one))
                });
                times = (times.0 + u32::from(same), times.1 + 1);
            }
        }
        Ok(FieldAttempt { mutation, ran, differences, times })
    }

    async fn run(
        &self,
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        mutation: Option<Mutation>,
        seed: (u64, Duration),
    ) -> Result<FieldRan> {
        self.run_in(prepared.turns.urgent().await, input, prepared, mutation, seed).await
    }

    async fn run_in(
        &self,
        turn: Turn,
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        mutation: Option<Mutation>,
        (seed, window): (u64, Duration),
    ) -> Result<FieldRan> {
        let schema = Arc::clone(&self.schema);
        let seed = (seed, window.into());
        in_turn(turn, input, prepared, &self.scenario, None, seed, async move |input| {
            run_field(&input, &schema, mutation.as_ref()).await
        })
        .await
    }
}

/// Returns true if the user asks for a field, or for nothing in particular.
fn is_wanted(input: &TortureInput, mutation: &Mutation) -> bool {
    let path = mutation.of.iter().chain(&mutation.path).cloned().collect::<Vec<_>>().join(".");
    let begins = |wanted: &String| path.starts_with(wanted.trim_start_matches('.'));
    input.field.is_empty() || input.field.iter().any(begins)
}

/// A sample with the changes that are tried on it.
struct Base {
    /// The name of its scenario.
    name: String,
    sample: Sample,
    mutations: Vec<Mutation>,
}

/// The sample as it is, and with each part that it lacks: fields below one mean nothing without it.
fn bases(input: &TortureInput, schema: &Value, sample: &Sample) -> Vec<Base> {
    let Some(object) = sample.objects.first() else { return Vec::new() };
    let mut mutations = mutation::mutations(schema, object);
    mutations.extend(of_references(&sample.others));
    let mut found = vec![Base { name: "fields".to_owned(), sample: sample.clone(), mutations }];
    let parts = match input.level {
        Level::Quick => 0,
        Level::Normal => MOST_PARTS,
        Level::Deep => usize::MAX,
    };
    for (part, value) in optional_parts(schema, object).into_iter().take(parts) {
        let mut sample = sample.clone();
        let with = changed(schema, object, &Mutation::new(part.clone(), Some(value)));
        let below =
            |mutation: &Mutation| mutation.path.starts_with(&part) && mutation.path.len() > part.len();
        let mutations = mutation::mutations(schema, &with).into_iter().filter(below).collect();
        sample.objects[0] = with;
        found.push(Base { name: format!("fields with .{}", part.join(".")), sample, mutations });
    }
    for base in &mut found {
        base.mutations.retain(|mutation| is_wanted(input, mutation));
    }
    found.retain(|base| !base.mutations.is_empty());
    found
}

/// Changes each field of a sample by itself.
pub(crate) async fn fields(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    sample: &Sample,
    over: impl Fn() -> bool,
    alarms: &mut Vec<Alarm>,
    report: &mut Report,
    tell: &mut impl FnMut(&Progress),
) -> Result<()> {
    let schema = match schema_of(prepared, sample) {
        Ok(schema) => Arc::new(schema),
        Err(error) => {
            report.problems.push(format!("fields of {}: {error:#}", sample.path));
            return Ok(());
        }
    };
    let mut reach = Reach::default();
    let mut pods = false;
    for (at, base) in bases(input, &schema, sample).into_iter().enumerate() {
        if at > 0 && over() {
            report.left_out += base.mutations.len();
            continue;
        }
        let name = base.name.clone();
        let work = match FieldWork::learn(input, prepared, &schema, (base.name, base.sample)).await {
            Ok(work) if at == 0 || !work.fails => work,
            Err(_) if input.shutdown.is_cancelled() => return Ok(()),
            Err(error) if at == 0 => {
                report.problems.push(format!("{name} of {}: {error:#}", sample.path));
                return Ok(());
            }
            // Nobody has said that the sample may have this part, or that it needs nothing more.
            Ok(_) | Err(_) => {
                report
                    .notes
                    .push(format!("{name}: not tried, the operator does not serve the sample like that"));
                continue;
            }
        };
        pods |= work.makes_pods;
        let learnt = Learnt {
            scenario: work.scenario.name.clone(),
            sample: sample.path.clone(),
            masked: work.varying.len(),
            runs: UNDISTURBED,
            took: work.took,
            plans: BTreeMap::new(),
        };
        tell(&Progress::Learned(learnt.clone()));
        report.learned.push(learnt);
        tell(&Progress::Planned { plans: base.mutations.len() });
        let mut round = Round { input, prepared, work: &work, reach: &mut reach };
        round.all(base.mutations, &over, alarms, report, tell).await?;
    }
    if let Some(object) = sample.objects.first() {
        report.notes.extend(reach.silent(object, pods));
    }
    Ok(())
}

/// A change that was tried.
struct FieldAttempt {
    mutation: Mutation,
    ran: FieldRan,
    differences: Vec<Difference>,
    /// How often a difference came, of how many runs.
    times: (u32, u32),
}

/// The changes of one base.
struct Round<'a> {
    input: &'a TortureInput,
    prepared: &'a Arc<Prepared>,
    work: &'a FieldWork,
    reach: &'a mut Reach,
}

impl Round<'_> {
    async fn all(
        &mut self,
        mutations: Vec<Mutation>,
        over: &impl Fn() -> bool,
        alarms: &mut Vec<Alarm>,
        report: &mut Report,
        tell: &mut impl FnMut(&Progress),
    ) -> Result<()> {
        let (input, prepared, work) = (self.input, self.prepared, self.work);
        let one = |mutation: Mutation| async move {
            let turn = prepared.turns.plan().await;
            if over() {
                return None;
            }
            let words = mutation.to_string();
            Some((words, work.attempt(input, prepared, (mutation, turn)).await))
        };
        let mut runs = stream::iter(mutations).map(one).buffered(waiting(prepared));
        while let Some(ended) = runs.next().await {
            let Some((words, attempt)) = ended else {
                report.left_out += 1;
                continue;
            };
            match attempt {
                Ok(attempt) => self.judge(attempt, alarms, report, tell)?,
                Err(_) if input.shutdown.is_cancelled() => {}
                Err(error) => {
                    let sample = &work.scenario.sample.path;
                    report.problems.push(format!("fields of {sample}, {words}: {error:#}"));
                }
            }
        }
        Ok(())
    }

    fn judge(
        &mut self,
        attempt: FieldAttempt,
        alarms: &mut Vec<Alarm>,
        report: &mut Report,
        tell: &mut impl FnMut(&Progress),
    ) -> Result<()> {
        let FieldAttempt { mutation, ran, differences, times } = attempt;
        let (input, work) = (self.input, self.work);
        report.count(Class::Field);
        if ran.refused.is_some() {
            report.refused += 1;
            return Ok(());
        }
        let effect = effect(&ran, &work.varying);
        if ran.late {
            report.notes.push(format!(
                "{mutation}: a new object gets it, one that was there before has not got it; watch what the \
                 custom resource names"
            ));
        }
        if let Some((error, why)) = ran.excused.first_key_value() {
            report.notes.push(format!("{mutation}: {error}, {why}"));
        }
        if differences.is_empty() && effect.is_none() {
            report.without_effect.push(format!("{mutation}"));
        }
        if mutation.of.is_none() && (differences.is_empty() || effect.is_some()) {
            self.reach.saw(&mutation.path, effect);
        }
        tell(&Progress::Tried {
            scenario: work.scenario.name.clone(),
            class: Class::Field,
            plan: mutation.to_string(),
            differences: differences.len(),
            took: ran.took,
        });
        if differences.is_empty() {
            return Ok(());
        }
        report.alarms += 1;
        if times.0 == 1 {
            report.flaky += 1;
            return Ok(());
        }
        let new = Alarm {
            scenario: Arc::clone(&work.scenario),
            disturbance: None,
            field: Some(mutation),
            differences,
            times,
            code: (None, None),
            writes: WritesBeside::default(),
            small: None,
        };
        found(input, new, alarms, report, tell)
    }
}

/// Runs the change of a file again.
pub(crate) async fn replay_field(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Scenario,
    mutation: Mutation,
    before: &[Difference],
) -> Result<Replayed> {
    let schema = Arc::new(schema_of(prepared, &scenario.sample)?);
    let of = (scenario.name.clone(), scenario.sample.clone());
    let work = FieldWork::learn(input, prepared, &schema, of).await?;
    let how = mutation.to_string();
    let ran = work.run(input, prepared, Some(mutation), (input.seed, patient(work.window))).await?;
    let differences = judge(&ran, &work.varying, &input.ignored);
    let again = differences.iter().any(|one| before.contains(one));
    Ok(Replayed { how, differences, again, met: ran.refused.is_none() })
}

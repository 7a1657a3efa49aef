//! One field at a time: what changes by itself is learned, then each field of a sample is changed by itself.

use super::mutation::{Mutation, mutations, schema};
use super::run::{FieldRan, has_effect, judge, run_field, varying};
use crate::campaign::{Alarm, FIRST_WINDOW, Replayed, UNDISTURBED, found, on_a_thread};
use crate::input::TortureInput;
use crate::judge::Difference;
use crate::plan::Class;
use crate::report::{Learnt, Progress, Report};
use crate::scenario::{Sample, Scenario};
use crate::subject::Prepared;
use crate::writes_beside::WritesBeside;
use anyhow::{Context as _, Result};
use futures::stream::{self, StreamExt as _};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// A sample whose fields are changed.
struct FieldWork {
    scenario: Arc<Scenario>,
    schema: Arc<Value>,
    /// Fields that differ without any change.
    varying: BTreeSet<(String, String)>,
    window: Duration,
    took: Duration,
}

impl FieldWork {
    /// Learns what differs by itself.
    async fn learn(input: &TortureInput, prepared: &Arc<Prepared>, sample: &Sample) -> Result<FieldWork> {
        let first = sample.objects.first().context("the sample has no object")?;
        let definitions = prepared.definitions.iter().map(|one| &**one);
        let schema = schema(definitions, first).cloned().context("its kind has no CRD in this project")?;
        let scenario = Scenario { name: "fields".to_owned(), sample: sample.clone(), steps: Vec::new() };
        let mut work = FieldWork {
            scenario: Arc::new(scenario),
            schema: Arc::new(schema),
            varying: BTreeSet::new(),
            window: FIRST_WINDOW,
            took: Duration::ZERO,
        };
        let mut runs = Vec::new();
        for number in 0..UNDISTURBED {
            runs.push(work.run(input, prepared, None, input.seed.wrapping_add(u64::from(number))).await?);
        }
        work.varying = varying(&runs);
        work.took = runs.iter().map(|run| run.took).sum();
        Ok(work)
    }

    async fn run(
        &self,
        input: &TortureInput,
        prepared: &Arc<Prepared>,
        mutation: Option<Mutation>,
        seed: u64,
    ) -> Result<FieldRan> {
        let schema = Arc::clone(&self.schema);
        on_a_thread(input, prepared, &self.scenario, None, (seed, self.window), async move |input| {
            run_field(&input, &schema, mutation.as_ref()).await
        })
        .await
    }
}

/// The changes of a sample that are asked for.
fn wanted(input: &TortureInput, work: &FieldWork, sample: &Sample) -> Vec<Mutation> {
    let is_wanted = |mutation: &Mutation| {
        let path = format!(".{}", mutation.path.join("."));
        input.field.is_empty()
            || input.field.iter().any(|one| path.starts_with(&format!(".{}", one.trim_start_matches('.'))))
    };
    let all = sample.objects.first().map(|object| mutations(&work.schema, object)).unwrap_or_default();
    all.into_iter().filter(is_wanted).collect()
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
    let work = match FieldWork::learn(input, prepared, sample).await {
        Ok(work) => work,
        Err(_) if input.shutdown.is_cancelled() => return Ok(()),
        Err(error) => {
            report.problems.push(format!("fields of {}: {error:#}", sample.path));
            return Ok(());
        }
    };
    let learnt = Learnt {
        scenario: "fields".to_owned(),
        sample: sample.path.clone(),
        masked: work.varying.len(),
        took: work.took,
        plans: BTreeMap::new(),
    };
    tell(&Progress::Learned(learnt.clone()));
    report.learned.push(learnt);
    let all = wanted(input, &work, sample);
    tell(&Progress::Planned { plans: all.len() });
    let (over, work) = (&over, &work);
    let one = |mutation: Mutation| async move {
        if over() {
            return None;
        }
        let ran = work.run(input, prepared, Some(mutation.clone()), input.seed).await;
        Some((mutation, ran))
    };
    let mut runs = stream::iter(all).map(one).buffered(input.parallel.max(1));
    while let Some(ended) = runs.next().await {
        let Some((mutation, ran)) = ended else {
            report.left_out += 1;
            continue;
        };
        let ran = match ran {
            Ok(ran) => ran,
            Err(_) if input.shutdown.is_cancelled() => continue,
            Err(error) => {
                report.problems.push(format!("fields of {}, {mutation}: {error:#}", sample.path));
                continue;
            }
        };
        report.count(Class::Field);
        if ran.refused.is_some() {
            report.refused += 1;
            continue;
        }
        let differences = judge(&ran, &work.varying, &input.ignored);
        if differences.is_empty() && !has_effect(&ran, &work.varying) {
            report.without_effect.push(format!("{mutation}"));
        }
        tell(&Progress::Tried {
            scenario: "fields".to_owned(),
            class: Class::Field,
            plan: mutation.to_string(),
            differences: differences.len(),
            took: ran.took,
        });
        if differences.is_empty() {
            continue;
        }
        report.alarms += 1;
        let mut times = (1, 1);
        for _ in 0..2 {
            let again = work.run(input, prepared, Some(mutation.clone()), input.seed).await;
            times.1 += 1;
            let same = again.is_ok_and(|ran| {
                let again = judge(&ran, &work.varying, &input.ignored);
                differences.iter().any(|one| again.contains(one))
            });
            times.0 += u32::from(same);
        }
        if times.0 == 1 {
            report.flaky += 1;
            continue;
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
        found(input, new, alarms, report, tell)?;
    }
    Ok(())
}

/// Runs the change of a file again.
pub(crate) async fn replay_field(
    input: &TortureInput,
    prepared: &Arc<Prepared>,
    scenario: &Scenario,
    mutation: Mutation,
    before: &[Difference],
) -> Result<Replayed> {
    let work = FieldWork::learn(input, prepared, &scenario.sample).await?;
    let how = mutation.to_string();
    let ran = work.run(input, prepared, Some(mutation), input.seed).await?;
    let differences = judge(&ran, &work.varying, &input.ignored);
    let again = differences.iter().any(|one| before.contains(one));
    Ok(Replayed { how, differences, again, met: ran.refused.is_none() })
}

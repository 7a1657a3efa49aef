//! Tests of kuttl in this process: each folder on a control plane of its own, with the operator. What kuttl
//! does with sleeps is done on changes here. Start at `run`; `files` reads folders, `expressions` judges CEL,
//! `cluster` talks to the API server.

mod cluster;
mod expect;
mod expressions;
pub mod files;
mod keys;
mod subset;

use super::found;
use super::report::{Case, Outcome, Suite};
use super::settled::BEHIND;
use super::world::{Setup, World, all_waits};
use anyhow::{Context as _, Result, anyhow, bail};
use cluster::Cluster;
use expect::Expect;
pub use files::KuttlTest;
use files::{Command, Manifest, Step, manifests};
use futures::StreamExt as _;
use opdev_controlplane::Controllers;
use opdev_event::{LoopFound, Reconcile};
use opdev_os::child::{GroupEnd, Launch, printed};
use opdev_state::State;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a step looks for what no watch tells: commands, and kinds that are not served yet.
const AGAIN: Duration = Duration::from_millis(250);
/// How much of a command's output is kept for a failure.
const MOST_OUTPUT: usize = 4_000;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How long each step may take, where the suite does not say.
    pub limit: Duration,
    /// True if commands of steps may run.
    pub commands: bool,
}

/// Runs one folder.
pub async fn run(setup: &Setup, test: &KuttlTest, how: How) -> (Suite, Option<World>) {
    let began = Instant::now();
    let mut suite = Suite { name: test.name.clone(), cases: Vec::new(), took: Duration::ZERO, error: None };
    let mut setup = setup.clone();
    if test.suite.start_control_plane {
        // Such suites expect what envtest does: pods stay as they are.
        setup.cluster.controllers = Controllers::None;
    }
    let kept = match scenario(&setup, test, how, &mut suite).await {
        Ok(kept) => kept,
        Err(error) => {
            suite.error = Some(format!("{error:#}"));
            None
        }
    };
    suite.took = began.elapsed();
    (suite, kept)
}

/// Runs the steps in a world of their own; what is returned is the world, where it is kept.
async fn scenario(setup: &Setup, test: &KuttlTest, how: How, suite: &mut Suite) -> Result<Option<World>> {
    if let Some(command) = test.commands().next().filter(|_| !how.commands) {
        bail!(
            "a step runs `{}`; opdev runs commands of test folders only with --run-commands",
            if command.script.is_empty() { &command.command } else { &command.script }
        );
    }
    let expects = test.steps.iter().flat_map(|step| &step.expects);
    let asked = expects.filter(|(_, expect)| expect.asks_for_rights()).map(|(place, _)| place).next();
    if let (Some(place), None) = (asked, &setup.cluster.service_account) {
        bail!(
            "{place}: `forbidden` says nothing while the operator may do everything; run it with --as-serviceaccount"
        );
    }
    if setup.shared.is_some() {
        fits_a_namespace(test)?;
    }
    let world = World::start(setup).await?;
    let stepped = tokio::select! {
        stepped = steps(&world, test, how, &mut suite.cases) => stepped,
        () = setup.broken_off() => Err(anyhow!("broken off")),
    };
    if let Err(error) = stepped {
        suite.error = Some(format!("{error:#}"));
    }
    suite.cases.extend(found::case(&world.findings(), setup.findings));
    world.stop_unless_kept(setup, !suite.passed()).await
}

/// Refuses a test that needs more than a namespace on a cluster.
///
/// # Errors
/// What it is.
fn fits_a_namespace(test: &KuttlTest) -> Result<()> {
    if test.suite.start_control_plane {
        bail!(
            "startControlPlane: the test expects pods that stay as they are, and those of a cluster run\n  to do: leave \
             --context out"
        );
    }
    if !test.suite.namespace.is_empty() {
        bail!(
            "the test is for the namespace {}, and with --context it has a namespace of its own\n  to do: leave \
             `namespace` out of kuttl-test.yaml, or leave --context out",
            test.suite.namespace
        );
    }
    Ok(())
}

async fn steps(world: &World, test: &KuttlTest, how: How, cases: &mut Vec<Case>) -> Result<()> {
    let namespace = match (world.own_namespace(), test.suite.namespace.as_str()) {
        (Some(own), _) => own.to_owned(),
        (None, "") => "kuttl-test".to_owned(),
        (None, named) => named.to_owned(),
    };
    let own = world.own_namespace().is_some();
    let cluster = Cluster { client: world.client.clone(), namespace, only_inside: own };
    if !own {
        cluster.make_namespace().await?;
    }
    let suite = &test.suite;
    for folder in
        Some(&suite.crd_dir).into_iter().chain(&suite.manifest_dirs).filter(|folder| !folder.is_empty())
    {
        for manifest in manifests(&suite.base.join(folder), folder)? {
            cluster.apply(&manifest).await?;
        }
    }
    let limit = match suite.timeout {
        0 => how.limit,
        seconds => Duration::from_secs(seconds),
    };
    let run = KuttlRun { world, cluster, folder: &test.folder };
    for command in &suite.commands {
        run.command(command, limit).await.context("a command of the suite")?;
    }
    for step in &test.steps {
        let began = Instant::now();
        let wrong = run.step(step, step.timeout.unwrap_or(limit)).await;
        let outcome = match wrong.as_slice() {
            [] => Outcome::Passed,
            [first, ..] => {
                let details = format!("{}\n{}", wrong.join("\n"), world.last_reconciles()).trim().to_owned();
                Outcome::Failed { message: first.clone(), details }
            }
        };
        let failed = outcome != Outcome::Passed;
        let name = if step.name.is_empty() { format!("step {}", step.index) } else { step.name.clone() };
        cases.push(Case { name, took: began.elapsed(), outcome });
        if failed {
            return Ok(());
        }
    }
    Ok(())
}

impl KuttlTest {
    fn commands(&self) -> impl Iterator<Item = &Command> {
        let of_steps = self.steps.iter().flat_map(|step| step.commands.iter().chain(&step.assert_commands));
        self.suite.commands.iter().chain(of_steps)
    }
}

struct KuttlRun<'a> {
    world: &'a World,
    cluster: Cluster,
    folder: &'a Path,
}

/// The work of the operator before a step.
struct Before {
    reconciles: usize,
    loops: usize,
}

impl KuttlRun<'_> {
    /// Runs a step. Returns the expectations that were not met; empty where all were.
    async fn step(&self, step: &Step, limit: Duration) -> Vec<String> {
        let deadline = Instant::now() + limit;
        let before = Before { reconciles: self.world.reconciles().len(), loops: self.world.loops().len() };
        let begun = async {
            for wanted in &step.delete {
                self.cluster
                    .delete(wanted)
                    .await
                    .with_context(|| format!("delete {} {}", wanted.kind, wanted.name))?;
            }
            for command in &step.commands {
                self.command(command, limit).await?;
            }
            for manifest in &step.apply {
                self.cluster.apply(manifest).await?;
            }
            anyhow::Ok(())
        };
        match tokio::time::timeout(limit, begun).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return vec![format!("{error:#}")],
            Err(_) => return vec![format!("deleting and applying took longer than {} s", limit.as_secs())],
        }
        let wrong = self.checked(step, deadline).await;
        if !wrong.is_empty() || step.expects.is_empty() {
            return wrong;
        }
        self.expected(&step.expects, &before, deadline).await
    }

    /// Looks at each change until all asserts are met, or the time is over.
    async fn checked(&self, step: &Step, deadline: Instant) -> Vec<String> {
        let named = step.expressions.iter().flat_map(|one| &one.objects).map(|named| &named.wanted);
        let all: Vec<&Manifest> = step.asserts.iter().chain(&step.errors).chain(named).collect();
        let mut ticking = !step.assert_commands.is_empty();
        let (mut changes, mut missing) = self.cluster.changes(&all).await;
        loop {
            let wrong = self.look(step, deadline).await;
            let left = deadline.saturating_duration_since(Instant::now());
            if wrong.is_empty() || left.is_zero() {
                return wrong;
            }
            if missing {
                (changes, missing) = self.cluster.changes(&all).await;
                ticking = ticking || missing;
            }
            let pause = if ticking || missing { left.min(AGAIN) } else { left };
            tokio::select! {
                _ = changes.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn look(&self, step: &Step, deadline: Instant) -> Vec<String> {
        let mut wrong = Vec::new();
        for manifest in &step.asserts {
            wrong.extend(self.cluster.lacks(manifest).await);
        }
        for expressions in &step.expressions {
            wrong.extend(self.cluster.expressed(expressions).await);
        }
        for manifest in &step.errors {
            wrong.extend(self.cluster.matches(manifest).await);
        }
        if wrong.is_empty() {
            for command in &step.assert_commands {
                let left = deadline.saturating_duration_since(Instant::now()).max(AGAIN);
                wrong.extend(self.command(command, left).await.err().map(|error| format!("{error:#}")));
            }
        }
        wrong
    }

    /// Judges the reconciles since the step began, once the operator is at rest.
    async fn expected(
        &self,
        expects: &[(String, Expect)],
        before: &Before,
        deadline: Instant,
    ) -> Vec<String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let judged = |expects: &[(String, Expect)]| -> Vec<String> {
            let (reconciles, loops) = self.since(before);
            let all = expects.iter().flat_map(|(place, expect)| {
                expect.wrong(&reconciles, &loops).into_iter().map(move |line| format!("{place}: {line}"))
            });
            all.collect()
        };
        // A reconcile that fails is tried again, so that there is no rest to wait for.
        let failing = expects.iter().any(|(_, expect)| expect.awaits_failure());
        let at_rest = |state: &State| {
            let done = all_waits(state).is_empty() || (failing && judged(expects).is_empty());
            done.then_some(())
        };
        let rested = self.world.at_rest(left, at_rest).await;
        let mut wrong = judged(expects);
        if let (Err(state), false) = (rested, wrong.is_empty() && failing) {
            let waits = all_waits(&state);
            let wait = waits.first().map_or(BEHIND, String::as_str);
            wrong.push(format!("the operator has not settled: {wait}"));
        }
        wrong
    }

    fn since(&self, before: &Before) -> (Vec<Arc<Reconcile>>, Vec<Arc<LoopFound>>) {
        let reconciles = self.world.reconciles().split_off(before.reconciles);
        (reconciles, self.world.loops().split_off(before.loops))
    }

    /// Runs a command of a step in its folder.
    ///
    /// # Errors
    /// Where it fails, with the end of what it printed.
    async fn command(&self, wanted: &Command, limit: Duration) -> Result<()> {
        let mut text = if wanted.script.is_empty() { wanted.command.clone() } else { wanted.script.clone() };
        if wanted.namespaced && wanted.script.is_empty() {
            text.push_str(" --namespace \"$NAMESPACE\"");
        }
        let limit = match wanted.timeout {
            0 => limit,
            seconds => Duration::from_secs(seconds),
        };
        let env = BTreeMap::from([
            ("KUBECONFIG".to_owned(), self.world.kubeconfig.clone()),
            ("NAMESPACE".to_owned(), self.cluster.namespace.clone()),
        ]);
        let command = ["sh", "-c", &text].map(str::to_owned);
        let launch =
            Launch { command: &command, dir: self.folder, env: &env, without: &[], ends: GroupEnd::AtOnce };
        let ended = printed(&launch, limit).await?;
        let Some(status) = ended.status else {
            bail!("`{text}` took longer than {} s", limit.as_secs());
        };
        if status.success() || wanted.ignore_failure {
            return Ok(());
        }
        let from = ended.text.len().saturating_sub(MOST_OUTPUT);
        let said = String::from_utf8_lossy(ended.text.get(from..).unwrap_or_default()).into_owned();
        bail!("`{text}` ended with {status}: {}", said.trim())
    }
}

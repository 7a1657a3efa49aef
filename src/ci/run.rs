//! Finds the scenarios of a project and runs them, several at once, each in a world of its own.

use anyhow::{Result, anyhow, bail};
use futures::stream::{self, StreamExt};
use opdev_cluster::Choice;
use opdev_event::{Diagnostic, words};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_project::Project;
use opdev_project::trust::Trust;
use opdev_release::settings::Settings;
use opdev_scenario::found::Gate;
use opdev_scenario::kuttl;
use opdev_scenario::kuttl::{How, KuttlTest};
use opdev_scenario::report::{Report, Suite};
use opdev_scenario::sample;
use opdev_scenario::sample::SampleFile;
use opdev_scenario::shared_cluster::{Namespaces, Shared};
use opdev_scenario::world::{Setup, World};
use opdev_sources::Sources;
use regex::Regex;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long scenarios may take to end once all is to end.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The command to run.
pub struct CiInput {
    /// The project.
    pub project: Project,
    /// The permissions that the user gives the project.
    pub trust: Trust,
    /// How the control planes are, of which each scenario has one of its own; or the cluster on which each
    /// has a namespace.
    pub cluster: Choice,
    /// The namespaces that scenarios have on that cluster now.
    pub namespaces: Namespaces,
    /// How the operator runs.
    pub operator: Settings,
    /// The scenarios.
    pub pick: Pick,
    /// How many run at once.
    pub parallel: usize,
    /// True if no other scenario begins once one has failed.
    pub fail_fast: bool,
    /// How long each step may take.
    pub limit: Duration,
    /// True if commands of test folders may run.
    pub run_commands: bool,
    /// The findings that fail a scenario.
    pub findings: Gate,
    /// True if samples are disturbed once they have settled.
    pub disturbs: bool,
    /// True if the control planes of scenarios that failed go on; no other scenario begins then.
    pub keep: bool,
    /// The folder for recordings of the scenarios, each in a folder of its own.
    pub record: Option<PathBuf>,
    /// Fires when all is to end.
    pub shutdown: CancellationToken,
}

impl CiInput {
    /// The cluster that was named, where one was.
    pub(super) async fn shared(&self) -> Result<Option<Arc<Shared>>> {
        Shared::open((&self.project, &self.trust), &self.cluster, &self.namespaces, &self.shutdown).await
    }

    /// The input that a world is made from; `folder` is the one for its recording, below the one for all.
    /// What the project applies at its own starts belongs to no scenario.
    pub(super) fn setup(&self, scenario: &str, folder: &Path, shared: Option<Arc<Shared>>) -> Setup {
        Setup {
            scenario: scenario.to_owned(),
            shared,
            record: self.record.as_ref().map(|all| all.join(folder)),
            project: self.project.clone().without_start_files(),
            trust: self.trust.clone(),
            cluster: self.cluster.clone(),
            operator: self.operator.clone(),
            findings: self.findings,
            disturbs: self.disturbs,
            keep: self.keep,
            shutdown: self.shutdown.clone(),
        }
    }
}

/// The scenarios to run.
#[derive(Clone, Debug)]
pub struct Pick {
    /// Files of samples or test folders, relative to the project's root; empty means all samples.
    pub paths: Vec<String>,
    /// The pattern that their paths must match.
    pub filter: Option<Regex>,
    /// The part of them that runs.
    pub shard: Option<Shard>,
    /// How often each.
    pub repeat: usize,
}

impl Pick {
    /// Returns true if a path is among them, leaving parts aside.
    fn takes(&self, path: &str) -> bool {
        let named = self.paths.is_empty() || self.paths.iter().any(|one| is_below(path, one));
        named && self.filter.as_ref().is_none_or(|filter| filter.is_match(path))
    }
}

/// One part of several, such as `1/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    count: usize,
}

/// A text that names no part of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardError(String);

impl fmt::Display for ShardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected I/N with 1 ≤ I ≤ N, such as 1/3", self.0)
    }
}

impl std::error::Error for ShardError {}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let parts = text.split_once('/').and_then(|(index, count)| {
            let shard = Shard { index: index.parse().ok()?, count: count.parse().ok()? };
            (1..=shard.count).contains(&shard.index).then_some(shard)
        });
        parts.ok_or_else(|| ShardError(text.to_owned()))
    }
}

/// One run on a control plane of its own.
#[derive(Clone, Debug)]
pub enum Scenario {
    /// The samples of a file are applied, settled, reconciled once more and deleted.
    Sample(SampleFile),
    /// The steps of a folder, as kuttl has them.
    Folder(Box<KuttlTest>),
}

impl Scenario {
    /// Its path.
    pub fn name(&self) -> &str {
        match self {
            Scenario::Sample(sample) => &sample.path,
            Scenario::Folder(test) => &test.name,
        }
    }
}

/// There is nothing to run.
#[derive(Debug)]
pub struct NoScenario;

impl std::fmt::Display for NoScenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "there is no scenario: the project has no sample of a kind that it reconciles, or --filter and --shard leave none\n  \
             to do: put samples into config/samples, pick others, or say --allow-empty",
        )
    }
}

impl std::error::Error for NoScenario {}

/// The scenarios to run, and notes about what is left out.
///
/// # Errors
/// Where the project or a test folder cannot be read, or there is no such sample.
pub fn scenarios(input: &CiInput) -> Result<(Vec<Scenario>, Vec<String>)> {
    let (sources, problems) = opdev_project::load::read_once(&input.project, &input.trust)?;
    if !problems.is_empty() {
        bail!("{}", problems.iter().map(words::diagnostic).collect::<Vec<_>>().join("\n"));
    }
    let mut notes = Vec::new();
    let mut pick = input.pick.clone();
    let mut folders = Vec::new();
    let mut named = Vec::new();
    for path in std::mem::take(&mut pick.paths) {
        let found = kuttl::files::tests(&input.project.root, Path::new(&path))?;
        if found.is_empty() {
            named.push(path);
        }
        folders.extend(found);
    }
    let only_folders = !folders.is_empty() && named.is_empty();
    pick.paths = named;
    let samples = if only_folders {
        Vec::new()
    } else {
        sample_files(&input.project.root, &sources, &pick, &mut notes)?
    };
    for test in &folders {
        notes.extend(test.ignored.iter().map(|file| format!("{file} is no step of a test")));
    }
    let all = samples.into_iter().map(Scenario::Sample);
    let folders = folders.into_iter().map(|test| Scenario::Folder(Box::new(test)));
    let picked = picked(&pick, all.collect(), folders.collect())?;
    Ok((picked, notes))
}

/// The files of samples with an object that the operator reconciles. Only those that `pick` takes are read;
/// of the others only the path is known.
fn sample_files(
    root: &Path,
    sources: &Sources,
    pick: &Pick,
    notes: &mut Vec<String>,
) -> Result<Vec<SampleFile>> {
    let wanted = |problem: &&Diagnostic| {
        let file = problem.place.as_ref().map(|place| place.file.as_str()).unwrap_or_default();
        pick.takes(file)
    };
    let broken: Vec<String> = sources.broken_samples.iter().filter(wanted).map(words::diagnostic).collect();
    if !broken.is_empty() {
        bail!("{}", broken.join("\n"));
    }
    let reconciled = |object: &ObjectRef| {
        let gvk = &object.gvk;
        let is = |other: &Gvk| other.group_kind() == gvk.group_kind();
        sources.watch(&gvk.group, &gvk.kind).is_some()
            || sources.shown.iter().any(|shown| is(&shown.gvk) && shown.program.is_some())
    };
    let mut found = Vec::new();
    for sample in &sources.samples {
        let path = sample.path.clone();
        if !pick.takes(&path) {
            found.push(SampleFile { path, ..SampleFile::default() });
            continue;
        }
        let file = SampleFile::read(root, &path, reconciled)?;
        if file.objects.is_empty() {
            notes.push(format!("{path} is left out: nothing reconciles {}", sample.object.gvk.kind));
        } else {
            found.push(file);
        }
    }
    Ok(found)
}

fn picked(pick: &Pick, samples: Vec<Scenario>, folders: Vec<Scenario>) -> Result<Vec<Scenario>> {
    for path in &pick.paths {
        if !samples.iter().any(|sample| is_below(sample.name(), path)) {
            bail!(
                "{path} is no folder with steps such as 00-install.yaml, and no sample of the project; it has {}",
                listed(&samples)
            );
        }
    }
    // Folders of tests were named by a path of their own.
    let matching = |one: &Scenario| pick.filter.as_ref().is_none_or(|filter| filter.is_match(one.name()));
    let samples = samples.into_iter().filter(|sample| pick.takes(sample.name()));
    let mut all: Vec<Scenario> = samples.chain(folders.into_iter().filter(matching)).collect();
    all.sort_by(|a, b| a.name().cmp(b.name()));
    if let Some(Shard { index, count }) = pick.shard {
        all = all.into_iter().skip(index - 1).step_by(count).collect();
    }
    Ok(all.iter().flat_map(|one| std::iter::repeat_n(one.clone(), pick.repeat)).collect())
}

fn is_below(sample: &str, path: &str) -> bool {
    let path = path.trim_start_matches("./").trim_end_matches('/');
    sample == path || sample.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

fn listed(samples: &[Scenario]) -> String {
    let paths: Vec<&str> = samples.iter().map(Scenario::name).collect();
    if paths.is_empty() { "none".to_owned() } else { paths.join(", ") }
}

/// The control plane and the operator of a scenario that failed, as they were at that moment.
pub struct KeptPlane {
    /// The scenario.
    pub name: String,
    world: World,
}

impl KeptPlane {
    /// How to reach it: the variable `KUBECONFIG`.
    pub fn kubeconfig(&self) -> &str {
        &self.world.kubeconfig
    }

    /// Its namespace, where it is on a cluster.
    pub fn namespace(&self) -> Option<&str> {
        self.world.own_namespace()
    }

    /// Ends it.
    ///
    /// # Errors
    /// Why the operator could not run, or what is left on the cluster.
    pub async fn stop(self) -> Result<()> {
        self.world.stop().await
    }
}

/// A folder for the recording of each scenario: its path, with a number where it runs more than once.
fn folders(scenarios: &[Scenario]) -> Vec<PathBuf> {
    let mut taken = BTreeSet::new();
    let folder = |scenario: &Scenario| {
        let parts = Path::new(scenario.name()).components();
        let inside: PathBuf = parts.filter(|part| matches!(part, Component::Normal(_))).collect();
        let numbered = (2u32..).map(|number| PathBuf::from(format!("{}-{number}", inside.display())));
        let mut all = std::iter::once(inside.clone()).chain(numbered);
        all.find(|folder| taken.insert(folder.clone())).unwrap_or(inside)
    };
    scenarios.iter().map(folder).collect()
}

/// Runs the scenarios. Planes that are kept go on until they are stopped.
///
/// # Errors
/// Where the cluster cannot be used. Never of one scenario: what fails in one is in the report.
pub async fn run(input: &CiInput, scenarios: &[Scenario]) -> Result<(Report, Vec<KeptPlane>)> {
    let began = Instant::now();
    let shared = input.shared().await?;
    let stop = CancellationToken::new();
    let how = How { limit: input.limit, commands: input.run_commands };
    let one = |(scenario, folder): (Scenario, PathBuf)| {
        let setup = input.setup(scenario.name(), &folder, shared.clone());
        let stop = stop.clone();
        async move {
            if stop.is_cancelled() || setup.shutdown.is_cancelled() {
                return None;
            }
            // On a thread of its own worth of work: renders and scripts block.
            let name = scenario.name().to_owned();
            let shutdown = setup.shutdown.clone();
            let on_cluster = setup.shared.is_some();
            let running = tokio::spawn(async move {
                match &scenario {
                    Scenario::Sample(sample) => sample::run(&setup, sample, how.limit).await,
                    Scenario::Folder(test) => kuttl::run(&setup, test, how).await,
                }
            });
            // A scenario that does not end in time once all is to end must not cost the report of the others.
            // On a cluster it has a namespace to remove, and the user says how long that may take.
            let too_late = async {
                shutdown.cancelled().await;
                match on_cluster {
                    true => std::future::pending().await,
                    false => tokio::time::sleep(LAST_WAIT).await,
                }
            };
            let ended: Option<(Suite, Option<World>)> = tokio::select! {
                ended = running => match ended {
                    Ok(ended) => Some(ended),
                    Err(error) => Some((broken(name, &anyhow!("{error}")), None)),
                },
                () = too_late => None,
            };
            if (input.fail_fast || input.keep) && ended.as_ref().is_some_and(|(suite, _)| !suite.passed()) {
                stop.cancel();
            }
            ended
        }
    };
    let all = scenarios.iter().cloned().zip(folders(scenarios));
    let runs = stream::iter(all).map(one).buffered(input.parallel.max(1));
    let ended: Vec<Option<(Suite, Option<World>)>> = runs.collect().await;
    let (mut suites, mut kept) = (Vec::new(), Vec::new());
    for (suite, world) in ended.into_iter().flatten() {
        kept.extend(world.map(|world| KeptPlane { name: suite.name.clone(), world }));
        suites.push(suite);
    }
    Shared::close(shared).await;
    let interrupted = input.shutdown.is_cancelled();
    let wanted = scenarios.len();
    Ok((Report { suites, wanted, took: began.elapsed(), interrupted }, kept))
}

/// A scenario that tripped over a bug of opdev.
fn broken(name: String, error: &anyhow::Error) -> Suite {
    Suite {
        name,
        cases: Vec::new(),
        took: Duration::ZERO,
        error: Some(format!("a scenario tripped over a bug in opdev: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn samples() -> Vec<Scenario> {
        let sample =
            |path: &str| Scenario::Sample(SampleFile { path: path.to_owned(), ..SampleFile::default() });
        ["config/samples/b.yaml", "config/samples/a.yaml", "more/c.yaml"].map(sample).to_vec()
    }

    fn paths(pick: &Pick) -> Vec<String> {
        let picked = picked(pick, samples(), Vec::new()).unwrap();
        picked.iter().map(|one| one.name().to_owned()).collect()
    }

    #[test]
    fn each_run_has_a_folder_for_its_recording() {
        let mut all = samples();
        all.extend(samples());
        let outside = SampleFile { path: "/tmp/../a".to_owned(), ..SampleFile::default() };
        all.push(Scenario::Sample(outside));
        let found = folders(&all);
        let text: Vec<&str> = found.iter().map(|path| path.to_str().unwrap()).collect();
        assert_eq!(text[2..4], ["more/c.yaml", "config/samples/b.yaml-2"]);
        assert_eq!(text[6], "tmp/a");
    }

    #[test]
    fn samples_are_picked_by_path_pattern_and_shard() {
        let all = Pick { paths: Vec::new(), filter: None, shard: None, repeat: 1 };
        assert_eq!(paths(&all), ["config/samples/a.yaml", "config/samples/b.yaml", "more/c.yaml"]);
        let folder = Pick { paths: vec!["./config/samples/".to_owned()], ..all.clone() };
        assert_eq!(paths(&folder).len(), 2);
        let filter = Pick { filter: Some(Regex::new("^more").unwrap()), repeat: 2, ..all.clone() };
        assert_eq!(paths(&filter), ["more/c.yaml", "more/c.yaml"]);
        let shard = |text: &str| paths(&Pick { shard: Some(text.parse().unwrap()), ..all.clone() });
        assert_eq!((shard("1/2").len(), shard("2/2").len()), (2, 1));
        assert!("0/2".parse::<Shard>().is_err() && "3/2".parse::<Shard>().is_err());
        let missing = Pick { paths: vec!["config/sample".to_owned()], ..all };
        let error = picked(&missing, samples(), Vec::new()).unwrap_err().to_string();
        expect!["config/sample is no folder with steps such as 00-install.yaml, and no sample of the project; it has config/samples/b.yaml, config/samples/a.yaml, more/c.yaml"]
        .assert_eq(&error);
    }
}

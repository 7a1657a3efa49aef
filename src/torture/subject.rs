//! The parts of a project that are tortured: its charts and scripts or its program, its CRDs, its samples.

use super::input::{NoEnvironment, TortureInput};
use super::operator::{ProgramStart, Subject};
use anyhow::{Context as _, Result, bail};
use opdev_ci::{CiInput, Scenario};
use opdev_cluster::Choice;
use opdev_event::words;
use opdev_object::facts::facts;
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_object::yaml;
use opdev_os::child::{GroupEnd, Launch, printed};
use opdev_os::small_file::{small_text, unreadable};
use opdev_pace::turns::Turns;
use opdev_program::traced_build::traced_binary;
use opdev_project::load;
use opdev_project::program::kustomization::Kustomized;
use opdev_project::program::manager_manifest;
use opdev_project::program::manager_manifest::Pod;
use opdev_project::program::settings::{Build, KUBECONFIG, Plan};
use opdev_scenario::found::Gate;
use opdev_scenario::shared_cluster::Namespaces;
use opdev_sources::Sources;
use opdev_steps::parts::schema;
use opdev_steps::scenario::{self, Sample, scenarios};
use opdev_trace::instrument::Rung;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The longest time that a build may take.
const BUILD: Duration = Duration::from_secs(600);

/// All that runs are made from.
pub(super) struct Prepared {
    pub(super) subject: Subject,
    pub(super) definitions: Vec<Arc<Value>>,
    /// Each with the path of its kind's replicas.
    pub(super) samples: Vec<(Sample, Option<String>)>,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
    /// One for each run that may be under way at once.
    pub(super) turns: Arc<Turns>,
    /// How many these may become.
    pub(super) most: usize,
    /// Holds the binary that was built.
    _folder: Option<tempfile::TempDir>,
}

impl Prepared {
    /// The schema of what a sample is about.
    pub(super) fn schema(&self, sample: &Sample) -> Option<&Value> {
        schema(self.definitions.iter().map(|one| &**one), sample.objects.first()?)
    }

    /// A run has ended. Once it is known that the program listens on no fixed port, others go beside it.
    pub(super) fn has_run(&self) {
        if self.subject.fixed_ports().is_some_and(BTreeSet::is_empty) {
            self.turns.widen(self.most);
        }
    }

    /// Why runs went one after the other, though nobody asked for that.
    pub(super) fn alone(&self, input: &TortureInput) -> Option<String> {
        let ports =
            self.subject.fixed_ports().filter(|ports| !ports.is_empty() && input.parallel.is_none())?;
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        Some(format!(
            "the program listens on port {}, so its runs went one after the other. Without a fixed port, as with \
             `--metrics-bind-address=0 --health-probe-bind-address=0`, {} go at once",
            ports.join(", "),
            self.most
        ))
    }

    /// All scenarios that follow from a sample.
    pub(super) fn scenarios(&self, sample: &Sample, scale: Option<&str>) -> Vec<scenario::Scenario> {
        scenarios(sample, (scale, self.schema(sample)))
    }
}

/// Reads the project, and builds its program where it has one.
///
/// # Errors
/// Where the project does not load, its program does not build, or there is no sample.
pub(super) async fn prepare(input: &TortureInput) -> Result<Prepared> {
    let (sources, problems) = load::read_once(&input.project, &input.trust)?;
    if !problems.is_empty() {
        bail!("{}", problems.iter().map(words::diagnostic).collect::<Vec<_>>().join("\n"));
    }
    let (found, mut notes) = opdev_ci::scenarios(&ci_input(input))?;
    let watches = input.project.watches.as_ref().is_some_and(|path| input.project.root.join(path).is_file());
    let programs = opdev_project::program::detect_all::detect_all(
        &input.project.root,
        input.project.settings.operator.as_ref(),
        watches,
    )?;
    let mut settings = input.settings.clone();
    // One at a time: what a run does is to follow from its seed.
    settings.max_concurrent = 1;
    settings.fresh_randomness = Some(input.seed);
    let definitions: Vec<Arc<Value>> = sources.definitions.iter().map(|one| one.crd.clone()).collect();
    let by_program = |gvk: &Gvk| sources.watch(&gvk.group, &gvk.kind).is_none();
    let mut samples = Vec::new();
    let mut of_program = false;
    for scenario in found {
        let Scenario::Sample(file) = scenario else {
            notes.push(format!("{} is left out: a folder of steps is for `opdev ci`", scenario.name()));
            continue;
        };
        let Some(first) = file.objects.first() else { continue };
        let programs_own = by_program(&first.gvk);
        if samples.is_empty() {
            of_program = programs_own;
        } else if of_program != programs_own {
            notes.push(format!("{} is left out: another part of the operator reconciles it", file.path));
            continue;
        }
        let sample = sample(input, &file.path, &file.objects, &file.first, &definitions)?;
        let scale = sources.definitions.iter().find(|definition| {
            definition.gvk().is_some_and(|gvk| gvk.group_kind() == first.gvk.group_kind())
        });
        let scale = scale.and_then(|definition| definition.scale()).map(str::to_owned);
        samples.push((sample, scale));
    }
    if samples.is_empty() {
        return Err(NoEnvironment(
            "there is no sample of a kind that the operator reconciles: put one into config/samples"
                .to_owned(),
        )
        .into());
    }
    let (subject, folder) = match programs.as_slice() {
        [one, more @ ..] if of_program => {
            if !more.is_empty() {
                notes.push(format!("{} runs alone: other programs are left out", one.words));
            }
            let (start, folder) = built(input, one).await?;
            (Subject::Program(Arc::new(start)), Some(folder))
        }
        _ => (own(sources, settings), None),
    };
    let most = input.parallel.unwrap_or_else(|| at_once(&subject)).max(1);
    let alone = input.parallel.is_none() && subject.is_program();
    let turns = Turns::new(if alone { 1 } else { most });
    Ok(Prepared { subject, definitions, samples, notes, turns, most, _folder: folder })
}

/// How many runs fit the cores. A program waits for most of the time, above all one that has to be quiet
/// before it is known to be settled.
fn at_once(subject: &Subject) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    match subject {
        Subject::Own { .. } => cores,
        Subject::Program(start) if start.tells => cores * 2,
        Subject::Program(_) => cores * 6,
    }
}

fn own(sources: Sources, settings: opdev_release::settings::Settings) -> Subject {
    Subject::Own { sources: Arc::new(sources), settings: Box::new(settings) }
}

/// What `opdev ci` would take.
fn ci_input(input: &TortureInput) -> CiInput {
    CiInput {
        project: input.project.clone(),
        trust: input.trust.clone(),
        cluster: Choice { embedded: true, in_memory: true, ..Choice::default() },
        namespaces: Namespaces::default(),
        operator: input.settings.clone(),
        pick: input.pick.clone(),
        parallel: 1,
        fail_fast: false,
        limit: input.limit,
        run_commands: false,
        findings: Gate::None,
        disturbs: false,
        keep: false,
        record: None,
        shutdown: input.shutdown.clone(),
    }
}

/// The objects of a file of samples, and of those that are to be there before, each with its namespace.
fn sample(
    input: &TortureInput,
    path: &str,
    reconciled: &[ObjectRef],
    first: &[String],
    definitions: &[Arc<Value>],
) -> Result<Sample> {
    let cluster_wide = cluster_wide(definitions);
    let namespace = input.project.settings.namespace.as_deref().unwrap_or("default");
    let read = |path: &str| -> Result<Vec<Value>> {
        let text = small_text(&input.project.root.join(path)).with_context(|| unreadable(path))?;
        let documents = yaml::documents(&text).map_err(|error| anyhow::anyhow!("{}", error.in_file(path)))?;
        let mut all = Vec::new();
        for document in &documents {
            let mut object = yaml::to_json(document).with_context(|| path.to_owned())?;
            let Some(gvk) = Gvk::of(&object) else { continue };
            if meta::namespace(&object).is_none() && !cluster_wide.contains(&(gvk.group, gvk.kind)) {
                meta::put(&mut object, &["metadata", "namespace"], namespace);
            }
            all.push(object);
        }
        Ok(all)
    };
    let mut found = Sample { path: path.to_owned(), ..Sample::default() };
    for before in first {
        found.others.extend(read(before)?);
    }
    for object in read(path)? {
        let is = |one: &ObjectRef| {
            Gvk::of(&object).is_some_and(|gvk| gvk.group_kind() == one.gvk.group_kind())
                && meta::name(&object) == Some(one.name.as_str())
        };
        if reconciled.iter().any(is) {
            found.objects.push(object);
        } else {
            found.others.push(object);
        }
    }
    // A namespace is no part of an instance: one is made for each that is named.
    found.others.retain(|object| object["kind"] != "Namespace");
    Ok(found)
}

/// Kinds whose objects live in no namespace.
fn cluster_wide(definitions: &[Arc<Value>]) -> BTreeSet<(String, String)> {
    let built_in = facts().resources().iter().filter(|fact| !fact.namespaced);
    let mut found: BTreeSet<(String, String)> =
        built_in.map(|fact| (fact.group.clone(), fact.kind.clone())).collect();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let custom = definitions.iter().filter(|crd| crd["spec"]["scope"] == "Cluster");
    found.extend(custom.map(|crd| (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["kind"]))));
    found
}

/// Builds a program once, and says how it is started.
async fn built(input: &TortureInput, plan: &Plan) -> Result<(ProgramStart, tempfile::TempDir)> {
    let folder = tempfile::tempdir().context("no folder for the program can be made")?;
    let (mut traced, mut tells, mut command) = (false, false, Vec::new());
    let build = match &plan.build {
        Build::Go { .. } => {
            let built = tokio::select! {
                built = tokio::time::timeout(BUILD, traced_binary(plan, &input.project.root, folder.path())) => built,
                () = input.shutdown.cancelled() => bail!("broken off"),
            };
            let built =
                built.with_context(|| format!("{} is not built within {} s", plan.words, BUILD.as_secs()))?;
            let built = built.with_context(|| format!("{} cannot be built", plan.words))?;
            if let Some(built) = built {
                traced = built.rung.is_some();
                tells = built.rung.is_some_and(|rung| rung != Rung::Header);
                command.push(built.path.display().to_string());
            }
            None
        }
        Build::Command(words) => Some(words.clone()),
        Build::None => None,
    };
    if let Some(words) = build {
        let launch =
            Launch { command: &words, dir: &plan.dir, env: &plan.env, without: &[], ends: GroupEnd::AtOnce };
        let built = tokio::select! {
            built = printed(&launch, BUILD) => built?,
            () = input.shutdown.cancelled() => bail!("broken off"),
        };
        if !built.status.is_some_and(|status| status.success()) {
            bail!("{} cannot be built:\n{}", plan.words, String::from_utf8_lossy(&built.text).trim_end());
        }
    }
    let mut env = plan.env.clone();
    // Projects of kubebuilder ask for this before they serve webhooks, which nobody calls here.
    env.entry("ENABLE_WEBHOOKS".to_owned()).or_insert_with(|| "false".to_owned());
    let (root, manifests) = (input.project.root.clone(), input.project.manifests.clone());
    let kustomized = move || Kustomized::of(&root, manifests.as_deref());
    let kustomized = tokio::task::spawn_blocking(kustomized).await.unwrap_or_default();
    let pod = Pod { namespace: "default", project: &input.project.name, binary: plan.binary.as_deref() };
    if let Some(deployed) = manager_manifest::read(Path::new(&input.project.root), &kustomized, pod) {
        for (name, value) in deployed.env {
            if std::env::var_os(&name).is_none() {
                env.entry(name).or_insert(value);
            }
        }
        command.extend(deployed.args.into_iter().filter(|_| plan.main_package().is_some()));
    }
    command.extend(plan.command.iter().cloned());
    let says = command.iter().any(|word| word.contains(KUBECONFIG));
    tracing::debug!(says, "the program takes its kubeconfig from its command");
    let start = ProgramStart { command, dir: plan.dir.clone(), env, traced, tells, ports: OnceLock::new() };
    Ok((start, folder))
}

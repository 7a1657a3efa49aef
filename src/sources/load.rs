//! Texts and file sets in, a numbered set of sources out. Remembers the last working version of each part
//! (`charts`, `definitions`, `reconcilers`), so that a broken edit replaces nothing. Pure: `project/files`
//! reads the disk.

mod hold;
mod trial;

pub use super::files::{Files, Options, Outdated, OwnProgram};
pub use trial::Trial;

use super::chart_dependencies;
use super::chart_options::ChartOptions;
use super::chart_settings::ChartSettings;
use super::charts::Charts;
use super::definitions::{self, Definition, Definitions};
use super::files::{Prints, hash, problem};
use super::installs::may_install;
use super::reconcilers::{LoadedReconciler, Reconcilers};
use super::time_limit::TimeLimit;
use super::watches::{Entry, WatchesFile};
use super::{ChartReconciler, Reconciler, Shown, Sources, TypeReconciler, Watch, overrides};
use opdev_event::{Diagnostic, KindHealth, KindStatus, Place, PrinterColumn, Sample, Severity};
use opdev_helm::chart::{Chart, FileSet};
use opdev_helm::engine::reaches_out;
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_object::yaml;
use opdev_script::contract::Limits;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A new set of sources.
#[derive(Debug)]
pub struct Loaded {
    /// The set; its number is one more than that of the set before.
    pub sources: Arc<Sources>,
    /// Every kind with its health.
    pub kinds: Vec<KindStatus>,
    /// Kinds whose objects must be reconciled again.
    pub affected: Vec<Gvk>,
    /// Problems that keep the newest files from serving.
    pub errors: Vec<Diagnostic>,
    /// Charts and programs that take the place of another one in this set: programs are to be tried before it
    /// is published, charts where the user wants to look first.
    pub trials: Vec<Trial>,
}

/// Loads set after set.
#[derive(Debug, Default)]
pub struct Loader {
    before: Option<Arc<Sources>>,
    entries: Vec<Entry>,
    /// The options of charts; none where they could never be read.
    settings: Option<ChartSettings>,
    charts: Charts,
    definitions: Definitions,
    reconcilers: Reconcilers,
    held: hold::HeldCharts,
    content: u64,
}

impl Loader {
    /// A loader that knows nothing but the set that serves: its memory got lost.
    pub fn after(before: Arc<Sources>) -> Loader {
        Loader { before: Some(before), ..Loader::default() }
    }

    /// Lets the next load break off renders when this limit is reached.
    pub fn limit_to(&mut self, limit: TimeLimit) {
        self.charts.limit = limit;
    }

    /// The chart folders that `watches.yaml` names, or named when it could be read, so that the caller can
    /// read them.
    pub fn chart_paths(&self, watches: &WatchesFile) -> Vec<String> {
        let entries = watches.entries.as_ref().unwrap_or(&self.entries);
        entries.iter().map(|entry| entry.chart.clone()).collect()
    }

    /// The newest set; `None` where nothing that matters has changed since the one before. `forced` takes
    /// unchanged files as changed.
    pub fn load(
        &mut self,
        files: &Files,
        changed: &[String],
        saved_at: Option<Instant>,
        forced: bool,
    ) -> Option<Loaded> {
        let new = New { files, charts: prints(&files.charts), named: prints(&files.named_charts), forced };
        let content = new.fingerprint();
        if content == self.content && self.before.is_some() && !forced {
            return None;
        }
        self.content = content;
        let number = self.before.as_ref().map_or(0, |before| before.number) + 1;
        let mut diagnostics: Vec<Diagnostic> = files.options.linked.iter().map(leads_out).collect();
        diagnostics.extend(files.options.unread.iter().map(is_not_read));
        for found in &files.options.outdated {
            let chart = files.charts.get(&found.chart).and_then(|read| read.as_ref().ok());
            diagnostics.push(chart_dependencies::outdated(found, chart));
        }
        diagnostics.extend_from_slice(&files.watches.problems);
        if let Some(entries) = &files.watches.entries {
            self.entries.clone_from(entries);
        }
        let mut definitions = self.definitions.load(files, &mut diagnostics);
        for entry in self.entries.iter().filter(|entry| !entry.gvk.group.is_empty()) {
            if !definitions
                .iter()
                .any(|one| one.gvk().is_some_and(|gvk| gvk.group_kind() == entry.gvk.group_kind()))
            {
                definitions.push(definitions::scaffold(&entry.gvk));
            }
        }
        self.read_settings(files, &mut diagnostics);
        let fresh = self.charts.load(&self.entries, &files.charts, &new.charts, forced);
        let mut of_programs = Vec::new();
        let programs = self.programs(&new, &definitions, &mut of_programs);
        let mut all = Vec::new();
        let mut held = std::mem::take(&mut self.held);
        for entry in &self.entries {
            let script = programs
                .loaded
                .iter()
                .find(|one| one.beside && one.gvk.group_kind() == entry.gvk.group_kind());
            let loaded = self.chart_watch(entry, files, number, &fresh, script);
            let content = new.charts.get(entry.chart.as_str()).copied();
            let (watch, is_affected) = held.keep(loaded, content, forced);
            diagnostics.extend(watch.broken.clone());
            diagnostics.extend(self.charts.library(entry));
            all.push((watch, is_affected));
        }
        self.held = held;
        diagnostics.extend(of_programs);
        self.program_watches(&new, number, programs, &mut all, &mut diagnostics);
        let (watches, affected) = self.settle(all, &definitions, number, files);
        let (samples, broken_samples) = samples(files);
        diagnostics.extend_from_slice(&broken_samples);
        let mut sources = Sources {
            number,
            files: changed.to_vec(),
            saved_at,
            watches,
            shown: Vec::new(),
            definitions,
            scale: files.options.scale.clone(),
            samples,
            broken_samples,
            diagnostics: diagnostics.clone(),
        };
        sources.leave_out(&files.options);
        let trials = self.trials(&sources.watches, number);
        trials
            .iter()
            .filter(|trial| trial.watch.chart().is_some())
            .for_each(|trial| self.held.replaces(trial));
        let sources = Arc::new(sources);
        self.before = Some(Arc::clone(&sources));
        let errors = diagnostics.into_iter().filter(|one| one.severity == Severity::Error).collect();
        Some(Loaded { kinds: sources.kinds(), sources, affected, errors, trials })
    }

    /// Reads the options of charts. A file that is broken, empty or not there for a moment takes none of them
    /// back: a release would move, or become one of another engine.
    fn read_settings(&mut self, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
        let Some(settings) = &files.settings else {
            // A project without the file has no options; one whose file is not there for a moment keeps them.
            if self.before.is_none() {
                self.settings = Some(ChartSettings::default());
            }
            return;
        };
        let (path, text) = settings;
        let known = self.settings.as_ref().is_some_and(|known| *known != ChartSettings::default());
        if known && text.trim().is_empty() {
            let message = format!("{path} is empty; the options of charts that it had go on");
            let hint = "write `charts: {}` to take them back";
            diagnostics.push(Diagnostic { hint: Some(hint.to_owned()), ..problem(path, message) });
            return;
        }
        match ChartSettings::read(settings, &self.entries, diagnostics) {
            Some(read) => self.settings = Some(read),
            // Settings that were never read are not guessed.
            None if self.before.is_none() => self.settings = None,
            None => {}
        }
    }

    /// Reads the programs among the reconcilers, and the charts that programs may name.
    fn programs(
        &mut self,
        new: &New<'_>,
        definitions: &[Arc<Definition>],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Programs {
        let New { files, forced, .. } = *new;
        let charts: Vec<(Gvk, Place)> =
            self.entries.iter().map(|entry| (entry.gvk.clone(), entry.place.clone())).collect();
        let defined = definitions::defined(definitions);
        let then = self.before.as_ref().map(|before| before.definitions.as_slice()).unwrap_or_default();
        let crd = |all: &[Arc<Definition>], kind: &Gvk| {
            let found =
                all.iter().find(|one| one.gvk().is_some_and(|gvk| gvk.group_kind() == kind.group_kind()));
            found.map(|one| one.crd.clone())
        };
        self.reconcilers.try_refused_again(|kind| crd(then, kind) != crd(definitions, kind));
        let loaded = self.reconcilers.load(files, &defined, &charts, forced, diagnostics);
        let fresh = {
            let named = |path: &str| may_install(&files.reconcilers, path);
            self.charts.load_named(&files.named_charts, &new.named, forced, named, diagnostics)
        };
        Programs { loaded, fresh, named: self.charts.named() }
    }

    fn chart_watch(
        &self,
        entry: &Entry,
        files: &Files,
        number: u64,
        fresh: &[String],
        script: Option<&LoadedReconciler>,
    ) -> (Watch, bool) {
        let options = match &self.settings {
            Some(settings) => settings.of(entry),
            None => ChartOptions { unread: true, ..ChartOptions::default() },
        };
        let loading = self.charts.get(&entry.chart);
        let before = self.before(&entry.gvk);
        let (overrides, broken) = match expanded(entry, files, &self.charts.limit) {
            Ok(overrides) => (Some(overrides), None),
            // The last working version stays in use. A chart without its overrides is another one, so there
            // is no other choice.
            Err(problem) => (
                before.and_then(|before| before.chart()).map(|chart| chart.overrides.clone()),
                Some(*problem),
            ),
        };
        let chart = ChartReconciler {
            path: entry.chart.clone(),
            chart: loading.and_then(|loading| loading.good.clone()).filter(|_| overrides.is_some()),
            watch_dependents: entry.watch_dependents,
            overrides: overrides.unwrap_or_default(),
            dry_run_option: entry.dry_run_option.clone(),
            options,
            allow: files.options.allow.clone(),
            script: script.map(|script| Arc::new(script.to_reconciler(files, BTreeMap::new()))),
        };
        let affected = match before.and_then(|before| Some((before, before.chart()?))) {
            None => true,
            Some((before, loaded)) => {
                fresh.contains(&entry.chart)
                    || loaded.path != chart.path
                    || loaded.overrides != chart.overrides
                    || loaded.watch_dependents != chart.watch_dependents
                    || loaded.dry_run_option != chart.dry_run_option
                    || loaded.options != chart.options
                    || (loaded.allow != chart.allow && chart.chart.as_deref().is_some_and(reaches_out))
                    || script.is_some_and(|script| script.fresh)
                    || !same_script(loaded, &chart)
                    || before.selector != entry.selector
                    || before.reconcile_period != entry.reconcile_period
            }
        };
        let watch = Watch {
            gvk: entry.gvk.clone(),
            reconciler: Reconciler::Chart(Arc::new(chart)),
            broken: broken
                .or_else(|| loading.and_then(|loading| loading.broken.clone()))
                .or_else(|| script.and_then(|script| script.broken.clone())),
            changed_in: number,
            reconcile_period: entry.reconcile_period,
            selector: entry.selector.clone(),
            max_concurrent: entry.max_concurrent,
        };
        (watch, affected)
    }

    /// The kinds that programs feed.
    fn program_watches(
        &self,
        new: &New<'_>,
        number: u64,
        programs: Programs,
        all: &mut Vec<(Watch, bool)>,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let files = new.files;
        let Programs { loaded, fresh, named } = programs;
        for program in loaded.into_iter().filter(|program| !program.beside) {
            let reconciler = program.to_reconciler(files, named.clone());
            let LoadedReconciler { gvk, path, files: texts, broken, fresh: is_fresh, .. } = program;
            diagnostics.extend(broken.clone());
            let before = self.before(&gvk).and_then(|before| before.program());
            let affected = before.is_none_or(|before| {
                is_fresh
                    || before.path != path
                    || before.allow != files.options.allow
                    || fresh
                        .iter()
                        .any(|chart| before.charts.contains_key(chart) && may_install(&texts, chart))
            });
            let watch = Watch {
                gvk,
                reconciler: Reconciler::Type(Arc::new(reconciler)),
                broken,
                changed_in: number,
                reconcile_period: None,
                selector: Value::Null,
                max_concurrent: None,
            };
            all.push((watch, affected));
        }
    }

    /// Marks the kinds whose type changed, too, and gives the others the number they had.
    fn settle(
        &self,
        all: Vec<(Watch, bool)>,
        definitions: &[Arc<Definition>],
        number: u64,
        files: &Files,
    ) -> (Vec<Arc<Watch>>, Vec<Gvk>) {
        let mut affected = Vec::new();
        let mut watches = Vec::new();
        for (mut watch, mut is_affected) in all {
            let of = |definition: &&Arc<Definition>| {
                definition.gvk().is_some_and(|gvk| gvk.group_kind() == watch.gvk.group_kind())
            };
            let now = definitions.iter().find(of);
            let then = self.before.as_ref().and_then(|before| before.definitions.iter().find(of));
            is_affected |= matches!((then, now), (Some(then), Some(now)) if then.crd != now.crd);
            if watch.broken.is_none() {
                watch.broken = now.and_then(|now| now.broken.clone());
            }
            if is_affected && is_wanted(&files.options.only, &watch.gvk) {
                affected.push(watch.gvk.clone());
            } else if !is_affected && let Some(before) = self.before(&watch.gvk) {
                watch.changed_in = before.changed_in;
            } else {
                watch.changed_in = number;
            }
            watches.push(Arc::new(watch));
        }
        (watches, affected)
    }

    fn before(&self, gvk: &Gvk) -> Option<&Watch> {
        let before = self.before.as_ref()?;
        before.watches.iter().find(|watch| watch.gvk == *gvk).map(|watch| &**watch)
    }
}

/// The programs among the reconcilers.
struct Programs {
    loaded: Vec<LoadedReconciler>,
    /// Charts that are new or changed.
    fresh: Vec<String>,
    /// The charts that programs may name.
    named: BTreeMap<String, Arc<Chart>>,
}

impl LoadedReconciler {
    fn to_reconciler(&self, files: &Files, charts: BTreeMap<String, Arc<Chart>>) -> TypeReconciler {
        TypeReconciler {
            path: self.path.clone(),
            program: self.program.clone(),
            files: self.files.clone(),
            charts,
            allow: files.options.allow.clone(),
            limits: Limits::default(),
        }
    }
}

/// Returns true if two charts have the same script beside them, and it may reach the same.
pub(super) fn same_script(one: &ChartReconciler, other: &ChartReconciler) -> bool {
    let about = |chart: &ChartReconciler| {
        chart.script.as_ref().map(|script| (script.path.clone(), script.files.clone(), script.allow.clone()))
    };
    about(one) == about(other)
}

/// Returns true if a kind is one of the only ones to reconcile.
fn is_wanted(only: &[String], gvk: &Gvk) -> bool {
    only.is_empty() || only.iter().any(|kind| kind.eq_ignore_ascii_case(&gvk.kind))
}

impl Sources {
    /// Every kind with its health; plural names are filled in by those who know the API server.
    pub fn kinds(&self) -> Vec<KindStatus> {
        let status = |watch: &Arc<Watch>| KindStatus {
            gvk: watch.gvk.clone(),
            plural: String::new(),
            source: watch.path().to_owned(),
            scale: self.scale_of(&watch.gvk),
            columns: self.columns_of(&watch.gvk),
            health: match (&watch.broken, watch.is_loaded()) {
                (None, true) => KindHealth::Serving,
                (Some(problem), true) => KindHealth::Stale { problem: problem.clone() },
                (Some(problem), false) => KindHealth::Disabled { problem: problem.clone() },
                (None, false) => {
                    KindHealth::Disabled { problem: problem(watch.path(), "not read yet".to_owned()) }
                }
            },
        };
        let shown = |shown: &Shown| KindStatus {
            gvk: shown.gvk.clone(),
            plural: String::new(),
            source: shown.source.clone(),
            scale: self.scale_of(&shown.gvk),
            columns: self.columns_of(&shown.gvk),
            health: match &shown.program {
                Some(program) => KindHealth::Process { program: program.clone() },
                None => KindHealth::Shown { why: shown.why.clone() },
            },
        };
        self.watches.iter().map(status).chain(self.shown.iter().map(shown)).collect()
    }

    /// Where objects of a kind say how many replicas they want; empty where nobody has said.
    fn scale_of(&self, gvk: &Gvk) -> String {
        let named = self.scale.iter().find(|(kind, _)| kind.eq_ignore_ascii_case(&gvk.kind));
        let defined = || self.definition(&gvk.group, &gvk.kind)?.scale();
        named.map(|(_, path)| path.as_str()).or_else(defined).unwrap_or_default().to_owned()
    }

    /// The columns that the CRD of a kind asks to be printed.
    fn columns_of(&self, gvk: &Gvk) -> Vec<PrinterColumn> {
        self.definition(&gvk.group, &gvk.kind).map(|known| known.columns(&gvk.version)).unwrap_or_default()
    }

    /// Takes the kinds away that opdev is not to reconcile, and lists those that it does not.
    fn leave_out(&mut self, options: &Options) {
        let (wanted, other): (Vec<_>, Vec<_>) = std::mem::take(&mut self.watches)
            .into_iter()
            .partition(|watch| is_wanted(&options.only, &watch.gvk));
        let shown = |watch: &Arc<Watch>, why: &str, program: Option<&String>| Shown {
            gvk: watch.gvk.clone(),
            source: watch.path().to_owned(),
            why: why.to_owned(),
            program: program.cloned(),
        };
        self.shown = other.iter().map(|watch| shown(watch, "--only leaves it out", None)).collect();
        let of_program = options.programs.iter().find(|program| program.charts).map(|program| &program.words);
        let (taken, own): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|watch| of_program.is_some() && watch.chart().is_some());
        self.watches = own;
        self.shown.extend(taken.iter().map(|watch| shown(watch, "", of_program)));
        for definition in &self.definitions {
            let Some(gvk) = definition.gvk() else { continue };
            let same = |other: &Gvk| other.group_kind() == gvk.group_kind();
            let known = self.watches.iter().any(|watch| same(&watch.gvk))
                || self.shown.iter().any(|shown| same(&shown.gvk));
            if !known {
                let program = OwnProgram::of_kind(&options.programs, &gvk.kind);
                let program = program.map(|program| program.words.clone());
                self.shown.push(Shown {
                    gvk,
                    source: definition.file.clone(),
                    why: NO_RECONCILER.to_owned(),
                    program,
                });
            }
        }
    }
}

/// Why nothing reconciles a kind, and what would.
const NO_RECONCILER: &str = "it has no chart and no reconciler; `operator:` in opdev.yaml names a program of your own that reconciles it";

/// A link of a chart that leads out of the project.
fn leads_out((link, target): &(String, String)) -> Diagnostic {
    let message = format!(
        "the link leads out of the project, to {target}: what is there becomes a part of the project"
    );
    let hint =
        "look at what it is; a copy of the file in the project is the same on every machine".to_owned();
    Diagnostic { severity: Severity::Warning, hint: Some(hint), ..problem(link, message) }
}

fn is_not_read((path, why): &(String, String)) -> Diagnostic {
    Diagnostic { severity: Severity::Warning, ..problem(path, format!("not read: {why}")) }
}

/// The samples, and what is wrong with those that cannot be read.
fn samples(files: &Files) -> (Vec<Sample>, Vec<Diagnostic>) {
    let (mut samples, mut problems) = (Vec::new(), Vec::new());
    for (path, text) in &files.samples {
        match yaml::from_str(text) {
            Ok(object) => {
                samples.extend(ObjectRef::of(&object).map(|object| Sample { path: path.clone(), object }));
            }
            Err(error) => {
                let mut broken = problem(path, error.message.clone());
                broken.severity = Severity::Warning;
                broken.place = Some(Place { file: path.clone(), line: error.line, column: error.column });
                problems.push(broken);
            }
        }
    }
    (samples, problems)
}

fn prints(charts: &super::charts::Read) -> Prints<'_> {
    let print = |read: &io::Result<FileSet>| match read {
        Ok(files) => hash(&files.iter().collect::<Vec<_>>()),
        Err(why) => hash(&why.to_string()),
    };
    charts.iter().map(|(path, read)| (path.as_str(), print(read))).collect()
}

/// The override values of an entry, with the variables that the user has allowed.
fn expanded(
    entry: &Entry,
    files: &Files,
    limit: &TimeLimit,
) -> Result<BTreeMap<String, String>, Box<Diagnostic>> {
    let about = |message: String, hint: Option<String>| {
        let mut problem = problem(&entry.place.file, message);
        problem.place = Some(entry.place.clone());
        problem.kind = Some(entry.gvk.clone());
        problem.hint = hint;
        Box::new(problem)
    };
    let granted = &files.options.granted;
    if let Some(refused) = entry.variables().iter().find(|wanted| !granted.contains(wanted)) {
        return Err(about(
            format!("the project is not allowed to {refused}"),
            Some("press R to be asked again, or run `opdev trust` and save this file".to_owned()),
        ));
    }
    overrides::expand(&entry.overrides, &files.env, limit)
        .map_err(|why| about(format!("failed to expand override values: {why}"), None))
}

/// Files that are to be loaded, and what their charts are known by.
struct New<'f> {
    files: &'f Files,
    charts: Prints<'f>,
    named: Prints<'f>,
    forced: bool,
}

impl New<'_> {
    fn fingerprint(&self) -> u64 {
        let New { files, charts, named, .. } = self;
        let watches = (&files.watches.path, files.watches.text.as_ref().map_err(ToString::to_string));
        let yaml = (&watches, &files.settings, &files.crds, &files.patched, &files.samples, &files.env);
        hash(&(yaml, charts, named, files.types.fingerprint(), &files.reconcilers, &files.options))
    }
}

#[cfg(test)]
mod tests;

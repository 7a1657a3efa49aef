//! Texts and file sets in, a numbered set of sources out. Remembers each chart's last good version, so that a
//! broken edit replaces nothing. Pure: `dev/reload.rs` reads the files and the environment.

use super::watches::{self, Entry};
use super::{ChartReconciler, Reconciler, Sources, Watch, broken, overrides};
use crate::event::{Diagnostic, KindHealth, KindStatus, Place, Sample, Severity};
use opdev_helm::chart::{Chart, FileSet};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_object::yaml;
use opdev_types::crd;
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

/// What was read from the disk at one moment.
#[derive(Debug)]
pub struct Files {
    /// Path and text of `watches.yaml`, or why it cannot be read.
    pub watches: (String, Result<String, String>),
    /// Each chart folder that `watches.yaml` names, or why it cannot be read.
    pub charts: BTreeMap<String, Result<FileSet, String>>,
    /// Paths and texts of CRD files.
    pub crds: Vec<(String, String)>,
    /// Paths and texts of samples.
    pub samples: Vec<(String, String)>,
    /// Environment variables, for `overrideValues`.
    pub env: BTreeMap<String, String>,
}

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
}

/// Loads set after set.
#[derive(Debug, Default)]
pub struct Loader {
    before: Option<Arc<Sources>>,
    entries: Vec<Entry>,
    charts: BTreeMap<String, Loading>,
    content: u64,
}

/// One chart folder over time.
#[derive(Debug, Default)]
struct Loading {
    content: u64,
    good: Option<Arc<Chart>>,
    broken: Option<Diagnostic>,
    /// Whether the last good version rendered with its defaults; then a newer one that does not is broken.
    renders: bool,
}

impl Loader {
    /// The chart folders that `watches.yaml` names, so that the caller can read them.
    pub fn chart_paths(&self, path: &str, watches: &str) -> Vec<String> {
        let (entries, _) = watches::read(path, watches);
        let entries = entries.as_ref().unwrap_or(&self.entries);
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
        let content = fingerprint(files);
        if content == self.content && self.before.is_some() && !forced {
            return None;
        }
        self.content = content;
        let number = self.before.as_ref().map_or(0, |before| before.number) + 1;
        let mut diagnostics = Vec::new();
        self.read_entries(files, &mut diagnostics);
        let fresh = self.load_charts(files, forced);
        let mut watches = Vec::new();
        let mut affected = Vec::new();
        for entry in &self.entries {
            let (watch, is_affected) = self.watch(entry, files, number, &fresh, &mut diagnostics);
            if is_affected {
                affected.push(watch.gvk.clone());
            }
            watches.push(Arc::new(watch));
        }
        diagnostics.extend(watches.iter().filter_map(|watch| watch.broken.clone()));
        let crds = crds(files, &watches, &mut diagnostics);
        let sources = Arc::new(Sources {
            number,
            files: changed.to_vec(),
            saved_at,
            watches,
            crds,
            samples: samples(files, &mut diagnostics),
            diagnostics: diagnostics.clone(),
        });
        self.before = Some(Arc::clone(&sources));
        let errors = diagnostics.into_iter().filter(|one| one.severity == Severity::Error).collect();
        Some(Loaded { kinds: sources.kinds(), sources, affected, errors })
    }

    fn read_entries(&mut self, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
        let (path, text) = &files.watches;
        match text {
            Ok(text) => {
                let (entries, problems) = watches::read(path, text);
                diagnostics.extend(problems);
                if let Some(entries) = entries {
                    self.entries = entries;
                }
            }
            Err(why) => diagnostics.push(problem(path, format!("{path} cannot be read: {why}"))),
        }
    }

    /// Loads the charts whose files differ; returns their paths.
    fn load_charts(&mut self, files: &Files, forced: bool) -> Vec<String> {
        self.charts.retain(|path, _| self.entries.iter().any(|entry| entry.chart == *path));
        let mut fresh = Vec::new();
        for entry in &self.entries {
            let path = &entry.chart;
            if fresh.contains(path) {
                continue;
            }
            let Some(read) = files.charts.get(path) else { continue };
            let loading = self.charts.entry(path.clone()).or_default();
            let content = hash_files(read);
            if content == loading.content && !forced {
                continue;
            }
            loading.content = content;
            match load_chart(entry, read, loading.renders) {
                Ok((chart, renders)) => {
                    loading.good = Some(Arc::new(chart));
                    loading.broken = None;
                    loading.renders = renders;
                    fresh.push(path.clone());
                }
                Err(broken) => loading.broken = Some(*broken),
            }
        }
        fresh
    }

    fn watch(
        &self,
        entry: &Entry,
        files: &Files,
        number: u64,
        fresh: &[String],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> (Watch, bool) {
        let loading = self.charts.get(&entry.chart);
        let before =
            self.before.as_ref().and_then(|before| before.watches.iter().find(|one| one.gvk == entry.gvk));
        let overrides = overrides::expand(&entry.overrides, &files.env).unwrap_or_else(|why| {
            let mut problem = problem(&entry.place.file, format!("failed to expand override values: {why}"));
            problem.place = Some(entry.place.clone());
            problem.kind = Some(entry.gvk.clone());
            diagnostics.push(problem);
            before.and_then(|before| before.chart()).map(|chart| chart.overrides.clone()).unwrap_or_default()
        });
        let chart = ChartReconciler {
            path: entry.chart.clone(),
            chart: loading.and_then(|loading| loading.good.clone()),
            watch_dependents: entry.watch_dependents,
            overrides,
            dry_run_option: entry.dry_run_option.clone(),
        };
        let affected = match before.and_then(|before| Some((before, before.chart()?))) {
            None => true,
            Some((before, fed)) => {
                fresh.contains(&entry.chart)
                    || fed.path != chart.path
                    || fed.overrides != chart.overrides
                    || fed.watch_dependents != chart.watch_dependents
                    || fed.dry_run_option != chart.dry_run_option
                    || before.selector != entry.selector
                    || before.reconcile_period != entry.reconcile_period
            }
        };
        let mut watch = Watch {
            gvk: entry.gvk.clone(),
            reconciler: Reconciler::Chart(Arc::new(chart)),
            broken: loading.and_then(|loading| loading.broken.clone()),
            changed_in: number,
            reconcile_period: entry.reconcile_period,
            selector: entry.selector.clone(),
            max_concurrent: entry.max_concurrent,
        };
        if !affected && let Some(before) = before {
            watch.changed_in = before.changed_in;
        }
        (watch, affected)
    }
}

impl Sources {
    /// Every kind with its health; plural names are filled in by those who know the API server.
    pub fn kinds(&self) -> Vec<KindStatus> {
        let status = |watch: &Arc<Watch>| KindStatus {
            gvk: watch.gvk.clone(),
            plural: String::new(),
            source: watch.path().to_owned(),
            scale: String::new(),
            health: match (&watch.broken, watch.is_loaded()) {
                (None, true) => KindHealth::Serving,
                (Some(problem), true) => KindHealth::Stale { problem: problem.clone() },
                (Some(problem), false) => KindHealth::Disabled { problem: problem.clone() },
                (None, false) => {
                    KindHealth::Disabled { problem: problem(watch.path(), "not read yet".to_owned()) }
                }
            },
        };
        self.watches.iter().map(status).collect()
    }
}

fn problem(file: &str, message: String) -> Diagnostic {
    let place = Place { file: file.to_owned(), line: 0, column: 0 };
    Diagnostic {
        severity: Severity::Error,
        message,
        place: Some(place),
        excerpt: None,
        hint: None,
        kind: None,
    }
}

fn load_chart(
    entry: &Entry,
    read: &Result<FileSet, String>,
    strict: bool,
) -> Result<(Chart, bool), Box<Diagnostic>> {
    let files = match read {
        Ok(files) => files,
        Err(why) => {
            let mut broken = problem("", format!("invalid chart directory {}: {why}", entry.chart));
            broken.place = Some(entry.chart_place.clone());
            broken.kind = Some(entry.gvk.clone());
            broken.hint =
                Some("chart names a folder with a Chart.yaml, relative to the project's root".to_owned());
            return Err(Box::new(broken));
        }
    };
    let load = || {
        Chart::load(files)
            .map_err(|error| Box::new(broken::chart(&entry.chart, files, &error)))
            .and_then(|chart| broken::check(&entry.chart, &chart, strict).map(|renders| (chart, renders)))
    };
    // A chart that trips over a bug of opdev is one broken chart, not the end of the operator.
    let checked = std::panic::catch_unwind(load).unwrap_or_else(|_| {
        let mut broken = problem(&entry.chart, "reading this chart tripped over a bug in opdev".to_owned());
        broken.hint = Some("the log has the details; the other kinds go on".to_owned());
        Err(Box::new(broken))
    });
    checked.map_err(|mut broken| {
        broken.kind = Some(entry.gvk.clone());
        broken
    })
}

/// The project's CRDs, and for each kind without one the CRD that the Operator SDK would scaffold.
fn crds(files: &Files, watches: &[Arc<Watch>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Arc<Value>> {
    let mut crds: Vec<Arc<Value>> = Vec::new();
    for (path, text) in &files.crds {
        match crd::read(text) {
            Ok(read) => crds.extend(read.into_iter().map(Arc::new)),
            Err(error) => {
                let mut broken = problem(path, format!("{error:#}"));
                if let Some(error) = error.downcast_ref::<yaml::Error>() {
                    broken.place = Some(Place { file: path.clone(), line: error.line, column: error.column });
                }
                diagnostics.push(broken);
            }
        }
    }
    for watch in watches {
        let defines = |crd: &Arc<Value>| {
            crd::kinds(crd).iter().any(|gvk| gvk.group == watch.gvk.group && gvk.kind == watch.gvk.kind)
        };
        if !watch.gvk.group.is_empty() && !crds.iter().any(defines) {
            crds.push(Arc::new(crd::scaffold(&watch.gvk)));
        }
    }
    crds
}

fn samples(files: &Files, diagnostics: &mut Vec<Diagnostic>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (path, text) in &files.samples {
        match yaml::from_str(text) {
            Ok(object) => {
                samples.extend(ObjectRef::of(&object).map(|object| Sample { path: path.clone(), object }));
            }
            Err(error) => {
                let mut broken = problem(path, error.message.clone());
                broken.severity = Severity::Warning;
                broken.place = Some(Place { file: path.clone(), line: error.line, column: error.column });
                diagnostics.push(broken);
            }
        }
    }
    samples
}

fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn hash_files(read: &Result<FileSet, String>) -> u64 {
    match read {
        Ok(files) => hash(&files.iter().collect::<Vec<_>>()),
        Err(why) => hash(why),
    }
}

fn fingerprint(files: &Files) -> u64 {
    let charts: Vec<_> = files.charts.iter().map(|(path, read)| (path, hash_files(read))).collect();
    hash(&(&files.watches, charts, &files.crds, &files.samples, &files.env))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WATCHES: &str = "- {group: a.b, version: v1, kind: One, chart: charts/one}\n\
                           - {group: a.b, version: v1, kind: Two, chart: charts/two}\n";

    fn chart(name: &str, template: &str) -> Result<FileSet, String> {
        let metadata = format!("apiVersion: v2\nname: {name}\nversion: 0.1.0\n");
        let files = [
            ("Chart.yaml", metadata),
            ("values.yaml", "n: 1\n".to_owned()),
            ("templates/a.yaml", template.to_owned()),
        ];
        Ok(files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect())
    }

    const GOOD: &str =
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\ndata: {n: \"{{ .Values.n }}\"}\n";

    fn files(one: &str, two: &str) -> Files {
        Files {
            watches: ("watches.yaml".to_owned(), Ok(WATCHES.to_owned())),
            charts: [
                ("charts/one".to_owned(), chart("one", one)),
                ("charts/two".to_owned(), chart("two", two)),
            ]
            .into(),
            crds: Vec::new(),
            samples: vec![(
                "samples/one.yaml".to_owned(),
                "apiVersion: a.b/v1\nkind: One\nmetadata: {name: x}\n".to_owned(),
            )],
            env: BTreeMap::new(),
        }
    }

    fn kinds(loaded: &Loaded) -> Vec<&str> {
        loaded.affected.iter().map(|gvk| gvk.kind.as_str()).collect()
    }

    #[test]
    fn only_the_changed_kind_is_affected() {
        let mut loader = Loader::default();
        let first = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
        assert_eq!((first.sources.number, kinds(&first)), (1, vec!["One", "Two"]));
        assert_eq!(first.sources.crds.len(), 2, "kinds without a CRD get the scaffolded one");
        assert_eq!(first.sources.samples[0].object.name, "x");
        assert!(loader.load(&files(GOOD, GOOD), &[], None, false).is_none(), "the same bytes are no change");

        let edited = GOOD.replace("name: a", "name: b");
        let second = loader
            .load(&files(&edited, GOOD), &["charts/one/templates/a.yaml".to_owned()], None, false)
            .unwrap();
        assert_eq!((second.sources.number, kinds(&second)), (2, vec!["One"]));
        assert_eq!(second.sources.watches.iter().map(|watch| watch.changed_in).collect::<Vec<_>>(), [2, 1]);
        let forced = loader.load(&files(&edited, GOOD), &[], None, true).unwrap();
        assert_eq!(kinds(&forced), ["One", "Two"]);
    }

    #[test]
    fn a_broken_edit_keeps_the_last_good_chart_and_has_a_place() {
        let mut loader = Loader::default();
        let first = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
        for (broken, line, words) in [
            (GOOD.replace("}}", ""), 4, "unclosed action"),
            (GOOD.replace(".Values.n ", ".Values.n.m.o "), 4, "nil pointer evaluating"),
        ] {
            let loaded = loader.load(&files(&broken, GOOD), &[], None, false).unwrap();
            assert!(kinds(&loaded).is_empty(), "{words}");
            assert!(Arc::ptr_eq(
                loaded.sources.watches[0].chart().unwrap().chart.as_ref().unwrap(),
                first.sources.watches[0].chart().unwrap().chart.as_ref().unwrap()
            ));
            let problem = &loaded.errors[0];
            assert_eq!(
                problem.place.as_ref().map(|at| (at.file.as_str(), at.line)),
                Some(("charts/one/templates/a.yaml", line)),
                "{problem:?}"
            );
            assert!(matches!(loaded.kinds[0].health, KindHealth::Stale { .. }));
            assert!(problem.excerpt.as_deref().is_some_and(|text| text.contains(".Values.n")), "{problem:?}");
        }
        let mended = loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
        assert_eq!(mended.kinds[0].health, KindHealth::Serving);
        assert!(mended.errors.is_empty());
    }

    #[test]
    fn a_chart_that_is_missing_at_start_disables_one_kind() {
        let mut loader = Loader::default();
        let mut files = files(GOOD, GOOD);
        files.charts.insert("charts/one".to_owned(), Err("No such file or directory".to_owned()));
        let loaded = loader.load(&files, &[], None, false).unwrap();
        assert!(matches!(loaded.kinds[0].health, KindHealth::Disabled { .. }));
        assert_eq!(loaded.kinds[1].health, KindHealth::Serving);
        assert_eq!(loaded.errors[0].place.as_ref().unwrap().to_string(), "watches.yaml:1:47");
    }

    #[test]
    fn a_watches_file_that_does_not_parse_changes_no_kind() {
        let mut loader = Loader::default();
        loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
        let mut files = files(GOOD, GOOD);
        files.watches.1 = Ok("- [".to_owned());
        let loaded = loader.load(&files, &[], None, false).unwrap();
        assert_eq!(loaded.sources.watches.len(), 2);
        assert!(kinds(&loaded).is_empty());
        assert_eq!(loaded.errors.len(), 1);
    }

    #[test]
    fn a_template_that_gives_no_yaml_is_named_where_it_lies() {
        let mut loader = Loader::default();
        loader.load(&files(GOOD, GOOD), &[], None, false).unwrap();
        let loaded = loader.load(&files(&GOOD.replace("data:", "data: [x"), GOOD), &[], None, false).unwrap();
        let place = loaded.errors[0].place.clone().unwrap();
        assert_eq!(place.file, "charts/one/templates/a.yaml");
        assert!(loaded.errors[0].excerpt.is_some());
    }
}

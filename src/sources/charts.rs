//! Loads the charts whose files changed and remembers each one's last working version: those that feed kinds,
//! and those that the releases of programs name. Pure.

use super::chart_dependencies;
use super::chart_problems;
use super::chart_problems::Trials;
use super::files::{Prints, problem};
use super::time_limit::TimeLimit;
use super::watches::Entry;
use opdev_event::{Diagnostic, Severity};
use opdev_helm::chart::{Chart, FileSet};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The loader of charts, over time.
#[derive(Debug, Default)]
pub(super) struct Charts {
    loading: BTreeMap<String, Loading>,
    named: BTreeMap<String, Loading>,
    /// Until when checks may go on.
    pub(super) limit: TimeLimit,
}

/// One chart over time.
#[derive(Debug, Default)]
pub(super) struct Loading {
    content: u64,
    pub(super) good: Option<Arc<Chart>>,
    pub(super) broken: Option<Diagnostic>,
    /// True if the last working version rendered with its defaults; then a newer one that does not is broken.
    renders: bool,
    trials: Trials,
}

/// Charts by path, or why they cannot be read.
pub(super) type Read = BTreeMap<String, io::Result<FileSet>>;

impl Charts {
    /// The chart in a folder that feeds a kind.
    pub(super) fn get(&self, path: &str) -> Option<&Loading> {
        self.loading.get(path)
    }

    /// A warning for an entry whose chart is a library: its releases have no objects.
    pub(super) fn library(&self, entry: &Entry) -> Option<Diagnostic> {
        let chart = self.get(&entry.chart)?.good.as_ref()?;
        chart.metadata.is_library().then(|| {
            let mut told = problem(
                &entry.chart,
                format!("the chart of {} is a library: its releases have no objects", entry.gvk.kind),
            );
            told.severity = Severity::Warning;
            told.place = Some(entry.chart_place.clone());
            told.kind = Some(entry.gvk.clone());
            told.hint = Some(format!(
                "a library chart is a dependency of other charts; let `chart:` name one of these, or write `type: \
                 application` in {}/Chart.yaml",
                entry.chart.trim_end_matches('/')
            ));
            told
        })
    }

    /// Loads the charts of the entries whose files differ; returns their paths.
    pub(super) fn load(
        &mut self,
        entries: &[Entry],
        read: &Read,
        prints: &Prints<'_>,
        forced: bool,
    ) -> Vec<String> {
        self.loading.retain(|path, _| entries.iter().any(|entry| entry.chart == *path));
        let mut fresh = Vec::new();
        for entry in entries {
            let path = &entry.chart;
            if fresh.contains(path) {
                continue;
            }
            let Some(read) = read.get(path) else { continue };
            let loading = self.loading.entry(path.clone()).or_default();
            let content = prints[path.as_str()];
            if content == loading.content && !forced {
                continue;
            }
            loading.content = content;
            loading.trials.shrink();
            loading.trials.limit = self.limit.clone();
            match load(entry, read, loading) {
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

    /// Loads the charts that releases of programs name; returns the paths of those that are new or changed.
    pub(super) fn load_named(
        &mut self,
        read: &Read,
        prints: &Prints<'_>,
        forced: bool,
        may_install: impl Fn(&str) -> bool,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<String> {
        self.named.retain(|path, _| read.contains_key(path));
        let mut fresh = Vec::new();
        for (path, read) in read {
            let is_told = self.get(path).is_some_and(|watched| watched.broken.is_some());
            let loading = self.named.entry(path.clone()).or_default();
            let content = prints[path.as_str()];
            if content != loading.content || forced {
                loading.content = content;
                let mut trials = Trials::default();
                trials.limit = self.limit.clone();
                match checked(path, read, false, &trials, |why| {
                    problem(path, format!("{path} is no chart: {why}"))
                }) {
                    Ok((chart, _)) => {
                        loading.good = Some(Arc::new(chart));
                        loading.broken = None;
                        fresh.push(path.clone());
                    }
                    Err(broken) => loading.broken = Some(*broken),
                }
            }
            if let Some(broken) = loading.broken.clone().filter(|_| !is_told) {
                // A chart that no program can name breaks nothing.
                let severity = if may_install(path) { Severity::Error } else { Severity::Warning };
                diagnostics.push(Diagnostic { severity, ..broken });
            }
        }
        fresh
    }

    /// The charts that releases may name.
    pub(super) fn named(&self) -> BTreeMap<String, Arc<Chart>> {
        let good =
            |(path, loading): (&String, &Loading)| Some((path.clone(), Arc::clone(loading.good.as_ref()?)));
        self.named.iter().filter_map(good).collect()
    }
}

fn load(
    entry: &Entry,
    read: &io::Result<FileSet>,
    loading: &Loading,
) -> Result<(Chart, bool), Box<Diagnostic>> {
    let unreadable = |why: &io::Error| {
        let mut broken = problem("", format!("invalid chart directory {}: {why}", entry.chart));
        broken.place = Some(entry.chart_place.clone());
        broken.hint =
            Some("chart names a folder with a Chart.yaml, relative to the project's root".to_owned());
        broken
    };
    checked(&entry.chart, read, loading.renders, &loading.trials, unreadable).map_err(|mut broken| {
        broken.kind = Some(entry.gvk.clone());
        broken
    })
}

fn checked(
    path: &str,
    read: &io::Result<FileSet>,
    strict: bool,
    trials: &Trials,
    unreadable: impl Fn(&io::Error) -> Diagnostic,
) -> Result<(Chart, bool), Box<Diagnostic>> {
    let files = match read {
        Ok(files) => files,
        Err(why) => return Err(Box::new(unreadable(why))),
    };
    let load = || {
        let loaded = match files.get("chart.tgz").filter(|_| files.len() == 1) {
            Some(archive) => Chart::load_archive(archive),
            None => Chart::load(files),
        };
        loaded
            .map_err(|error| Box::new(chart_problems::chart(path, files, &error)))
            .and_then(|chart| chart_dependencies::lacks(path, files, &chart).map_or(Ok(chart), Err))
            .and_then(|chart| {
                chart_problems::check(path, &chart, strict, trials).map(|renders| (chart, renders))
            })
    };
    // A chart that trips over a bug of opdev is one broken chart, not the end of the operator.
    std::panic::catch_unwind(load).unwrap_or_else(|_| {
        let mut broken = problem(path, "reading this chart tripped over a bug in opdev".to_owned());
        broken.hint = Some("the log has the details; the other kinds go on".to_owned());
        Err(Box::new(broken))
    })
}

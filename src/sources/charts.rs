//! Loads the charts whose files changed and remembers each one's last working version: those that feed kinds,
//! and those that the releases of programs name. Pure.

use super::chart_problems;
use super::chart_problems::Trials;
use super::files::{Prints, problem};
use super::time_limit::TimeLimit;
use super::watches::Entry;
use opdev_event::{Diagnostic, Place};
use opdev_helm::chart::{Chart, FileSet};
use opdev_helm::dependencies;
use opdev_object::yaml::{self, Node};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// What loads charts again and again.
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
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<String> {
        self.named.retain(|path, _| read.contains_key(path));
        let mut fresh = Vec::new();
        for (path, read) in read {
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
            diagnostics.extend(loading.broken.clone());
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
            .and_then(|chart| lacks(path, files, &chart).map_or(Ok(chart), Err))
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

/// A chart whose dependencies were not downloaded would install without them. Nothing is downloaded unasked.
fn lacks(path: &str, files: &FileSet, chart: &Chart) -> Option<Box<Diagnostic>> {
    let missing = dependencies::missing(chart);
    let first = missing.first()?;
    let message = format!("found in Chart.yaml, but missing in charts/ directory: {}", missing.join(", "));
    let mut broken = problem(path, message);
    let near = chart.metadata.dependencies.iter().find(|dependency| {
        dependency.repository.starts_with("file://") && missing.contains(&dependency.name)
    });
    broken.hint = Some(match near {
        Some(dependency) => format!(
            "`opdev dependency build {path}` packs {}, which has to be there; in a copy of a chart, run it where the \
             chart was copied from, and copy charts/ as well",
            dependency.repository
        ),
        None => format!("`opdev dependency build {path}` downloads them, and so does g u on the screen"),
    });
    let list = if files.get("requirements.yaml").is_some() { "requirements.yaml" } else { "Chart.yaml" };
    let text = files.get(list).map(|data| String::from_utf8_lossy(data).into_owned()).unwrap_or_default();
    if let Ok(node) = yaml::parse(&text) {
        let items = node.get("dependencies").map(Node::items).unwrap_or_default();
        let name = |item: &&Node| item.get("name").and_then(Node::to_text).as_deref() == Some(first);
        if let Some(item) = items.iter().find(name) {
            broken.excerpt = chart_problems::excerpt(&text, item.line, item.column);
            let file = format!("{}/{list}", path.trim_end_matches('/'));
            broken.place = Some(Place { file, line: item.line, column: item.column });
        }
    }
    Some(Box::new(broken))
}

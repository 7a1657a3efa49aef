//! A save: the files that a batch of file events is about, and whether a watched folder itself has moved.
//! Looks at the disk, so it is made beside the workers of the async runtime.

use opdev_os::watcher::Batch;
use opdev_project::Project;
use opdev_project::files;
use opdev_project::files::Links;
use opdev_sources::Sources;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

/// A save.
pub(crate) struct Save {
    /// When the last file was written.
    pub(crate) at: Instant,
    /// The files as they stand in events; those of a linked chart under the link's name.
    pub(crate) files: Vec<String>,
    /// True if a watched folder itself was touched.
    pub(crate) moved: bool,
}

impl Save {
    /// The save that a batch of events is about.
    pub(crate) fn of(project: &Project, sources: &Sources, batch: &Batch) -> Save {
        Save {
            at: batch.saved_at,
            files: names(project, sources, batch),
            moved: moved(project, sources, batch),
        }
    }
}

fn moved(project: &Project, sources: &Sources, batch: &Batch) -> bool {
    let set = files::watch_set(project, sources);
    let watched: BTreeSet<&PathBuf> = set.deep.iter().chain(&set.flat).collect();
    let charts = sources.watches.iter().filter_map(|watch| watch.chart());
    let links: Vec<PathBuf> = charts.map(|chart| project.root.join(&chart.path)).collect();
    batch
        .paths
        .iter()
        .any(|path| watched.iter().any(|at| at.starts_with(path)) || links.contains(path) || path.is_dir())
}

fn names(project: &Project, sources: &Sources, batch: &Batch) -> Vec<String> {
    let root = &project.root;
    let mut links: Vec<(PathBuf, PathBuf)> = sources
        .watches
        .iter()
        .filter_map(|watch| watch.chart())
        .filter_map(|chart| Some((root.join(&chart.path).canonicalize().ok()?, root.join(&chart.path))))
        .collect();
    // Only what lies elsewhere has two names.
    if batch.paths.iter().any(|path| !path.starts_with(root)) {
        let charts = links.iter().map(|(real, _)| real.clone()).collect();
        let inside = Links::below(root, &charts).found;
        links.extend(inside.into_iter().map(|link| (link.target, link.path)));
    }
    let name = |path: &PathBuf| {
        for (real, link) in &links {
            if let Ok(rest) = path.strip_prefix(real) {
                let path = if rest.as_os_str().is_empty() { link.clone() } else { link.join(rest) };
                return project.relative(&path);
            }
        }
        project.relative(path)
    };
    // Files that an editor wrote beside and renamed are gone; deleted ones are named where nothing else
    // is.
    let (there, gone): (Vec<_>, Vec<_>) =
        batch.paths.iter().filter(|path| !path.is_dir()).partition(|path| path.exists());
    let files = if there.is_empty() { gone } else { there };
    files.into_iter().map(name).filter(|name| !name.is_empty()).collect()
}

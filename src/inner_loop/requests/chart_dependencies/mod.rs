//! Writes the dependencies of a chart that `pull` has planned: archives into `charts/`, then the lock; what
//! is no dependency any more goes last. Finds charts of a project that lack some.

pub(crate) mod download;

use anyhow::{Context as _, Result};
use opdev_helm::chart::{self, Chart, FileSet};
use opdev_helm::dependencies;
use opdev_os::private_folder::write_in_project;
use opdev_os::read;
use opdev_project::Project;
use opdev_project::chart_sources;
use opdev_project::files::watched_charts;
use opdev_pull::Plan;
use opdev_sources::load::Outdated;
use std::path::Path;

/// Returns true if a chart of `watches.yaml` lacks a dependency.
pub fn are_missing(project: &Project) -> bool {
    watched_charts(project).iter().any(|path| lacks(&project.root.join(path)))
}

/// Returns true if a chart lists dependencies that it does not have. What cannot be read is told where charts
/// are loaded.
fn lacks(folder: &Path) -> bool {
    chart::read_dir(folder).is_ok_and(|files| has_gaps(&files))
}

/// Returns true if a chart of the project lacks a dependency, or has an archive that is older than the folder
/// of the project that it was packed from.
pub(crate) fn wants(project: &Project, path: &str) -> bool {
    let Ok(files) = chart::read_dir(&project.root.join(path)) else { return false };
    has_gaps(&files) || chart_sources::outdated(&project.root, path, &files).iter().any(Outdated::is_archive)
}

fn has_gaps(files: &FileSet) -> bool {
    Chart::load(files).is_ok_and(|chart| !dependencies::missing(&chart).is_empty())
}

/// Writes a plan into a chart's folder. No link below it is followed; a file that is there already is not
/// written.
///
/// # Errors
/// What cannot be written. Each file is there whole or as it was.
pub fn write(chart: &Path, plan: &Plan) -> Result<()> {
    for (name, archive) in &plan.archives {
        let relative = Path::new("charts").join(name);
        if read::bytes_up_to(chart.join(&relative), read::ARCHIVE).is_ok_and(|present| present == *archive) {
            continue;
        }
        write_in_project(chart, &relative, archive)?;
    }
    if let Some((name, text)) = &plan.lock {
        write_in_project(chart, Path::new(name), text.as_bytes())?;
    }
    let folder = chart.join("charts");
    if plan.outdated.is_empty() || folder.is_symlink() {
        return Ok(());
    }
    for name in &plan.outdated {
        let path = folder.join(name);
        std::fs::remove_file(&path).with_context(|| format!("{} cannot be removed", path.display()))?;
    }
    Ok(())
}

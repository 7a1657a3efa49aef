//! The output of `helm dependency list`: each dependency of a chart and whether it lies in `charts/`.

use anyhow::{Context as _, Result};
use opdev_helm::chart::{Chart, Dependency, read_dir};
use opdev_os::read;
use opdev_template::semver::{Constraint, Version};
use std::fmt::Write as _;
use std::path::Path;

/// Columns are not wider than this.
const WIDEST: usize = 80;

/// The table, and warnings about what lies in `charts/` and is no dependency.
///
/// # Errors
/// Where the chart cannot be read.
pub fn list(path: &Path) -> Result<String> {
    let files = read_dir(path).with_context(|| format!("the chart {} cannot be read", path.display()))?;
    let chart = Chart::load(&files).with_context(|| format!("the chart {}", path.display()))?;
    let charts = path.join("charts");
    if !chart.metadata.lists_dependencies {
        return Ok(format!("WARNING: no dependencies at {}\n", charts.display()));
    }
    let mut rows = vec![["NAME", "VERSION", "REPOSITORY", "STATUS"].map(str::to_owned)];
    for one in &chart.metadata.dependencies {
        let status = status(&charts, one, &chart);
        rows.push([one.name.clone(), one.version.clone(), one.repository.clone(), status.to_owned()]);
    }
    let mut out = table(&rows);
    out.push('\n');
    for file in names(&charts) {
        let path = charts.join(&file);
        if !path.is_dir() && !file.ends_with(".tgz") {
            continue;
        }
        let shown = path.display().to_string();
        match read_dir(&path).map_err(|_| ()).and_then(|files| Chart::load(&files).map_err(|_| ())) {
            Err(()) => {
                let _ = writeln!(out, "WARNING: {shown:?} is not a chart.");
            }
            Ok(found) if !chart.metadata.dependencies.iter().any(|one| one.name == found.name()) => {
                let _ = writeln!(out, "WARNING: {shown:?} is not in Chart.yaml.");
            }
            Ok(_) => {}
        }
    }
    Ok(out)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = read::entries(folder).into_iter().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn table(rows: &[[String; 4]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(WIDEST);
    let widths = [0, 1, 2, 3].map(width);
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            let cut = cell.chars().count() > WIDEST;
            let text: String =
                if cut { cell.chars().take(WIDEST - 3).chain("...".chars()).collect() } else { cell.clone() };
            format!("{text:width$}")
        });
        let _ = writeln!(out, "{}", cells.collect::<Vec<_>>().join("\t"));
    }
    out
}

fn status(charts: &Path, wanted: &Dependency, parent: &Chart) -> &'static str {
    let of_name = |file: &str| {
        file.strip_prefix(wanted.name.as_str())?.strip_prefix('-')?.strip_suffix(".tgz").map(str::to_owned)
    };
    let archives: Vec<_> =
        names(charts).into_iter().filter_map(|file| Some((of_name(&file)?, file))).collect();
    let of_versions: Vec<_> = archives.iter().filter(|(version, _)| is_strict(version)).collect();
    let archive = match (archives.as_slice(), of_versions.as_slice()) {
        ([(_, only)], _) | (_, [(_, only)]) => Some(only),
        (_, [_, _, ..]) => return "too many matches",
        _ => None,
    };
    if let Some(file) = archive {
        let loaded = read::bytes_up_to(charts.join(file), read::ARCHIVE)
            .ok()
            .and_then(|bytes| Chart::load_archive(&bytes).ok());
        return match loaded {
            None => "corrupt",
            Some(found) if found.name() != wanted.name => "misnamed",
            Some(found) => fit(&found, wanted).unwrap_or("ok"),
        };
    }
    match parent.subcharts.iter().rfind(|one| one.name() == wanted.name) {
        None => "missing",
        Some(found) => fit(found, wanted).unwrap_or("unpacked"),
    }
}

fn is_strict(version: &str) -> bool {
    version.split(['-', '+']).next().is_some_and(|numbers| numbers.split('.').count() == 3)
        && !version.starts_with('v')
        && Version::parse(version).is_ok()
}

/// The error of a version; `None` where it fits.
fn fit(found: &Chart, wanted: &Dependency) -> Option<&'static str> {
    let version = &found.metadata.version;
    if *version == wanted.version {
        return None;
    }
    match (Constraint::parse(&wanted.version), Version::parse(version)) {
        (Ok(constraint), Ok(version)) if constraint.check(&version) => None,
        (Ok(_), Ok(_)) => Some("wrong version"),
        (Err(_), _) | (_, Err(_)) => Some("invalid version"),
    }
}

//! Dependencies of charts that are not as Chart.yaml says: missing in `charts/`, or packed from an older
//! state of the folder that `file://` names. Nothing is downloaded or packed unasked.

use super::chart_problems;
use super::files::{Outdated, problem};
use opdev_event::{Diagnostic, Place, Severity};
use opdev_helm::chart::{Chart, FileSet};
use opdev_helm::dependencies;
use opdev_object::yaml::{self, Node};

/// A warning at the entry of Chart.yaml.
pub(super) fn outdated(found: &Outdated, files: Option<&FileSet>) -> Diagnostic {
    let Outdated { chart, name, packed, source, file } = found;
    let message = format!(
        "{chart}/{packed} is not what {source} is now: {file} differs, and the chart uses the packed one"
    );
    let mut told = problem(chart, message);
    told.severity = Severity::Warning;
    told.hint = Some(if found.is_archive() {
        format!("`opdev dependency build {chart}` packs {source} again, and so does g u on the screen")
    } else {
        format!(
            "copy {source} to {chart}/{packed} again, or delete that copy and run `opdev dependency build {chart}`"
        )
    });
    if let Some(files) = files {
        at_entry(&mut told, chart, files, name);
    }
    told
}

/// A chart whose dependencies were not downloaded would install without them. Nothing is downloaded unasked.
pub(super) fn lacks(path: &str, files: &FileSet, chart: &Chart) -> Option<Box<Diagnostic>> {
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
    at_entry(&mut broken, path, files, first);
    Some(Box::new(broken))
}

/// Puts what is told at the dependency's place in the file that lists it.
fn at_entry(told: &mut Diagnostic, path: &str, files: &FileSet, name: &str) {
    let list = if files.get("requirements.yaml").is_some() { "requirements.yaml" } else { "Chart.yaml" };
    let text = files.get(list).map(|data| String::from_utf8_lossy(data).into_owned()).unwrap_or_default();
    let Ok(node) = yaml::parse(&text) else { return };
    let items = node.get("dependencies").map(Node::items).unwrap_or_default();
    let is_it = |item: &&Node| item.get("name").and_then(Node::to_text).as_deref() == Some(name);
    if let Some(item) = items.iter().find(is_it) {
        told.excerpt = chart_problems::excerpt(&text, item.line, item.column);
        let file = format!("{}/{list}", path.trim_end_matches('/'));
        told.place = Some(Place { file, line: item.line, column: item.column });
    }
}

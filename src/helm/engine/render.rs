//! One render: dependencies, values, schema, templates in Helm's order, then documents, hooks and notes.

use super::{RenderError, RenderInput, Rendered, run};
use crate::chart::{Chart, dependencies};
use crate::manifest::{self, ManifestError};
use crate::semver::is_compatible;
use crate::values::{coalesce, schema};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Renders a chart as `helm install` or `helm upgrade` would.
pub fn render(chart: &Chart, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
    let (chart, mut warnings) = dependencies::process(chart, input.values).map_err(RenderError::new)?;
    let coalesced = coalesce(&chart, input.values).map_err(RenderError::new)?;
    warnings.extend(coalesced.warnings);
    schema::validate(&chart, &coalesced.values).map_err(|error| {
        RenderError::new(format!(
            "values don't meet the specifications of the schema(s) in the following chart(s):\n{error}"
        ))
    })?;
    check_kube_version(&chart, input)?;
    let (mut files, impure) = run::execute(&chart, &coalesced.values, input)?;
    let notes = take_notes(&mut files, chart.name());
    let sorted = manifest::sort(&files, input.compat).map_err(|error| broken_document(error, &files))?;
    warnings.extend(sorted.warnings);
    let mut text = String::new();
    for document in &sorted.documents {
        let _ = write!(text, "---\n# Source: {}\n{}\n", document.path, document.content);
    }
    Ok(Rendered {
        manifest: text,
        documents: sorted.documents,
        hooks: sorted.hooks,
        notes,
        warnings,
        chart,
        impure,
    })
}

fn check_kube_version(chart: &Chart, input: &RenderInput<'_>) -> Result<(), RenderError> {
    let wanted = &chart.metadata.kube_version;
    let version = &input.capabilities.kube_version.normalized;
    if !wanted.is_empty() && !is_compatible(wanted, version) {
        return Err(RenderError::new(format!(
            "chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}"
        )));
    }
    Ok(())
}

/// Takes every NOTES.txt out and gives the root chart's.
fn take_notes(files: &mut BTreeMap<String, String>, name: &str) -> String {
    let own = format!("{name}/templates/NOTES.txt");
    let notes = files.get(&own).cloned().unwrap_or_default();
    files.retain(|path, _| !path.ends_with("NOTES.txt"));
    notes
}

fn broken_document(error: ManifestError, files: &BTreeMap<String, String>) -> RenderError {
    let mut rendered = String::new();
    for (path, text) in files.iter().filter(|(_, text)| !text.trim().is_empty()) {
        let _ = write!(rendered, "---\n# Source: {path}\n{text}\n");
    }
    RenderError {
        message: error.message,
        place: Some(error.place),
        excerpt: error.excerpt,
        chain: Vec::new(),
        rendered: Some(rendered.into()),
    }
}

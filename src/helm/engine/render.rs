//! One render: dependencies, values, schema, templates in Helm's order, then documents, hooks and notes.

use super::ahead::Ahead;
use super::input::{RenderError, RenderErrorKind, RenderInput, Rendered, Unreadable};
use super::memory::{Output, Outputs, Prepared, State};
use super::origin::Made;
use super::{facts, run};
use crate::chart::{Chart, Place};
use crate::dependencies;
use crate::manifest::{self, Document, ManifestError};
use crate::values::{coalesce, schema};
use opdev_template::semver::is_compatible;
use serde_json::Value;
use std::fmt::Write;
use std::sync::Arc;

/// Renders a chart as `helm install` or `helm upgrade` would.
pub fn render(chart: &Chart, input: &RenderInput<'_>) -> Result<Rendered, RenderError> {
    let Some(memory) = input.memory else { return render_with(chart, input, None) };
    let mut state = memory.take();
    let rendered = render_with(chart, input, Some(&mut state));
    memory.put(state);
    rendered
}

fn render_with(
    chart: &Chart,
    input: &RenderInput<'_>,
    mut state: Option<&mut State>,
) -> Result<Rendered, RenderError> {
    let prepare = || prepared(chart, input, state.as_deref_mut());
    let ((chart, values, mut warnings), ahead) = Ahead::beside(chart, input, prepare, |(chart, ..)| chart)?;
    check_kube_version(&chart, input)?;
    let (mut outputs, before) = run::execute(&chart, &values, input, &ahead, state)?;
    let made = Made { chart: &chart, values: &values, input, ahead: &ahead };
    read_documents(&outputs, &before, &made)?;
    let impure = outputs.values().any(|output| output.impure);
    let kept = |(path, output): &(&String, &Arc<Output>)| {
        before.get(*path).is_some_and(|old| Arc::ptr_eq(old, output))
    };
    let executed = outputs.iter().filter(|pair| !kept(pair)).count();
    let release_reads = facts::release_reads(&outputs);
    let notes = take_notes(&mut outputs, chart.name());
    let parts = outputs.iter().map(|(path, output)| {
        let parts = output.parts.get().map(Vec::as_slice);
        (path.as_str(), parts.unwrap_or_default())
    });
    let sorted = manifest::arrange(parts, input.compat);
    warnings.extend(sorted.warnings);
    let size = |document: &Document| document.part.content.len() + document.path.len() + 20;
    let mut text = String::with_capacity(sorted.documents.iter().map(size).sum());
    for document in &sorted.documents {
        for piece in ["---\n# Source: ", &document.path, "\n", &document.part.content, "\n"] {
            text.push_str(piece);
        }
    }
    Ok(Rendered {
        manifest: text,
        documents: sorted.documents,
        hooks: sorted.hooks,
        notes,
        warnings,
        chart,
        impure,
        release_reads,
        executed,
    })
}

/// The chart as the release takes it, its coalesced values, and Helm's warnings.
pub(super) fn prepared(
    chart: &Chart,
    input: &RenderInput<'_>,
    state: Option<&mut State>,
) -> Result<(Chart, Arc<Value>, Vec<String>), RenderError> {
    let kept = state.as_deref().and_then(|state| state.prepared.as_ref());
    if let Some(kept) = kept.filter(|kept| kept.fits(chart, input.values)) {
        let chart = dependencies::renew(&kept.chart, chart);
        return Ok((chart, Arc::clone(&kept.values), kept.warnings.clone()));
    }
    let (processed, mut warnings) = dependencies::process(chart, input.values, input.compat)?;
    let coalesced = coalesce(&processed, input.values, input.compat)?;
    warnings.extend(coalesced.warnings);
    if !input.skip_schema_validation {
        let options = schema::Options { compat: input.compat, fetch: input.fetch_schema.clone() };
        let checked = schema::validate(&processed, &coalesced.values, &options);
        warnings.extend(checked.map_err(|error| {
            let message = format!(
                "values don't meet the specifications of the schema(s) in the following chart(s):\n{error}"
            );
            RenderError::new(RenderErrorKind::Schema(error), message)
        })?);
    }
    let values = Arc::new(coalesced.values);
    if let Some(state) = state {
        // Schemas in other files are read anew each time.
        state.prepared = (!schema::reaches_out(chart))
            .then(|| Prepared::new(chart, input.values, &processed, &values, &warnings));
    }
    Ok((processed, values, warnings))
}

/// Reads the documents of every output that has not been read, but not those that stood in the output before.
fn read_documents(outputs: &Outputs, before: &Outputs, made: &Made<'_>) -> Result<(), RenderError> {
    for (path, output) in outputs.iter().filter(|(path, _)| !manifest::is_notes(path)) {
        let documents = output.documents(path, before.get(path), made.input.compat);
        documents.map_err(|error| {
            let ManifestError { place, start, .. } = &error;
            let origin = made.origin(path, &output.text, start + place.line.max(1), place.column);
            broken_document(error, origin, outputs)
        })?;
    }
    Ok(())
}

fn check_kube_version(chart: &Chart, input: &RenderInput<'_>) -> Result<(), RenderError> {
    let wanted = &chart.metadata.kube_version;
    let version = &input.capabilities.kube_version.normalized;
    if !wanted.is_empty() && !is_compatible(wanted, version) {
        let message =
            format!("chart requires kubeVersion: {wanted} which is incompatible with Kubernetes {version}");
        let kind = RenderErrorKind::KubeVersion { required: wanted.clone(), version: version.clone() };
        return Err(RenderError::new(kind, message));
    }
    Ok(())
}

/// Takes every NOTES.txt out and gives the root chart's.
fn take_notes(outputs: &mut Outputs, name: &str) -> String {
    let own = format!("{name}/templates/NOTES.txt");
    let notes = outputs.get(&own).map(|output| output.text.clone()).unwrap_or_default();
    outputs.retain(|path, _| !manifest::is_notes(path));
    notes
}

fn broken_document(error: ManifestError, origin: Option<Place>, outputs: &Outputs) -> RenderError {
    let mut text = String::new();
    let texts = outputs
        .iter()
        .filter(|(path, _)| !manifest::is_notes(path))
        .map(|(path, output)| (path, &output.text));
    for (path, made) in texts.filter(|(_, made)| !made.trim().is_empty()) {
        let _ = write!(text, "---\n# Source: {path}\n{made}\n");
    }
    RenderError {
        kind: Box::new(RenderErrorKind::Manifest(Unreadable { text, origin })),
        message: error.message,
        place: Some(error.place),
        excerpt: error.excerpt,
        hints: Vec::new(),
    }
}

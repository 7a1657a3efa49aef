//! From files to a chart: which file means what, and how subcharts are found.

use super::decode::Mismatch;
use super::ignore::Rules;
use super::metadata::Metadata;
use super::{Chart, ChartError, File, FileSet, Place, archive};
use crate::values::merge;
use opdev_object::yaml;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Loads a chart's folder.
pub(super) fn load(files: &FileSet) -> Result<Chart, ChartError> {
    let rules = match files.get(".helmignore") {
        Some(text) => Rules::parse(&String::from_utf8_lossy(text))
            .map_err(|error| ChartError { place: place("", ".helmignore", 0, 0), ..error })?,
        None => Rules::parse("")?,
    };
    let kept: FileSet = files
        .iter()
        .filter(|(path, _)| !rules.ignores(path))
        .map(|(path, data)| (path, data.clone()))
        .collect();
    load_files(&kept, "")
}

/// Loads a chart from files that all belong to it; `prefix` leads to it from the root chart's folder.
pub(super) fn load_files(files: &FileSet, prefix: &str) -> Result<Chart, ChartError> {
    let mut chart = Chart::default();
    let Some(data) = files.get("Chart.yaml") else {
        return Err(ChartError { message: "Chart.yaml file is missing".to_owned(), place: None });
    };
    update(&mut chart.metadata, data, prefix, "Chart.yaml")?;
    if chart.metadata.api_version.is_empty() {
        "v1".clone_into(&mut chart.metadata.api_version);
    }
    let mut subcharts: BTreeMap<&str, FileSet> = BTreeMap::new();
    for (path, data) in files.iter() {
        place_file(&mut chart, path, &without_mark(data), prefix, &mut subcharts)?;
    }
    chart
        .metadata
        .validate()
        .map_err(|error| ChartError { place: place(prefix, "Chart.yaml", 0, 0), ..error })?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let loaded = load_subchart(name, &files, prefix).map_err(|error| ChartError {
            message: format!("error unpacking subchart {name} in {}: {}", chart.metadata.name, error.message),
            ..error
        })?;
        chart.subcharts.push(Arc::new(loaded));
    }
    Ok(chart)
}

fn place_file<'f>(
    chart: &mut Chart,
    path: &'f str,
    data: &Arc<[u8]>,
    prefix: &str,
    subcharts: &mut BTreeMap<&'f str, FileSet>,
) -> Result<(), ChartError> {
    let file = || File { name: path.to_owned(), data: data.clone() };
    match path {
        "Chart.yaml" => {}
        "Chart.lock" => chart.lock = Some(lock(data, prefix, path)?),
        "values.yaml" => {
            let text = String::from_utf8_lossy(data);
            chart.values = values(&text).map_err(|error| ChartError {
                message: format!("cannot load values.yaml: {}", error.message),
                place: error.place.and_then(|at| place(prefix, path, at.line, at.column)),
            })?;
        }
        "values.schema.json" => chart.schema = Some(data.clone()),
        "requirements.yaml" => {
            if chart.metadata.api_version != "v1" {
                chart.warnings.push(
                    "Dependencies are handled in Chart.yaml since apiVersion \"v2\". We recommend migrating dependencies to Chart.yaml."
                        .to_owned(),
                );
            }
            update(&mut chart.metadata, data, prefix, path)?;
            if chart.metadata.api_version == "v1" {
                chart.files.push(file());
            }
        }
        "requirements.lock" => {
            chart.lock = Some(lock(data, prefix, path)?);
            if chart.metadata.api_version == "v1" {
                chart.files.push(file());
            }
        }
        _ if path.starts_with("templates/") => chart.templates.push(file()),
        _ => match path.strip_prefix("charts/") {
            Some(_) if path.ends_with(".prov") => chart.files.push(file()),
            Some(rest) => {
                let name = rest.split('/').next().unwrap_or(rest);
                subcharts.entry(name).or_default().insert(rest, data.clone());
            }
            None => chart.files.push(file()),
        },
    }
    Ok(())
}

fn load_subchart(name: &str, files: &FileSet, prefix: &str) -> Result<Chart, ChartError> {
    if std::path::Path::new(name).extension().is_some_and(|end| end == "tgz") {
        let Some(data) = files.get(name) else {
            return Err(ChartError::new(format!("expected {name}, got a folder")));
        };
        return load_files(&archive::unpack(data)?, &format!("{prefix}charts/{name}!"));
    }
    load_files(&files.below(name), &format!("{prefix}charts/{name}/"))
}

/// The documents of a values file, merged; every number a float64.
pub(crate) fn values(text: &str) -> Result<Value, ChartError> {
    let mut found = Value::Object(Map::new());
    for (first_line, document) in split_documents(text) {
        let at = |line: u32, column: u32| place("", "", line + first_line, column);
        let value = yaml::values_from_str(document).map_err(|error| ChartError {
            message: format!("cannot unmarshal yaml document: {error}"),
            place: at(error.line, error.column),
        })?;
        match value {
            Value::Null => {}
            Value::Object(_) => merge(&mut found, value),
            other => {
                let kind = match other {
                    Value::Array(_) => "array",
                    Value::String(_) => "string",
                    Value::Bool(_) => "bool",
                    Value::Number(_) | Value::Null | Value::Object(_) => "number",
                };
                return Err(ChartError {
                    message: format!(
                        "cannot unmarshal yaml document: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
                    ),
                    place: at(1, 1),
                });
            }
        }
    }
    Ok(found)
}

/// Splits at lines that start with `---`, as Kubernetes' reader does; each part with the lines before it.
fn split_documents(text: &str) -> Vec<(u32, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut first_line) = (0, 0);
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if line.starts_with("---") && at > 0 {
            parts.push((first_line, &text[start..at]));
            start = at + line.len();
            first_line = number as u32 + 1;
        }
        at += line.len();
    }
    parts.push((first_line, &text[start.min(text.len())..]));
    parts
}

fn without_mark(data: &Arc<[u8]>) -> Arc<[u8]> {
    data.strip_prefix(b"\xef\xbb\xbf").map_or_else(|| data.clone(), Arc::from)
}

fn place(prefix: &str, file: &str, line: u32, column: u32) -> Option<Place> {
    Some(Place { file: format!("{prefix}{file}"), line, column })
}

fn update(metadata: &mut Metadata, data: &[u8], prefix: &str, path: &str) -> Result<(), ChartError> {
    let text = String::from_utf8_lossy(data);
    let read = |text: &str| -> Result<(), Mismatch> {
        let node = yaml::parse(text.trim_start_matches('\u{feff}'))?;
        metadata.update(&node)
    };
    let mut read = read;
    read(&text).map_err(|error| ChartError {
        message: match error.message.starts_with("validation: ") {
            true => error.message,
            false => format!("cannot load {path}: {}", error.message),
        },
        place: place(prefix, path, error.line, error.column),
    })
}

fn lock(data: &[u8], prefix: &str, path: &str) -> Result<Value, ChartError> {
    yaml::from_str(&String::from_utf8_lossy(data)).map_err(|error| ChartError {
        message: format!("cannot load {path}: {error}"),
        place: place(prefix, path, error.line, error.column),
    })
}

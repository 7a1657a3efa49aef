//! From files to a chart: which file means what, and how subcharts are found.

use super::archive::Budget;
use super::decode::Mismatch;
use super::error::{ChartError, Place};
use super::file_set::FileSet;
use super::ignore::Rules;
use super::metadata::Metadata;
use super::{Chart, Content, File, archive, content};
use crate::merge_values::merge;
use opdev_object::yaml::{self, encoding};
use opdev_template::Compat;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Loads a chart's folder.
pub(super) fn load(files: &FileSet, compat: Compat) -> Result<Chart, ChartError> {
    let rules = match files.get(".helmignore") {
        Some(text) => Rules::parse(&String::from_utf8_lossy(text))
            .map_err(|error| ChartError { place: place("", ".helmignore", 0, 0), ..error })?,
        None => Rules::parse("")?,
    };
    let mut folders = HashMap::new();
    let kept: FileSet = files
        .iter()
        .filter(|(path, _)| !rules.ignores(path, &mut folders))
        .map(|(path, data)| (path, data.clone()))
        .collect();
    load_files(&kept, "", compat, &Budget::new()).map_err(|error| match rules.that_ignores("Chart.yaml") {
        Some((line, pattern)) if kept.get("Chart.yaml").is_none() => hidden(error, line, pattern),
        _ => error,
    })
}

/// A chart whose `.helmignore` leaves out the file that makes it one.
fn hidden(error: ChartError, line: u32, pattern: &str) -> ChartError {
    let meant = match pattern.strip_prefix('!') {
        Some(wanted) => {
            format!(
                "`{pattern}` leaves out every file but `{wanted}`; unlike in .gitignore it takes nothing back"
            )
        }
        None => format!("`{pattern}` leaves out Chart.yaml"),
    };
    ChartError { place: place("", ".helmignore", line, 1), hint: Some(meant), ..error }
}

/// Loads a chart from files that all belong to it; `prefix` leads to it from the root chart's folder.
pub(super) fn load_files(
    files: &FileSet,
    prefix: &str,
    compat: Compat,
    budget: &Budget,
) -> Result<Chart, ChartError> {
    let mut chart = Chart::default();
    let Some(data) = files.get("Chart.yaml") else {
        return Err(ChartError::new("Chart.yaml file is missing"));
    };
    update(&mut chart.metadata, data, prefix, "Chart.yaml")?;
    if chart.metadata.api_version.is_empty() {
        "v1".clone_into(&mut chart.metadata.api_version);
    }
    let mut subcharts: BTreeMap<&str, FileSet> = BTreeMap::new();
    for (path, data) in files.iter() {
        place_file(&mut chart, path, &without_mark(data), prefix, compat, &mut subcharts)?;
    }
    chart
        .metadata
        .validate(compat)
        .map_err(|error| ChartError { place: place(prefix, "Chart.yaml", 0, 0), ..error })?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let loaded = load_subchart(name, &files, prefix, compat, budget).map_err(|error| ChartError {
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
    data: &Content,
    prefix: &str,
    compat: Compat,
    subcharts: &mut BTreeMap<&'f str, FileSet>,
) -> Result<(), ChartError> {
    let file = || File { name: path.to_owned(), data: data.clone() };
    match path {
        "Chart.yaml" => {}
        "Chart.lock" => chart.lock = Some(lock(data, prefix, path)?),
        "values.yaml" => {
            let read = values_of(data, compat).map_err(|error| ChartError {
                message: format!("cannot load values.yaml: {}", error.message),
                place: error.place.and_then(|at| place(prefix, path, at.line, at.column)),
                hint: None,
            })?;
            chart.values = Arc::new(read);
            chart.values_text = Some(data.bytes().clone());
        }
        "values.schema.json" => chart.schema = Some(data.bytes().clone()),
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

fn load_subchart(
    name: &str,
    files: &FileSet,
    prefix: &str,
    compat: Compat,
    budget: &Budget,
) -> Result<Chart, ChartError> {
    if std::path::Path::new(name).extension().is_some_and(|end| end == "tgz") {
        let Some(data) = files.get(name) else {
            return Err(ChartError::new(format!("expected {name}, got a folder")));
        };
        return load_files(
            &archive::unpack(data, budget)?,
            &format!("{prefix}charts/{name}!"),
            compat,
            budget,
        );
    }
    load_files(&files.below(name), &format!("{prefix}charts/{name}/"), compat, budget)
}

/// A values file as it lies on the disk.
pub(crate) fn values_of(data: &[u8], compat: Compat) -> Result<Value, ChartError> {
    let wrapped = |error: encoding::EncodingError| {
        let prefix = match compat {
            Compat::V3_19 | Compat::V3 => "",
            Compat::V4_1 | Compat::V4 => "cannot unmarshal yaml document: ",
        };
        ChartError::new(format!("{prefix}error converting YAML to JSON: {error}"))
    };
    // Helm 4 cuts documents out of the bytes before it asks what they are.
    let wide = data.starts_with(b"\xff\xfe") || data.starts_with(b"\xfe\xff");
    if wide && compat.is_four() {
        return Err(wrapped(encoding::EncodingError::IncompleteUtf16));
    }
    values(&encoding::text(data).map_err(wrapped)?, compat)
}

/// A values file, every number a float64: Helm 3 takes its first document, Helm 4 merges all.
pub(crate) fn values(text: &str, compat: Compat) -> Result<Value, ChartError> {
    let mut found = Value::Object(Map::new());
    match compat {
        Compat::V3_19 | Compat::V3 => merge_document(&mut found, text, 0)?,
        Compat::V4_1 | Compat::V4 => {
            for document in documents(text) {
                let wrapped = |error: ChartError| ChartError {
                    message: format!("cannot unmarshal yaml document: {}", error.message),
                    ..error
                };
                let (first_line, document) = document?;
                merge_document(&mut found, &document, first_line).map_err(wrapped)?;
            }
        }
    }
    Ok(found)
}

fn merge_document(found: &mut Value, text: &str, first_line: u32) -> Result<(), ChartError> {
    let at = |line: u32, column: u32| place("", "", line + first_line, column);
    let value = yaml::values_from_str(text)
        .map_err(|error| ChartError::at(error.to_string(), at(error.line, error.column)))?;
    let kind = match value {
        Value::Null => return Ok(()),
        Value::Object(_) => {
            merge(found, value);
            return Ok(());
        }
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
    };
    let message = format!(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    );
    Err(ChartError::at(message, at(1, 1)))
}

/// Splits at lines that start with `---`, as Kubernetes' reader does; each part with the lines before it.
fn documents(text: &str) -> Vec<Result<(u32, String), ChartError>> {
    let mut parts = Vec::new();
    let (mut part, mut first_line) = (String::new(), 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(after) = line.strip_prefix("---").map(str::trim) {
            if !after.is_empty() && !after.starts_with('#') {
                let message =
                    format!("error reading yaml document: invalid Yaml document separator: {after}");
                parts.push(Err(ChartError::at(message, place("", "", number + 1, 1))));
                return parts;
            }
            if !part.is_empty() {
                parts.push(Ok((first_line, std::mem::take(&mut part))));
                first_line = number + 1;
                continue;
            }
        }
        part.push_str(line);
        part.push('\n');
    }
    if !part.is_empty() {
        parts.push(Ok((first_line, part)));
    }
    parts
}

fn without_mark(data: &Content) -> Content {
    // A file that is read late is read without it.
    if data.is_late() { data.clone() } else { content::without_mark(data.bytes()).into() }
}

fn place(prefix: &str, file: &str, line: u32, column: u32) -> Option<Place> {
    Some(Place { file: format!("{prefix}{file}"), line, column })
}

fn update(metadata: &mut Metadata, data: &[u8], prefix: &str, path: &str) -> Result<(), ChartError> {
    let text = encoding::text(data).map_err(|error| ChartError {
        message: format!("cannot load {path}: error converting YAML to JSON: {error}"),
        place: place(prefix, path, 0, 0),
        hint: None,
    })?;
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
        hint: None,
    })
}

fn lock(data: &[u8], prefix: &str, path: &str) -> Result<Value, ChartError> {
    yaml::from_str(&String::from_utf8_lossy(data)).map_err(|error| ChartError {
        message: format!("cannot load {path}: {error}"),
        place: place(prefix, path, error.line, error.column),
        hint: None,
    })
}

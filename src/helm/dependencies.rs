//! What of a chart takes part in a release: aliases, tags and conditions of dependencies, then imported values.
//! Works on a copy; the loaded chart stays as it is.

use crate::chart::{Chart, Dependency};
use crate::merge_values::{merge_tables, path_value, table};
use crate::semver::is_compatible;
use crate::values::{CoalesceError, coalesce, merge_defaults};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A chart as a release with these values sees it, and Helm's warnings.
///
/// # Errors
/// Values of a subchart that are not a map.
pub fn process(chart: &Chart, values: &Value) -> Result<(Chart, Vec<String>), CoalesceError> {
    let mut chart = chart.clone();
    let mut warnings = Vec::new();
    enable(&mut chart, values, "", &mut warnings)?;
    import(&mut chart, &mut warnings)?;
    Ok((chart, warnings))
}

/// Dependencies that Chart.yaml lists and `charts/` does not have.
pub fn missing(chart: &Chart) -> Vec<String> {
    let has = |name: &str| chart.subcharts.iter().any(|sub| sub.name() == name);
    chart.metadata.dependencies.iter().filter(|d| !has(&d.name)).map(|d| d.name.clone()).collect()
}

fn fits(dependency: &Dependency, chart: &Chart) -> bool {
    chart.name() == dependency.name && is_compatible(&dependency.version, &chart.metadata.version)
}

/// What `process` would make of a chart that has the metadata and values, also in its subcharts, of one it has made
/// `processed` of, for the same values.
pub fn renew(processed: &Chart, chart: &Chart) -> Chart {
    let charts = if chart.metadata.lists_dependencies {
        listed(chart).into_iter().map(|(found, alias)| (found, alias.unwrap_or(found.name()))).collect()
    } else {
        chart.subcharts.iter().map(|found| (found, found.name())).collect::<Vec<_>>()
    };
    let taken = |name: &str| processed.subcharts.iter().any(|sub| sub.name() == name);
    let charts = charts.into_iter().filter(|(_, name)| taken(name)).map(|(found, _)| found);
    Chart {
        metadata: processed.metadata.clone(),
        values: Arc::clone(&processed.values),
        subcharts: processed
            .subcharts
            .iter()
            .zip(charts)
            .map(|(old, new)| Arc::new(renew(old, new)))
            .collect(),
        ..chart.clone()
    }
}

/// Subcharts in the order of a release, with their aliases: first those that Chart.yaml does not list.
fn listed(chart: &Chart) -> Vec<(&Arc<Chart>, Option<&str>)> {
    let listed = &chart.metadata.dependencies;
    let mut subcharts: Vec<_> = chart
        .subcharts
        .iter()
        .filter(|sub| !listed.iter().any(|dependency| fits(dependency, sub)))
        .map(|sub| (sub, None))
        .collect();
    for dependency in listed {
        if let Some(found) = chart.subcharts.iter().find(|sub| fits(dependency, sub)) {
            let alias = Some(dependency.alias.as_str()).filter(|alias| !alias.is_empty());
            subcharts.push((found, alias));
        }
    }
    subcharts
}

fn enable(
    chart: &mut Chart,
    values: &Value,
    path: &str,
    warnings: &mut Vec<String>,
) -> Result<(), CoalesceError> {
    if !chart.metadata.lists_dependencies {
        return Ok(());
    }
    let mut subcharts = Vec::new();
    for (found, alias) in listed(chart) {
        let mut copy = Arc::clone(found);
        if let Some(alias) = alias {
            alias.clone_into(&mut Arc::make_mut(&mut copy).metadata.name);
        }
        subcharts.push(copy);
    }
    chart.subcharts = subcharts;
    for dependency in &mut chart.metadata.dependencies {
        if !dependency.alias.is_empty() {
            dependency.name.clone_from(&dependency.alias);
        }
        dependency.enabled = true;
    }
    let coalesced = coalesce(chart, values)?.values;
    by_tags(&mut chart.metadata.dependencies, &coalesced, warnings);
    by_conditions(&mut chart.metadata.dependencies, &coalesced, path, warnings);
    let removed: BTreeSet<String> =
        chart.metadata.dependencies.iter().filter(|d| !d.enabled).map(|d| d.name.clone()).collect();
    chart.subcharts.retain(|sub| !removed.contains(sub.name()));
    chart.metadata.dependencies.retain(|dependency| !removed.contains(&dependency.name));
    for subchart in &mut chart.subcharts {
        if subchart.metadata.lists_dependencies {
            let below = format!("{path}{}.", subchart.name());
            enable(Arc::make_mut(subchart), &coalesced, &below, warnings)?;
        }
    }
    Ok(())
}

fn by_tags(dependencies: &mut [Dependency], values: &Value, warnings: &mut Vec<String>) {
    let Some(tags) = table(values, "tags") else { return };
    for dependency in dependencies {
        let (mut yes, mut no) = (false, false);
        for tag in &dependency.tags {
            match tags.get(tag) {
                Some(Value::Bool(true)) => yes = true,
                Some(Value::Bool(false)) => no = true,
                Some(_) => warnings.push(format!(
                    "Warning: Tag '{tag}' for chart {} returned non-bool value",
                    dependency.name
                )),
                None => {}
            }
        }
        dependency.enabled = yes || !no;
    }
}

fn by_conditions(dependencies: &mut [Dependency], values: &Value, path: &str, warnings: &mut Vec<String>) {
    for dependency in dependencies {
        let condition = dependency.condition.clone();
        for one in condition.trim().split(',').filter(|one| !one.is_empty()) {
            match path_value(values, &format!("{path}{one}")) {
                Some(Value::Bool(value)) => {
                    dependency.enabled = *value;
                    break;
                }
                Some(_) => warnings.push(format!(
                    "Warning: Condition path '{one}' for chart {} returned non-bool value",
                    dependency.name
                )),
                None => {}
            }
        }
    }
}

fn import(chart: &mut Chart, warnings: &mut Vec<String>) -> Result<(), CoalesceError> {
    for subchart in &mut chart.subcharts {
        import(Arc::make_mut(subchart), warnings)?;
    }
    if !chart.metadata.lists_dependencies {
        return Ok(());
    }
    let merged = merge_defaults(chart, &Value::Object(Map::new()))?.values;
    let mut imported = Map::new();
    for dependency in &mut chart.metadata.dependencies {
        let mut resolved = Vec::new();
        for entry in &dependency.import_values {
            let (child, parent) = match entry {
                Value::Object(map) => (text(map.get("child")), text(map.get("parent"))),
                Value::String(name) => (format!("exports.{name}"), ".".to_owned()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => continue,
            };
            let full = format!("{}.{child}", dependency.name);
            match table(&merged, &full) {
                Some(found) => merge_tables(&mut imported, below(&parent, found.clone()), true),
                None => warnings.push(format!(
                    "Warning: ImportValues missing table from chart {}: \"{full}\" is not a table",
                    dependency.name
                )),
            }
            resolved.push(serde_json::json!({"child": child, "parent": parent}));
        }
        dependency.import_values = resolved;
    }
    let mut merged = match merged {
        Value::Object(map) => map,
        _ => Map::new(),
    };
    merge_tables(&mut merged, imported, true);
    chart.values = Arc::new(Value::Object(merged));
    Ok(())
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "<nil>".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// A map put under a dotted path.
fn below(path: &str, map: Map<String, Value>) -> Map<String, Value> {
    if path == "." {
        return map;
    }
    path.rsplit('.').fold(map, |inner, key| Map::from_iter([(key.to_owned(), Value::Object(inner))]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::FileSet;
    use serde_json::json;

    fn chart() -> Chart {
        let files: FileSet = [
            (
                "Chart.yaml",
                "apiVersion: v2\nname: p\nversion: 1.0.0\ndependencies:\n\
                 - {name: a, version: \">=1\", condition: \"a.enabled,x\", tags: [front]}\n\
                 - {name: a, version: \">=1\", alias: second, import-values: [{child: v, parent: taken.here}, data]}\n",
            ),
            ("values.yaml", "a: {enabled: false}\ntaken: {here: {num: mine}}\n"),
            ("charts/a/Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.2.0\n"),
            ("charts/a/values.yaml", "v: {num: 1, m: 2}\nexports: {data: {z: 3}}\n"),
            ("charts/b/Chart.yaml", "apiVersion: v2\nname: b\nversion: 1.2.0\n"),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        Chart::load(&files).unwrap()
    }

    #[test]
    fn aliases_conditions_tags_and_imports() {
        let names = |chart: &Chart| -> Vec<String> {
            chart.subcharts.iter().map(|sub| sub.name().to_owned()).collect()
        };
        let (plain, _) = process(&chart(), &json!({})).unwrap();
        assert_eq!(names(&plain), ["b", "second"]);
        assert_eq!(plain.values["taken"]["here"], json!({"num": "mine", "m": 2.0}));
        assert_eq!(plain.values["z"], json!(3.0));
        let (on, _) = process(&chart(), &json!({"a": {"enabled": true}, "tags": {"front": false}})).unwrap();
        assert_eq!(names(&on), ["b", "a", "second"]);
        let (off, _) = process(&chart(), &json!({"a": {"enabled": null}, "tags": {"front": false}})).unwrap();
        assert_eq!(names(&off), ["b", "second"]);
    }
}

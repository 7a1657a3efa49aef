//! The parts of a chart that take part in a release: aliases, tags and conditions of dependencies, then
//! imported values. Works on a copy; the loaded chart stays as it is.

use crate::chart::{Chart, Dependency};
use crate::imports::Table;
use crate::merge_values::{path_value, table};
use crate::values::{CoalesceError, coalesce, merge_defaults};
use opdev_template::Compat;
use opdev_template::semver::is_compatible;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A chart as a release with these values sees it, and Helm's warnings.
///
/// # Errors
/// Values of a subchart that are not a map.
pub fn process(chart: &Chart, values: &Value, compat: Compat) -> Result<(Chart, Vec<String>), CoalesceError> {
    let mut chart = chart.clone();
    let mut run = Run { compat, warnings: Vec::new(), shared: HashMap::new() };
    let taken = run.enable(&mut chart, std::ptr::null(), values, "")?;
    run.import(&mut chart, &taken)?;
    Ok((chart, run.warnings))
}

/// Dependencies that Chart.yaml lists and `charts/` does not have.
pub fn missing(chart: &Chart) -> Vec<String> {
    let has = |name: &str| chart.subcharts.iter().any(|sub| sub.name() == name);
    chart.metadata.dependencies.iter().filter(|d| !has(&d.name)).map(|d| d.name.clone()).collect()
}

/// Returns the chart that `process` would make of `chart`, for the same values. `processed` is its result for
/// another state of the chart; the metadata and values are the same in both, also in subcharts.
pub fn renew(processed: &Chart, chart: &Chart) -> Chart {
    let mut charts = if chart.metadata.lists_dependencies {
        let own = chart.metadata.dependencies.iter().map(|dependency| dependency.name.clone());
        listed(chart, &own.collect::<Vec<_>>())
            .into_iter()
            .map(|found| (found.chart, found.alias.unwrap_or(found.chart.name())))
            .collect()
    } else {
        chart.subcharts.iter().map(|found| (found, found.name())).collect::<Vec<_>>()
    };
    // Helm 3 takes a chart without its alias where the chart that has it is itself there twice.
    let mut take = |old: &Chart| {
        let by_name = |(_, name): &(&Arc<Chart>, &str)| *name == old.name();
        let at = charts.iter().position(by_name);
        let at = at.or_else(|| charts.iter().position(|(found, _)| found.name() == old.name()))?;
        Some(charts.remove(at).0)
    };
    Chart {
        metadata: processed.metadata.clone(),
        values: Arc::clone(&processed.values),
        subcharts: processed
            .subcharts
            .iter()
            .filter_map(|old| Some(Arc::new(renew(old, take(old)?))))
            .collect(),
        ..chart.clone()
    }
}

/// A subchart of a release.
struct Listed<'c> {
    chart: &'c Arc<Chart>,
    alias: Option<&'c str>,
}

/// Subcharts in the order of a release: first those that Chart.yaml does not list. `names` are those of the
/// dependencies, which Helm 3 has changed where it has seen the same chart before.
fn listed<'c>(chart: &'c Chart, names: &[String]) -> Vec<Listed<'c>> {
    let listed = || chart.metadata.dependencies.iter().zip(names);
    let fits = |(dependency, name): (&Dependency, &String), sub: &Chart| {
        sub.name() == name && is_compatible(&dependency.version, &sub.metadata.version)
    };
    let mut subcharts: Vec<_> = chart
        .subcharts
        .iter()
        .filter(|sub| !listed().any(|one| fits(one, sub)))
        .map(|chart| Listed { chart, alias: None })
        .collect();
    for (dependency, name) in listed() {
        if let Some(chart) = chart.subcharts.iter().find(|sub| fits((dependency, name), sub)) {
            let alias = Some(dependency.alias.as_str()).filter(|alias| !alias.is_empty());
            subcharts.push(Listed { chart, alias });
        }
    }
    subcharts
}

/// A dependency as it is written: the chart that lists it, as it was loaded, and which one it is.
type Written = (*const Chart, usize);

/// The state that the copies of one chart share in Helm 3.
#[derive(Default)]
struct Shared {
    /// The alias it has taken for its name.
    name: Option<String>,
    /// Its values are imported into the first copy alone.
    imported: bool,
}

/// A chart's part in a release.
struct Taken {
    /// The dependencies that are left.
    dependencies: Vec<Written>,
    /// Its subcharts.
    subcharts: Vec<Taken>,
}

/// One run over a chart and its subcharts.
struct Run {
    compat: Compat,
    warnings: Vec<String>,
    shared: HashMap<Written, Shared>,
}

impl Run {
    /// The names of a chart's dependencies at this moment.
    fn names(&self, chart: &Chart, origin: *const Chart) -> Vec<String> {
        let name = |(at, dependency): (usize, &Dependency)| {
            let shared = self.shared.get(&(origin, at)).and_then(|shared| shared.name.clone());
            shared.unwrap_or_else(|| dependency.name.clone())
        };
        chart.metadata.dependencies.iter().enumerate().map(name).collect()
    }

    /// Decides which subcharts take part. `origin` is where the chart was before it was copied.
    fn enable(
        &mut self,
        chart: &mut Chart,
        origin: *const Chart,
        values: &Value,
        path: &str,
    ) -> Result<Taken, CoalesceError> {
        if !chart.metadata.lists_dependencies {
            return Ok(Taken {
                dependencies: Vec::new(),
                subcharts: chart.subcharts.iter().map(untouched).collect(),
            });
        }
        let names = self.names(chart, origin);
        let (mut subcharts, mut origins) = (Vec::new(), Vec::new());
        for Listed { chart, alias } in listed(chart, &names) {
            origins.push(Arc::as_ptr(chart));
            let mut copy = Arc::clone(chart);
            if let Some(alias) = alias {
                let copy = Arc::make_mut(&mut copy);
                let own = std::mem::replace(&mut copy.metadata.name, alias.to_owned());
                copy.own_name = Some(own);
            }
            subcharts.push(copy);
        }
        for (at, (dependency, name)) in chart.metadata.dependencies.iter_mut().zip(names).enumerate() {
            dependency.name = if dependency.alias.is_empty() { name } else { dependency.alias.clone() };
            dependency.enabled = true;
            if self.compat.is_three() {
                self.shared.entry((origin, at)).or_default().name = Some(dependency.name.clone());
            }
        }
        chart.subcharts = subcharts;
        let coalesced = coalesce(chart, values, self.compat)?.values;
        by_tags(&mut chart.metadata.dependencies, &coalesced, &mut self.warnings);
        by_conditions(&mut chart.metadata.dependencies, &coalesced, path, &mut self.warnings);
        let removed: BTreeSet<String> =
            chart.metadata.dependencies.iter().filter(|d| !d.enabled).map(|d| d.name.clone()).collect();
        let stays = |name: &str| !removed.contains(name);
        let mut kept = chart.subcharts.iter().map(|sub| stays(sub.name()));
        origins.retain(|_| kept.next().unwrap_or(true));
        chart.subcharts.retain(|sub| stays(sub.name()));
        let written = chart.metadata.dependencies.iter().enumerate();
        let written = written.filter(|(_, dependency)| stays(&dependency.name)).map(|(at, _)| (origin, at));
        let dependencies = written.collect();
        chart.metadata.dependencies.retain(|dependency| stays(&dependency.name));
        let mut below = Vec::with_capacity(chart.subcharts.len());
        for (subchart, origin) in chart.subcharts.iter_mut().zip(origins) {
            below.push(if subchart.metadata.lists_dependencies {
                let path = format!("{path}{}.", subchart.name());
                self.enable(Arc::make_mut(subchart), origin, &coalesced, &path)?
            } else {
                untouched(subchart)
            });
        }
        Ok(Taken { dependencies, subcharts: below })
    }

    /// Takes values of subcharts into the charts above them.
    fn import(&mut self, chart: &mut Chart, taken: &Taken) -> Result<(), CoalesceError> {
        for (subchart, taken) in chart.subcharts.iter_mut().zip(&taken.subcharts) {
            self.import(Arc::make_mut(subchart), taken)?;
        }
        if !chart.metadata.lists_dependencies {
            return Ok(());
        }
        let merged = merge_defaults(chart, &Value::Object(Map::new()), self.compat)?.values;
        let Value::Object(mut merged) = merged else { return Ok(()) };
        if chart.metadata.dependencies.iter().any(|dependency| !dependency.import_values.is_empty()) {
            merged = self.imported(&mut chart.metadata.dependencies, taken, &merged);
        }
        chart.values = Arc::new(Value::Object(merged));
        Ok(())
    }

    /// The values of a chart with those that its dependencies are to give it.
    fn imported(
        &mut self,
        dependencies: &mut [Dependency],
        taken: &Taken,
        merged: &Map<String, Value>,
    ) -> Map<String, Value> {
        let (merged, imported) = (Table::of(merged), Table::new());
        for (at, dependency) in dependencies.iter_mut().enumerate() {
            if let Some(written) = taken.dependencies.get(at).filter(|_| self.compat.is_three())
                && std::mem::replace(&mut self.shared.entry(*written).or_default().imported, true)
            {
                dependency.import_values.clear();
            }
            let mut resolved = Vec::new();
            for entry in &dependency.import_values {
                let (child, parent) = match entry {
                    Value::Object(map) => (text(map.get("child")), text(map.get("parent"))),
                    Value::String(name) => (format!("exports.{name}"), ".".to_owned()),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => continue,
                };
                let full = format!("{}.{child}", dependency.name);
                match merged.at(&full) {
                    Some(found) => imported.merge(&found.below(&parent), self.compat),
                    None => self.warnings.push(format!(
                        "Warning: ImportValues missing table from chart {}: \"{full}\" is not a table",
                        dependency.name
                    )),
                }
                resolved.push(serde_json::json!({"child": child, "parent": parent}));
            }
            dependency.import_values = resolved;
        }
        // From here on Helm works on copies.
        let merged = Table::of(&merged.values());
        merged.merge(&Table::of(&imported.values()), self.compat);
        merged.values()
    }
}

/// A chart that lists no dependencies: all its subcharts take part as they are.
fn untouched(chart: &Arc<Chart>) -> Taken {
    Taken { dependencies: Vec::new(), subcharts: chart.subcharts.iter().map(untouched).collect() }
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

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "<nil>".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
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
        let (plain, _) = process(&chart(), &json!({}), Compat::V3).unwrap();
        assert_eq!(names(&plain), ["b", "second"]);
        assert_eq!(plain.values["taken"]["here"], json!({"num": "mine", "m": 2.0}));
        assert_eq!(plain.values["z"], json!(3.0));
        let (on, _) =
            process(&chart(), &json!({"a": {"enabled": true}, "tags": {"front": false}}), Compat::V3)
                .unwrap();
        assert_eq!(names(&on), ["b", "a", "second"]);
        let (off, _) =
            process(&chart(), &json!({"a": {"enabled": null}, "tags": {"front": false}}), Compat::V3)
                .unwrap();
        assert_eq!(names(&off), ["b", "second"]);
    }
}

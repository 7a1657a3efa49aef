//! Where each effective value comes from: a chart's values.yaml, a parent chart's, a global, or what a user
//! gave. Looks at the same inputs as `coalesce` and never decides a value itself.

use crate::chart::Chart;
use crate::dependencies;
use crate::values::CoalesceError;
use opdev_object::yaml::{self, Node};
use opdev_template::Compat;
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

/// Values of a user, from the first given to the last, which wins.
pub struct Layer {
    /// The name of the source: `-f prod.yaml`, `--set a=b`, `custom resource`.
    pub name: String,
    /// The values.
    pub values: Value,
    /// The text they were read from, if that is a file: its lines are named.
    pub text: Option<String>,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A values.yaml: its path from the root chart's folder on, the line (0 where it is not known).
    File(String, u32),
    /// Values of a user: the name, the line in its file (0 where there is none).
    Given(String, u32),
    /// A global that flowed down from a parent chart, and where that one comes from.
    Global(Box<Origin>),
    /// Imported from the values of this dependency.
    Imported(String),
    /// Nothing that was looked at says.
    Unknown,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::File(name, 0) | Origin::Given(name, 0) => f.write_str(name),
            Origin::File(name, line) | Origin::Given(name, line) => write!(f, "{name}:{line}"),
            Origin::Global(origin) => write!(f, "{origin} (global)"),
            Origin::Imported(chart) => write!(f, "imported from {chart}"),
            Origin::Unknown => f.write_str("?"),
        }
    }
}

/// One effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Its keys from the root of the values on; lists are one value.
    pub path: Vec<String>,
    /// The value: no map, unless it is empty.
    pub value: Value,
    /// Where it comes from.
    pub origin: Origin,
}

impl Explained {
    /// The path as `--set` would take it.
    pub fn dotted(&self) -> String {
        let escape = |key: &String| key.replace('.', "\\.");
        self.path.iter().map(escape).collect::<Vec<_>>().join(".")
    }
}

/// The effective values of a loaded chart with a user's values, where each comes from, and Helm's warnings.
/// `layers` are what `user` was merged of.
///
/// # Errors
/// Values of a subchart that are not a map.
pub fn effective(
    chart: &Chart,
    user: &Value,
    layers: &[Layer],
    compat: Compat,
) -> Result<(Vec<Explained>, Vec<String>), CoalesceError> {
    let (taken, mut warnings) = dependencies::process(chart, user, compat)?;
    let coalesced = crate::values::coalesce(&taken, user, compat)?;
    warnings.extend(coalesced.warnings);
    Ok((explain(&taken, chart, &coalesced.values, layers), warnings))
}

/// Every effective value of a chart as a release takes it (see `dependencies::process`), sorted by path.
///
/// `values` are the coalesced ones, `given` the chart as it was loaded.
pub fn explain(chart: &Chart, given: &Chart, values: &Value, layers: &[Layer]) -> Vec<Explained> {
    let layers =
        layers.iter().map(|layer| Lines { layer, lines: layer.text.as_deref().map(lines) }).collect();
    let mut charts = Vec::new();
    collect(chart, Some(given), &mut Vec::new(), "", &mut charts);
    let sources = Sources { layers, charts };
    let mut found = Vec::new();
    if let Value::Object(values) = values {
        sources.walk(values, &mut Vec::new(), &mut found);
    }
    found
}

/// The line that sets a value in a chart's own values.yaml.
pub fn line_of(chart: &Chart, path: &[&str]) -> Option<u32> {
    line(&lines(&String::from_utf8_lossy(chart.values_text.as_deref()?)), path)
}

struct Lines<'l> {
    layer: &'l Layer,
    lines: Option<Vec<Node>>,
}

/// A chart's own defaults.
struct Defaults {
    /// The keys that lead to its section.
    at: Vec<String>,
    values: Arc<Value>,
    file: String,
    lines: Vec<Node>,
    name: String,
}

/// Charts from the root down; a chart before its subcharts.
fn collect(
    chart: &Chart,
    given: Option<&Chart>,
    at: &mut Vec<String>,
    folder: &str,
    found: &mut Vec<Defaults>,
) {
    let text = chart.values_text.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    found.push(Defaults {
        at: at.clone(),
        // Import adds to the values of the chart at hand; the loaded ones are the file's.
        values: Arc::clone(given.map_or(&chart.values, |given| &given.values)),
        file: format!("{folder}values.yaml"),
        lines: lines(&text),
        name: chart.name().to_owned(),
    });
    for subchart in &chart.subcharts {
        let same = |other: &&Arc<Chart>| {
            other.values_text == subchart.values_text && other.metadata.version == subchart.metadata.version
        };
        let given = given.and_then(|given| given.subcharts.iter().find(same));
        let name = given.map_or(subchart.name(), |given| given.name());
        at.push(subchart.name().to_owned());
        collect(subchart, given.map(|given| &**given), at, &format!("{folder}charts/{name}/"), found);
        at.pop();
    }
}

fn lines(text: &str) -> Vec<Node> {
    yaml::documents(text).unwrap_or_default()
}

/// The line of a key; of several documents the last that has it.
fn line(documents: &[Node], path: &[&str]) -> Option<u32> {
    documents.iter().rev().find_map(|document| {
        let (last, above) = path.split_last()?;
        let table = above.iter().try_fold(document, |node, key| node.get(key))?;
        table.entry(last).map(|(key, _)| key.line)
    })
}

fn at<'v>(values: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(values, |value, key| value.get(key))
}

struct Sources<'l> {
    layers: Vec<Lines<'l>>,
    charts: Vec<Defaults>,
}

impl Sources<'_> {
    fn walk(&self, values: &Map<String, Value>, path: &mut Vec<String>, found: &mut Vec<Explained>) {
        for (key, value) in values {
            path.push(key.clone());
            match value {
                Value::Object(below) if !below.is_empty() => self.walk(below, path, found),
                value => found.push(Explained {
                    path: path.clone(),
                    value: value.clone(),
                    origin: self.origin(path, value),
                }),
            }
            path.pop();
        }
    }

    fn origin(&self, path: &[String], value: &Value) -> Origin {
        self.set_by(path).unwrap_or_else(|| self.imported(path, value))
    }

    /// The file or flag that sets a value, imports aside.
    fn set_by(&self, path: &[String]) -> Option<Origin> {
        if let Some(origin) = self.global(path).or_else(|| self.given(path)) {
            return Some(origin);
        }
        // The outermost of the charts above a value wins.
        let mut above = self.charts.iter().filter(|chart| path.starts_with(&chart.at));
        let own = |chart: &&Defaults| at(&chart.values, &path[chart.at.len()..]).is_some();
        let chart = above.find(own)?;
        let keys: Vec<&str> = path[chart.at.len()..].iter().map(String::as_str).collect();
        Some(Origin::File(chart.file.clone(), line(&chart.lines, &keys).unwrap_or(0)))
    }

    fn given(&self, path: &[String]) -> Option<Origin> {
        let layer = self.layers.iter().rev().find(|layer| at(&layer.layer.values, path).is_some())?;
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        let line = layer.lines.as_ref().and_then(|lines| line(lines, &keys));
        Some(Origin::Given(layer.layer.name.clone(), line.unwrap_or(0)))
    }

    /// A value below `global` of a subchart that the parent's global has as well.
    fn global(&self, path: &[String]) -> Option<Origin> {
        let chart = self
            .charts
            .iter()
            .filter(|chart| {
                !chart.at.is_empty() && path.len() > chart.at.len() && path.starts_with(&chart.at)
            })
            .max_by_key(|chart| chart.at.len())?;
        if path[chart.at.len()] != "global" {
            return None;
        }
        let parent = &chart.at[..chart.at.len() - 1];
        let above: Vec<String> = parent.iter().chain(&path[chart.at.len()..]).cloned().collect();
        Some(match self.set_by(&above)? {
            origin @ Origin::Global(_) => origin,
            origin => Origin::Global(Box::new(origin)),
        })
    }

    /// The dependency that has this very value somewhere under the last key.
    fn imported(&self, path: &[String], value: &Value) -> Origin {
        let Some(key) = path.last() else { return Origin::Unknown };
        let holds = |chart: &&Defaults| !chart.at.is_empty() && has(&chart.values, key, value);
        self.charts.iter().find(holds).map_or(Origin::Unknown, |chart| Origin::Imported(chart.name.clone()))
    }
}

fn has(values: &Value, key: &str, wanted: &Value) -> bool {
    values
        .as_object()
        .is_some_and(|map| map.get(key) == Some(wanted) || map.values().any(|value| has(value, key, wanted)))
}

/// The values as aligned text: path, value, origin.
pub fn text(explained: &[Explained]) -> String {
    const WIDEST_PATH: usize = 60;
    const WIDEST_VALUE: usize = 48;
    let rows: Vec<[String; 3]> = explained
        .iter()
        .map(|one| [one.dotted(), shown(&one.value, WIDEST_VALUE), one.origin.to_string()])
        .collect();
    let width = |column: usize, most: usize| {
        rows.iter().map(|row| row[column].chars().count()).filter(|width| *width <= most).max().unwrap_or(0)
    };
    let (paths, values) = (width(0, WIDEST_PATH), width(1, WIDEST_VALUE));
    rows.iter().map(|[path, value, origin]| format!("{path:<paths$}  {value:<values$}  {origin}\n")).collect()
}

/// A value in one line, as `toJson` writes it, cut where it is longer than so many characters.
pub fn shown(value: &Value, widest: usize) -> String {
    let text = match value {
        // Every number of a file is a float64.
        Value::Number(number) if number.is_f64() => {
            yaml::number::format_json(number.as_f64().unwrap_or_default())
        }
        other => compact(other),
    };
    if text.chars().count() <= widest {
        return text;
    }
    let cut: String = text.chars().take(widest.saturating_sub(1)).collect();
    format!("{cut}…")
}

/// Compact JSON with numbers as `toJson` writes them.
fn compact(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(item, usize::MAX)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::String(key.clone()), shown(value, usize::MAX))
            };
            format!("{{{}}}", map.iter().map(pair).collect::<Vec<_>>().join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::FileSet;
    use serde_json::json;

    #[test]
    fn names_the_place_of_every_value() {
        let files: FileSet = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\ndependencies:\n- {name: db, version: \"*\", import-values: [data]}\n"),
            ("values.yaml", "replicas: 1\nimage:\n  tag: \"1\"\n  name: web\nglobal:\n  zone: z\ndb:\n  size: 1Gi\nlist: [1, 2.5]\n"),
            ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
            ("charts/db/values.yaml", "size: 5Gi\n\nuser:\n  name: u\nglobal: {own: 1}\nexports: {data: {port: 5432}}\nempty: {}\n"),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        let chart = Chart::load(&files).unwrap();
        let layers = [
            Layer {
                name: "-f prod.yaml".to_owned(),
                values: json!({"image": {"tag": "2"}, "db": {"user": {"name": "v"}}}),
                text: Some("image:\n  tag: \"2\"\ndb:\n  user: {name: v}\n".to_owned()),
            },
            Layer { name: "--set replicas=3".to_owned(), values: json!({"replicas": 3}), text: None },
        ];
        let mut user = json!({});
        for layer in &layers {
            crate::merge_values::merge(&mut user, layer.values.clone());
        }
        let said = text(&effective(&chart, &user, &layers, Compat::V3).unwrap().0);
        let wanted = "\
db.empty              {}       charts/db/values.yaml:7
db.exports.data.port  5432     charts/db/values.yaml:6
db.global.own         1        charts/db/values.yaml:5
db.global.zone        \"z\"      values.yaml:6 (global)
db.size               \"1Gi\"    values.yaml:8
db.user.name          \"v\"      -f prod.yaml:4
global.zone           \"z\"      values.yaml:6
image.name            \"web\"    values.yaml:4
image.tag             \"2\"      -f prod.yaml:2
list                  [1,2.5]  values.yaml:9
port                  5432     imported from db
replicas              3        --set replicas=3
";
        assert_eq!(said, wanted);
        assert_eq!(line_of(&chart, &["image", "tag"]), Some(3));
    }
}

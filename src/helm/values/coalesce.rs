//! Coalescing: a release's values win, chart defaults fill, null deletes a default, globals flow down. Where
//! a null of the user meets a default that is null itself, Helm 3.19 takes it away and all others keep it.
//! Helm 4.2 and newer take nothing from a chart that is null, so that it hides no default of a subchart.

use crate::chart::Chart;
use opdev_template::Compat;
use serde_json::{Map, Value};
use std::fmt;

/// Values for a chart and its subcharts, and what Helm warned about on the way.
#[derive(Debug, Clone)]
pub struct Coalesced {
    /// The values.
    pub values: Value,
    /// Warnings in Helm's words.
    pub warnings: Vec<String>,
}

/// Why values do not go together with a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CoalesceError {
    /// The values of a subchart are not a map.
    SubchartValues {
        /// The names from the root chart to the chart that has the subchart, joined by dots.
        parent: String,
        /// The name of the subchart, which is the key of its values.
        subchart: String,
        /// The value at the key.
        found: Value,
    },
}

impl fmt::Display for CoalesceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CoalesceError::SubchartValues { subchart, found, .. } => {
                write!(f, "type mismatch on {subchart}: {}", go_boolean_verb(found))
            }
        }
    }
}

impl std::error::Error for CoalesceError {}

/// Helm's `CoalesceValues`.
///
/// # Errors
/// Values of a subchart that are not a map.
pub fn coalesce(chart: &Chart, values: &Value, compat: Compat) -> Result<Coalesced, CoalesceError> {
    Run { compat, keep_nulls: false, warnings: Vec::new() }.values(chart, values)
}

/// Helm's `MergeValues`: like `coalesce`, but nulls stay.
///
/// # Errors
/// Values of a subchart that are not a map.
pub fn merge_defaults(chart: &Chart, values: &Value, compat: Compat) -> Result<Coalesced, CoalesceError> {
    Run { compat, keep_nulls: true, warnings: Vec::new() }.values(chart, values)
}

type Table = Map<String, Value>;

/// Takes away the nulls of nested maps.
fn without_nulls(value: &mut Value) {
    if let Value::Object(map) = value {
        map.retain(|_, value| !value.is_null());
        map.values_mut().for_each(without_nulls);
    }
}

/// One run over a chart and its subcharts.
struct Run {
    compat: Compat,
    keep_nulls: bool,
    warnings: Vec<String>,
}

impl Run {
    fn values(mut self, chart: &Chart, values: &Value) -> Result<Coalesced, CoalesceError> {
        let mut own = values.as_object().cloned().unwrap_or_default();
        self.chart(chart, &mut own, "")?;
        Ok(Coalesced { values: Value::Object(own), warnings: self.warnings })
    }

    fn chart(&mut self, chart: &Chart, own: &mut Table, prefix: &str) -> Result<(), CoalesceError> {
        let path = join(prefix, chart.name());
        self.fill(chart, own, &path);
        for subchart in &chart.subcharts {
            let name = subchart.name();
            let below = own.entry(name).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(below) = below else {
                let found = below.clone();
                return Err(CoalesceError::SubchartValues { parent: path, subchart: name.to_owned(), found });
            };
            let mut below = std::mem::take(below);
            self.globals(&mut below, own, &path);
            let result = self.chart(subchart, &mut below, &path);
            if let (Some(from), Some(to)) = (table_of(&below, GLOBAL), table_in(own, GLOBAL)) {
                share(from, to);
            }
            own.insert(name.to_owned(), Value::Object(below));
            result?;
        }
        hand_down(chart, own);
        Ok(())
    }

    fn fill(&mut self, chart: &Chart, own: &mut Table, path: &str) {
        let Some(defaults) = chart.values.as_object() else { return };
        for (key, default) in defaults {
            match own.get_mut(key) {
                None if default.is_null() && self.drops_nulls() => {}
                None => {
                    own.insert(key.clone(), self.given(default));
                }
                Some(Value::Null) if !self.keep_nulls => {
                    own.remove(key);
                }
                Some(Value::Object(below)) => match default {
                    Value::Object(_) => {
                        let keep = self.keep_nulls || chart.subcharts.iter().any(|sub| sub.name() == key);
                        let given = if keep { default.clone() } else { self.given(default) };
                        let Value::Object(given) = &given else { continue };
                        self.tables(below, given, &join(path, key), keep);
                    }
                    Value::Null => {}
                    Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                        self.warnings.push(format!("warning: skipped value for {path}.{key}: Not a table."));
                    }
                },
                Some(_) => {}
            }
        }
    }

    /// Returns true if a null of a chart's own values is no value: so it is since Helm 4.2, but not where
    /// nulls are kept for later.
    fn drops_nulls(&self) -> bool {
        self.compat == Compat::V4 && !self.keep_nulls
    }

    /// A default of a chart as it enters the values.
    fn given(&self, default: &Value) -> Value {
        let mut given = default.clone();
        if self.drops_nulls() {
            without_nulls(&mut given);
        }
        given
    }

    fn tables(&mut self, dst: &mut Table, src: &Table, path: &str, keep_nulls: bool) {
        for (key, value) in src {
            let full = join(path, key);
            match (dst.get_mut(key), value) {
                (None, value) => {
                    dst.insert(key.clone(), value.clone());
                }
                (Some(Value::Null), Value::Null) if self.compat != Compat::V3_19 => {}
                (Some(Value::Null), _) if !keep_nulls => {
                    dst.remove(key);
                }
                (Some(Value::Object(below)), Value::Object(value)) => {
                    self.tables(below, value, &full, keep_nulls);
                }
                (Some(_), Value::Object(_)) => self.warnings.push(format!(
                    "warning: cannot overwrite table with non table for {full} ({})",
                    go_value(value)
                )),
                (Some(Value::Object(_)), value) if !value.is_null() => self.warnings.push(format!(
                    "warning: destination for {full} is a table. Ignoring non-table value ({})",
                    go_value(value)
                )),
                (Some(_), _) => {}
            }
        }
    }

    fn globals(&mut self, below: &mut Table, own: &Table, path: &str) {
        let mut target = match below.remove(GLOBAL) {
            None => Map::new(),
            Some(Value::Object(map)) => map,
            Some(other) => {
                below.insert(GLOBAL.to_owned(), other);
                self.warnings
                    .push("warning: skipping globals because destination global is not a table.".to_owned());
                return;
            }
        };
        let empty = Map::new();
        let source = match own.get(GLOBAL) {
            None => &empty,
            Some(Value::Object(map)) => map,
            Some(_) => {
                if !target.is_empty() {
                    below.insert(GLOBAL.to_owned(), Value::Object(target));
                }
                self.warnings
                    .push("warning: skipping globals because source global is not a table.".to_owned());
                return;
            }
        };
        for (key, value) in source {
            let full = || join(path, key);
            match (value, target.get_mut(key)) {
                (Value::Object(value), Some(Value::Object(existing))) => {
                    let mut merged = value.clone();
                    self.tables(&mut merged, existing, &full(), true);
                    *existing = merged;
                }
                (Value::Object(_), Some(_)) => self
                    .warnings
                    .push(format!("Conflict: cannot merge map onto non-map for \"{}\". Skipping.", full())),
                (Value::Object(_), None) => {
                    target.insert(key.clone(), value.clone());
                }
                (_, Some(Value::Object(_))) => {
                    self.warnings.push(format!("key {} is table. Skipping", full()));
                }
                (_, _) => {
                    target.insert(key.clone(), value.clone());
                }
            }
        }
        below.insert(GLOBAL.to_owned(), Value::Object(target));
    }
}

const GLOBAL: &str = "global";

fn table_of<'v>(table: &'v Table, key: &str) -> Option<&'v Table> {
    table.get(key).and_then(Value::as_object)
}

fn table_in<'v>(table: &'v mut Table, key: &str) -> Option<&'v mut Table> {
    table.get_mut(key).and_then(Value::as_object_mut)
}

/// Globals two levels down are the same tables in a chart and its subcharts: Helm copies only the first
/// level. So what one of them has there, all have.
fn share(from: &Table, to: &mut Table) {
    for (key, to) in to.iter_mut() {
        let (Value::Object(to), Some(from)) = (to, table_of(from, key)) else { continue };
        for (key, to) in to.iter_mut().filter(|(_, to)| to.is_object()) {
            if let Some(from) = from.get(key).filter(|from| from.is_object() && *from != to) {
                to.clone_from(from);
            }
        }
    }
}

/// Gives the subcharts that came first what the later ones have added to the globals they share.
fn hand_down(chart: &Chart, own: &mut Table) {
    let Some(from) = own.get(GLOBAL).filter(|_| !chart.subcharts.is_empty()).cloned() else { return };
    let Value::Object(from) = from else { return };
    if !from.values().any(|one| one.as_object().is_some_and(|one| one.values().any(Value::is_object))) {
        return;
    }
    for subchart in &chart.subcharts {
        let Some(below) = table_in(own, subchart.name()) else { continue };
        if let Some(to) = table_in(below, GLOBAL) {
            share(&from, to);
        }
        hand_down(subchart, below);
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}

/// Helm prints the offending value with `%t`.
fn go_boolean_verb(value: &Value) -> String {
    match value {
        Value::Bool(value) => value.to_string(),
        Value::Null => "%!t(<nil>)".to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => {
                format!("%!t(float64={})", opdev_object::yaml::number::format_g(float))
            }
            _ => format!("%!t(int64={number})"),
        },
        Value::String(text) => format!("%!t(string={text})"),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_boolean_verb).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map
                .iter()
                .map(|(key, value)| format!("%!t(string={key}):{}", go_boolean_verb(value)))
                .collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// A value as Go's `%v` prints it.
fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) if number.is_f64() => {
            opdev_object::yaml::number::format_g(number.as_f64().unwrap_or_default())
        }
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let pairs: Vec<_> = map.iter().map(|(key, value)| format!("{key}:{}", go_value(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Metadata;
    use serde_json::json;
    use std::sync::Arc;

    fn chart(name: &str, values: Value, subcharts: Vec<Chart>) -> Chart {
        Chart {
            metadata: Metadata { name: name.to_owned(), ..Metadata::default() },
            values: Arc::new(values),
            subcharts: subcharts.into_iter().map(Arc::new).collect(),
            ..Chart::default()
        }
    }

    #[test]
    fn nulls_delete_defaults_where_there_are_some() {
        let chart = chart("p", json!({"a": 1, "b": {"c": 1, "d": null, "e": {"f": 1}}}), vec![]);
        let own = json!({"a": null, "b": {"c": null, "nope": null, "e": null}, "top": null});
        let found = coalesce(&chart, &own, Compat::V3).unwrap().values;
        assert_eq!(found, json!({"b": {"d": null, "nope": null}, "top": null}));
    }

    #[test]
    fn globals_flow_down() {
        let sub = chart("s", json!({"global": {"x": {"own": 1, "g": 2}, "y": 5}, "v": 1}), vec![]);
        let parent = chart("p", json!({"global": {"x": {"g": 1}}, "s": {"v": 2}}), vec![sub]);
        let found = coalesce(&parent, &json!({}), Compat::V3).unwrap().values;
        assert_eq!(found["s"], json!({"global": {"x": {"own": 1, "g": 1}, "y": 5}, "v": 2}));
        let error = coalesce(&parent, &json!({"s": 3}), Compat::V3).unwrap_err();
        assert_eq!(error.to_string(), "type mismatch on s: %!t(int64=3)");
    }
}

//! The charts of a render and the data their templates run on: one map per chart, shared by all its files.
//! Built only once a template has to run.

use super::files::Files;
use super::input::RenderInput;
use super::objects;
use crate::chart::{Chart, Content, Paths};
use opdev_template::{Compat, Inputs, Map, MapType, NodeId, ROOT, Str, Value, kept_text};
use serde_json::Value as Json;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A chart that takes part in a render.
pub(super) struct Scope<'c> {
    pub(super) chart: &'c Chart,
    /// The path from the root chart's name on, such as `web/charts/db`.
    pub(super) path: String,
    /// The names of the charts that lead to it, the root aside: its section of the values.
    pub(super) section: Vec<&'c str>,
    /// The scopes of its subcharts.
    below: Vec<usize>,
}

/// A template file.
pub(super) struct Template<'c> {
    pub(super) data: &'c Content,
    /// Its chart.
    pub(super) scope: usize,
}

impl<'c> Template<'c> {
    pub(super) fn text(&self) -> Cow<'c, str> {
        kept_text(self.data)
    }
}

/// The charts of a release, the root first.
pub(super) fn scopes(chart: &Chart, compat: Compat) -> Vec<Scope<'_>> {
    let mut found = Vec::new();
    add(chart, compat, &Paths::of_root(chart), &[], &mut found);
    found
}

fn add<'c>(
    chart: &'c Chart,
    compat: Compat,
    paths: &Paths,
    section: &[&'c str],
    found: &mut Vec<Scope<'c>>,
) -> usize {
    let own = found.len();
    found.push(Scope { chart, path: paths.path.clone(), section: section.to_vec(), below: Vec::new() });
    for subchart in &chart.subcharts {
        let mut section = section.to_vec();
        section.push(subchart.name());
        let at = add(subchart, compat, &paths.below(chart, subchart, compat), &section, found);
        found[own].below.push(at);
    }
    own
}

/// Every template by its path; of a library chart only partials.
pub(super) fn templates<'c>(scopes: &[Scope<'c>]) -> BTreeMap<String, Template<'c>> {
    let mut found = BTreeMap::new();
    for (at, scope) in scopes.iter().enumerate() {
        let library = scope.chart.metadata.kind.eq_ignore_ascii_case("library");
        for file in &scope.chart.templates {
            if library && !is_partial(&file.name) {
                continue;
            }
            let template = Template { data: &file.data, scope: at };
            found.insert(format!("{}/{}", scope.path, file.name), template);
        }
    }
    found
}

/// Returns true if a file only defines templates for others.
pub(super) fn is_partial(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|base| base.starts_with('_'))
}

/// The number of the map that a chart's templates run on.
pub(super) fn node(scope: &Scope<'_>, inputs: &mut Inputs<'_>) -> NodeId {
    scope.section.iter().fold(ROOT, |node, name| {
        let subcharts = inputs.child(node, "Subcharts");
        inputs.child(subcharts, name)
    })
}

/// The data of each chart's templates.
pub(super) fn data(
    scopes: &[Scope<'_>],
    values: &Json,
    input: &RenderInput<'_>,
    mut inputs: Inputs<'_>,
) -> Vec<Map> {
    let inputs = &mut inputs;
    let ty = values_type(input.compat);
    let at = inputs.child(ROOT, "Release");
    let release = Value::Map(inputs.release(at, objects::release(&input.release)));
    let capabilities = objects::capabilities(input.capabilities, input.compat);
    let root = inputs.child(ROOT, "Values");
    let values = match inputs.json(root, values, ty) {
        Value::Map(map) => map,
        _ => inputs.map(root, ty, BTreeMap::new()),
    };
    let mut sections: Vec<Option<Map>> = vec![None; scopes.len()];
    let mut data = Vec::with_capacity(scopes.len());
    let mut subcharts = Vec::with_capacity(scopes.len());
    for (at, scope) in scopes.iter().enumerate() {
        let own = if at == 0 {
            values.clone()
        } else {
            sections[at].take().map_or_else(|| inputs.detached(ty), |section| section.with_type(ty))
        };
        for below in &scope.below {
            let name = scopes[*below].chart.name();
            // The section of a subchart is the very map the subchart gets; only the subchart sees it as
            // `Values`.
            sections[*below] = own.peek(name.as_bytes()).and_then(|section| section.as_map());
        }
        let node = node(scope, inputs);
        let below = inputs.child(node, "Subcharts");
        let below = inputs.map(below, MapType::Any, BTreeMap::new());
        let entries = [
            ("Chart", inputs.guarded(&objects::chart(scope.chart, at == 0, input.compat))),
            ("Files", Value::host(Files::new(&scope.chart.files, input.compat))),
            ("Release", release.clone()),
            ("Capabilities", capabilities.clone()),
            ("Values", Value::Map(own)),
            ("Subcharts", Value::Map(below.clone())),
        ];
        let entries = entries.into_iter().map(|(key, value)| (Str::from(key), value)).collect();
        data.push(inputs.map(node, ty, entries));
        subcharts.push(below);
    }
    for (scope, map) in scopes.iter().zip(&subcharts) {
        for below in &scope.below {
            // Its own templates see the data of a subchart as `Values`, the charts above it as a plain map.
            let plain = data[*below].with_type(MapType::Any);
            map.put(scopes[*below].chart.name().into(), Value::Map(plain));
        }
    }
    data
}

/// The type of `.Values` and of the data around it.
pub(super) fn values_type(compat: Compat) -> MapType {
    match compat {
        Compat::V3_19 | Compat::V3 => MapType::ChartutilValues,
        Compat::V4_1 | Compat::V4 => MapType::CommonValues,
    }
}

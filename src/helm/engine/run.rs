//! Executes a chart's templates in Helm's order: deepest path first, then from z to a; a later definition wins.
//! All files of a chart share one map of data, so what one changes the next one sees.

use super::files::Files;
use super::{Compat, RenderError, RenderInput, Step, objects};
use crate::chart::{Chart, Place};
use crate::template::{
    Context, ExecError, Map, MapType, ParseError, TemplateSet, Value, on_deep_stack, without_no_value,
};
use serde_json::Value as Json;
use std::collections::{BTreeMap, HashMap};

/// A template file and the data it runs on.
struct Template<'c> {
    text: std::borrow::Cow<'c, str>,
    data: Map,
    base: String,
}

/// The output of every template that is not a partial, and whether the outside was asked.
pub(super) fn execute(
    chart: &Chart,
    values: &Json,
    input: &RenderInput<'_>,
) -> Result<(BTreeMap<String, String>, bool), RenderError> {
    on_deep_stack(|| run(chart, values, input))
        .unwrap_or_else(|error| Err(RenderError::new(format!("rendering could not start: {error}"))))
}

fn run(
    chart: &Chart,
    values: &Json,
    input: &RenderInput<'_>,
) -> Result<(BTreeMap<String, String>, bool), RenderError> {
    let mut builder = Builder { input, templates: HashMap::new() };
    let release = objects::release(&input.release);
    let capabilities = objects::capabilities(input.capabilities, input.compat);
    let root = tree(chart, values, values_type(input.compat));
    builder.add(chart, true, "", &root, &release, &capabilities);
    let templates = builder.templates;
    let mut order: Vec<&String> = templates.keys().collect();
    order.sort_by(|a, b| {
        let depth = |path: &str| path.bytes().filter(|byte| *byte == b'/').count();
        depth(b).cmp(&depth(a)).then_with(|| b.cmp(a))
    });
    let mut set = match &input.cache {
        Some(cache) => TemplateSet::with_cache(input.compat, cache.clone()),
        None => TemplateSet::new(input.compat),
    };
    for path in &order {
        set.add(path, &templates[*path].text).map_err(|error| unparsed(&error, &templates))?;
    }
    let mut context = Context::new(input.env, input.compat);
    let mut output = BTreeMap::new();
    for path in order {
        if path.rsplit('/').next().is_some_and(|base| base.starts_with('_')) {
            continue;
        }
        let template = &templates[path];
        let own = [("Name", Value::str(path.as_str())), ("BasePath", Value::str(template.base.as_str()))];
        let own = Map::from_entries(own).with_type(values_type(input.compat));
        template.data.insert("Template".into(), Value::Map(own));
        let bytes = set
            .execute(path, Value::Map(template.data.clone()), &mut context)
            .map_err(|error| failed(&error, &templates, input.compat))?;
        let text = String::from_utf8_lossy(&without_no_value(bytes)).into_owned();
        output.insert(path.clone(), text);
    }
    Ok((output, context.is_impure()))
}

fn values_type(compat: Compat) -> MapType {
    match compat {
        Compat::V3 => MapType::ChartutilValues,
        Compat::V4 => MapType::CommonValues,
    }
}

/// A chart's values; the section of a subchart is the very map the subchart gets.
fn tree(chart: &Chart, values: &Json, ty: MapType) -> Map {
    let Value::Map(map) = Value::from_json_typed(values, ty) else {
        return Map::of(ty, BTreeMap::new());
    };
    for subchart in &chart.subcharts {
        if let Some(section) = values.get(subchart.name()) {
            map.insert(subchart.name().into(), Value::Map(tree(subchart, section, ty)));
        }
    }
    map
}

struct Builder<'c, 'i> {
    input: &'i RenderInput<'i>,
    templates: HashMap<String, Template<'c>>,
}

impl<'c> Builder<'c, '_> {
    /// Adds a chart's templates and those of its subcharts; gives the data they run on.
    fn add(
        &mut self,
        chart: &'c Chart,
        root: bool,
        parent: &str,
        values: &Map,
        release: &Value,
        capabilities: &Value,
    ) -> Map {
        let path = if root { chart.name().to_owned() } else { format!("{parent}/charts/{}", chart.name()) };
        let subcharts = Map::new();
        let ty = values_type(self.input.compat);
        let data = Map::from_entries([
            ("Chart", objects::chart(chart, root, self.input.compat)),
            ("Files", Value::host(Files::new(&chart.files))),
            ("Release", release.clone()),
            ("Capabilities", capabilities.clone()),
            ("Values", Value::Map(values.clone())),
            ("Subcharts", Value::Map(subcharts.clone())),
        ])
        .with_type(ty);
        for subchart in &chart.subcharts {
            let section = match values.get(subchart.name().as_bytes()) {
                Some(Value::Map(map)) => map,
                _ => Map::new().with_type(ty),
            };
            let below = self.add(subchart, false, &path, &section, release, capabilities);
            subcharts.insert(subchart.name().into(), Value::Map(below));
        }
        let library = chart.metadata.kind.eq_ignore_ascii_case("library");
        for file in &chart.templates {
            let partial = file.name.rsplit('/').next().is_some_and(|base| base.starts_with('_'));
            if library && !partial {
                continue;
            }
            let template = Template {
                text: String::from_utf8_lossy(&file.data),
                data: data.clone(),
                base: format!("{path}/templates"),
            };
            self.templates.insert(format!("{path}/{}", file.name), template);
        }
        data
    }
}

/// A template's path as a file below the chart's folder.
fn file_of(path: &str) -> String {
    path.split_once('/').map_or(path, |(_, rest)| rest).to_owned()
}

fn line_of(templates: &HashMap<String, Template<'_>>, path: &str, line: usize) -> String {
    let text = templates.get(path).map(|template| template.text.as_ref()).unwrap_or_default();
    text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn unparsed(error: &ParseError, templates: &HashMap<String, Template<'_>>) -> RenderError {
    // Helm keeps only what follows the last colon.
    let reason = error.reason.rsplit(": ").next().unwrap_or(&error.reason);
    RenderError {
        message: format!("parse error at ({}:{}): {reason}", error.name, error.line),
        excerpt: line_of(templates, &error.name, error.line),
        place: Some(Place {
            file: file_of(&error.name),
            line: number(error.line),
            column: number(error.column.unwrap_or(0)),
        }),
        chain: Vec::new(),
        rendered: None,
    }
}

fn failed(error: &ExecError, templates: &HashMap<String, Template<'_>>, compat: Compat) -> RenderError {
    let steps: Vec<Step> = error
        .frames
        .iter()
        .map(|frame| Step {
            template: frame.executing.clone(),
            place: Place {
                file: file_of(&frame.file),
                line: number(frame.line),
                column: number(frame.column + 1),
            },
        })
        .collect();
    RenderError {
        message: error.helm_text(compat),
        excerpt: error
            .innermost()
            .map(|frame| line_of(templates, &frame.file, frame.line))
            .unwrap_or_default(),
        place: steps.last().map(|step| step.place.clone()),
        chain: steps,
        rendered: None,
    }
}

//! Executes a chart's templates in Helm's order: deepest path first, then from z to a; a later definition wins.
//! All files of a chart share one map of data, so what one changes the next one sees.

use super::memory::{Base, Output, Outputs, Replay, State};
use super::scope::{self, Scope, Template};
use super::{Compat, RenderError, RenderInput, hints, spread};
use crate::chart::{Chart, Place};
use crate::template::{
    Compared, Context, Environment, ExecError, Inputs, Map, ParseError, Paths, Reads, TemplateSet, Value,
    on_deep_stack, without_no_value,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

type Templates<'c> = BTreeMap<String, Template<'c>>;

/// The output of every template that is not a partial, and what the render before gave. Of a state, outputs are taken
/// over for which nothing has changed; it is left as it was where a template fails.
pub(super) fn execute(
    chart: &Chart,
    values: &Arc<Json>,
    input: &RenderInput<'_>,
    state: Option<&mut State>,
) -> Result<(Outputs, Outputs), RenderError> {
    on_deep_stack(|| run(chart, values, input, state))
}

/// One render, ready to run.
struct Run<'r> {
    input: &'r RenderInput<'r>,
    values: &'r Json,
    scopes: Vec<Scope<'r>>,
    templates: Templates<'r>,
    set: TemplateSet,
}

fn run(
    chart: &Chart,
    values: &Arc<Json>,
    input: &RenderInput<'_>,
    state: Option<&mut State>,
) -> Result<(Outputs, Outputs), RenderError> {
    let scopes = scope::scopes(chart);
    let templates = scope::templates(&scopes);
    let mut set = match &input.cache {
        Some(cache) => TemplateSet::with_cache(input.compat, cache.clone()),
        None => TemplateSet::new(input.compat),
    };
    let order = in_order(&templates);
    parse_ahead(&set, &order, &templates);
    for path in order {
        set.add(path, &templates[path].text).map_err(|error| unparsed(&error, &templates, input.compat))?;
    }
    let run = Run { input, values, scopes, templates, set };
    let Some(state) = state else {
        let before = Outputs::new();
        let outputs = spread::reading(&before, input.compat, |made| {
            run.attempt(input.env, None, Outputs::new(), made)
        })?;
        return Ok((outputs, before));
    };
    let base = Base::new(&run.scopes, values, input, &mut state.paths);
    let kept = run.unchanged(state, &base);
    let environment = Replay::new(input.env);
    let reads = Rc::new(Reads::default());
    let reused = !kept.is_empty();
    let paths = &mut state.paths;
    let outputs = spread::reading(&state.outputs, input.compat, |made| {
        let outputs = run.attempt(&environment, Some((Rc::clone(&reads), paths)), kept, made);
        if !(reads.wrote() && reused) {
            return outputs;
        }
        // What was taken over has not seen what was changed just now.
        environment.rewind();
        run.attempt(&environment, Some((Rc::clone(&reads), paths)), Outputs::new(), made)
    })?;
    state.independent = !reads.wrote();
    state.base = Some(base);
    let before = std::mem::replace(&mut state.outputs, outputs.clone());
    Ok((outputs, before))
}

/// Parses what is not known yet. What is wrong is told when the templates are added, in their order.
fn parse_ahead(set: &TemplateSet, order: &[&str], templates: &Templates<'_>) {
    let mut new: Vec<(&str, &str)> = order.iter().map(|path| (*path, &*templates[*path].text)).collect();
    new.retain(|(path, text)| !set.is_parsed(path, text));
    let bytes = new.iter().map(|(_, text)| text.len()).sum();
    spread::for_each(&new, bytes, |(path, text)| set.parse_ahead(path, text));
}

/// Paths of templates as Helm goes through them.
fn in_order<'t>(templates: &'t Templates<'_>) -> Vec<&'t str> {
    let mut order: Vec<(usize, &str)> = templates
        .keys()
        .map(|path| (path.bytes().filter(|byte| *byte == b'/').count(), path.as_str()))
        .collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.into_iter().map(|(_, path)| path).collect()
}

impl Run<'_> {
    /// Outputs of the last render whose templates would give the same again.
    fn unchanged(&self, state: &State, base: &Base) -> Outputs {
        let changes = state.base.as_ref().filter(|_| state.independent);
        let Some(changes) = changes.and_then(|old| old.changes(base, &state.paths)) else {
            return Outputs::new();
        };
        let mut compared = Compared::default();
        let mut same = |path: &str, output: &Output| {
            !output.impure
                && self.templates.contains_key(path)
                && output.seen.reads.is_disjoint(&changes)
                && output.seen.same_templates(&self.set, &mut compared)
        };
        let kept = state.outputs.iter().filter(|(path, output)| same(path, output));
        kept.map(|(path, output)| (path.clone(), Arc::clone(output))).collect()
    }

    /// Runs what is not kept, and hands on each output as soon as it is made.
    fn attempt(
        &self,
        environment: &dyn Environment,
        watch: Option<(Rc<Reads>, &mut Paths)>,
        kept: Outputs,
        made: &mut dyn FnMut(&str, &Arc<Output>),
    ) -> Result<Outputs, RenderError> {
        let reads = watch.as_ref().map(|(reads, _)| Rc::clone(reads));
        let mut inputs = Some(Inputs { watch });
        let mut data: Vec<Map> = Vec::new();
        let mut context = Context::new(environment, self.input.compat);
        if let Some(reads) = &reads {
            context = context.noting(Rc::clone(reads));
        }
        let mut outputs = kept;
        for path in in_order(&self.templates) {
            if scope::is_partial(path) || outputs.contains_key(path) {
                continue;
            }
            if let Some(inputs) = inputs.take() {
                data = scope::data(&self.scopes, self.values, self.input, inputs);
            }
            let text = self.one(path, &data, &mut context)?;
            let seen = reads.as_ref().map(|reads| reads.take()).unwrap_or_default();
            let impure = context.take_impure();
            let output = Arc::new(Output { text, seen, impure, ..Output::default() });
            made(path, &output);
            outputs.insert(path.to_owned(), output);
        }
        Ok(outputs)
    }

    fn one(&self, path: &str, data: &[Map], context: &mut Context<'_>) -> Result<String, RenderError> {
        let scope = self.templates[path].scope;
        let base = format!("{}/templates", self.scopes[scope].path);
        let own = [("Name", Value::str(path)), ("BasePath", Value::from(base))];
        let own = Map::from_entries(own).with_type(scope::values_type(self.input.compat));
        data[scope].put("Template".into(), Value::Map(own));
        let bytes = self
            .set
            .execute(path, Value::Map(data[scope].clone()), context)
            .map_err(|error| self.failed(&error))?;
        let bytes = without_no_value(bytes);
        Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    fn failed(&self, error: &ExecError) -> RenderError {
        let templates = &self.templates;
        RenderError {
            message: error.helm_text(self.input.compat),
            excerpt: error
                .innermost()
                .map(|frame| line_of(templates, &frame.file, frame.line))
                .unwrap_or_default(),
            place: error.innermost().map(|frame| Place {
                file: file_of(&frame.file),
                line: number(frame.line),
                column: number(frame.column + 1),
            }),
            rendered: None,
            hints: hints::failed(error, &self.scopes, templates, self.values, &self.set),
        }
    }
}

/// A template's path as a file below the chart's folder.
fn file_of(path: &str) -> String {
    path.split_once('/').map_or(path, |(_, rest)| rest).to_owned()
}

fn line_of(templates: &Templates<'_>, path: &str, line: usize) -> String {
    let text = templates.get(path).map(|template| template.text.as_ref()).unwrap_or_default();
    text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn unparsed(error: &ParseError, templates: &Templates<'_>, compat: Compat) -> RenderError {
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
        rendered: None,
        hints: hints::unparsed(error, compat),
    }
}

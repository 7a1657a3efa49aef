//! Executes a chart's templates in Helm's order: deepest path first, then from z to a; a later definition
//! wins. All files of a chart share one map of data, so what one changes the next one sees.

use super::ahead::Ahead;
use super::input::{RenderError, RenderErrorKind, RenderInput, Unreadable};
use super::memory::{Base, Output, Outputs, State};
use super::places::file_of;
use super::reuse::Reuse;
use super::scope::{self, Scope, Template};
use super::{cores, documents, hints};
use crate::chart::Chart;
use crate::chart::Place;
use crate::manifest;
use crate::spread;
use memchr::memmem::find;
use opdev_object::yaml::encoding;
use opdev_template::{
    Compat, Context, ExecError, Inputs, Map, Mark, ParseError, ParsedText, Paths, Reads, TemplateSet, Value,
    on_deep_stack, without_no_value,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

type Templates<'c> = BTreeMap<String, Template<'c>>;

/// The output of every template that is not a partial, and what the render before gave. Of a state, outputs
/// are taken over for which nothing has changed; it is left as it was where a template fails.
pub(super) fn execute(
    chart: &Chart,
    values: &Arc<Json>,
    input: &RenderInput<'_>,
    ahead: &Ahead,
    state: Option<&mut State>,
) -> Result<(Outputs, Outputs), RenderError> {
    on_deep_stack(|| run(chart, values, input, ahead, state))
}

/// One render, ready to run.
pub(super) struct Run<'r> {
    pub(super) input: &'r RenderInput<'r>,
    pub(super) values: &'r Json,
    pub(super) scopes: Vec<Scope<'r>>,
    pub(super) templates: Templates<'r>,
    set: TemplateSet,
}

fn run(
    chart: &Chart,
    values: &Arc<Json>,
    input: &RenderInput<'_>,
    ahead: &Ahead,
    state: Option<&mut State>,
) -> Result<(Outputs, Outputs), RenderError> {
    let run = Run::new(chart, values, input, ahead)?;
    let Some(state) = state else {
        let before = Outputs::new();
        if cores::pays(&run) {
            return Ok((cores::outputs(&run, &run.paths())?, before));
        }
        let outputs = documents::reading(&before, input.compat, |made| run.all(None, made))?;
        return Ok((outputs, before));
    };
    let base = Base::new(&run.scopes, values, input, &mut state.paths);
    let State { base: old, paths, outputs: before, epochs, .. } = state;
    let mut reuse = Reuse::new(old.as_ref(), &base, paths, before, epochs);
    let watched = Watched { reads: Rc::default(), paths, reuse: &mut reuse };
    let outputs = documents::reading(before, input.compat, |made| run.all(Some(watched), made))?;
    state.epochs = reuse.into_epochs();
    state.base = Some(base);
    let before = std::mem::replace(&mut state.outputs, outputs.clone());
    Ok((outputs, before))
}

/// A render whose templates are watched, so that the next one can keep some of their outputs.
pub(super) struct Watched<'w, 's> {
    reads: Rc<Reads>,
    paths: &'w mut Paths,
    reuse: &'w mut Reuse<'s>,
}

/// The parsed form of each text, in their order; a new one is parsed on every core.
fn parse(set: &TemplateSet, templates: &Templates<'_>, ahead: &Ahead) -> Vec<Result<ParsedText, ParseError>> {
    let texts = in_order(templates).into_iter().map(|path| {
        let template = &templates[path];
        let known = ahead.parsed(path, template.data).or_else(|| set.known(path, &template.text()));
        (path, template, known.map_or_else(OnceLock::new, |known| OnceLock::from(Ok(known))))
    });
    let texts: Vec<_> = texts.collect();
    let new: Vec<_> = texts.iter().filter(|(.., parsed)| parsed.get().is_none()).collect();
    let bytes = new.iter().map(|(_, template, _)| template.data.len()).sum();
    spread::for_each(&new, bytes, |(path, template, parsed)| {
        drop(parsed.set(set.parse(path, &template.text())));
    });
    texts.into_iter().filter_map(|(.., parsed)| parsed.into_inner()).collect()
}

/// Paths of templates as Helm goes through them.
pub(super) fn in_order<'t>(templates: &'t Templates<'_>) -> Vec<&'t str> {
    let mut order: Vec<(usize, &str)> = templates
        .keys()
        .map(|path| (path.bytes().filter(|byte| *byte == b'/').count(), path.as_str()))
        .collect();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.into_iter().map(|(_, path)| path).collect()
}

impl<'r> Run<'r> {
    /// Parses what was not parsed ahead.
    pub(super) fn new(
        chart: &'r Chart,
        values: &'r Json,
        input: &'r RenderInput<'r>,
        ahead: &Ahead,
    ) -> Result<Run<'r>, RenderError> {
        let scopes = scope::scopes(chart, input.compat);
        let templates = scope::templates(&scopes);
        let mut set = TemplateSet::with_cache(input.compat, ahead.cache());
        for parsed in parse(&set, &templates, ahead) {
            set.define(parsed.map_err(|error| unparsed(&error, &templates, input.compat))?);
        }
        Ok(Run { input, values, scopes, templates, set })
    }

    /// The templates that give an output, in the order in which they run.
    pub(super) fn paths(&self) -> Vec<&str> {
        let mut paths = in_order(&self.templates);
        paths.retain(|path| !scope::is_partial(path));
        paths
    }

    /// Runs what is not kept, one after the other, and hands on each output as soon as it is made.
    pub(super) fn all(
        &self,
        watched: Option<Watched<'_, '_>>,
        made: &mut dyn FnMut(&str, &Arc<Output>),
    ) -> Result<Outputs, RenderError> {
        let mut context = Context::new(self.input.env, self.input.compat);
        let (mut watch, mut kept) = (None, None);
        if let Some(Watched { reads, paths, reuse }) = watched {
            context = context.noting(Rc::clone(&reads));
            watch = Some((Rc::clone(&reads), Some(paths)));
            kept = Some((reads, reuse));
        }
        let mut inputs = Some(Inputs { watch });
        let mut data: Vec<Map> = Vec::new();
        let mut outputs = Outputs::new();
        for path in self.paths() {
            if let Some(output) = kept.as_mut().and_then(|(_, reuse)| reuse.kept(path, &self.set)) {
                outputs.insert(path.to_owned(), output);
                continue;
            }
            if let Some(inputs) = inputs.take() {
                data = scope::data(&self.scopes, self.values, self.input, inputs);
                if let Some((_, reuse)) = &mut kept {
                    reuse.begin(&data);
                }
            }
            let text = self.one(path, &data, &mut context)?;
            let mut output = Output { text, impure: context.take_impure(), ..Output::default() };
            if let Some((reads, reuse)) = &mut kept {
                output.seen = reads.take();
                output.epoch = reuse.epoch();
                output.wrote = reads.take_wrote();
                if output.wrote {
                    reuse.wrote(path, &data, reads);
                }
            }
            let output = Arc::new(output);
            made(path, &output);
            outputs.insert(path.to_owned(), output);
        }
        Ok(outputs)
    }

    /// Lets `.Template` of its chart be this template, and gives the chart.
    pub(super) fn place(&self, path: &str, data: &[Map]) -> usize {
        let scope = self.templates[path].scope;
        let base = format!("{}/templates", self.scopes[scope].path);
        let own = [("Name", Value::str(path)), ("BasePath", Value::from(base))];
        let own = Map::from_entries(own).with_type(scope::values_type(self.input.compat));
        data[scope].put("Template".into(), Value::Map(own));
        scope
    }

    /// Runs a template.
    pub(super) fn one(
        &self,
        path: &str,
        data: &[Map],
        context: &mut Context<'_>,
    ) -> Result<String, RenderError> {
        let scope = self.place(path, data);
        let bytes = self
            .set
            .execute(path, Value::Map(data[scope].clone()), context)
            .map_err(|error| self.failed(&error))?;
        let bytes = without_no_value(bytes);
        String::from_utf8(bytes).or_else(|error| not_text(path, error.as_bytes()))
    }

    /// Runs a template after those before it, and notes where its output comes from. `None` where it is not
    /// reached.
    pub(super) fn traced(&self, path: &str) -> Option<(Vec<u8>, Vec<Mark>)> {
        let data = scope::data(&self.scopes, self.values, self.input, Inputs { watch: None });
        let mut context = Context::new(self.input.env, self.input.compat);
        for other in self.paths().into_iter().take_while(|other| *other != path) {
            self.one(other, &data, &mut context).ok()?;
        }
        if !self.templates.contains_key(path) {
            return None;
        }
        let scope = self.place(path, &data);
        let mut context = Context::new(self.input.env, self.input.compat).marked();
        let output = self.set.execute(path, Value::Map(data[scope].clone()), &mut context).ok()?;
        Some((output, context.take_marks()))
    }

    fn failed(&self, error: &ExecError) -> RenderError {
        let templates = &self.templates;
        RenderError {
            kind: Box::new(RenderErrorKind::Execution(error.clone())),
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
            hints: hints::failed(error, &self.scopes, templates, self.values, &self.set),
        }
    }
}

/// The output of a template that is not UTF-8: refused where it is to be a manifest.
fn not_text(path: &str, bytes: &[u8]) -> Result<String, RenderError> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if manifest::is_notes(path) {
        return Ok(text);
    }
    let before = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    // Documents are read one by one.
    let end = find(&bytes[before..], b"\n---").map_or(bytes.len(), |length| before + length);
    let Err(why) = encoding::utf8(&bytes[before..end]) else { return Ok(text) };
    let lines = bytes[..before].iter().filter(|byte| **byte == b'\n').count();
    let column = before - bytes[..before].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Err(RenderError {
        message: format!("YAML parse error on {path}: error converting YAML to JSON: {why}"),
        place: Some(Place { file: file_of(path), line: number(lines + 1), column: number(column + 1) }),
        excerpt: text.lines().nth(lines).unwrap_or_default().to_owned(),
        hints: Vec::new(),
        kind: Box::new(RenderErrorKind::Manifest(Unreadable { text, origin: None })),
    })
}

fn line_of(templates: &Templates<'_>, path: &str, line: usize) -> String {
    let text = templates.get(path).map(scope::Template::text).unwrap_or_default();
    text.lines().nth(line.saturating_sub(1)).unwrap_or_default().to_owned()
}

fn number(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn unparsed(error: &ParseError, templates: &Templates<'_>, compat: Compat) -> RenderError {
    // Helm keeps only what follows the last colon.
    let reason = error.reason.rsplit(": ").next().unwrap_or(&error.reason);
    RenderError {
        kind: Box::new(RenderErrorKind::Parse(error.clone())),
        message: format!("parse error at ({}:{}): {reason}", error.name, error.line),
        excerpt: line_of(templates, &error.name, error.line),
        place: Some(Place {
            file: file_of(&error.name),
            line: number(error.line),
            column: number(error.column.unwrap_or(0)),
        }),
        hints: hints::unparsed(error, compat),
    }
}

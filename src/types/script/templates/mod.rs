//! Reconcilers as Go templates: a folder of templates that are rendered with the observed objects in scope,
//! on the chart engine. Documents are children; `kind: Status`, `Conditions`, `Events` and `Release` say the
//! rest (`documents`). Missing keys are errors, clock and chance are those of the reconcile (`surroundings`).

mod documents;
mod surroundings;
#[cfg(test)]
mod tests;

use crate::contract::{Desired, Facts, Host, Limits, Observed, Program};
use crate::time;
use opdev_object::{meta::Gvk, yaml};
use opdev_template::{Compat, Context, ExecError, Mark, ParseCache, ParseError, TemplateSet, on_deep_stack};
use opdev_types::diagnostic::{Diagnostic, Place};
use opdev_types::kinds;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use surroundings::{FUNCTIONS, Surroundings};

/// The file that says what a folder reconciles and owns.
const OWNS: &str = "owns.yaml";
/// How many bytes one template may write.
const MOST_BYTES: usize = 8 << 20;

/// A loaded folder.
pub(crate) struct Templates {
    facts: Facts,
    /// Path → text, in the order of paths.
    files: BTreeMap<String, Arc<str>>,
    cache: Arc<ParseCache>,
}

impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Templates").field("facts", &self.facts).field("files", &self.files.keys()).finish()
    }
}

/// Loads a folder; every template is parsed.
pub(crate) fn load(folder: &str, files: &BTreeMap<String, Arc<str>>) -> Result<Templates, Box<Diagnostic>> {
    let folder = format!("{}/", folder.trim_end_matches('/'));
    let inside = files.iter().filter(|(path, _)| path.starts_with(&folder));
    let mut facts = Facts::default();
    let mut kept = BTreeMap::new();
    for (path, text) in inside {
        let name = &path[folder.len()..];
        if name == OWNS {
            facts = owns(path, text)?;
        } else if is_template(name) {
            kept.insert(path.clone(), Arc::clone(text));
        }
    }
    if !kept.keys().any(|path| is_rendered(path)) {
        let place = Place { file: folder.clone(), line: 0, column: 0 };
        return Err(Box::new(
            Diagnostic::error(format!("{folder} holds no templates"), Some(place))
                .with_hint("a folder of templates holds files that end in .yaml, .tpl or .gotmpl"),
        ));
    }
    facts.finalizes = kept.keys().any(|path| is_finalizer(path));
    let templates = Templates { facts, files: kept, cache: Arc::default() };
    templates.set()?;
    Ok(templates)
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_template(path: &str) -> bool {
    [".yaml", ".yml", ".tpl", ".gotmpl"].iter().any(|end| path.ends_with(end))
}

/// Files that begin with `_` only define templates for the others.
fn is_rendered(path: &str) -> bool {
    !base(path).starts_with('_')
}

fn is_finalizer(path: &str) -> bool {
    matches!(base(path), "finalize.tpl" | "finalize.yaml" | "finalize.yml" | "finalize.gotmpl")
}

/// `owns.yaml`: `kind`, optional, and `owns`, a list of kinds.
fn owns(path: &str, text: &str) -> Result<Facts, Box<Diagnostic>> {
    let at = |line: u32, column: u32| Some(Place { file: path.to_owned(), line, column });
    let node = yaml::parse(text)
        .map_err(|error| Box::new(Diagnostic::error(error.message.clone(), at(error.line, error.column))))?;
    let gvk = |node: &yaml::Node| {
        node.as_str().and_then(kinds::parse).ok_or_else(|| {
            let hint = "write group, version and kind, such as v1/Pod or apps/v1/Deployment";
            Box::new(Diagnostic::error("this is not a kind", at(node.line, node.column)).with_hint(hint))
        })
    };
    let mut facts = Facts::default();
    let yaml::Kind::Mapping(entries) = &node.kind else {
        return Err(Box::new(Diagnostic::error("this is not a map with `owns`", at(1, 1))));
    };
    for (key, value) in entries {
        match key.as_str() {
            Some("kind") => facts.kind = Some(gvk(value)?),
            Some("owns") => facts.owns = value.items().iter().map(gvk).collect::<Result<_, _>>()?,
            _ => {
                let message = "only `kind` and `owns` are known here";
                return Err(Box::new(Diagnostic::error(message, at(key.line, key.column))));
            }
        }
    }
    Ok(facts)
}

impl Templates {
    /// All templates of the folder, able to call each other.
    fn set(&self) -> Result<TemplateSet, Box<Diagnostic>> {
        let mut set = TemplateSet::with_cache(Compat::V3, Arc::clone(&self.cache)).with_functions(FUNCTIONS);
        for (path, text) in &self.files {
            set.add(path, text).map_err(|error| self.unparsed(&error))?;
        }
        Ok(set)
    }

    fn run(
        &self,
        observed: &Observed,
        host: &dyn Host,
        stop: &AtomicBool,
        limits: &Limits,
    ) -> Result<Desired, Box<Diagnostic>> {
        let set = self.set()?;
        let surroundings = Surroundings::new(observed, host);
        let scope = surroundings::scope(observed, &self.facts.owns);
        let mut desired = Desired::default();
        for path in self.files.keys() {
            if !is_rendered(path) || is_finalizer(path) != observed.finalizing {
                continue;
            }
            let mut context =
                Context::new(&surroundings, Compat::V3).strict().bounded(stop, MOST_BYTES).marked();
            let output = set
                .execute(path, scope.clone(), &mut context)
                .map_err(|error| self.failed(&error, limits))?;
            let output = Output { files: self, marks: context.take_marks(), text: output };
            documents::read(path, &output, &mut desired)?;
        }
        surroundings.finish(observed, &mut desired).map_err(|what| {
            Box::new(Diagnostic::error(
                what.to_string(),
                self.files.keys().next().map(|file| Place { file: file.clone(), line: 1, column: 1 }),
            ))
        })?;
        Ok(desired)
    }

    fn unparsed(&self, error: &ParseError) -> Box<Diagnostic> {
        let place = Place {
            file: error.name.clone(),
            line: number(error.line),
            column: self.column(&error.name, error.line, error.column.unwrap_or(0).saturating_sub(1)),
        };
        Box::new(Diagnostic::error(error.reason.clone(), Some(place)))
    }

    fn failed(&self, error: &ExecError, limits: &Limits) -> Box<Diagnostic> {
        let places: Vec<(String, Place)> = error
            .frames
            .iter()
            .map(|frame| {
                let column = self.column(&frame.file, frame.line, frame.column);
                let place = Place { file: frame.file.clone(), line: number(frame.line), column };
                (frame.executing.clone(), place)
            })
            .collect();
        let expression = error.innermost().map(|frame| frame.expression.as_str()).unwrap_or_default();
        let message = match &error.failed {
            Some(message) => message.clone(),
            None if error.cause == "the template takes too long" => {
                format!("the templates did not end within {}", time::in_words(limits.time))
            }
            None if expression.is_empty() => error.cause.clone(),
            None => format!("{expression}: {}", error.cause),
        };
        let hint = error.cause.starts_with("no key ").then_some(
            "read what may be absent with `get`, `dig` or `hasKey`, such as {{ dig \"status\" \"phase\" \"\" $pod }}",
        );
        Box::new(Diagnostic {
            hint: hint.map(str::to_owned),
            stack: places
                .iter()
                .rev()
                .map(|(name, at)| format!("{name} ({}:{}:{})", at.file, at.line, at.column))
                .collect(),
            ..Diagnostic::error(message, places.last().map(|(_, place)| place.clone()))
        })
    }

    /// The column in characters, from 1, of a byte in a line.
    fn column(&self, file: &str, line: usize, byte: usize) -> u32 {
        let text = self.files.get(file).map(|text| &**text).unwrap_or_default();
        let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        number(line.char_indices().take_while(|(at, _)| *at < byte).count() + 1)
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The output of one template, and its place.
struct Output<'t> {
    files: &'t Templates,
    marks: Vec<Mark>,
    text: Vec<u8>,
}

impl Output<'_> {
    /// The place in the author's file of a line and column of the output (both from 1; 0 where unknown).
    fn place(&self, line: u32, column: u32) -> Option<Place> {
        let before = self.text.split_inclusive(|byte| *byte == b'\n').take(line.saturating_sub(1) as usize);
        let start: usize = before.map(<[u8]>::len).sum();
        let rest = &self.text[start.min(self.text.len())..];
        let rest = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let rest = String::from_utf8_lossy(rest);
        let skipped: usize = rest.chars().take(column.saturating_sub(1) as usize).map(char::len_utf8).sum();
        let at = start + skipped;
        let mark = self.marks.iter().rev().find(|mark| mark.output <= at).or_else(|| self.marks.first())?;
        let source = if mark.verbatim { mark.source + at.saturating_sub(mark.output) } else { mark.source };
        let text = self.files.files.get(&*mark.file)?;
        let before = &text.as_bytes()[..source.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let from = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let column = String::from_utf8_lossy(&before[from..]).chars().count() + 1;
        Some(Place { file: mark.file.to_string(), line: number(line), column: number(column) })
    }
}

impl Program for Templates {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn reconcile(
        &self,
        observed: &Observed,
        host: &dyn Host,
        limits: &Limits,
    ) -> Result<Desired, Box<Diagnostic>> {
        if observed.finalizing && !self.facts.finalizes {
            return Ok(Desired { finalized: true, ..Desired::default() });
        }
        let stop = Arc::new(AtomicBool::new(false));
        let no_thread = |error: std::io::Error| {
            Box::new(Diagnostic::error(format!("no thread to render on: {error}"), None))
        };
        let clock = time::stop_after(limits.time, Arc::clone(&stop), || {}).map_err(no_thread)?;
        let done = on_deep_stack(|| self.run(observed, host, &stop, limits));
        drop(clock);
        done
    }
}

/// The kinds that are owned, by their short names; of two of the same name the first.
fn short_names(owns: &[Gvk]) -> impl Iterator<Item = (usize, &str)> {
    owns.iter()
        .enumerate()
        .filter(|(at, gvk)| !owns[..*at].iter().any(|o| o.kind == gvk.kind))
        .map(|(at, gvk)| (at, gvk.kind.as_str()))
}

//! From what a script threw, or the limit it ran into, to a diagnostic with the author's line and column.
//! Frames of the host's module are dropped.

use super::code::Code;
use crate::contract::Limits;
use crate::time::in_words;
use opdev_types::diagnostic::{Diagnostic, Place};
use rquickjs::CaughtError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many frames are kept.
const MOST_FRAMES: usize = 10;
/// Characters of a message that are kept.
const LONGEST: usize = 2000;

/// How the message of a call without memory ends.
const OF_MEMORY: &str = " MiB of memory";

/// The thrown value, as texts.
pub(super) struct Thrown {
    /// `TypeError`, empty for what is no error object.
    name: String,
    message: String,
    stack: String,
}

/// Reads what was thrown.
pub(super) fn caught(error: CaughtError<'_>) -> Thrown {
    match error {
        CaughtError::Exception(exception) => {
            let name: Option<String> = exception.as_object().get("name").ok();
            Thrown {
                name: name.unwrap_or_default(),
                message: exception.message().unwrap_or_default(),
                stack: exception.stack().unwrap_or_default(),
            }
        }
        CaughtError::Value(value) => {
            let text = value.as_string().and_then(|text| text.to_string().ok());
            let text = text.or_else(|| value.as_int().map(|n| n.to_string()));
            let text = text.or_else(|| value.as_bool().map(|b| b.to_string()));
            let message = match text {
                Some(text) => text,
                None if value.is_null() || value.is_undefined() => {
                    // The value is missing where memory did not even suffice for the error.
                    "out of memory".to_owned()
                }
                None => format!("a value of type {} was thrown", value.type_name()),
            };
            Thrown { name: String::new(), message, stack: String::new() }
        }
        CaughtError::Error(error) => {
            Thrown { name: String::new(), message: error.to_string(), stack: String::new() }
        }
    }
}

/// The facts that a diagnostic of this call needs.
pub(super) struct Failure {
    pub(super) code: Arc<Code>,
    pub(super) limits: Limits,
    pub(super) stop: Arc<AtomicBool>,
    /// The function that is called, once it is.
    pub(super) function: Option<&'static str>,
}

impl Failure {
    /// A fault of the engine itself.
    pub(super) fn engine(&self, why: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::error(
            format!("the script engine could not run {}: {why}", self.code.entry),
            self.place(),
        ))
    }

    /// The function that is called, or the start of the file.
    fn place(&self) -> Option<Place> {
        let function = self.function.and_then(|name| self.code.marks.export(name));
        function.or_else(|| Some(self.code.start()))
    }

    /// No job is left and the promise still waits.
    pub(super) fn never_settled(&self) -> Box<Diagnostic> {
        let what =
            self.function.map_or_else(|| "the top level of the file".to_owned(), |name| format!("{name}()"));
        Box::new(
            Diagnostic::error(format!("{what} never settled: it awaits something that nothing will resolve"), self.place())
                .with_hint("there are no timers; only fetch() and exec() take time. To run again later, return requeueAfter"),
        )
    }

    /// The diagnostic of a thrown value.
    pub(super) fn diagnostic(&self, thrown: &Thrown) -> Box<Diagnostic> {
        let frames = self.frames(&thrown.stack);
        let mut place = frames.first().map(|(_, place)| place.clone()).or_else(|| self.place());
        if frames.is_empty()
            && let Some(at) = self.missing_import(&thrown.message)
        {
            place = Some(at);
        }
        if thrown.message == "interrupted" {
            place = place.map(|place| self.code.marks.interrupted_loop(&place).unwrap_or(place));
        }
        let (message, hint) = self.words(thrown);
        Box::new(Diagnostic {
            hint,
            stack: frames
                .into_iter()
                .take(MOST_FRAMES)
                .map(|(name, at)| {
                    let name = if name.is_empty() { "(top level)" } else { name.as_str() };
                    format!("{name} ({}:{}:{})", at.file, at.line, at.column)
                })
                .collect(),
            ..Diagnostic::error(message, place)
        })
    }

    /// Where a name is imported that its module does not export.
    fn missing_import(&self, message: &str) -> Option<Place> {
        let rest = message.strip_prefix("Could not find export '")?;
        let (name, _) = rest.split_once('\'')?;
        let all = self.code.modules.iter().flat_map(|module| &module.imports);
        all.into_iter().find(|(imported, _)| imported == name).map(|(_, place)| place.clone())
    }

    fn words(&self, thrown: &Thrown) -> (String, Option<String>) {
        let what = self.function.unwrap_or("loading the file");
        let text = shorten(&thrown.message);
        let internal = thrown.name == "InternalError" || thrown.name.is_empty();
        if self.stop.load(Ordering::Relaxed)
            && (thrown.message == "interrupted" || thrown.message == "the time of this call is over")
        {
            let message = format!("{what} did not end within {}", in_words(self.limits.time));
            return (message, Some("an endless loop, or a call that waits too long?".to_owned()));
        }
        if internal && thrown.message == "out of memory" {
            let message = format!("{what} needs more than {}{OF_MEMORY}", self.limits.memory >> 20);
            return (message, Some("something grows without end, or far too much is kept".to_owned()));
        }
        if thrown.message.contains("Maximum call stack size exceeded")
            || (internal && thrown.message == "stack overflow")
        {
            let message = format!(
                "{what} calls itself too deeply ({} KiB of stack are used up)",
                self.limits.stack >> 10
            );
            return (message, Some("a recursion without an end?".to_owned()));
        }
        let hint = hint(&thrown.message);
        let message = match (thrown.name.as_str(), text.is_empty()) {
            ("Error" | "", false) => text,
            ("Error" | "", true) => "something was thrown that says nothing".to_owned(),
            (name, false) => format!("{name}: {text}"),
            (name, true) => name.to_owned(),
        };
        (message, hint)
    }

    /// Frames in the author's files, innermost first.
    fn frames(&self, stack: &str) -> Vec<(String, Place)> {
        stack.lines().filter_map(frame).filter(|(_, place)| self.code.owns_file(&place.file)).collect()
    }
}

/// Returns true if a call failed because its memory was used up.
pub(super) fn is_out_of_memory(diagnostic: &Diagnostic) -> bool {
    diagnostic.message.ends_with(OF_MEMORY)
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `    at name (file:line:column)` or `    at file:line:column`.
fn frame(line: &str) -> Option<(String, Place)> {
    let rest = line.trim_start().strip_prefix("at ")?;
    let (name, place) = match rest.rsplit_once(" (") {
        Some((name, place)) => (name, place.strip_suffix(')')?),
        None => ("", rest),
    };
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    let file = parts.next()?.to_owned();
    let name = if name == "<anonymous>" || name == "<eval>" { "" } else { name };
    Some((name.to_owned(), Place { file, line, column }))
}

/// The remedy for a common surprise.
fn hint(message: &str) -> Option<String> {
    let says = |text: &str| message.contains(text);
    let hint = if ["setTimeout", "setInterval"].iter().any(|name| message.starts_with(name)) {
        "there are no timers: return requeueAfter, such as \"30s\", to run again later"
    } else if ["require", "process", "Deno", "Buffer"].iter().any(|name| message.starts_with(name))
        && says("is not defined")
    {
        "this is not Node: what can be reached is in the module \"opdev\""
    } else if [
        "owned",
        "get",
        "list",
        "replicas",
        "patch",
        "release",
        "wait",
        "event",
        "condition",
        "ready",
        "exec",
    ]
    .iter()
    .any(|name| message == format!("{name} is not defined"))
    {
        "import it: `import { … } from \"opdev\"`"
    } else if says("is read-only") || says("object is not extensible") || says("could not delete property") {
        "what is observed cannot be changed: make a copy first, such as `{ ...object }` or structuredClone-like spreads"
    } else if says("BigInt") && (says("mix") || says("convert")) {
        "integers beyond 2^53 are BigInts, so that they keep their digits: use Number(…) or write 1n"
    } else if says("Could not find export") || says("could not find export") {
        "a type has no value to import: write `import type { … }`"
    } else {
        return None;
    };
    Some(hint.to_owned())
}

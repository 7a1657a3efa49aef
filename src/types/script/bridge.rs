//! Functions that a script can call: each function here takes texts and gives texts, and asks the thread that
//! owns the `Host` over a channel. Records every read. Never touches the outside itself.

use super::run::{Answers, Ask, Reply};
use crate::contract::{Exec, Fetch, Read};
use crate::readiness;
use opdev_object::meta::Gvk;
use opdev_object::selector::LabelSelector;
use opdev_types::kinds;
use rquickjs::{Ctx, Exception, Function, Object, Result};
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

/// apiVersion of the answer_checks that `patch` and `release` make.
pub(super) const OWN: &str = "opdev.dev/v1";
/// Stands before the digits of an integer that a number cannot hold.
pub(super) const MARK: &str = "\u{1}opdev:int:";
/// The mark as it stands in JSON text.
const MARKED: &str = "\"\\u0001opdev:int:";
/// Different objects and lists that one call may read.
const MOST_READS: usize = 10_000;
/// Lines of log that one call may write.
const MOST_LINES: u32 = 1000;
/// Characters of one line of log.
const LONGEST_LINE: usize = 4096;

/// One call's way to its host.
pub(super) struct Bridge {
    answers: Rc<Answers>,
    reads: RefCell<BTreeSet<Read>>,
    lines: Cell<u32>,
}

impl Bridge {
    pub(super) fn new(answers: Rc<Answers>) -> Rc<Bridge> {
        Rc::new(Bridge { answers, reads: RefCell::default(), lines: Cell::new(0) })
    }

    /// The reads, each once.
    pub(super) fn take_reads(&self) -> Vec<Read> {
        self.reads.take().into_iter().collect()
    }

    fn note(&self, ctx: &Ctx<'_>, read: &Read) -> Result<()> {
        let mut reads = self.reads.borrow_mut();
        if reads.len() >= MOST_READS && !reads.contains(read) {
            return Err(Exception::throw_message(
                ctx,
                &format!("more than {MOST_READS} different reads in one call"),
            ));
        }
        reads.insert(read.clone());
        Ok(())
    }

    fn ask(&self, ctx: &Ctx<'_>, question: Ask) -> Result<Reply> {
        match self.answers.ask(question) {
            Some(Reply::Refused(why)) => Err(Exception::throw_message(ctx, &why)),
            Some(reply) => Ok(reply),
            None => Err(Exception::throw_message(ctx, "the call is over")),
        }
    }

    fn kind(&self, ctx: &Ctx<'_>, text: &str) -> Result<Gvk> {
        if let Some(gvk) = kinds::parse(text) {
            return Ok(gvk);
        }
        match self.ask(ctx, Ask::Kind(text.to_owned()))? {
            Reply::Kind(gvk) => Ok(gvk),
            _ => Err(unexpected(ctx)),
        }
    }

    fn read(&self, ctx: &Ctx<'_>, kind: &str, namespace: Option<String>) -> Result<Read> {
        let gvk = self.kind(ctx, kind)?;
        // Kinds that are known to be cluster-scoped have no namespace; of others only the host knows.
        let namespace = namespace.filter(|text| text != "*" && kinds::namespaced(&gvk) != Some(false));
        Ok(Read { gvk, namespace, name: None, selector: String::new() })
    }

    fn get(
        &self,
        ctx: &Ctx<'_>,
        kind: &str,
        name: String,
        namespace: Option<String>,
    ) -> Result<Option<String>> {
        let read = Read { name: Some(name), ..self.read(ctx, kind, namespace)? };
        self.note(ctx, &read)?;
        match self.ask(ctx, Ask::Get(read))? {
            Reply::Object(found) => Ok(found.map(|object| text_of(&object))),
            _ => Err(unexpected(ctx)),
        }
    }

    fn list(
        &self,
        ctx: &Ctx<'_>,
        kind: &str,
        selector: String,
        namespace: Option<String>,
    ) -> Result<Vec<String>> {
        let read = Read { selector, ..self.read(ctx, kind, namespace)? };
        self.note(ctx, &read)?;
        let gvk = read.gvk.clone();
        match self.ask(ctx, Ask::List(read))? {
            Reply::Objects(found) => Ok(vec![gvk.api_version(), gvk.kind, list_text(&found)]),
            _ => Err(unexpected(ctx)),
        }
    }

    fn log(&self, level: String, mut line: String) {
        let lines = self.lines.get();
        self.lines.set(lines.saturating_add(1));
        if lines > MOST_LINES {
            return;
        }
        if lines == MOST_LINES {
            line = format!("more than {MOST_LINES} lines in one call: the rest is dropped");
        } else if let Some((at, _)) = line.char_indices().nth(LONGEST_LINE) {
            line.truncate(at);
            line.push('…');
        }
        let _ = self.answers.ask(Ask::Log(level, line));
    }

    fn fetch(&self, ctx: &Ctx<'_>, request: &str) -> Result<String> {
        let request: Value = parse(ctx, request)?;
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let headers = request.get("headers").and_then(Value::as_object);
        let headers =
            headers.into_iter().flatten().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())));
        let fetch = Fetch {
            method: text("method").to_uppercase(),
            url: text("url"),
            headers: headers.collect(),
            body: request.get("body").and_then(Value::as_str).map(str::to_owned),
        };
        match self.ask(ctx, Ask::Fetch(fetch))? {
            Reply::Fetched(answer) => {
                let headers: Map<String, Value> =
                    answer.headers.into_iter().map(|(k, v)| (k.to_lowercase(), v.into())).collect();
                Ok(json!({"status": answer.status, "headers": headers, "body": answer.body}).to_string())
            }
            _ => Err(unexpected(ctx)),
        }
    }

    fn exec(&self, ctx: &Ctx<'_>, command: &str) -> Result<String> {
        let command: Value = parse(ctx, command)?;
        let arguments = command.get("arguments").and_then(Value::as_array);
        let exec = Exec {
            program: command.get("program").and_then(Value::as_str).unwrap_or_default().to_owned(),
            arguments: arguments.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            input: command.get("input").and_then(Value::as_str).map(str::to_owned),
        };
        match self.ask(ctx, Ask::Exec(exec))? {
            Reply::Executed(said) => {
                Ok(json!({"code": said.code, "stdout": said.stdout, "stderr": said.stderr}).to_string())
            }
            _ => Err(unexpected(ctx)),
        }
    }
}

fn unexpected(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_message(ctx, "the host answered something else than it was asked")
}

fn parse(ctx: &Ctx<'_>, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Exception::throw_message(ctx, &error.to_string()))
}

/// The functions that the module of the host calls.
pub(super) fn install<'js>(ctx: &Ctx<'js>, host: &Object<'js>, bridge: &Rc<Bridge>) -> Result<()> {
    host.set("mark", MARK)?;
    host.set("marked", MARKED)?;
    host.set("own", OWN)?;
    let own = Rc::clone(bridge);
    host.set(
        "kind",
        Function::new(ctx.clone(), move |ctx: Ctx<'_>, text: String| {
            own.kind(&ctx, &text).map(|gvk| vec![gvk.api_version(), gvk.kind])
        })?,
    )?;
    let own = Rc::clone(bridge);
    host.set(
        "get",
        Function::new(ctx.clone(), move |ctx: Ctx<'_>, kind: String, name: String, ns: Option<String>| {
            // `null` rather than `undefined`, so that the caller can tell.
            own.get(&ctx, &kind, name, ns).map(Nullable)
        })?,
    )?;
    let own = Rc::clone(bridge);
    host.set(
        "list",
        Function::new(ctx.clone(), move |ctx: Ctx<'_>, kind: String, labels: String, ns: Option<String>| {
            own.list(&ctx, &kind, labels, ns)
        })?,
    )?;
    host.set(
        "selector",
        Function::new(ctx.clone(), |ctx: Ctx<'_>, text: String, json: bool| selector(&ctx, &text, json))?,
    )?;
    host.set(
        "ready",
        Function::new(ctx.clone(), |ctx: Ctx<'_>, object: String| -> Result<bool> {
            Ok(readiness::ready(&parse(&ctx, &object)?))
        })?,
    )?;
    let own = Rc::clone(bridge);
    host.set("log", Function::new(ctx.clone(), move |level: String, line: String| own.log(level, line))?)?;
    let own = Rc::clone(bridge);
    host.set("fetch", Function::new(ctx.clone(), move |ctx: Ctx<'_>, text: String| own.fetch(&ctx, &text))?)?;
    let own = Rc::clone(bridge);
    host.set("exec", Function::new(ctx.clone(), move |ctx: Ctx<'_>, text: String| own.exec(&ctx, &text))?)
}

/// `None` as `null`.
struct Nullable(Option<String>);

impl<'js> rquickjs::IntoJs<'js> for Nullable {
    fn into_js(self, ctx: &Ctx<'js>) -> Result<rquickjs::Value<'js>> {
        match self.0 {
            Some(text) => text.into_js(ctx),
            None => Ok(rquickjs::Value::new_null(ctx.clone())),
        }
    }
}

/// A selector in the form of kubectl's `-l`: a text is checked, labels or `matchLabels` and
/// `matchExpressions` are written out.
fn selector(ctx: &Ctx<'_>, text: &str, json: bool) -> Result<String> {
    let wrong =
        |why: &dyn std::fmt::Display| Exception::throw_type(ctx, &format!("list: the selector: {why}"));
    let selector = if json {
        let value: Value = parse(ctx, text)?;
        let structured = value.get("matchLabels").is_some_and(Value::is_object)
            || value.get("matchExpressions").is_some_and(Value::is_array);
        if !structured
            && let Some((key, other)) =
                value.as_object().and_then(|map| map.iter().find(|(_, v)| !v.is_string()))
        {
            return Err(wrong(&format!("the value of {key} is {other}, not a text")));
        }
        LabelSelector::from_json(&if structured { value } else { json!({"matchLabels": value}) })
    } else {
        LabelSelector::parse(text)
    };
    selector.map(|selector| selector.to_string()).map_err(|error| wrong(&error))
}

/// JSON text of a value; integers beyond 2^53 are marked, because a number would change their digits.
pub(super) fn text_of(value: &Value) -> String {
    if !has_wide(value) {
        return value.to_string();
    }
    let mut value = value.clone();
    mark_wide(&mut value);
    value.to_string()
}

/// JSON text of a list.
pub(super) fn list_text(list: &[std::sync::Arc<Value>]) -> String {
    let texts: Vec<String> = list.iter().map(|object| text_of(object)).collect();
    format!("[{}]", texts.join(","))
}

/// The first integers that share a number with a neighbour.
pub(super) const WIDE: u64 = (1 << 53) - 1;

fn is_wide(number: &serde_json::Number) -> bool {
    number.as_i64().map_or_else(|| number.is_u64(), |n| n.unsigned_abs() > WIDE)
}

fn has_wide(value: &Value) -> bool {
    match value {
        Value::Number(number) => is_wide(number),
        Value::Array(items) => items.iter().any(has_wide),
        Value::Object(map) => map.values().any(has_wide),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

fn mark_wide(value: &mut Value) {
    match value {
        Value::Number(number) if is_wide(number) => *value = Value::String(format!("{MARK}{number}")),
        Value::Array(items) => items.iter_mut().for_each(mark_wide),
        Value::Object(map) => map.values_mut().for_each(mark_wide),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => {}
    }
}

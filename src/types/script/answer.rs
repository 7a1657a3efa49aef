//! From what a script returned to `Desired`: every value is checked, and what makes no sense is named by its
//! path and shown at the return that gave it. Size and depth are bounded, because an answer may repeat itself
//! without end.

use super::bridge::{OWN, WIDE};
use super::trace::{Failure, caught};
use crate::answer_checks;
use crate::contract::{ChartAnswer, ChartCall, ChartFunction, Desired, Patch, Release, RequestedEvent};
use opdev_object::spelling::nearest;
use opdev_types::diagnostic::Diagnostic;
use rquickjs::{CatchResultExt, Coerced, Ctx, Function, Object, Value};
use serde_json::{Map, Value as Json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deep an answer may be nested.
const DEEPEST: usize = 100;
/// How many values an answer may hold.
const MOST_VALUES: usize = 300_000;
/// How many bytes of text an answer may hold.
const MOST_BYTES: usize = 32 << 20;

/// Keys that an answer may have.
const KEYS: [&str; 10] = [
    "status",
    "children",
    "patches",
    "releases",
    "conditions",
    "events",
    "waiting",
    "requeueAfter",
    "resyncAfterSeconds",
    "finalized",
];

/// Keys that an answer of `before` and `after` may have: the objects are the chart's.
const BESIDE: [&str; 6] =
    ["patches", "conditions", "events", "waiting", "requeueAfter", "resyncAfterSeconds"];

type Step<T> = Result<T, Box<Diagnostic>>;

/// Why a value is no part of an answer.
enum Wrong {
    /// It makes no sense, in these words after the path.
    Nonsense(String),
    /// Reading it threw.
    Threw(rquickjs::Error),
}

impl From<rquickjs::Error> for Wrong {
    fn from(error: rquickjs::Error) -> Wrong {
        Wrong::Threw(error)
    }
}

/// The whole answer.
pub(super) fn desired<'js>(
    ctx: &Ctx<'js>,
    hooks: &Object<'js>,
    answer: &Value<'js>,
    failure: &Failure,
) -> Step<Desired> {
    let (answer, said) = read(ctx, hooks, answer, failure, Reader::answer)?;
    shape(answer, &said).map_err(|(path, what)| failure.nonsense(&path, &what))
}

/// The answer of a script beside a chart.
pub(super) fn of_chart<'js>(
    ctx: &Ctx<'js>,
    hooks: &Object<'js>,
    answer: &Value<'js>,
    failure: &Failure,
    call: ChartCall,
) -> Step<ChartAnswer> {
    let beside = matches!(call, ChartCall::Function(ChartFunction::Before | ChartFunction::After));
    if !beside {
        let (value, said) = read(ctx, hooks, answer, failure, |reader, answer| {
            let value = reader.json(answer)?.unwrap_or(Json::Null);
            match expected(call, &value) {
                None => Ok(value),
                Some(what) => Err(Wrong::Nonsense(format!("is {}, not {what}", kind(answer)))),
            }
        })?;
        let desired = shape(Map::new(), &said).map_err(|(path, what)| failure.nonsense(&path, &what))?;
        return Ok(ChartAnswer { value, desired });
    }
    let (answer, said) = read(ctx, hooks, answer, failure, |reader, answer| {
        if answer.is_undefined() || answer.is_null() { Ok(Map::new()) } else { reader.answer(answer) }
    })?;
    if let Some(key) =
        answer.keys().find(|key| KEYS.contains(&key.as_str()) && !BESIDE.contains(&key.as_str()))
    {
        let what = format!(
            "is not a part of this answer, for the chart makes the objects; known are {}",
            BESIDE.join(", ")
        );
        return Err(failure.nonsense(&[part(key)], &what));
    }
    let desired = shape(answer, &said).map_err(|(path, what)| failure.nonsense(&path, &what))?;
    Ok(ChartAnswer { value: Json::Null, desired })
}

/// The type that a function of a script beside a chart should have given, where it did not.
fn expected(call: ChartCall, value: &Json) -> Option<&'static str> {
    let (fits, what) = match call {
        ChartCall::Function(ChartFunction::Values) => (value.is_object(), "an object with values"),
        ChartCall::Function(ChartFunction::Before | ChartFunction::After) => (true, ""),
        ChartCall::Function(ChartFunction::Paused) => {
            (value.is_boolean() || value.is_null(), "true or false")
        }
        ChartCall::Function(ChartFunction::Render) => (value.is_array(), "the list of objects"),
        ChartCall::Function(ChartFunction::OnEvent) => {
            (value.is_object() || value.is_null() || *value == Json::Bool(false), "the event, null or false")
        }
        ChartCall::Function(ChartFunction::Namespaces) => {
            (value.is_object() || value.is_null(), "an object such as { release, storage }")
        }
        ChartCall::Function(ChartFunction::ServiceAccountName) => {
            (value.is_string() || value.is_null(), "a name or namespace/name")
        }
        ChartCall::Map(_) => (value.is_array() || value.is_null(), "a list such as [{ namespace, name }]"),
    };
    (!fits).then_some(what)
}

/// Reads an answer, and what was said with `event` and `condition`.
fn read<'js, T>(
    ctx: &Ctx<'js>,
    hooks: &Object<'js>,
    answer: &Value<'js>,
    failure: &Failure,
    own: impl FnOnce(&mut Reader<'js>, &Value<'js>) -> Result<T, Wrong>,
) -> Step<(T, Json)> {
    let said =
        hooks.get("said").and_then(|said: Function<'js>| said.call::<_, Object<'js>>((answer.clone(),)));
    let said = said.catch(ctx).map_err(|error| failure.diagnostic(&caught(error)))?;
    let mut reader = Reader {
        path: Vec::new(),
        values: 0,
        bytes: 0,
        classes: classes(ctx),
        stop: Arc::clone(&failure.stop),
    };
    let read = own(&mut reader, answer).and_then(|answer| {
        reader.path.clear();
        let said = reader.json(&said.into_value())?.unwrap_or_default();
        Ok((answer, said))
    });
    match read {
        Ok(read) => Ok(read),
        Err(Wrong::Threw(error)) => {
            let error = rquickjs::CaughtError::from_error(ctx, error);
            Err(failure.diagnostic(&caught(error)))
        }
        Err(Wrong::Nonsense(what)) => Err(failure.nonsense(&reader.path, &what)),
    }
}

impl Failure {
    /// An answer that makes no sense, at the place that gave it.
    fn nonsense(&self, path: &[String], what: &str) -> Box<Diagnostic> {
        let function = self.function.unwrap_or("reconcile");
        let key = path.first().map(|key| key.trim_start_matches('.'));
        let path: String = path.concat();
        let path = path.strip_prefix('.').unwrap_or(&path);
        let subject = if path.is_empty() { "the answer".to_owned() } else { path.to_owned() };
        let place = self.code.marks.answer(function, key).or_else(|| Some(self.code.start()));
        Box::new(Diagnostic::error(format!("{function} returned nonsense: {subject} {what}"), place))
    }
}

struct Reader<'js> {
    /// The way to the value at hand, each part with its dot or brackets.
    path: Vec<String>,
    values: usize,
    bytes: usize,
    /// Classes that would come out as empty objects, by their prototypes.
    classes: Vec<(&'static str, Object<'js>)>,
    /// Set once the time of the call is over.
    stop: Arc<AtomicBool>,
}

/// The classes that are no data.
fn classes<'js>(ctx: &Ctx<'js>) -> Vec<(&'static str, Object<'js>)> {
    ["Map", "Set", "RegExp", "ArrayBuffer"]
        .into_iter()
        .filter_map(|name| {
            let class: Object<'js> = ctx.globals().get(name).ok()?;
            Some((name, class.get("prototype").ok()?))
        })
        .collect()
}

impl<'js> Reader<'js> {
    fn answer(&mut self, answer: &Value<'js>) -> Result<Map<String, Json>, Wrong> {
        let nonsense = |what: &str| Err(Wrong::Nonsense(what.to_owned()));
        if answer.is_undefined() || answer.is_null() {
            return nonsense("is missing; return an object such as { children, status }");
        }
        if answer.is_array() || !answer.is_object() {
            return nonsense(&format!("is {}, not an object such as {{ children, status }}", kind(answer)));
        }
        match self.json(answer)? {
            Some(Json::Object(map)) => Ok(map),
            _ => nonsense("is not an object such as { children, status }"),
        }
    }

    /// JSON of a value; `None` for `undefined`, which means absent.
    fn json(&mut self, value: &Value<'js>) -> Result<Option<Json>, Wrong> {
        self.values += 1;
        if self.values > MOST_VALUES || self.bytes > MOST_BYTES {
            self.path.truncate(1);
            return Err(Wrong::Nonsense("is too large".to_owned()));
        }
        if self.stop.load(Ordering::Relaxed) {
            self.path.truncate(1);
            return Err(Wrong::Nonsense("takes too long to be read".to_owned()));
        }
        if self.path.len() > DEEPEST {
            self.path.truncate(8);
            return Err(Wrong::Nonsense(format!(
                "… is nested deeper than {DEEPEST} levels, or contains itself"
            )));
        }
        if value.is_undefined() {
            return Ok(None);
        }
        let nonsense = |what: String| Err(Wrong::Nonsense(what));
        if value.is_null() {
            return Ok(Some(Json::Null));
        }
        if let Some(value) = value.as_bool() {
            return Ok(Some(Json::Bool(value)));
        }
        if let Some(value) = value.as_int() {
            return Ok(Some(Json::from(value)));
        }
        if let Some(value) = value.as_float() {
            return self.number(value).map(Some);
        }
        if let Some(text) = value.as_string() {
            let Ok(text) = text.to_string() else {
                return nonsense("is a text with broken characters".to_owned());
            };
            self.bytes += text.len();
            return Ok(Some(Json::String(text)));
        }
        if value.is_big_int() {
            let digits: Coerced<String> = value.get()?;
            let number =
                digits.0.parse::<i64>().map(Json::from).or_else(|_| digits.0.parse::<u64>().map(Json::from));
            return number.map(Some).or_else(|_| nonsense("is an integer of more than 64 bits".to_owned()));
        }
        if value.is_function() || value.is_symbol() {
            return nonsense(format!("is {}", kind(value)));
        }
        if value.is_promise() {
            return nonsense("is a Promise; write `await` before it".to_owned());
        }
        if let Some(list) = value.as_array() {
            return self.list(list).map(Some);
        }
        match value.as_object() {
            Some(object) => self.object(object).map(Some),
            None => nonsense(format!("is {}", kind(value))),
        }
    }

    fn number(&self, value: f64) -> Result<Json, Wrong> {
        if !value.is_finite() {
            return Err(Wrong::Nonsense(format!("is {}", if value.is_nan() { "NaN" } else { "infinite" })));
        }
        if value.fract() != 0.0 {
            return Ok(Json::from(value));
        }
        if value.abs() > WIDE as f64 {
            return Err(Wrong::Nonsense(format!(
                "is {value:.0}, beyond 2^53, where numbers lose digits; use a BigInt, such as {value:.0}n"
            )));
        }
        Ok(Json::from(value as i64))
    }

    fn list(&mut self, list: &rquickjs::Array<'js>) -> Result<Json, Wrong> {
        let length = list.len();
        let mut items = Vec::new();
        for at in 0..length {
            self.path.push(format!("[{at}]"));
            let item: Value<'js> = list.get(at)?;
            // A value written as `condition && object` is left out of lists at the top, where nothing else
            // can be.
            let left_out = self.path.len() == 2
                && (item.is_undefined() || item.is_null() || item.as_bool() == Some(false));
            match self.json(&item)? {
                _ if left_out => {}
                Some(item) => items.push(item),
                None => return Err(Wrong::Nonsense("is undefined, which a list cannot hold".to_owned())),
            }
            self.path.pop();
        }
        Ok(Json::Array(items))
    }

    fn object(&mut self, object: &Object<'js>) -> Result<Json, Wrong> {
        let prototype = object.get_prototype();
        if let Some((class, _)) = self.classes.iter().find(|(_, known)| prototype.as_ref() == Some(known)) {
            return Err(Wrong::Nonsense(format!("is a {class}; make a plain object or list of it")));
        }
        if object.is_error() {
            return Err(Wrong::Nonsense("is an Error; throw it instead".to_owned()));
        }
        let own: Option<Function<'js>> = object.get::<_, Value<'js>>("toJSON")?.into_function();
        if let Some(own) = own {
            let value: Value<'js> = own.call((rquickjs::function::This(object.clone()),))?;
            // A toJSON that gives another object with toJSON goes one level down, so that it ends.
            self.path.push(String::new());
            let json = self.json(&value)?;
            self.path.pop();
            return Ok(json.unwrap_or(Json::Null));
        }
        let mut map = Map::new();
        for pair in object.props::<String, Value<'js>>() {
            let (key, value) = pair?;
            self.bytes += key.len();
            self.path.push(part(&key));
            if let Some(value) = self.json(&value)? {
                map.insert(key, value);
            }
            self.path.pop();
        }
        Ok(Json::Object(map))
    }
}

/// A key as a part of a path.
fn part(key: &str) -> String {
    let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$');
    if plain && !key.is_empty() { format!(".{key}") } else { format!("[{}]", Json::from(key)) }
}

/// A kind of value, for people.
fn kind(value: &Value<'_>) -> String {
    if value.is_array() {
        return "a list".to_owned();
    }
    if let Some(text) = value.as_string() {
        let text = text.to_string().unwrap_or_default();
        return format!("the text {}", Json::from(text.chars().take(40).collect::<String>()));
    }
    if let Some(n) = value.as_number() {
        return format!("the number {n}");
    }
    if let Some(b) = value.as_bool() {
        return format!("{b}");
    }
    if value.is_function() { "a function".to_owned() } else { format!("a {}", value.type_name()) }
}

/// An error: the path and the words after it.
type Fault = (Vec<String>, String);

/// Sorts the parts of an answer into their places.
fn shape(mut answer: Map<String, Json>, said: &Json) -> Result<Desired, Fault> {
    for key in answer.keys() {
        if !KEYS.contains(&key.as_str()) {
            let near = nearest(key, KEYS).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err((vec![part(key)], format!("is not a part of an answer{near}")));
        }
    }
    let mut desired = Desired::default();
    let mut status = answer.remove("status");
    if let Some(Json::Object(fields)) = &mut status
        && let Some(conditions) = fields.remove("conditions")
    {
        let list = list(vec![".status".to_owned(), ".conditions".to_owned()], conditions)?;
        desired.conditions.extend(list);
    }
    match status {
        None | Some(Json::Null) => {}
        Some(Json::Object(fields)) => desired.status = Some(Json::Object(fields)),
        Some(_) => return Err((vec![".status".to_owned()], "is not an object".to_owned())),
    }
    for key in ["children", "patches", "releases"] {
        for (at, item) in listed(&mut answer, key)?.into_iter().enumerate() {
            let path = || vec![part(key), format!("[{at}]")];
            sort(item, key, &mut desired).map_err(|(below, what)| ([path(), below].concat(), what))?;
        }
    }
    desired.conditions.extend(said.get("conditions").and_then(Json::as_array).cloned().unwrap_or_default());
    desired.conditions.extend(listed(&mut answer, "conditions")?);
    desired.conditions = answer_checks::conditions(std::mem::take(&mut desired.conditions))
        .map_err(|(at, what)| (vec![".conditions".to_owned(), format!("[{at}]")], what.to_string()))?;
    let mut events: Vec<Json> = said.get("events").and_then(Json::as_array).cloned().unwrap_or_default();
    let recorded = events.len();
    events.extend(listed(&mut answer, "events")?);
    desired.events = events
        .into_iter()
        .enumerate()
        .map(|(at, event)| {
            answer_checks::event(&event).map_err(|what| {
                let path = vec![".events".to_owned(), format!("[{}]", at.saturating_sub(recorded))];
                (path, what.to_string())
            })
        })
        .collect::<Result<Vec<RequestedEvent>, Fault>>()?;
    match answer.remove("waiting") {
        None | Some(Json::Null | Json::Bool(false)) => {}
        Some(Json::String(why)) if !why.is_empty() => desired.waiting = Some(why),
        Some(_) => return Err((vec![".waiting".to_owned()], "is not a text that says why".to_owned())),
    }
    for key in ["requeueAfter", "resyncAfterSeconds"] {
        let after = answer.remove(key).filter(|value| !value.is_null());
        if let Some(after) = after {
            desired.requeue_after =
                answer_checks::after(&after).map_err(|what| (vec![part(key)], what.to_string()))?;
        }
    }
    match answer.remove("finalized") {
        None | Some(Json::Null) => {}
        Some(Json::Bool(finalized)) => desired.finalized = finalized,
        Some(_) => return Err((vec![".finalized".to_owned()], "is neither true nor false".to_owned())),
    }
    Ok(desired)
}

fn listed(answer: &mut Map<String, Json>, key: &str) -> Result<Vec<Json>, Fault> {
    answer.remove(key).map_or(Ok(Vec::new()), |value| list(vec![part(key)], value))
}

fn list(path: Vec<String>, value: Json) -> Result<Vec<Json>, Fault> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::Array(items) => Ok(items),
        Json::Object(_) => Err((path, "is an object, not a list".to_owned())),
        Json::Bool(_) | Json::Number(_) | Json::String(_) => Err((path, "is not a list".to_owned())),
    }
}

/// One entry of a list: a child, or what `patch` and `release` made, wherever it is listed.
fn sort(item: Json, key: &str, desired: &mut Desired) -> Result<(), Fault> {
    let here = |what: &str| (Vec::new(), what.to_owned());
    if item.is_array() {
        return Err(here("is a list; spread it, such as [...list]"));
    }
    if item.get("apiVersion").and_then(Json::as_str) == Some(OWN) {
        let text = |key: &str| item.get(key).and_then(Json::as_str).map(str::to_owned);
        if item.get("kind").and_then(Json::as_str) == Some("Patch") {
            let object = item.get("object").cloned().unwrap_or_default();
            let flag = |key: &str| item.get(key).and_then(Json::as_bool).unwrap_or(false);
            let (own, create) = (flag("own"), flag("create"));
            desired.patches.push(Patch { object, own, create });
        } else {
            desired.releases.push(Release {
                name: text("name").unwrap_or_default(),
                namespace: text("namespace"),
                chart: text("chart").unwrap_or_default(),
                values: item.get("values").cloned().unwrap_or_default(),
                options: item.get("options").cloned().unwrap_or_default(),
            });
        }
        return Ok(());
    }
    match key {
        "patches" => Err(here("is not what patch() makes; write patch(object, fields)")),
        "releases" => Err(here("is not what release() makes; write release({ name, chart, values })")),
        _ => {
            answer_checks::child(&item).map_err(|(path, what)| (path, what.to_string()))?;
            desired.children.push(item);
            Ok(())
        }
    }
}

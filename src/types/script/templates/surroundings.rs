//! The surroundings of templates: the observed objects in scope, the functions beside Helm's, and the host
//! behind `lookup` and `select`. Clock and chance come from the reconcile, so that the same input renders the
//! same text.

use super::short_names;
use crate::answer_checks::Wrong;
use crate::contract::{Desired, Host, HostError, Observed, Read};
use crate::{answer_checks, readiness};
use opdev_object::meta::{self, Gvk};
use opdev_object::selector::LabelSelector;
use opdev_template::{Environment, FuncError, Function, Map, Signature, Ty, Value};
use opdev_types::kinds;
use serde_json::{Value as Json, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

/// How many different objects and lists one call may read.
const MOST_READS: usize = 10_000;

/// Functions beside Helm's.
pub(super) static FUNCTIONS: &[Function] = &[
    Function::of_environment("ready", Signature::with_parameters(&[Ty::Any])),
    Function::of_environment("wait", Signature::with_parameters(&[Ty::Str])),
    Function::of_environment("requeue", Signature::with_parameters(&[Ty::Any])),
    Function::of_environment("finalized", Signature::with_parameters(&[Ty::Bool])),
    Function::of_environment("event", Signature::with_parameters(&[Ty::Str, Ty::Str, Ty::Str])),
    Function::of_environment("condition", Signature::with_parameters(&[Ty::Str, Ty::Any, Ty::Str, Ty::Str])),
    Function::of_environment("select", Signature { fixed: &[Ty::Str], rest: Some(Ty::Any) }),
    Function::of_environment("where", Signature::with_parameters(&[Ty::Any, Ty::Str, Ty::Any])),
    Function::of_environment("countWhere", Signature::with_parameters(&[Ty::Any, Ty::Str, Ty::Any])),
    Function::of_environment("collect", Signature::with_parameters(&[Ty::Any, Ty::Str])),
];

/// One reconcile as templates see it.
pub(super) struct Surroundings<'h> {
    host: &'h dyn Host,
    namespace: Option<String>,
    now: jiff::Timestamp,
    random: Cell<u64>,
    reads: RefCell<BTreeSet<Read>>,
    said: RefCell<Desired>,
    finalized: Cell<Option<bool>>,
}

/// A condition that was said with a function and cannot be set.
#[derive(Debug)]
pub(super) struct ConditionError {
    /// Its place among all conditions, counted from 1.
    at: usize,
    what: Wrong,
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {} {}", self.at, self.what)
    }
}

impl std::error::Error for ConditionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.what)
    }
}

impl From<HostError> for FuncError {
    fn from(error: HostError) -> FuncError {
        FuncError::new(error.to_string())
    }
}

/// The data of all templates: `self`, `owned`, `children`, `releases`, `finalizing`, `now`.
pub(super) fn scope(observed: &Observed, owns: &[Gvk]) -> Value {
    let cluster = meta::namespace(&observed.parent).is_none();
    let lists: Vec<Value> = owns
        .iter()
        .map(|gvk| {
            let mine = observed.children.iter().filter(|child| Gvk::of(child).as_ref() == Some(gvk));
            let named = mine.filter_map(|child| {
                let name = meta::name(child)?;
                let key = match meta::namespace(child) {
                    Some(namespace) if cluster => format!("{namespace}/{name}"),
                    _ => name.to_owned(),
                };
                Some((key, Value::from_json(child)))
            });
            Value::Map(Map::from_entries(named))
        })
        .collect();
    let owned = short_names(owns).map(|(at, kind)| (kind, lists[at].clone()));
    let children = owns
        .iter()
        .zip(&lists)
        .map(|(gvk, list)| (format!("{}.{}", gvk.kind, gvk.api_version()), list.clone()));
    let releases = observed.releases.iter().map(|release| {
        let state = release.to_json();
        (release.name.clone(), Value::from_json(&state))
    });
    Value::Map(Map::from_entries([
        ("self", Value::from_json(&observed.parent)),
        ("owned", Value::Map(Map::from_entries(owned))),
        ("children", Value::Map(Map::from_entries(children))),
        ("releases", Value::Map(Map::from_entries(releases))),
        ("finalizing", Value::Bool(observed.finalizing)),
        ("now", Value::str(observed.now.as_str())),
    ]))
}

impl<'h> Surroundings<'h> {
    pub(super) fn new(observed: &Observed, host: &'h dyn Host) -> Surroundings<'h> {
        Surroundings {
            host,
            namespace: meta::namespace(&observed.parent).map(str::to_owned),
            now: observed.now.parse().unwrap_or(jiff::Timestamp::UNIX_EPOCH),
            random: Cell::new(observed.seed),
            reads: RefCell::default(),
            said: RefCell::default(),
            finalized: Cell::new(None),
        }
    }

    /// Adds what was said with functions to what documents say.
    pub(super) fn finish(self, observed: &Observed, desired: &mut Desired) -> Result<(), ConditionError> {
        let said = self.said.into_inner();
        desired.waiting = said.waiting;
        desired.requeue_after = said.requeue_after;
        desired.events.extend(said.events);
        let all = [said.conditions, std::mem::take(&mut desired.conditions)].concat();
        desired.conditions =
            answer_checks::conditions(all).map_err(|(at, what)| ConditionError { at: at + 1, what })?;
        desired.reads = self.reads.into_inner().into_iter().collect();
        if observed.finalizing {
            let nothing_left = desired.children.is_empty() && desired.waiting.is_none();
            desired.finalized = self.finalized.get().unwrap_or(nothing_left);
        }
        Ok(())
    }

    fn note(&self, read: &Read) -> Result<(), FuncError> {
        let mut reads = self.reads.borrow_mut();
        if reads.len() >= MOST_READS && !reads.contains(read) {
            return Err(FuncError::new(format!("more than {MOST_READS} different reads in one call")));
        }
        reads.insert(read.clone());
        Ok(())
    }

    fn find(&self, read: &Read) -> Result<Json, FuncError> {
        self.note(read)?;
        if read.name.is_some() {
            return Ok(self.host.get(read)?.map_or(Json::Null, |object| (*object).clone()));
        }
        let items: Vec<Json> = self.host.list(read)?.iter().map(|object| (**object).clone()).collect();
        Ok(Json::Array(items))
    }

    /// `select KIND [SELECTOR [NAMESPACE]]`.
    fn select(&self, arguments: &[Value]) -> Result<Value, FuncError> {
        let text = |at: usize| arguments.get(at).and_then(Value::as_str).map(|text| text.text().into_owned());
        let kind = text(0).unwrap_or_default();
        let gvk = kinds::parse(&kind).map_or_else(|| self.host.kind(&kind), Ok)?;
        let selector = match arguments.get(1) {
            None | Some(Value::Nil) => LabelSelector::default(),
            Some(Value::Map(map)) => {
                let json = Value::Map(map.clone()).to_json();
                let structured = json.get("matchLabels").is_some() || json.get("matchExpressions").is_some();
                let json = if structured { json } else { json!({"matchLabels": json}) };
                LabelSelector::from_json(&json).map_err(|error| FuncError::new(error.to_string()))?
            }
            Some(_) => LabelSelector::parse(&text(1).unwrap_or_default())
                .map_err(|error| FuncError::new(error.to_string()))?,
        };
        let namespace = text(2).or_else(|| self.namespace.clone());
        let namespace = namespace.filter(|ns| ns != "*" && kinds::namespaced(&gvk) != Some(false));
        let found = self.find(&Read { gvk, namespace, name: None, selector: selector.to_string() })?;
        Ok(Value::from_json(&found))
    }

    fn said(&self, name: &str, arguments: &[Value]) -> Result<Value, FuncError> {
        let text =
            |at: usize| arguments[at].as_str().map(|text| text.text().into_owned()).unwrap_or_default();
        let mut said = self.said.borrow_mut();
        match name {
            "wait" => {
                // The first reason is what is waited for first.
                said.waiting.get_or_insert(text(0));
            }
            "requeue" => {
                let after = answer_checks::after(&arguments[0].to_json());
                let after = after.map_err(|what| FuncError::new(what.to_string()))?;
                said.requeue_after = match (said.requeue_after, after) {
                    (Some(old), Some(new)) => Some(old.min(new)),
                    (old, new) => old.or(new),
                };
            }
            "finalized" => self.finalized.set(Some(arguments[0].truth())),
            "event" => {
                let event = json!({"type": text(0), "reason": text(1), "message": text(2)});
                let event = answer_checks::event(&event);
                said.events.push(event.map_err(|what| FuncError::new(format!("the event {what}")))?);
            }
            _ => {
                let status = arguments[1].to_json();
                said.conditions
                    .push(json!({"type": text(0), "status": status, "reason": text(2), "message": text(3)}));
            }
        }
        Ok(Value::str(""))
    }
}

/// The items of a list, or the values of a map.
fn items(collection: &Value) -> Result<Vec<Value>, FuncError> {
    match collection {
        Value::List(list) => Ok(list.items().to_vec()),
        Value::Map(map) => Ok(map.snapshot().into_iter().map(|(_, value)| value).collect()),
        Value::Nil => Ok(Vec::new()),
        other => Err(FuncError::new(format!("a list or map is wanted, not {}", other.type_name()))),
    }
}

/// The value at a path such as `status.phase`; `None` where a part of it is absent.
fn at_path(value: &Value, path: &str) -> Option<Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(value.clone(), |value, part| match &value {
        Value::Map(map) => map.get(part.as_bytes()),
        _ => None,
    })
}

/// Equal as JSON, numbers by their value.
fn equal(a: &Value, b: &Value) -> bool {
    let (a, b) = (a.to_json(), b.to_json());
    a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64())
}

fn matching(arguments: &[Value]) -> Result<Vec<Value>, FuncError> {
    let path = arguments[1].as_str().map(|text| text.text().into_owned()).unwrap_or_default();
    let fits = |item: &Value| at_path(item, &path).is_some_and(|found| equal(&found, &arguments[2]));
    Ok(items(&arguments[0])?.into_iter().filter(fits).collect())
}

impl Environment for Surroundings<'_> {
    fn now(&self) -> jiff::Timestamp {
        self.now
    }

    fn random(&self, buffer: &mut [u8]) {
        for byte in buffer {
            // splitmix64: good enough for names, and the same for the same seed.
            let state = self.random.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
            self.random.set(state);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = (mixed >> 32) as u8;
        }
    }

    fn lookup(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> Result<Json, FuncError> {
        let gvk = Gvk::from_api_version(api_version, kind);
        let namespaced = !namespace.is_empty() && kinds::namespaced(&gvk) != Some(false);
        let read = Read {
            namespace: namespaced.then(|| namespace.to_owned()),
            name: (!name.is_empty()).then(|| name.to_owned()),
            selector: String::new(),
            gvk,
        };
        match self.find(&read)? {
            Json::Array(items) => {
                Ok(json!({"apiVersion": api_version, "kind": format!("{kind}List"), "items": items}))
            }
            found => Ok(found),
        }
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, FuncError> {
        match name {
            "ready" => Ok(Value::Bool(readiness::ready(&arguments[0].to_json()))),
            "select" => self.select(arguments),
            "where" => matching(arguments).map(Value::list),
            "countWhere" => {
                matching(arguments).map(|found| Value::Int(i64::try_from(found.len()).unwrap_or(i64::MAX)))
            }
            "collect" => items(&arguments[0]).map(|items| {
                let path = arguments[1].as_str().map(|text| text.text().into_owned()).unwrap_or_default();
                Value::list(items.iter().filter_map(|item| at_path(item, &path)).collect())
            }),
            _ => self.said(name, arguments),
        }
    }
}

//! Values of CEL at run time: equality, order, and the names of their types in errors.

use super::authorizer::Check;
use super::kind::{Kind, Object};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A value. Durations and timestamps count nanoseconds, timestamps from 1970.
#[derive(Clone, Debug)]
pub(super) enum Val {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Duration(i128),
    Timestamp(i128),
    List(Arc<Vec<Val>>, Listing),
    Map(Arc<BTreeMap<Key, Val>>),
    Optional(Option<Arc<Val>>),
    Type(Arc<Kind>),
    /// A value of a library, such as a quantity.
    Library(&'static str, kube_cel::cel::Value),
    /// A question about what somebody may do, or its answer.
    Check(Arc<Check>),
    /// An object that an expression has built, under the name of its type.
    Message(Arc<str>, Arc<BTreeMap<String, Val>>),
    /// Data nobody has declared; only equality is known.
    Unknown(Arc<serde_json::Value>),
}

/// The list type in the schema, by which `==` and `+` treat a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Listing {
    #[default]
    Plain,
    Set,
    /// Told apart by these keys, under their names in CEL.
    Map(Arc<Vec<String>>),
}

/// A key of a map. Numbers of different kinds are one key where they are equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Bool(bool),
    Number(i128),
    Text(Arc<str>),
}

/// Why an evaluation stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The expression has failed, in a server's words.
    Failed(String),
    /// It takes too long.
    Budget,
}

pub(super) type Evaluated = Result<Val, Stop>;

pub(super) fn failed<T>(text: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Failed(text.into()))
}

pub(super) fn no_overload<T>() -> Result<T, Stop> {
    failed("no such overload")
}

impl Val {
    pub(super) fn text(text: impl AsRef<str>) -> Val {
        Val::Text(text.as_ref().into())
    }

    pub(super) fn list(items: Vec<Val>) -> Val {
        Val::List(Arc::new(items), Listing::Plain)
    }

    pub(super) fn some(value: Val) -> Val {
        Val::Optional(Some(Arc::new(value)))
    }

    pub(super) fn truth(&self) -> Result<bool, Stop> {
        match self {
            Val::Bool(truth) => Ok(*truth),
            _ => no_overload(),
        }
    }

    /// The kind, with what is inside left open.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Val::Null => Kind::Null,
            Val::Bool(_) => Kind::Bool,
            Val::Int(_) => Kind::Int,
            Val::Uint(_) => Kind::Uint,
            Val::Double(_) => Kind::Double,
            Val::Text(_) => Kind::Text,
            Val::Bytes(_) => Kind::Bytes,
            Val::Duration(_) => Kind::Duration,
            Val::Timestamp(_) => Kind::Timestamp,
            Val::List(..) => Kind::list(Kind::Dyn),
            Val::Map(_) => Kind::map(Kind::Dyn, Kind::Dyn),
            Val::Optional(_) => Kind::optional(Kind::Dyn),
            Val::Type(_) => Kind::Type(Box::new(Kind::Dyn)),
            Val::Library(name, _) => Kind::Opaque(name),
            Val::Check(check) => Kind::Opaque(check.kind),
            Val::Message(name, _) => {
                Kind::Object(Arc::new(Object { name: name.to_string(), fields: BTreeMap::new() }))
            }
            Val::Unknown(_) => Kind::Dyn,
        }
    }

    /// The name of the type, as errors say it.
    pub(super) fn type_name(&self) -> String {
        type_name(&self.kind())
    }

    /// A measure of its size, as costs count it.
    pub(super) fn size(&self) -> u64 {
        match self {
            Val::Text(text) => text.len() as u64,
            Val::Bytes(bytes) => bytes.len() as u64,
            Val::List(items, _) => items.len() as u64,
            Val::Map(map) => map.len() as u64,
            _ => 1,
        }
    }

    pub(super) fn key(&self) -> Option<Key> {
        Some(match self {
            Val::Bool(truth) => Key::Bool(*truth),
            Val::Int(number) => Key::Number(i128::from(*number)),
            Val::Uint(number) => Key::Number(i128::from(*number)),
            Val::Double(float) if float.fract() == 0.0 && float.abs() < 1e19 => Key::Number(*float as i128),
            Val::Text(text) => Key::Text(text.clone()),
            _ => return None,
        })
    }

    fn number(&self) -> Option<Number> {
        match self {
            Val::Int(number) => Some(Number::Whole(i128::from(*number))),
            Val::Uint(number) => Some(Number::Whole(i128::from(*number))),
            Val::Double(float) => Some(Number::Float(*float)),
            _ => None,
        }
    }

    /// Order; `None` where the two have none.
    pub(super) fn order(&self, other: &Val) -> Option<Ordering> {
        match (self, other) {
            (Val::Bool(a), Val::Bool(b)) => Some(a.cmp(b)),
            (Val::Text(a), Val::Text(b)) => Some(a.cmp(b)),
            (Val::Bytes(a), Val::Bytes(b)) => Some(a.cmp(b)),
            (Val::Duration(a), Val::Duration(b)) | (Val::Timestamp(a), Val::Timestamp(b)) => Some(a.cmp(b)),
            (a, b) => a.number()?.order(b.number()?),
        }
    }

    /// `==`.
    pub(super) fn equals(&self, other: &Val) -> bool {
        match (self, other) {
            (Val::Null, Val::Null) => true,
            (Val::Bool(a), Val::Bool(b)) => a == b,
            (Val::Text(a), Val::Text(b)) => a == b,
            (Val::Bytes(a), Val::Bytes(b)) => a == b,
            (Val::Duration(a), Val::Duration(b)) | (Val::Timestamp(a), Val::Timestamp(b)) => a == b,
            (Val::List(a, kind), Val::List(b, _)) => lists_equal(a, kind, b),
            (Val::Map(a), Val::Map(b)) => {
                a.len() == b.len() && a.iter().all(|(key, x)| b.get(key).is_some_and(|y| x.equals(y)))
            }
            (Val::Optional(a), Val::Optional(b)) => match (a, b) {
                (None, None) => true,
                (Some(a), Some(b)) => a.equals(b),
                _ => false,
            },
            (Val::Type(a), Val::Type(b)) => type_name(a) == type_name(b),
            (Val::Library(a, x), Val::Library(b, y)) => a == b && x == y,
            (Val::Message(a, x), Val::Message(b, y)) => {
                a == b
                    && x.len() == y.len()
                    && x.iter().all(|(name, value)| y.get(name).is_some_and(|other| value.equals(other)))
            }
            (Val::Unknown(a), Val::Unknown(b)) => a == b,
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.order(b) == Some(Ordering::Equal),
                _ => false,
            },
        }
    }
}

fn lists_equal(a: &[Val], kind: &Listing, b: &[Val]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match kind {
        Listing::Plain => a.iter().zip(b).all(|(x, y)| x.equals(y)),
        // A literal may have an item twice, so both sides are looked at.
        Listing::Set => {
            let has = |list: &[Val], item: &Val| list.iter().any(|one| one.equals(item));
            b.iter().all(|y| has(a, y)) && a.iter().all(|x| has(b, x))
        }
        Listing::Map(keys) => {
            let is_there = |y: &Val| b.iter().any(|other| same_keys(other, y, keys));
            b.iter().all(|y| a.iter().find(|x| same_keys(x, y, keys)).is_some_and(|x| x.equals(y)))
                && a.iter().all(is_there)
        }
    }
}

/// Returns true if two items of a list of type map are the same one.
pub(super) fn same_keys(a: &Val, b: &Val, keys: &[String]) -> bool {
    let (Val::Map(a), Val::Map(b)) = (a, b) else { return false };
    keys.iter().all(|key| {
        let key = Key::Text(key.as_str().into());
        match (a.get(&key), b.get(&key)) {
            (None, None) => true,
            (Some(a), Some(b)) => a.equals(b),
            _ => false,
        }
    })
}

enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Whole(a), Number::Float(b)) => whole_to_float(a, b),
            (Number::Float(a), Number::Whole(b)) => whole_to_float(b, a).map(Ordering::reverse),
        }
    }
}

fn whole_to_float(whole: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() > 1e30 {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let floor = float.floor();
    Some(whole.cmp(&(floor as i128)).then(if floor < float { Ordering::Less } else { Ordering::Equal }))
}

/// The name of a type at run time.
pub(super) fn type_name(kind: &Kind) -> String {
    match kind {
        Kind::Null => "null_type".to_owned(),
        Kind::Duration => "google.protobuf.Duration".to_owned(),
        Kind::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Kind::List(_) => "list".to_owned(),
        Kind::Map(..) | Kind::Object(_) => "map".to_owned(),
        Kind::Optional(_) => "optional_type".to_owned(),
        Kind::Type(_) => "type".to_owned(),
        other => other.to_string(),
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Bool(truth) => write!(f, "{truth}"),
            Key::Number(number) => write!(f, "{number}"),
            Key::Text(text) => f.write_str(text),
        }
    }
}

impl From<Key> for Val {
    fn from(key: Key) -> Val {
        match key {
            Key::Bool(truth) => Val::Bool(truth),
            Key::Number(number) => match i64::try_from(number) {
                Ok(number) => Val::Int(number),
                Err(_) => Val::Uint(u64::try_from(number).unwrap_or(u64::MAX)),
            },
            Key::Text(text) => Val::Text(text),
        }
    }
}

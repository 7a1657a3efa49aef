//! Static types of CEL, their names in errors, and what may stand for what.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Duration,
    Timestamp,
    List(Box<Kind>),
    Map(Box<Kind>, Box<Kind>),
    Object(Arc<Object>),
    Optional(Box<Kind>),
    /// The type of a type.
    Type(Box<Kind>),
    /// A type of a library, such as `kubernetes.Quantity`.
    Opaque(&'static str),
    /// A type parameter of a signature.
    Param(char),
    /// After an error: fits everything, so that one mistake gives one error.
    Error,
}

/// An object with known fields.
#[derive(Debug)]
pub(super) struct Object {
    /// Tells objects apart: where it stands in the schema.
    pub(super) name: String,
    /// Fields under their names in CEL.
    pub(super) fields: BTreeMap<String, Kind>,
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.name == other.name
    }
}

impl Kind {
    pub(super) fn list(item: Kind) -> Kind {
        Kind::List(Box::new(item))
    }

    pub(super) fn map(key: Kind, value: Kind) -> Kind {
        Kind::Map(Box::new(key), Box::new(value))
    }

    pub(super) fn optional(inner: Kind) -> Kind {
        Kind::Optional(Box::new(inner))
    }

    pub(super) fn is_dyn(&self) -> bool {
        matches!(self, Kind::Dyn | Kind::Error)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Dyn => f.write_str("dyn"),
            Kind::Null => f.write_str("null"),
            Kind::Bool => f.write_str("bool"),
            Kind::Int => f.write_str("int"),
            Kind::Uint => f.write_str("uint"),
            Kind::Double => f.write_str("double"),
            Kind::Text => f.write_str("string"),
            Kind::Bytes => f.write_str("bytes"),
            Kind::Duration => f.write_str("duration"),
            Kind::Timestamp => f.write_str("timestamp"),
            Kind::List(item) => write!(f, "list({item})"),
            Kind::Map(key, value) => write!(f, "map({key}, {value})"),
            Kind::Object(object) => f.write_str(&object.name),
            Kind::Optional(inner) => write!(f, "optional_type({inner})"),
            Kind::Type(inner) => write!(f, "type({inner})"),
            Kind::Opaque(name) => f.write_str(name),
            Kind::Param(name) => write!(f, "{name}"),
            Kind::Error => f.write_str("!error!"),
        }
    }
}

/// The type parameters of one call, as they are bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Bound(BTreeMap<char, Kind>);

impl Bound {
    /// Returns true if a value of kind `given` can be where `wanted` is asked for; binds parameters of
    /// `wanted`.
    pub(super) fn fits(&mut self, wanted: &Kind, given: &Kind) -> bool {
        match (wanted, given) {
            (Kind::Param(name), given) => match self.0.get(name).cloned() {
                None => {
                    self.0.insert(*name, given.clone());
                    true
                }
                Some(bound) => {
                    if bound == *given {
                        return true;
                    }
                    let joined = join(&bound, given);
                    let fits = joined.is_some();
                    if let Some(joined) = joined {
                        self.0.insert(*name, joined);
                    }
                    fits
                }
            },
            (Kind::Dyn | Kind::Error, _) | (_, Kind::Dyn | Kind::Error) => true,
            // A type that is still open, as in an empty list, fits everything.
            (_, Kind::Param(_)) => true,
            (Kind::List(wanted), Kind::List(given)) => self.fits(wanted, given),
            (Kind::Map(key, value), Kind::Map(given_key, given_value)) => {
                self.fits(key, given_key) && self.fits(value, given_value)
            }
            (Kind::Optional(wanted), Kind::Optional(given)) | (Kind::Type(wanted), Kind::Type(given)) => {
                self.fits(wanted, given)
            }
            (
                Kind::Object(_) | Kind::Duration | Kind::Timestamp | Kind::Opaque(_) | Kind::Optional(_),
                Kind::Null,
            )
            | (
                Kind::Null,
                Kind::Object(_) | Kind::Duration | Kind::Timestamp | Kind::Opaque(_) | Kind::Optional(_),
            ) => true,
            (wanted, given) => wanted == given,
        }
    }

    /// The kind with its parameters replaced.
    pub(super) fn apply(&self, kind: &Kind) -> Kind {
        match kind {
            Kind::Param(name) => self.0.get(name).cloned().unwrap_or(Kind::Dyn),
            Kind::List(item) => Kind::list(self.apply(item)),
            Kind::Map(key, value) => Kind::map(self.apply(key), self.apply(value)),
            Kind::Optional(inner) => Kind::optional(self.apply(inner)),
            Kind::Type(inner) => Kind::Type(Box::new(self.apply(inner))),
            Kind::Dyn
            | Kind::Null
            | Kind::Bool
            | Kind::Int
            | Kind::Uint
            | Kind::Double
            | Kind::Text
            | Kind::Bytes
            | Kind::Duration
            | Kind::Timestamp
            | Kind::Object(_)
            | Kind::Opaque(_)
            | Kind::Error => kind.clone(),
        }
    }
}

/// The kind two values have in common; `None` where one cannot stand for the other.
pub(super) fn join(a: &Kind, b: &Kind) -> Option<Kind> {
    if a == b {
        return Some(a.clone());
    }
    match (a, b) {
        (Kind::Dyn | Kind::Error, _) | (_, Kind::Dyn | Kind::Error) => Some(Kind::Dyn),
        (Kind::Param(_), other) | (other, Kind::Param(_)) => Some(other.clone()),
        (Kind::List(a), Kind::List(b)) => Some(Kind::list(join(a, b)?)),
        (Kind::Map(ak, av), Kind::Map(bk, bv)) => Some(Kind::map(join(ak, bk)?, join(av, bv)?)),
        (Kind::Optional(a), Kind::Optional(b)) => Some(Kind::optional(join(a, b)?)),
        (Kind::Type(_), Kind::Type(_)) => Some(Kind::Type(Box::new(Kind::Dyn))),
        (
            Kind::Null,
            other
            @ (Kind::Object(_) | Kind::Duration | Kind::Timestamp | Kind::Opaque(_) | Kind::Optional(_)),
        )
        | (
            other
            @ (Kind::Object(_) | Kind::Duration | Kind::Timestamp | Kind::Opaque(_) | Kind::Optional(_)),
            Kind::Null,
        ) => Some(other.clone()),
        _ => None,
    }
}

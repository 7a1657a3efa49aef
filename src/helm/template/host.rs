//! Objects the caller brings into templates: structs with fields, named types with methods (`.Files`,
//! `.Capabilities`). A host names its Go type, because type names reach users through `typeOf`, `%T` and
//! error texts.

use std::any::Any;
use std::borrow::Cow;

use super::error::FuncError;
use super::text::Str;
use super::value::{Kind, Value};

/// A type of a parameter; arguments are checked against it before a call, as Go does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ty {
    /// `interface {}`
    Any,
    /// `reflect.Value`: anything, nil included
    Raw,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `float64`
    Float,
    /// `string`
    Str,
    /// `map[string]interface {}`
    Dict,
    /// `time.Time`
    Time,
    /// `[]string`
    Strings,
    /// `[]interface {}`
    List,
    /// `uint32`, which only literals are
    Uint32,
    /// a host type, by its Go name
    Host(&'static str),
}

impl Ty {
    /// Go's name of the type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ty::Any => "interface {}",
            Ty::Raw => "reflect.Value",
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::Float => "float64",
            Ty::Str => "string",
            Ty::Dict => "map[string]interface {}",
            Ty::Time => "time.Time",
            Ty::Strings => "[]string",
            Ty::List => "[]interface {}",
            Ty::Uint32 => "uint32",
            Ty::Host(name) => name,
        }
    }
}

/// The parameters of a function or method.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// fixed parameters
    pub fixed: &'static [Ty],
    /// type of each further argument, if the function takes any
    pub rest: Option<Ty>,
}

impl Signature {
    /// A signature without variable part.
    #[must_use]
    pub const fn with_parameters(fixed: &'static [Ty]) -> Signature {
        Signature { fixed, rest: None }
    }
}

/// An object with Go identity.
pub trait Host {
    /// Go's `%T`, such as `*chartutil.Capabilities`.
    fn type_name(&self) -> Cow<'static, str>;

    /// Go's kind; a pointer to a struct says `Ptr`.
    fn kind(&self) -> Kind {
        Kind::Struct
    }

    /// An exported field, by its Go name.
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }

    /// All fields in declared order, for printing (`%v`, `%+v`).
    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    /// A method's parameters, if there is such a method.
    fn method(&self, _name: &str) -> Option<Signature> {
        None
    }

    /// Calls a method that `method` announced; the arguments are already checked.
    ///
    /// # Errors
    /// What the method reports; execution stops there.
    fn call(&self, name: &str, _args: &[Value]) -> Result<Value, FuncError> {
        Err(FuncError::new(format!("no method {name}")))
    }

    /// The map or slice behind a named map or slice type: what is ranged over, indexed, measured and printed.
    fn underlying(&self) -> Option<Value> {
        None
    }

    /// Bytes that `underlying` and `to_json` copy, where that is much.
    fn weight(&self) -> usize {
        0
    }

    /// The text of its `String()` method, if it has one.
    fn text(&self) -> Option<Str> {
        None
    }

    /// The text of a value that an action prints alone, if `String()` is a method of the pointer: fmt does
    /// not see it.
    fn addressed_text(&self) -> Option<Str> {
        None
    }

    /// Returns true if Go's `==` takes it.
    fn is_comparable(&self) -> bool {
        true
    }

    /// The JSON (and so YAML) of it.
    fn to_json(&self) -> serde_json::Value;

    /// The order in which `toJson` writes the keys of `to_json`: a struct's declared order. Empty means
    /// sorted.
    fn json_order(&self) -> &'static [&'static str] {
        &[]
    }

    /// Go's equality of two values of this type.
    fn equals(&self, _other: &dyn Host) -> bool {
        false
    }

    /// For functions that know the concrete type.
    fn as_any(&self) -> &dyn Any;
}

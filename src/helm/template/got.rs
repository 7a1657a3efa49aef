//! The value of an expression, and the node that errors point at.

use super::error::ExecError;
use super::node::{Command, Expr, Invocation, Pipe};
use super::value::Value;

/// A value with Go's knowledge of whether it came out of an `interface {}`: it decides what nil does and how
/// errors name the type.
#[derive(Clone, Default)]
pub(super) struct Got {
    pub(super) value: Value,
    pub(super) interface: bool,
}

impl Got {
    pub(super) fn concrete(value: Value) -> Got {
        Got { value, interface: false }
    }

    pub(super) fn type_name(&self) -> String {
        if self.interface { "interface {}".to_owned() } else { self.value.type_name() }
    }
}

/// The node errors point at.
#[derive(Clone, Copy)]
pub(super) enum At<'t> {
    Nothing,
    Expr(&'t Expr),
    Pipe(&'t Pipe),
    Command(&'t Command),
    Template(&'t Invocation),
}

pub(super) type Ran<T> = Result<T, Box<ExecError>>;

/// How a list of statements ended.
#[derive(PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
}

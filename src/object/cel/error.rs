//! Why a text is no expression, why an expression comes to nothing, and why what it builds is no object.
//! `Display` is what a server answers.

use std::error::Error;
use std::fmt;

/// A fault in the text of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFault {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The error there.
    pub message: String,
    /// The text of the line.
    pub excerpt: String,
}

/// The error with the line it is in and a mark below.
impl fmt::Display for TextFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TextFault { line, column, message, excerpt } = self;
        let before = column.saturating_sub(1);
        let dots: String =
            excerpt.chars().take(before).map(|c| if c.len_utf8() > 1 { '．' } else { '.' }).collect();
        let mark = if excerpt.chars().nth(before).is_some_and(|c| c.len_utf8() > 1) { '＾' } else { '^' };
        write!(f, "ERROR: <input>:{line}:{column}: {message}\n | {excerpt}\n | {dots}{mark}")
    }
}

/// Faults, each with its lines.
pub(super) fn lines(faults: &[TextFault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Why a text is not the expression that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionError {
    /// It does not compile.
    Text(Vec<TextFault>),
    /// It comes to another type than is wanted.
    Type {
        /// The type that is wanted, such as `bool`.
        wanted: &'static str,
        /// The type that it comes to.
        found: String,
    },
    /// It compiles and makes no program all the same: a constant in it has no value.
    Program {
        /// The error of the constant.
        why: String,
    },
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionError::Text(faults) => write!(f, "compilation failed: {}", lines(faults)),
            ExpressionError::Type { wanted, found } => {
                write!(f, "must evaluate to {wanted} but got {found}")
            }
            ExpressionError::Program { why } => write!(f, "program instantiation failed: {why}"),
        }
    }
}

impl Error for ExpressionError {}

/// The budget is used up: nothing more is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "validation failed due to running out of cost budget, no further validation rules will be run",
        )
    }
}

impl Error for Spent {}

/// Why an expression comes to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvaluationError {
    /// It is no expression.
    Expression(ExpressionError),
    /// It fails.
    Failed {
        /// The text of the expression.
        expression: String,
        /// The error, such as a key that is not there.
        why: String,
    },
    /// It takes more steps than one expression may take.
    Cancelled {
        /// The text of the expression.
        expression: String,
    },
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvaluationError::Expression(error) => write!(f, "compilation error: {error}"),
            EvaluationError::Failed { expression, why } => {
                write!(f, "expression '{expression}' resulted in error: {why}")
            }
            EvaluationError::Cancelled { expression } => write!(
                f,
                "expression '{expression}' resulted in error: operation cancelled: actual cost limit exceeded"
            ),
        }
    }
}

impl Error for EvaluationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            EvaluationError::Expression(error) => Some(error),
            EvaluationError::Failed { .. } | EvaluationError::Cancelled { .. } => None,
        }
    }
}

/// The reason why conditions cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConditionsError {
    /// They cost more than all conditions may cost together.
    Spent(Spent),
    /// Some come to nothing; each error once.
    Failed(Vec<EvaluationError>),
}

impl fmt::Display for ConditionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionsError::Spent(spent) => spent.fmt(f),
            ConditionsError::Failed(errors) => match errors.as_slice() {
                [one] => one.fmt(f),
                many => {
                    let all: Vec<String> = many.iter().map(ToString::to_string).collect();
                    write!(f, "[{}]", all.join(", "))
                }
            },
        }
    }
}

impl Error for ConditionsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ConditionsError::Spent(spent) => Some(spent),
            ConditionsError::Failed(errors) => errors.first().map(|error| error as &(dyn Error + 'static)),
        }
    }
}

/// Why what an expression of a mutating policy builds cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// It is no object that could be applied.
    NotAnObject {
        /// The type that it is of.
        found: String,
    },
    /// It is no list of operations.
    NotAList,
    /// An item of the list is no operation of a patch.
    NotAnOperation {
        /// The type that it is of.
        found: String,
    },
    /// The names of types do not say where they are.
    Misnamed(Vec<Misnamed>),
    /// The object has a value that JSON does not have.
    ObjectNotJson(NotJson),
    /// The `value` of an operation is one that JSON does not have.
    OperationNotJson(NotJson),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::NotAnObject { found } => {
                write!(f, "unsupported return type from ApplyConfiguration expression: {found}")
            }
            BuildError::NotAList => {
                f.write_str("type mismatch: JSONPatchType.expression should evaluate to array")
            }
            BuildError::NotAnOperation { found } => write!(
                f,
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch, got element of {found}"
            ),
            BuildError::Misnamed(wrong) => {
                let all: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                write!(f, "type mismatch: {}", all.join("\n"))
            }
            BuildError::ObjectNotJson(error) => write!(f, "invalid return type: {error}"),
            BuildError::OperationNotJson(error) => write!(
                f,
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            ),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BuildError::ObjectNotJson(error) | BuildError::OperationNotJson(error) => Some(error),
            BuildError::NotAnObject { .. }
            | BuildError::NotAList
            | BuildError::NotAnOperation { .. }
            | BuildError::Misnamed(_) => None,
        }
    }
}

/// A type whose name does not say where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misnamed {
    /// The name that it has.
    pub name: String,
    /// The name that it should have, such as `Object.spec`.
    pub expected: String,
}

impl fmt::Display for Misnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misnamed { name, expected } = self;
        write!(
            f,
            "unexpected type name \"{name}\", expected \"{expected}\", which matches field name path from root Object type"
        )
    }
}

/// A value that JSON does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotJson {
    /// A number that is infinite or not a number.
    Number,
    /// A value of a type that is no data.
    Type {
        /// The type.
        name: String,
    },
}

impl fmt::Display for NotJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotJson::Number => f.write_str("a number that is none"),
            NotJson::Type { name } => write!(f, "unsupported type {name}"),
        }
    }
}

impl Error for NotJson {}

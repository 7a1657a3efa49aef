//! `x-kubernetes-validations`: rules in CEL, compiled and type-checked against a structural schema and
//! evaluated against objects, with the texts and verdicts of a real API server and a budget of our own. Own
//! parser, checker and evaluator; the functions of Kubernetes' types come from `kube-cel`. Never panics,
//! whatever the rule. Read `rules` for a whole schema, `program` for one rule, `admission` and `conditions`
//! for those of webhooks and policies, `asserts` for those of tests, then `parse`, `check` and `eval`;
//! `structural` and `definition` for CRDs.

mod admission;
mod asserts;
mod ast;
mod authorizer;
mod authorizer_calls;
mod built;
mod check;
mod conditions;
mod convert;
mod cost;
pub mod definition;
mod error;
mod estimate;
mod estimate_calls;
mod eval;
mod failures;
mod format;
mod functions;
mod guard;
mod kind;
mod lazy;
mod lex;
mod library;
mod meter;
mod operators;
mod parse;
mod program;
#[cfg(test)]
#[path = "../random.rs"]
#[allow(dead_code, reason = "shared with the tests of opdev-object")]
mod random;
mod rules;
mod runtime;
mod shape;
mod signatures;
mod structural;
mod texts;
mod time;
mod value;

pub use admission::{
    BUDGET, CONDITIONS_BUDGET, Compiler, Evaluation, Expression, Given, Libraries, Outcome, Wanted,
};
pub use asserts::Assert;
pub use authorizer::{Asked, Authorizer, Verdict};
pub use conditions::{Conditions, check_condition};
pub use cost::expensive;
pub use error::{
    BuildError, ConditionsError, EvaluationError, ExpressionError, Misnamed, NotJson, Spent, TextFault,
};
pub use parse::is_reserved;
pub use rules::{RuleFault, Rules};
pub use structural::{structural, structural_at};

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)]
mod tests;

//! One rule: its text compiled against what its schema declares, with the errors a server gives.

use super::ast::{Expr, Node};
use super::check::Checker;
use super::error::{ExpressionError, TextFault};
use super::eval::Eval;
use super::kind::Kind;
use super::lex::Fault;
use super::library::Library;
use super::meter::Meter;
use super::parse::parse;
use super::runtime::Runtime;
use super::time;
use super::value::{Evaluated, Stop, Val};
use opdev_object::schema::Pattern;

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) expr: Expr,
    /// It names `oldSelf`.
    pub(super) uses_old: bool,
}

/// Why a text is no expression: a server's words, and what nearly was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Uncompiled {
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// The errors of a text, place by place, and suggestions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Faulty {
    pub(super) faults: Vec<TextFault>,
    pub(super) hint: Option<String>,
}

/// Compiles a text whose result has to be of the kind `wanted`.
pub(super) fn compile(
    text: &str,
    this: &Kind,
    optional_old: bool,
    wanted: &Kind,
) -> Result<Program, Uncompiled> {
    let (prefix, wrong) = if *wanted == Kind::Bool {
        ("", "cel expression must evaluate to a bool")
    } else {
        ("messageExpression ", "messageExpression must evaluate to a string")
    };
    let old = if optional_old { Kind::optional(this.clone()) } else { this.clone() };
    let scope = vec![("self".to_owned(), this.clone()), ("oldSelf".to_owned(), old)];
    let (expr, kind) = checked(text, scope, false).map_err(|Faulty { faults, hint }| Uncompiled {
        message: format!("{prefix}{}", ExpressionError::Text(faults)),
        hint,
    })?;
    if kind != *wanted {
        return Err(Uncompiled { message: wrong.to_owned(), hint: None });
    }
    let uses_old = expr.names("oldSelf");
    if let Some(text) = constant_fault(&expr) {
        let prefix = if *wanted == Kind::Bool { "program" } else { "messageExpression" };
        return Err(Uncompiled { message: format!("{prefix} instantiation failed: {text}"), hint: None });
    }
    Ok(Program { expr, uses_old })
}

/// Reads a text in which these names are known; also says what it comes to. `builds` is whether it can build
/// objects.
pub(super) fn checked(text: &str, scope: Vec<(String, Kind)>, builds: bool) -> Result<(Expr, Kind), Faulty> {
    let failed = |faults: &[Fault], hint: Option<String>| {
        let faults = faults.iter().map(|fault| placed(text, fault)).collect();
        Faulty { faults, hint }
    };
    let expr = parse(text).map_err(|faults| failed(&faults, None))?;
    let mut checker = Checker::new(scope);
    checker.builds = builds;
    let kind = checker.kind(&expr);
    if checker.faults.is_empty() {
        checker.faults.append(&mut checker.late);
        literals(&expr, &mut checker.faults);
    }
    if !checker.faults.is_empty() {
        let mut faults = std::mem::take(&mut checker.faults);
        faults.sort_by_key(|fault| fault.at);
        faults.truncate(100);
        let hint = (!checker.hints.is_empty()).then(|| checker.hints.join("; "));
        return Err(failed(&faults, hint));
    }
    Ok((expr, kind))
}

/// A fault with its line and column.
fn placed(text: &str, fault: &Fault) -> TextFault {
    let (mut line, mut column) = (1, 0);
    for c in text.chars().take(fault.at) {
        if c == '\n' {
            line += 1;
            column = 0;
        } else {
            column += 1;
        }
    }
    let excerpt = text.split('\n').nth(line - 1).unwrap_or_default().replace('\t', " ");
    TextFault { line, column: column + 1, message: fault.message.clone(), excerpt }
}

/// Literals that can never be read.
fn literals(expr: &Expr, faults: &mut Vec<Fault>) {
    expr.each(&mut |part| {
        let Node::Call { target, function, args } = &part.node else { return };
        let argument = match (function.as_str(), target, args.as_slice()) {
            // Called as a function, it is read with the program.
            ("matches", Some(_), [pattern]) => Some(pattern),
            ("timestamp" | "duration", None, [text]) => Some(text),
            _ => None,
        };
        let Some(Expr { at, node: Node::Text(text) }) = argument else { return };
        let fits = match function.as_str() {
            "matches" => Pattern::new(text).regex().is_ok(),
            "timestamp" => time::timestamp(text).is_some_and(time::in_range),
            _ => time::duration(text).is_some(),
        };
        if !fits {
            faults.push(Fault::new(*at, format!("invalid {function} argument")));
        }
    });
}

/// A conversion of a literal that fails every time.
pub(super) fn constant_fault(expr: &Expr) -> Option<String> {
    const CONVERSIONS: [&str; 8] =
        ["bool", "bytes", "double", "duration", "int", "string", "timestamp", "uint"];
    let mut found = None;
    expr.each(&mut |part| {
        let Node::Call { target, function, args } = &part.node else { return };
        let literal = |arg: &Expr| {
            matches!(
                arg.node,
                Node::Bool(_)
                    | Node::Int(_)
                    | Node::Uint(_)
                    | Node::Double(_)
                    | Node::Text(_)
                    | Node::Bytes(_)
            )
        };
        let fault = match (target, args.as_slice()) {
            (None, [arg]) if CONVERSIONS.contains(&function.as_str()) && literal(arg) => {
                let mut meter = Meter::new(10_000);
                let library = Library::default();
                match (Eval {
                    scope: Vec::new(),
                    runtime: Runtime { meter: &mut meter, library: &library, authorizer: None },
                    variables: None,
                })
                .eval(part)
                {
                    Err(Stop::Failed(text)) => Some(text),
                    _ => None,
                }
            }
            (Some(_), [Expr { node: Node::Text(pattern), .. }, ..])
            | (None, [_, Expr { node: Node::Text(pattern), .. }])
                if match target {
                    Some(_) => matches!(function.as_str(), "find" | "findAll"),
                    None => function == "matches",
                } =>
            {
                Pattern::new(pattern).regex().err().map(|error| format!("error parsing regexp: {error}"))
            }
            _ => None,
        };
        if found.is_none() {
            found = fault;
        }
    });
    found
}

impl Program {
    /// Evaluates it; `meter` counts what that costs.
    pub(super) fn run(
        &self,
        this: &Val,
        old: Option<&Val>,
        meter: &mut Meter,
        library: &Library,
    ) -> Evaluated {
        let mut scope = vec![("self", this.clone())];
        scope.extend(old.map(|old| ("oldSelf", old.clone())));
        let runtime = Runtime { meter, library, authorizer: None };
        Eval { scope, runtime, variables: None }.eval(&self.expr)
    }
}

//! Calls of functions and methods: arguments evaluated, counted and checked against parameter types, as Go
//! does before a call. What the functions do is in `funcs`.

use super::budget::{DEEP, weigh};
use super::error::FuncError;
use super::exec::Exec;
use super::funcs::cost::cost;
use super::funcs::growth::growth;
use super::funcs::{Call, Function, Run};
use super::got::{At, Got, Ran};
use super::host::{Signature, Ty};
use super::node::{Expr, ExprKind};
use super::value::{MapType, Value};

impl<'t> Exec<'t, '_, '_> {
    pub(super) fn function(
        &mut self,
        dot: &Got,
        function: &'static Function,
        node: At<'t>,
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Value> {
        match function.run {
            Run::And | Run::Or => {
                self.count(function.name, function.signature, args.len(), last.is_some())?;
                let stop = matches!(function.run, Run::Or);
                let mut value = Value::Nil;
                for arg in args {
                    value = self.argument(dot, Ty::Raw, arg)?;
                    if value.truth() == stop {
                        return Ok(value);
                    }
                }
                Ok(last.unwrap_or(value))
            }
            Run::Len => {
                self.count(function.name, function.signature, args.len(), last.is_some())?;
                let got = match (args.first(), last) {
                    (Some(arg), _) => self.raw(dot, arg)?,
                    (None, last) => Got::concrete(last.unwrap_or_default()),
                };
                match super::funcs::builtins::length(&got.value, got.interface) {
                    Ok(n) => Ok(n),
                    Err(error) => {
                        self.at = node;
                        self.fail_call("len", error)
                    }
                }
            }
            Run::Call => {
                let name = args.first().map(ToString::to_string);
                let values = self.arguments(dot, function.name, function.signature, args, last)?;
                // An argument that came through the pipe has no text of its own.
                let name = name.unwrap_or_else(|| match &values[0] {
                    Value::Str(text) => text.to_string(),
                    value => format!("<{} Value>", value.type_name()),
                });
                let cause = match &values[0] {
                    Value::Nil => "call of nil".to_owned(),
                    value => format!("non-function {name} of type {}", value.type_name()),
                };
                self.at = node;
                self.fail_call("call", cause.into())
            }
            Run::Environment => {
                let args = self.arguments(dot, function.name, function.signature, args, last)?;
                match self.context.outside().call(function.name, &args) {
                    Ok(value) => Ok(value),
                    Err(error) => {
                        self.at = node;
                        self.fail_call(function.name, error)
                    }
                }
            }
            Run::Plain(run) => {
                let args = self.arguments(dot, function.name, function.signature, args, last)?;
                let outer = self.context.budget.begin();
                if let Err(why) = self.admit(function.name, &args) {
                    self.at = node;
                    return self.fail_call(function.name, why.into());
                }
                let mut call = Call { set: self.set, context: &mut *self.context };
                let made = run(&mut call, &args).and_then(|value| {
                    self.context.budget.ends(outer, &value).map_err(FuncError::from)?;
                    Ok(value)
                });
                made.or_else(|error| {
                    self.at = node;
                    self.fail_call(function.name, error)
                })
            }
        }
    }

    /// Charges a call before it is made; why not to make it, if so.
    fn admit(&mut self, name: &str, args: &[Value]) -> Result<(), &'static str> {
        if reads_all(name)
            && !(reads_lists(name) && args.last().is_some_and(|v| matches!(v, Value::Map(_))))
            && !(name.ends_with("ithout") && matches!(args.first(), Some(Value::Map(_))))
        {
            let mut bytes = 0_usize;
            for arg in args {
                match weigh(arg) {
                    Ok(weight) => bytes = bytes.saturating_add(weight),
                    // Go's JSON notices a value that holds itself; so does ours.
                    Err(DEEP) if is_json(name) => {}
                    Err(why) => return Err(why),
                }
            }
            if bytes > WORTH_CHARGING {
                self.context.budget.makes(bytes.saturating_mul(written(name)))?;
            }
        }
        self.context.budget.makes(growth(name, args))?;
        self.context.charge(cost(name, args))
    }

    fn count(&self, name: &str, signature: Signature, given: usize, piped: bool) -> Ran<()> {
        let total = given + usize::from(piped);
        let want = signature.fixed.len();
        if signature.rest.is_some() {
            if total < want {
                return self
                    .fail(format!("wrong number of args for {name}: want at least {want} got {given}"));
            }
        } else if total != want {
            return self.fail(format!("wrong number of args for {name}: want {want} got {total}"));
        }
        Ok(())
    }

    /// The arguments of a call, ready to pass.
    pub(super) fn arguments(
        &mut self,
        dot: &Got,
        name: &str,
        signature: Signature,
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Vec<Value>> {
        self.count(name, signature, args.len(), last.is_some())?;
        let ty = |i: usize| signature.fixed.get(i).copied().or(signature.rest).unwrap_or(Ty::Any);
        let mut values = Vec::with_capacity(args.len() + usize::from(last.is_some()));
        for (i, arg) in args.iter().enumerate() {
            values.push(self.argument(dot, ty(i), arg)?);
        }
        if let Some(last) = last {
            values.push(self.check(Got::concrete(last), ty(args.len()))?);
        }
        Ok(values)
    }

    /// An argument of a wanted type.
    fn argument(&mut self, dot: &Got, ty: Ty, arg: &'t Expr) -> Ran<Value> {
        self.at = At::Expr(arg);
        match &arg.kind {
            ExprKind::Nil => {
                if can_be_nil(ty) {
                    return Ok(Value::Nil);
                }
                self.fail(format!("cannot assign nil to {}", ty.name()))
            }
            ExprKind::Dot
            | ExprKind::Field(_)
            | ExprKind::Variable { .. }
            | ExprKind::Pipe(_)
            | ExprKind::Function(_)
            | ExprKind::Chain(..) => {
                let got = self.operand(dot, arg)?;
                self.check(got, ty)
            }
            ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Str(..) => self.literal(ty, arg),
        }
    }

    /// A literal where a type is wanted.
    fn literal(&self, ty: Ty, arg: &Expr) -> Ran<Value> {
        match (ty, &arg.kind) {
            (Ty::Any | Ty::Raw | Ty::Bool, ExprKind::Bool(b)) => Ok(Value::Bool(*b)),
            (Ty::Any | Ty::Raw | Ty::Str, ExprKind::Str(_, value)) => Ok(Value::Str(value.clone())),
            (Ty::Any | Ty::Raw, ExprKind::Number(number)) => self.number(number),
            (Ty::Int, ExprKind::Number(number)) if number.int.is_some() => {
                Ok(Value::Int(number.int.unwrap_or_default()))
            }
            (Ty::Float, ExprKind::Number(number)) if number.float.is_some() => {
                Ok(Value::Float(number.float.unwrap_or_default()))
            }
            (Ty::Uint32, ExprKind::Number(number)) if number.uint.is_some() => {
                Ok(Value::Uint(super::value::UintKind::U64, number.uint.unwrap_or_default()))
            }
            (Ty::Uint32, _) => self.fail(format!("expected unsigned integer; found {arg}")),
            (Ty::Bool, _) => self.fail(format!("expected bool; found {arg}")),
            (Ty::Str, _) => self.fail(format!("expected string; found {arg}")),
            (Ty::Int, _) => self.fail(format!("expected integer; found {arg}")),
            (Ty::Float, _) => self.fail(format!("expected float; found {arg}")),
            _ => self.fail(format!("can't handle {arg} for arg of type {}", ty.name())),
        }
    }

    /// An argument as it is, literals included.
    fn raw(&mut self, dot: &Got, arg: &'t Expr) -> Ran<Got> {
        match &arg.kind {
            ExprKind::Nil => {
                self.at = At::Expr(arg);
                Ok(Got::default())
            }
            ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Str(..) => {
                self.at = At::Expr(arg);
                self.literal(Ty::Raw, arg).map(Got::concrete)
            }
            _ => self.operand(dot, arg),
        }
    }

    /// The value of an operand that is not a literal.
    pub(super) fn operand(&mut self, dot: &Got, arg: &'t Expr) -> Ran<Got> {
        self.at = At::Expr(arg);
        match &arg.kind {
            ExprKind::Dot => Ok(dot.clone()),
            ExprKind::Field(fields) => self.fields(dot, dot.clone(), arg, fields, &[], None),
            ExprKind::Variable { .. } => self.variable(dot, arg, &[], None),
            ExprKind::Pipe(pipe) => self.pipeline(dot, pipe).map(Got::concrete),
            ExprKind::Function(function) => {
                self.function(dot, function, At::Expr(arg), &[], None).map(Got::concrete)
            }
            ExprKind::Chain(node, fields) => self.chain(dot, arg, node, fields, &[], None),
            ExprKind::Nil | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::Str(..) => {
                self.literal(Ty::Any, arg).map(Got::concrete)
            }
        }
    }

    /// Go's check that a value fits a parameter.
    fn check(&self, got: Got, ty: Ty) -> Ran<Value> {
        if got.value.is_nil() && !got.interface {
            if can_be_nil(ty) {
                return Ok(Value::Nil);
            }
            return self.fail(format!("invalid value; expected {}", ty.name()));
        }
        if fits(&got.value, ty) {
            return Ok(match got.value {
                Value::Map(map) if ty == Ty::Dict => Value::Map(map.with_type(MapType::Any)),
                value => value,
            });
        }
        let found = if got.value.is_nil() { "interface {}".to_owned() } else { got.value.type_name() };
        self.fail(format!("wrong type for value; expected {}; got {found}", ty.name()))
    }
}

fn can_be_nil(ty: Ty) -> bool {
    match ty {
        Ty::Any | Ty::Raw | Ty::Dict | Ty::Strings | Ty::List => true,
        Ty::Host(name) => name.starts_with('*'),
        Ty::Bool | Ty::Int | Ty::Float | Ty::Str | Ty::Time | Ty::Uint32 => false,
    }
}

fn fits(value: &Value, ty: Ty) -> bool {
    match (ty, value) {
        (Ty::Any | Ty::Raw, _)
        | (Ty::Bool, Value::Bool(_))
        | (Ty::Int, Value::Int(_))
        | (Ty::Float, Value::Float(_))
        | (Ty::Str, Value::Str(_)) => true,
        (Ty::Dict, Value::Map(map)) => map.holds_any(),
        (Ty::List, Value::List(list)) => list.elem() == super::value::Elem::Any,
        (Ty::Strings, Value::List(list)) => list.elem() == super::value::Elem::Str,
        (Ty::Time, Value::Host(host)) => host.type_name() == "time.Time",
        (Ty::Host(name), Value::Host(host)) => host.type_name() == name,
        _ => false,
    }
}

/// Returns true if a function writes JSON, or YAML through JSON.
fn is_json(function: &str) -> bool {
    matches!(
        function,
        "toYaml"
            | "mustToYaml"
            | "toJson"
            | "mustToJson"
            | "toPrettyJson"
            | "mustToPrettyJson"
            | "toRawJson"
            | "mustToRawJson"
    )
}

/// A smaller result is charged once it is written.
const WORTH_CHARGING: usize = 4096;

/// How many bytes a function makes of one of a value, at most: those of its escapes.
fn written(function: &str) -> usize {
    match function {
        "html" | "js" => 6,
        _ if is_json(function) => 6,
        "quote" | "toYamlPretty" | "toToml" | "urlquery" | "deepCopy" | "mustDeepCopy" => 4,
        _ => 1,
    }
}

/// Returns true if a function reads its arguments to the last leaf, so that one that holds itself would never
/// end. Functions that look at the type of their last argument first.
fn reads_lists(function: &str) -> bool {
    matches!(function, "uniq" | "mustUniq" | "has" | "mustHas")
}

fn reads_all(function: &str) -> bool {
    is_json(function)
        || matches!(
            function,
            "toYamlPretty"
                | "toToml"
                | "print"
                | "println"
                | "printf"
                | "quote"
                | "squote"
                | "cat"
                | "toString"
                | "toStrings"
                | "join"
                | "deepCopy"
                | "mustDeepCopy"
                | "deepEqual"
                | "merge"
                | "mustMerge"
                | "mergeOverwrite"
                | "mustMergeOverwrite"
                | "uniq"
                | "mustUniq"
                | "has"
                | "mustHas"
                | "without"
                | "mustWithout"
                | "html"
                | "js"
                | "urlquery"
                | "sortAlpha"
                | "urlJoin"
        )
}

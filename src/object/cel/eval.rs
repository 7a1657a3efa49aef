//! Evaluates an expression against values, and counts what that costs as a server does. Errors have a real
//! server's words. Never panics, and never takes long: every step and every byte that is made is charged for.

use super::ast::{Expr, Macro, MacroKind, MessageField, Node};
use super::authorizer_calls;
use super::check::type_named;
use super::failures;
use super::functions;
use super::lazy::Lazy;
use super::meter;
use super::operators;
use super::runtime::Runtime;
use super::shape::reserved;
use super::signatures::signatures;
use super::value::{Evaluated, Key, Stop, Val, failed, no_overload};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A field of an object or a key of a map.
fn named<'v>(map: &'v BTreeMap<Key, Val>, field: &str) -> Option<&'v Val> {
    map.get(&Key::Text(field.into())).or_else(|| map.get(&Key::Text(reserved(field)?.into())))
}

/// One evaluation.
pub(super) struct Eval<'a> {
    pub(super) scope: Vec<(&'a str, Val)>,
    pub(super) runtime: Runtime<'a>,
    /// The `variables` of a policy.
    pub(super) variables: Option<&'a Lazy<'a>>,
}

impl<'a> Eval<'a> {
    /// Takes steps; stops the evaluation where none is left.
    pub(super) fn charge(&mut self, steps: u64) -> Result<(), Stop> {
        self.runtime.charge(steps)
    }

    /// Pays what a server counts; stops the evaluation where that is more than one may cost.
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        self.runtime.spend(cost)
    }

    /// Evaluates what is chosen or is an index: a way that is read there begins for free.
    fn part(&mut self, expr: &'a Expr) -> Evaluated {
        let value = self.eval(expr)?;
        if meter::is_read(expr) {
            self.runtime.meter.cost = self.runtime.meter.cost.saturating_sub(1);
        }
        Ok(value)
    }

    fn variable(&self, name: &str) -> Option<&Val> {
        self.scope.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The `variables` of a policy, where that is what is named.
    fn variables(&self, operand: &Expr) -> Option<&'a Lazy<'a>> {
        let named = matches!(&operand.node, Node::Name(name) if name == "variables");
        self.variables.filter(|_| named && self.variable("variables").is_none())
    }

    pub(super) fn eval(&mut self, expr: &'a Expr) -> Evaluated {
        self.charge(1)?;
        Ok(match &expr.node {
            Node::Null => Val::Null,
            Node::Bool(truth) => Val::Bool(*truth),
            Node::Int(number) => Val::Int(*number),
            Node::Uint(number) => Val::Uint(*number),
            Node::Double(float) => Val::Double(*float),
            Node::Text(text) => Val::text(text),
            Node::Bytes(bytes) => Val::Bytes(bytes.as_slice().into()),
            Node::Name(name) => match self.variable(name) {
                Some(value) => {
                    let value = value.clone();
                    self.spend(1)?;
                    value
                }
                None => match type_named(name) {
                    Some(kind) => Val::Type(Arc::new(kind)),
                    None => return failed(format!("no such attribute(s): {name}")),
                },
            },
            Node::Select { operand, field } => return self.select(expr, operand, field),
            Node::Has { operand, field } => return self.has(operand, field),
            Node::OptSelect { operand, field } => return self.opt_select(operand, field),
            Node::Call { target, function, args } => {
                let made = meter::is_constant(expr);
                return self.call(target.as_deref(), function, args, made);
            }
            Node::Logic { or, terms } => return self.logic(*or, terms),
            Node::Cond { test, yes, no } => {
                return if self.eval(test)?.truth()? { self.part(yes) } else { self.part(no) };
            }
            Node::List(items) => {
                self.spend(if meter::is_constant(expr) { 0 } else { meter::LIST })?;
                return self.list(items);
            }
            Node::Map(entries) => {
                self.spend(if meter::is_constant(expr) { 0 } else { meter::MAP })?;
                return self.map(entries);
            }
            Node::Message { name, fields } => return self.message(name, fields),
            Node::Macro(inner) => return self.fold(inner),
        })
    }

    fn select(&mut self, expr: &'a Expr, operand: &'a Expr, field: &str) -> Evaluated {
        if let Some(name) = expr.qualified()
            && self.variable(name.split('.').next().unwrap_or_default()).is_none()
            && let Some(kind) = type_named(&name)
        {
            return Ok(Val::Type(Arc::new(kind)));
        }
        if let Some(variables) = self.variables(operand) {
            self.spend(2)?;
            return variables.get(field);
        }
        let value = self.eval(operand)?;
        // The authorizer's variable has a name of two parts.
        let steps = u64::from(!matches!(value, Val::Check(_) | Val::Optional(None)));
        self.spend(meter::begins(operand) + steps)?;
        match value {
            Val::Map(map) => match named(&map, field) {
                Some(value) => Ok(value.clone()),
                None => failed(format!("no such key: {field}")),
            },
            Val::Message(_, fields) => match fields.get(field) {
                Some(value) => Ok(value.clone()),
                None => failed(format!("no such key: {field}")),
            },
            Val::Optional(inner) => self.opt_field(inner.as_deref(), field),
            Val::Check(check) => authorizer_calls::select(&self.runtime, &check, field),
            other => failures::no_key(&other, field),
        }
    }

    fn opt_field(&mut self, value: Option<&Val>, field: &str) -> Evaluated {
        match value {
            None => Ok(Val::Optional(None)),
            Some(Val::Map(map)) => Ok(match named(map, field) {
                Some(found @ Val::Optional(_)) => found.clone(),
                Some(found) => Val::some(found.clone()),
                None => Val::Optional(None),
            }),
            Some(Val::Optional(inner)) => self.opt_field(inner.as_deref(), field),
            Some(list @ Val::List(..)) => failures::no_key(list, field),
            Some(_) => Ok(Val::Optional(None)),
        }
    }

    fn opt_select(&mut self, operand: &'a Expr, field: &str) -> Evaluated {
        if let Some(variables) = self.variables(operand) {
            self.spend(2)?;
            return variables.get(field).map(Val::some);
        }
        let value = self.eval(operand)?;
        self.spend(meter::begins(operand))?;
        let found = self.opt_field(Some(&value), field)?;
        self.spend(u64::from(!matches!(found, Val::Optional(None))))?;
        Ok(found)
    }

    fn has(&mut self, operand: &'a Expr, field: &str) -> Evaluated {
        if self.variables(operand).is_some() {
            self.spend(1)?;
            return Ok(Val::Bool(true));
        }
        let value = self.eval(operand)?;
        self.spend(meter::begins(operand))?;
        match &value {
            Val::Map(map) => Ok(Val::Bool(named(map, field).is_some())),
            Val::Message(_, fields) => Ok(Val::Bool(fields.contains_key(field))),
            Val::Optional(None) => Ok(Val::Bool(false)),
            Val::Optional(Some(inner)) => match &**inner {
                Val::Map(map) => Ok(Val::Bool(named(map, field).is_some())),
                _ => no_overload(),
            },
            Val::List(..) => failures::no_key(&value, field),
            _ => Ok(Val::Bool(false)),
        }
    }

    /// `||` and `&&`: an error does not count where another term decides.
    fn logic(&mut self, or: bool, terms: &'a [Expr]) -> Evaluated {
        let mut first = None;
        for term in terms {
            match self.eval(term).and_then(|value| value.truth()) {
                Ok(truth) if truth == or => return Ok(Val::Bool(or)),
                Ok(_) => {}
                Err(Stop::Budget) => return Err(Stop::Budget),
                Err(stop) => _ = first.get_or_insert(stop),
            }
        }
        first.map_or(Ok(Val::Bool(!or)), Err)
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Evaluated {
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            match (self.eval(item)?, optional) {
                (Val::Optional(None), true) => {}
                (Val::Optional(Some(value)), true) => list.push((*value).clone()),
                (value, _) => list.push(value),
            }
        }
        Ok(Val::list(list))
    }

    fn message(&mut self, name: &str, fields: &'a [MessageField]) -> Evaluated {
        self.spend(meter::MESSAGE)?;
        let mut built = BTreeMap::new();
        for field in fields {
            let value = match (self.eval(&field.value)?, field.optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(value)), true) => (*value).clone(),
                (value, _) => value,
            };
            built.insert(field.name.clone(), value);
        }
        Ok(Val::Message(name.into(), Arc::new(built)))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Evaluated {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            let Some(key) = key.key() else {
                return failed(format!("unsupported key type: {}", key.type_name()));
            };
            let value = match (self.eval(value)?, optional) {
                (Val::Optional(None), true) => continue,
                (Val::Optional(Some(value)), true) => (*value).clone(),
                (value, _) => value,
            };
            map.insert(key, value);
        }
        Ok(Val::Map(Arc::new(map)))
    }

    fn index(&mut self, function: &str, of: &'a Expr, index: &'a Expr) -> Evaluated {
        let values = [self.eval(of)?, self.part(index)?];
        self.spend(meter::begins(of))?;
        let found = operators::apply(&mut self.runtime, function, &values)?;
        let missing = function == "_[?_]" && matches!(found, Val::Optional(None));
        self.spend(u64::from(!missing))?;
        Ok(found)
    }

    /// Calls a function; `made` is whether that is done once, where it is written, and costs nothing.
    fn call(
        &mut self,
        target: Option<&'a Expr>,
        function: &'a str,
        args: &'a [Expr],
        made: bool,
    ) -> Evaluated {
        if let (None, "_[_]" | "_[?_]", [of, index]) = (target, function, args) {
            return self.index(function, of, index);
        }
        let looked_up = meter::looked_up(function, args);
        if looked_up == Some(true) {
            return Ok(Val::Bool(false));
        }
        let qualified = target.and_then(Expr::qualified).map(|prefix| format!("{prefix}.{function}"));
        if let Some(name) = qualified.filter(|name| signatures(name).is_some()) {
            let args = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
            let result = functions::call(&mut self.runtime, &name, &args);
            let result = result.map_err(|stop| failures::of_call(&name, &args, stop));
            self.spend(meter::call(&name, &args, result.as_ref().ok()))?;
            return result;
        }
        if let (Some(target), "or" | "orValue", [other]) = (target, function, args) {
            let value = self.eval(target)?;
            return match (value, function) {
                (Val::Optional(Some(inner)), "orValue") => Ok((*inner).clone()),
                (value @ Val::Optional(Some(_)), _) => Ok(value),
                (Val::Optional(None), _) => self.eval(other),
                _ => no_overload(),
            };
        }
        let mut values = Vec::with_capacity(args.len() + 1);
        for part in target.into_iter().chain(args) {
            values.push(self.eval(part)?);
        }
        let result = if function.starts_with(['_', '@', '!', '-']) {
            operators::apply(&mut self.runtime, function, &values)
        } else {
            functions::call(&mut self.runtime, function, &values)
        };
        let result = result.map_err(|stop| failures::of_call(function, &values, stop));
        if function == "matches" && target.is_none() {
            // A server knows the cost of the method only.
            self.spend(1)?;
        } else if !made && looked_up.is_none() {
            self.spend(meter::call(function, &values, result.as_ref().ok()))?;
        }
        result
    }

    /// The steps of a macro: one or two values each.
    fn steps(&mut self, range: &Val, two: bool) -> Result<Vec<(Val, Option<Val>)>, Stop> {
        Ok(match range {
            Val::List(items, _) if two => {
                items.iter().enumerate().map(|(i, v)| (Val::Int(i as i64), Some(v.clone()))).collect()
            }
            Val::List(items, _) => items.iter().map(|v| (v.clone(), None)).collect(),
            Val::Map(map) => map.iter().map(|(k, v)| (k.clone().into(), two.then(|| v.clone()))).collect(),
            other => return failures::no_range(other),
        })
    }

    fn with<R>(&mut self, inner: &'a Macro, step: (Val, Option<Val>), run: impl FnOnce(&mut Self) -> R) -> R {
        let depth = self.scope.len();
        self.scope.push((&inner.first, step.0));
        if let (Some(name), Some(value)) = (&inner.second, step.1) {
            self.scope.push((name, value));
        }
        let result = run(self);
        self.scope.truncate(depth);
        result
    }

    fn fold(&mut self, inner: &'a Macro) -> Evaluated {
        let before = self.runtime.meter.cost;
        let range = self.eval(&inner.range)?;
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            let Val::Optional(value) = range else { return no_overload() };
            let Some(value) = value else {
                // It is asked whether there is a value, and none is made where none is meant.
                self.spend(2)?;
                return Ok(Val::Optional(None));
            };
            // It is asked whether there is a value; which is read once more where it is named.
            let again = if inner.body.names(&inner.first) { self.runtime.meter.cost - before + 1 } else { 0 };
            self.spend(again + 1 + u64::from(inner.kind == MacroKind::OptMap))?;
            let result = self.with(inner, ((*value).clone(), None), |eval| eval.eval(&inner.body))?;
            return Ok(if inner.kind == MacroKind::OptMap { Val::some(result) } else { result });
        }
        let steps = self.steps(&range, inner.second.is_some())?;
        self.charge(steps.len() as u64)?;
        // The result is read at the end; that of `exists_one` is compared too.
        self.spend(if inner.kind == MacroKind::ExistsOne { 2 } else { 1 })?;
        match inner.kind {
            MacroKind::All | MacroKind::Exists => self.quantified(inner, steps),
            MacroKind::ExistsOne => {
                let mut count = 0;
                for step in steps {
                    let found = self.with(inner, step, |eval| eval.eval(&inner.body))?.truth()?;
                    self.spend(if found { 2 } else { 0 })?;
                    count += i32::from(found);
                }
                Ok(Val::Bool(count == 1))
            }
            MacroKind::TransformMap | MacroKind::TransformMapEntry => self.transform_map(inner, steps),
            MacroKind::SortBy => self.sort_by(inner, &range, steps),
            MacroKind::Map
            | MacroKind::Filter
            | MacroKind::TransformList
            | MacroKind::OptMap
            | MacroKind::OptFlatMap => self.listed(inner, steps),
        }
    }

    fn quantified(&mut self, inner: &'a Macro, steps: Vec<(Val, Option<Val>)>) -> Evaluated {
        let decides = inner.kind == MacroKind::Exists;
        // The condition to go on is asked before each item.
        let going_on = if decides { 3 } else { 2 };
        let (mut first, mut left) = (None, steps.len());
        for step in steps {
            left -= 1;
            self.spend(going_on + 1)?;
            match self.with(inner, step, |eval| eval.eval(&inner.body)).and_then(|value| value.truth()) {
                Ok(truth) if truth == decides => {
                    self.spend(if left > 0 { going_on } else { 0 })?;
                    return Ok(Val::Bool(decides));
                }
                Ok(_) => {}
                Err(Stop::Budget) => return Err(Stop::Budget),
                Err(stop) => _ = first.get_or_insert(stop),
            }
        }
        first.map_or(Ok(Val::Bool(!decides)), Err)
    }

    /// The cost of adding an item to the list so far.
    fn added(&self, inner: &Macro) -> u64 {
        if meter::is_constant(&inner.body) { 2 } else { meter::LIST + 2 }
    }

    fn listed(&mut self, inner: &'a Macro, steps: Vec<(Val, Option<Val>)>) -> Evaluated {
        let mut list = Vec::new();
        let added = self.added(inner);
        for step in steps {
            let item = step.0.clone();
            let made = self.with(inner, step, |eval| -> Result<Option<Val>, Stop> {
                if let Some(filter) = &inner.filter
                    && !eval.eval(filter)?.truth()?
                {
                    return Ok(None);
                }
                let body = eval.eval(&inner.body)?;
                if inner.kind == MacroKind::Filter {
                    let kept = body.truth()?;
                    // The list so far, one of the item, and both together.
                    eval.spend(if kept { meter::LIST + 3 } else { 0 })?;
                    return Ok(kept.then_some(item));
                }
                eval.spend(added)?;
                Ok(Some(body))
            })?;
            list.extend(made);
        }
        Ok(Val::list(list))
    }

    fn transform_map(&mut self, inner: &'a Macro, steps: Vec<(Val, Option<Val>)>) -> Evaluated {
        let mut map: BTreeMap<Key, Val> = BTreeMap::new();
        // The map so far, the key, and both together.
        let added = if inner.kind == MacroKind::TransformMap { 3 } else { 2 };
        for step in steps {
            let Some(key) = step.0.key() else { return no_overload() };
            let made = self.with(inner, step, |eval| -> Result<Option<Val>, Stop> {
                if let Some(filter) = &inner.filter
                    && !eval.eval(filter)?.truth()?
                {
                    return Ok(None);
                }
                eval.spend(added)?;
                eval.eval(&inner.body).map(Some)
            })?;
            let Some(made) = made else { continue };
            let entries = match (inner.kind, made) {
                (MacroKind::TransformMapEntry, Val::Map(entries)) => entries,
                (MacroKind::TransformMapEntry, _) => return no_overload(),
                (_, value) => Arc::new(BTreeMap::from([(key, value)])),
            };
            self.charge(entries.len() as u64)?;
            for (key, value) in entries.iter() {
                if map.insert(key.clone(), value.clone()).is_some() {
                    return failed(format!("insert failed: key {key} already exists"));
                }
            }
        }
        Ok(Val::Map(Arc::new(map)))
    }

    fn sort_by(&mut self, inner: &'a Macro, range: &Val, steps: Vec<(Val, Option<Val>)>) -> Evaluated {
        let Val::List(items, _) = range else { return no_overload() };
        let mut keys = Vec::with_capacity(items.len());
        let added = self.added(inner);
        for step in steps {
            keys.push(self.with(inner, step, |eval| eval.eval(&inner.body))?);
            self.spend(added)?;
        }
        // The list is read for itself and for its keys.
        self.spend(2 + meter::compared(&keys))?;
        let mut pairs: Vec<(Val, Val)> = keys.into_iter().zip(items.iter().cloned()).collect();
        self.charge(pairs.len() as u64 * 8)?;
        functions::sort_pairs(&mut pairs)?;
        Ok(Val::list(pairs.into_iter().map(|(_, item)| item).collect()))
    }
}

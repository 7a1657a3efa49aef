//! Executes trees: walks statements, evaluates pipelines and field chains, keeps the place for errors.
//! Follows Go's rules for nil, interfaces and variables. Calls and the checks of arguments are in `call`.

use super::budget::weigh;
use super::context::{Context, Mark};
use super::error::{ExecError, Frame, FuncError};
use super::got::{At, Flow, Got, Ran};
use super::host::{Signature, Ty};
use super::node::{Branch, Command, Expr, ExprKind, Invocation, Node, Number, Pipe, Tree};
use super::print;
use super::reads::ReadPlace;
use super::scope::UNDECLARED;
use super::set::{TPL, TemplateSet};
use super::text::{Str, kept_bytes};
use super::value::{Elem, Map, MapType, Value};
use std::sync::Arc;

/// Nested executions (includes, templates, `tpl`) before we stop; Go's own limit is 100,000 with a growing
/// stack.
const MAX_DEPTH: u32 = 4_000;

/// Executes the template of that name.
pub(super) fn execute(
    set: &TemplateSet,
    name: &[u8],
    data: Value,
    context: &mut Context<'_>,
) -> Result<Vec<u8>, ExecError> {
    let Some(tree) = set.called(name, context) else {
        let shown = opdev_object::go::quote::quote_bytes(name);
        return Err(ExecError::plain(format!(
            "template: no template {shown} associated with template \"gotpl\""
        )));
    };
    run(set, tree, data, context)
}

/// Executes a tree of the set, or one that can see the set.
pub(super) fn run(
    set: &TemplateSet,
    tree: &Tree,
    data: Value,
    context: &mut Context<'_>,
) -> Result<Vec<u8>, ExecError> {
    if context.depth >= MAX_DEPTH {
        return Err(ExecError::plain("exceeded maximum template depth (100000)"));
    }
    let mut exec = Exec {
        set,
        context,
        tree,
        out: Vec::new(),
        vars: Vec::new(),
        base: 0,
        at: At::Nothing,
        marks: false,
    };
    exec.marks = exec.context.depth == 0 && exec.context.marks.is_some();
    let depth = exec.context.depth;
    let ran = exec.body(tree, &Got::concrete(data));
    exec.context.depth = depth;
    ran.map_err(|e| *e)?;
    if depth == 0
        && let Err(why) = exec.context.budget.keeps(exec.out.len())
    {
        return Err(ExecError::plain(why));
    }
    Ok(exec.out)
}

/// One execution: its output, variables and place.
pub(super) struct Exec<'t, 'c, 'e> {
    pub(super) set: &'t TemplateSet,
    pub(super) context: &'c mut Context<'e>,
    tree: &'t Tree,
    out: Vec<u8>,
    vars: Vec<Got>,
    base: usize,
    pub(super) at: At<'t>,
    /// True if this is the outermost execution and its output is to be traced.
    marks: bool,
}

impl<'t> Exec<'t, '_, '_> {
    /// An error at the present place.
    pub(super) fn fail<T>(&self, cause: impl Into<String>) -> Ran<T> {
        let frame = self.frame(String::new());
        Err(Box::new(ExecError { frames: frame.into_iter().collect(), cause: cause.into(), failed: None }))
    }

    /// An error a function reported at the present place.
    pub(super) fn fail_call<T>(&self, name: &str, error: FuncError) -> Ran<T> {
        let mut then = format!("error calling {name}: ");
        let failed = error.failed.then(|| error.text.clone());
        let Some(inner) = error.inner else {
            let frame = self.frame(then);
            return Err(Box::new(ExecError {
                frames: frame.into_iter().collect(),
                cause: error.text,
                failed,
            }));
        };
        then.push_str(&error.text);
        let mut inner = inner;
        if let Some(frame) = self.frame(then) {
            inner.frames.insert(0, frame);
        }
        Err(inner)
    }

    fn frame(&self, then: String) -> Option<Frame> {
        let (pos, expression) = match self.at {
            At::Nothing => return None,
            At::Expr(e) => (e.pos, e.to_string()),
            At::Pipe(p) => (p.pos, p.to_string()),
            At::Command(c) => (c.pos, c.to_string()),
            At::Template(t) => (t.pos, t.to_string()),
        };
        let (line, column) = self.line_and_column(pos);
        Some(Frame {
            file: self.tree.source.name.to_string(),
            line,
            column,
            executing: self.tree.name.to_string(),
            expression,
            then,
        })
    }

    /// The line of a position in the tree that runs, counted from 1, and the column, counted from 0.
    fn line_and_column(&self, pos: u32) -> (usize, usize) {
        let source = &self.tree.source;
        let before = &source.text.as_bytes()[..(pos as usize).min(source.text.len())];
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        let column = before.len() - before.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        (line, column)
    }

    /// Notes that an expression reads a key of `.Release`; a text of `tpl` is no place in a file.
    fn note_release(&self, expr: &Expr, key: &Str) {
        let Some(reads) = &self.context.reads else { return };
        if &*self.tree.source.name != TPL {
            reads.release_at(key, || {
                let (line, column) = self.line_and_column(expr.pos);
                ReadPlace { file: Arc::clone(&self.tree.source.name), line, column: column + 1 }
            });
        }
    }

    /// Runs a template's body with fresh variables.
    fn body(&mut self, tree: &'t Tree, data: &Got) -> Ran<()> {
        let outer = (self.tree, self.base, self.vars.len());
        self.context.depth += 1;
        self.tree = tree;
        self.base = self.vars.len();
        self.vars.resize(self.base + tree.slots, Got::default());
        self.vars[self.base] = data.clone();
        super::on_deep_stack(|| self.walk(data, &tree.root))?;
        self.context.depth -= 1;
        self.vars.truncate(outer.2);
        (self.tree, self.base) = (outer.0, outer.1);
        Ok(())
    }

    fn walk(&mut self, dot: &Got, nodes: &'t [Node]) -> Ran<Flow> {
        for node in nodes {
            if let Some(why) = self.context.exhausted(self.out.len()) {
                return self.fail(why);
            }
            match node {
                Node::Text(start, end) => {
                    self.mark(*start, true);
                    let text = &self.tree.source.text[*start as usize..*end as usize];
                    self.out.extend_from_slice(&kept_bytes(text));
                }
                Node::Action(pipe) => {
                    let value = self.pipeline(dot, pipe)?;
                    if pipe.decls.is_empty() {
                        if let Err(why) = weigh(&value) {
                            return self.fail(why);
                        }
                        self.mark(pipe.pos, false);
                        print::write_value(&mut self.out, &value);
                    }
                }
                Node::If(branch) => {
                    let truth = self.pipeline(dot, &branch.pipe)?.truth();
                    let list = if truth { Some(&branch.then) } else { branch.otherwise.as_ref() };
                    if let Some(list) = list {
                        match self.walk(dot, list)? {
                            Flow::On => {}
                            flow => return Ok(flow),
                        }
                    }
                }
                Node::With(branch) => {
                    let value = self.pipeline(dot, &branch.pipe)?;
                    let flow = if value.truth() {
                        self.walk(&Got::concrete(value), &branch.then)?
                    } else if let Some(list) = &branch.otherwise {
                        self.walk(dot, list)?
                    } else {
                        Flow::On
                    };
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
                Node::Range(branch) => {
                    let flow = self.range(dot, branch)?;
                    if flow != Flow::On {
                        return Ok(flow);
                    }
                }
                Node::Template(invocation) => self.template(dot, invocation)?,
                Node::Break => return Ok(Flow::Break),
                Node::Continue => return Ok(Flow::Continue),
            }
        }
        Ok(Flow::On)
    }

    /// Remembers where the output that follows comes from.
    fn mark(&mut self, source: u32, verbatim: bool) {
        if self.marks
            && let Some(marks) = &mut self.context.marks
        {
            let file = Arc::clone(&self.tree.source.name);
            marks.push(Mark { output: self.out.len(), file, source: source as usize, verbatim });
        }
    }

    fn template(&mut self, dot: &Got, invocation: &'t Invocation) -> Ran<()> {
        self.at = At::Template(invocation);
        let set: &'t TemplateSet = self.set;
        let Some(tree) = set.called(&invocation.name, self.context) else {
            let name = opdev_object::go::quote::quote_bytes(&invocation.name);
            return self.fail(format!("template {name} not defined"));
        };
        self.check_depth()?;
        let data = match &invocation.pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Value::Nil,
        };
        self.body(tree, &Got::concrete(data))
    }

    pub(super) fn check_depth(&self) -> Ran<()> {
        if self.context.depth >= MAX_DEPTH {
            return self.fail("exceeded maximum template depth (100000)");
        }
        Ok(())
    }

    fn range(&mut self, dot: &Got, branch: &'t Branch) -> Ran<Flow> {
        let value = self.pipeline(dot, &branch.pipe)?;
        let mut ran = false;
        match value.underlying() {
            Value::List(list) => {
                let interface = list.elem() == Elem::Any;
                for (i, item) in list.items().iter().enumerate() {
                    ran = true;
                    let item = Got { value: item.clone(), interface };
                    let index = Value::Int(i64::try_from(i).unwrap_or(i64::MAX));
                    match self.iteration(branch, Got::concrete(index), &item)? {
                        Flow::Break => break,
                        Flow::On | Flow::Continue => {}
                    }
                }
            }
            Value::Map(map) => {
                let interface = map.holds_any();
                for (key, item) in map.snapshot() {
                    ran = true;
                    let item = Got { value: item, interface };
                    match self.iteration(branch, Got::concrete(Value::Str(key)), &item)? {
                        Flow::Break => break,
                        Flow::On | Flow::Continue => {}
                    }
                }
            }
            Value::Nil => {}
            number @ (Value::Int(_) | Value::Int64(_) | Value::Uint(..)) => {
                ran = self.range_number(branch, &number)?;
            }
            other => {
                let shown = String::from_utf8_lossy(&print::sprint(&other)).into_owned();
                return self.fail(format!("range can't iterate over {shown}"));
            }
        }
        match &branch.otherwise {
            Some(list) if !ran => self.walk(dot, list),
            _ => Ok(Flow::On),
        }
    }

    fn range_number(&mut self, branch: &'t Branch, number: &Value) -> Ran<bool> {
        let (count, make): (i64, fn(i64) -> Value) = match number {
            Value::Int64(n) => (*n, Value::Int64),
            Value::Uint(_, n) => (i64::try_from(*n).unwrap_or(i64::MAX), |n| {
                Value::Uint(super::value::UintKind::U64, u64::try_from(n).unwrap_or(0))
            }),
            Value::Int(n) => (*n, Value::Int),
            _ => (0, Value::Int),
        };
        if branch.pipe.decls.len() > 1 {
            return self.fail(format!("can't use {count} to iterate over more than one variable"));
        }
        for i in 0..count {
            if self.iteration(branch, Got::default(), &Got::concrete(make(i)))? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn iteration(&mut self, branch: &'t Branch, index: Got, item: &Got) -> Ran<Flow> {
        if let Some(why) = self.context.exhausted(self.out.len()) {
            return self.fail(why);
        }
        match &*branch.pipe.decls {
            [] => {}
            [one] => self.set_var(one.slot, &one.name, item.clone())?,
            [first, second, ..] => {
                self.set_var(first.slot, &first.name, index)?;
                self.set_var(second.slot, &second.name, item.clone())?;
            }
        }
        self.walk(item, &branch.then)
    }

    fn set_var(&mut self, slot: usize, name: &str, value: Got) -> Ran<()> {
        if slot == UNDECLARED {
            return self.fail(format!("undefined variable: {name}"));
        }
        let index = self.base + slot;
        self.vars[index] = value;
        Ok(())
    }

    pub(super) fn pipeline(&mut self, dot: &Got, pipe: &'t Pipe) -> Ran<Value> {
        self.at = At::Pipe(pipe);
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?.value);
        }
        let value = value.unwrap_or_default();
        for decl in &pipe.decls {
            self.set_var(decl.slot, &decl.name, Got::concrete(value.clone()))?;
        }
        Ok(value)
    }

    fn not_a_function(&self, args: &[Expr], last: Option<&Value>) -> Ran<()> {
        if args.len() > 1 || last.is_some() {
            return self.fail(format!("can't give argument to non-function {}", args[0]));
        }
        Ok(())
    }

    fn command(&mut self, dot: &Got, command: &'t Command, last: Option<Value>) -> Ran<Got> {
        let args = &command.args;
        let first = &args[0];
        match &first.kind {
            ExprKind::Field(fields) => {
                self.at = At::Expr(first);
                self.fields(dot, dot.clone(), first, fields, args, last)
            }
            ExprKind::Chain(node, fields) => self.chain(dot, first, node, fields, args, last),
            ExprKind::Function(function) => {
                self.at = At::Expr(first);
                self.function(dot, function, At::Command(command), &args[1..], last).map(Got::concrete)
            }
            ExprKind::Pipe(pipe) => {
                self.not_a_function(args, last.as_ref())?;
                self.pipeline(dot, pipe).map(Got::concrete)
            }
            ExprKind::Variable { .. } => self.variable(dot, first, args, last),
            kind => {
                self.at = At::Expr(first);
                self.not_a_function(args, last.as_ref())?;
                match kind {
                    ExprKind::Bool(b) => Ok(Got::concrete(Value::Bool(*b))),
                    ExprKind::Dot => Ok(dot.clone()),
                    ExprKind::Number(number) => self.number(number).map(Got::concrete),
                    ExprKind::Str(_, value) => Ok(Got::concrete(Value::Str(value.clone()))),
                    _ => self.fail("nil is not a command"),
                }
            }
        }
    }

    /// A number where no type is wanted: its syntax decides.
    pub(super) fn number(&self, number: &Number) -> Ran<Value> {
        let text = &number.text;
        let hex = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        let float = !hex && !text.starts_with('\'') && text.contains(['.', 'e', 'E', 'p', 'P']);
        match (number.float, number.int) {
            _ if number.complex => self.fail("complex numbers are not supported"),
            (Some(f), _) if float => Ok(Value::Float(f)),
            (_, Some(n)) => Ok(Value::Int(n)),
            _ => self.fail(format!("{text} overflows int")),
        }
    }

    pub(super) fn variable(
        &mut self,
        dot: &Got,
        expr: &'t Expr,
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Got> {
        self.at = At::Expr(expr);
        let ExprKind::Variable { name, slot, fields } = &expr.kind else { return Ok(Got::default()) };
        if *slot == UNDECLARED {
            return self.fail(format!("undefined variable: {name}"));
        }
        let value = self.vars[self.base + slot].clone();
        if fields.is_empty() {
            if args.len() > 1 || last.is_some() {
                self.not_a_function(args, last.as_ref())?;
            }
            return Ok(value);
        }
        self.fields(dot, value, expr, fields, args, last)
    }

    pub(super) fn chain(
        &mut self,
        dot: &Got,
        expr: &'t Expr,
        node: &'t Expr,
        fields: &'t [Str],
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Got> {
        self.at = At::Expr(expr);
        if matches!(node.kind, ExprKind::Nil) {
            return self.fail(format!("indirection through explicit nil in {expr}"));
        }
        let receiver = self.operand(dot, node)?;
        self.fields(dot, receiver, expr, fields, args, last)
    }

    /// A key that is not there, with those that are.
    fn missing(&self, map: &Map, name: &Str) -> Ran<Got> {
        const MOST: usize = 8;
        let keys = map.keys();
        let shown: Vec<String> = keys.iter().take(MOST).map(ToString::to_string).collect();
        let more = if keys.len() > MOST { ", …" } else { "" };
        let known = if shown.is_empty() {
            "it has none".to_owned()
        } else {
            format!("it has {}{more}", shown.join(", "))
        };
        self.fail(format!("no key {name}; {known}"))
    }

    /// `.X.Y.Z`, the last possibly a method that gets the arguments. `args` includes the expression itself.
    pub(super) fn fields(
        &mut self,
        dot: &Got,
        mut receiver: Got,
        expr: &'t Expr,
        fields: &'t [Str],
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Got> {
        let Some((end, path)) = fields.split_last() else { return Ok(receiver) };
        for field in path {
            receiver = self.field(dot, &receiver, expr, field, &[], None)?;
        }
        let args = args.get(1..).unwrap_or_default();
        self.field(dot, &receiver, expr, end, args, last)
    }

    fn field(
        &mut self,
        dot: &Got,
        receiver: &Got,
        expr: &'t Expr,
        name: &Str,
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Got> {
        let has_args = !args.is_empty() || last.is_some();
        match &receiver.value {
            Value::Nil if receiver.interface => {
                self.fail(format!("nil pointer evaluating interface {{}}.{name}"))
            }
            Value::Nil => Ok(Got::default()),
            Value::Map(map) => {
                let values = matches!(map.ty(), MapType::ChartutilValues | MapType::CommonValues);
                if values && &**name == b"AsMap" {
                    return Ok(Got::concrete(Value::Map(map.with_type(MapType::Any))));
                }
                if values && &**name == b"YAML" {
                    let text = super::funcs::helm::to_yaml(&receiver.value);
                    if text.is_empty() {
                        self.at = At::Expr(expr);
                        return self.fail_call("YAML", "yaml: control characters are not allowed".into());
                    }
                    return Ok(Got::concrete((text + "\n").into()));
                }
                if values && matches!(&**name, b"PathValue" | b"Table") {
                    return self.values_method(dot, map, expr, name, args, last);
                }
                if has_args {
                    return self.fail(format!("{name} is not a method but has arguments"));
                }
                if map.is_release() {
                    self.note_release(expr, name);
                }
                let value = match map.get(name) {
                    Some(value) => value,
                    None if self.context.strict => return self.missing(map, name),
                    None => map.zero(),
                };
                Ok(Got { value, interface: map.holds_any() })
            }
            Value::Host(host) => {
                let text = name.text();
                if let Some(signature) = host.method(&text) {
                    let args = self.arguments(dot, &text, signature, args, last)?;
                    return match host.call(&text, &args) {
                        Ok(value) => Ok(Got::concrete(value)),
                        Err(error) => {
                            self.at = At::Expr(expr);
                            self.fail_call(&text, error)
                        }
                    };
                }
                if let Some(value) = host.field(&text) {
                    if has_args {
                        return self.fail(format!("{name} has arguments but cannot be invoked as function"));
                    }
                    return Ok(Got::concrete(value));
                }
                if let Some(Value::Map(map)) = host.underlying() {
                    if has_args {
                        return self.fail(format!("{name} is not a method but has arguments"));
                    }
                    let value = map.get(name).unwrap_or_else(|| map.zero());
                    return Ok(Got { value, interface: map.holds_any() });
                }
                self.fail(format!("can't evaluate field {name} in type {}", receiver.type_name()))
            }
            _ => self.fail(format!("can't evaluate field {name} in type {}", receiver.type_name())),
        }
    }

    /// `PathValue` and `Table` of Helm's `Values`: what stands at a dotted path.
    fn values_method(
        &mut self,
        dot: &Got,
        map: &Map,
        expr: &'t Expr,
        name: &Str,
        args: &'t [Expr],
        last: Option<Value>,
    ) -> Ran<Got> {
        let text = name.text();
        let args = self.arguments(dot, &text, Signature::with_parameters(&[Ty::Str]), args, last)?;
        let path =
            args.first().and_then(Value::as_str).map(|path| path.text().into_owned()).unwrap_or_default();
        let table = |path: &str| {
            path.split('.').try_fold(map.clone(), |at, key| match at.get(key.as_bytes()) {
                Some(Value::Map(below)) => Ok(below),
                _ => Err(key.to_owned()),
            })
        };
        let found = if &*text == "Table" {
            let named = |table: Map| Value::Map(table.with_type(map.ty()));
            table(&path).map(named).map_err(|key| format!("{key:?} is not a table"))
        } else if path.is_empty() {
            Err("YAML path cannot be empty".to_owned())
        } else {
            let (above, key) = path.rsplit_once('.').map_or((None, path.as_str()), |(a, key)| (Some(a), key));
            let found =
                above.map_or_else(|| Ok(map.clone()), table).ok().and_then(|at| at.get(key.as_bytes()));
            found
                .filter(|value| !matches!(value, Value::Map(_)))
                .ok_or_else(|| format!("{key:?} is not a value"))
        };
        match found {
            Ok(value) => Ok(Got::concrete(value)),
            Err(why) => {
                self.at = At::Expr(expr);
                self.fail_call(&text, why.as_str().into())
            }
        }
    }
}

//! The parsed form of a template: names resolved to functions and variable slots, text as spans of the
//! source. Nodes print as Go prints them, because error texts quote them. Immutable and shared between
//! renders.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::funcs::Function;
use super::text::Str;

/// The text a tree was parsed from.
#[derive(Debug)]
pub(super) struct Source {
    /// The file, or `gotpl` for `tpl` strings.
    pub(super) name: Arc<str>,
    pub(super) text: Arc<str>,
}

/// One template: a file's own or a defined one.
pub(super) struct Tree {
    pub(super) name: Str,
    pub(super) source: Arc<Source>,
    pub(super) root: Box<[Node]>,
    /// Variable slots needed, `$` included.
    pub(super) slots: usize,
}

impl Tree {
    /// Returns true if there is nothing but space and comments.
    pub(super) fn is_empty(&self) -> bool {
        self.root.iter().all(|node| match node {
            Node::Text(start, end) => {
                self.source.text[*start as usize..*end as usize].trim_ascii().is_empty()
            }
            _ => false,
        })
    }
}

impl Tree {
    /// Returns true if both do the same on the same data. Where they stand does not matter: only errors tell
    /// it.
    pub(super) fn same(&self, other: &Tree) -> bool {
        self.name == other.name && self.slots == other.slots && self.same_list(&self.root, other, &other.root)
    }

    fn span(&self, start: u32, end: u32) -> &str {
        &self.source.text[start as usize..end as usize]
    }

    fn same_list(&self, mine: &[Node], other: &Tree, theirs: &[Node]) -> bool {
        let branch = |a: &Branch, b: &Branch| {
            same_pipe(&a.pipe, &b.pipe)
                && self.same_list(&a.then, other, &b.then)
                && match (&a.otherwise, &b.otherwise) {
                    (None, None) => true,
                    (Some(a), Some(b)) => self.same_list(a, other, b),
                    _ => false,
                }
        };
        mine.len() == theirs.len()
            && mine.iter().zip(theirs).all(|pair| match pair {
                (Node::Text(a, b), Node::Text(c, d)) => self.span(*a, *b) == other.span(*c, *d),
                (Node::Action(a), Node::Action(b)) => same_pipe(a, b),
                (Node::If(a), Node::If(b))
                | (Node::With(a), Node::With(b))
                | (Node::Range(a), Node::Range(b)) => branch(a, b),
                (Node::Template(a), Node::Template(b)) => a.to_string() == b.to_string(),
                (Node::Break, Node::Break) | (Node::Continue, Node::Continue) => true,
                _ => false,
            })
    }
}

fn same_pipe(a: &Pipe, b: &Pipe) -> bool {
    let slots = |pipe: &Pipe| -> Vec<usize> { pipe.decls.iter().map(|decl| decl.slot).collect() };
    slots(a) == slots(b) && a.to_string() == b.to_string()
}

/// A statement.
pub(super) enum Node {
    /// A span of the source.
    Text(u32, u32),
    Action(Pipe),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template(Invocation),
    Break,
    Continue,
}

/// `if`, `with`, `range`.
pub(super) struct Branch {
    pub(super) pipe: Pipe,
    pub(super) then: Box<[Node]>,
    pub(super) otherwise: Option<Box<[Node]>>,
}

/// `{{template "name" pipe}}`.
pub(super) struct Invocation {
    pub(super) pos: u32,
    pub(super) name: Str,
    pub(super) pipe: Option<Pipe>,
}

/// A variable being declared or assigned.
pub(super) struct Decl {
    pub(super) name: Arc<str>,
    pub(super) slot: usize,
}

/// Commands joined by `|`, with the variables that get the result.
pub(super) struct Pipe {
    pub(super) pos: u32,
    pub(super) assign: bool,
    pub(super) decls: Box<[Decl]>,
    pub(super) commands: Box<[Command]>,
}

/// A function or operand with arguments.
pub(super) struct Command {
    pub(super) pos: u32,
    pub(super) args: Box<[Expr]>,
}

/// An operand.
pub(super) struct Expr {
    pub(super) pos: u32,
    pub(super) kind: ExprKind,
}

/// The kinds of operands.
pub(super) enum ExprKind {
    Bool(bool),
    Dot,
    Nil,
    Number(Number),
    /// The literal as written, and its value.
    Str(Box<str>, Str),
    Field(Box<[Str]>),
    Variable {
        name: Arc<str>,
        slot: usize,
        fields: Box<[Str]>,
    },
    Chain(Box<Expr>, Box<[Str]>),
    Function(&'static Function),
    Pipe(Box<Pipe>),
}

/// A number literal: every reading Go allows for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Number {
    pub(super) text: Box<str>,
    pub(super) int: Option<i64>,
    pub(super) uint: Option<u64>,
    pub(super) float: Option<f64>,
    pub(super) complex: bool,
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, decl) in self.decls.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, decl.name)?;
        }
        if !self.decls.is_empty() {
            f.write_str(if self.assign { " = " } else { " := " })?;
        }
        for (i, command) in self.commands.iter().enumerate() {
            if i > 0 {
                f.write_str(" | ")?;
            }
            command.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, arg) in self.args.iter().enumerate() {
            if i > 0 {
                f.write_char(' ')?;
            }
            match &arg.kind {
                ExprKind::Pipe(pipe) => write!(f, "({pipe})")?,
                _ => arg.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dotted = |f: &mut fmt::Formatter<'_>, fields: &[Str]| {
            fields.iter().try_for_each(|field| write!(f, ".{field}"))
        };
        match &self.kind {
            ExprKind::Bool(b) => write!(f, "{b}"),
            ExprKind::Dot => f.write_char('.'),
            ExprKind::Nil => f.write_str("nil"),
            ExprKind::Number(number) => f.write_str(&number.text),
            ExprKind::Str(literal, _) => f.write_str(literal),
            ExprKind::Field(fields) => dotted(f, fields),
            ExprKind::Variable { name, fields, .. } => {
                f.write_str(name)?;
                dotted(f, fields)
            }
            ExprKind::Chain(node, fields) => {
                match &node.kind {
                    ExprKind::Pipe(pipe) => write!(f, "({pipe})")?,
                    _ => node.fmt(f)?,
                }
                dotted(f, fields)
            }
            ExprKind::Function(function) => f.write_str(function.name),
            ExprKind::Pipe(pipe) => pipe.fmt(f),
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", opdev_object::go::quote::quote_bytes(&self.name))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}

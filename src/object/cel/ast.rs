//! Expressions of CEL as the parser gives them, with macros already seen as what they are. Plain data.

/// An expression and the character (counted from 0) an error about it points at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Expr {
    pub(super) at: usize,
    pub(super) node: Node,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    /// A variable, or the first part of a qualified name.
    Name(String),
    /// `operand.field`.
    Select {
        operand: Box<Expr>,
        field: String,
    },
    /// `has(operand.field)`.
    Has {
        operand: Box<Expr>,
        field: String,
    },
    /// `operand.?field`.
    OptSelect {
        operand: Box<Expr>,
        field: String,
    },
    /// A function, a method or an operator such as `_+_`.
    Call {
        target: Option<Box<Expr>>,
        function: String,
        args: Vec<Expr>,
    },
    /// All of the terms, or one of them.
    Logic {
        or: bool,
        terms: Vec<Expr>,
    },
    Cond {
        test: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
    },
    /// Items, and whether each is there only where its optional value is.
    List(Vec<(Expr, bool)>),
    Map(Vec<(Expr, Expr, bool)>),
    /// An object that is built, such as `Object.spec{replicas: 1}`.
    Message {
        name: String,
        fields: Vec<MessageField>,
    },
    Macro(Box<Macro>),
}

/// A field of an object that is built.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MessageField {
    /// Where its colon stands.
    pub(super) at: usize,
    pub(super) name: String,
    pub(super) value: Expr,
    /// It is there only where its optional value is.
    pub(super) optional: bool,
}

/// A macro that brings its own variables.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Macro {
    pub(super) kind: MacroKind,
    pub(super) range: Expr,
    pub(super) first: String,
    pub(super) second: Option<String>,
    pub(super) filter: Option<Expr>,
    pub(super) body: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MacroKind {
    All,
    Exists,
    ExistsOne,
    Map,
    Filter,
    TransformList,
    TransformMap,
    TransformMapEntry,
    SortBy,
    OptMap,
    OptFlatMap,
}

impl Expr {
    pub(super) fn new(at: usize, node: Node) -> Expr {
        Expr { at, node }
    }

    /// `a.b.c` as a text, where it is nothing but names.
    pub(super) fn qualified(&self) -> Option<String> {
        match &self.node {
            Node::Name(name) => Some(name.clone()),
            Node::Select { operand, field } => Some(format!("{}.{field}", operand.qualified()?)),
            _ => None,
        }
    }

    /// The expressions it is directly made of.
    fn parts(&self) -> Vec<&Expr> {
        match &self.node {
            Node::Select { operand, .. } | Node::Has { operand, .. } | Node::OptSelect { operand, .. } => {
                vec![operand]
            }
            Node::Call { target, args, .. } => target.iter().map(|target| &**target).chain(args).collect(),
            Node::Logic { terms, .. } => terms.iter().collect(),
            Node::Cond { test, yes, no } => vec![test, yes, no],
            Node::List(items) => items.iter().map(|(item, _)| item).collect(),
            Node::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Node::Macro(inner) => {
                [Some(&inner.range), inner.filter.as_ref(), Some(&inner.body)].into_iter().flatten().collect()
            }
            Node::Message { fields, .. } => fields.iter().map(|field| &field.value).collect(),
            Node::Null
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Uint(_)
            | Node::Double(_)
            | Node::Text(_)
            | Node::Bytes(_)
            | Node::Name(_) => Vec::new(),
        }
    }

    /// Visits it and everything in it.
    pub(super) fn each<'a>(&'a self, visit: &mut impl FnMut(&'a Expr)) {
        visit(self);
        for part in self.parts() {
            part.each(visit);
        }
    }

    /// Returns true if the variable is named anywhere in it, and not one of the same name that a macro
    /// brings.
    pub(super) fn names(&self, variable: &str) -> bool {
        if let Node::Macro(inner) = &self.node
            && (inner.first == variable || inner.second.as_deref() == Some(variable))
        {
            return inner.range.names(variable);
        }
        matches!(&self.node, Node::Name(name) if name == variable)
            || self.parts().into_iter().any(|part| part.names(variable))
    }
}

//! The type check of an expression: names, fields and calls against what the schema declares, with the texts
//! of a real server, and a suggestion where a name is nearly right. Never evaluates.

use super::ast::{Expr, Macro, MacroKind, MessageField, Node};
use super::authorizer;
use super::kind::{Bound, Kind, Object, join};
use super::lex::Fault;
use super::shape::reserved;
use super::signatures::{Signature, names, signatures};
use opdev_object::spelling::nearest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The variables that are in scope, innermost last.
pub(super) struct Checker {
    scope: Vec<(String, Kind)>,
    pub(super) faults: Vec<Fault>,
    /// Suggestions, for each fault that has one: the name that was probably meant.
    pub(super) hints: Vec<String>,
    /// Faults that count only where the types are right.
    pub(super) late: Vec<Fault>,
    /// Inside of what `format` writes, items may be of any kind.
    mixed: bool,
    /// Objects and the operations of a patch can be built.
    pub(super) builds: bool,
}

/// Returns true if an object of this name may have any fields.
fn is_open(name: &str) -> bool {
    name == "Object" || name.starts_with("Object.")
}

/// An operation of a JSON patch.
fn operation() -> Kind {
    let texts = ["op", "path", "from"].map(|field| (field.to_owned(), Kind::Text));
    let mut fields = BTreeMap::from(texts);
    fields.insert("value".to_owned(), Kind::Dyn);
    Kind::Object(Arc::new(Object { name: "JSONPatch".to_owned(), fields }))
}

/// The types that can be named.
pub(super) fn type_named(name: &str) -> Option<Kind> {
    Some(match name {
        "bool" => Kind::Bool,
        "int" => Kind::Int,
        "uint" => Kind::Uint,
        "double" => Kind::Double,
        "string" => Kind::Text,
        "bytes" => Kind::Bytes,
        "list" => Kind::list(Kind::Dyn),
        "map" => Kind::map(Kind::Dyn, Kind::Dyn),
        "null_type" => Kind::Null,
        "type" => Kind::Type(Box::new(Kind::Dyn)),
        "timestamp" | "google.protobuf.Timestamp" => Kind::Timestamp,
        "duration" | "google.protobuf.Duration" => Kind::Duration,
        "optional_type" => Kind::optional(Kind::Dyn),
        _ => return None,
    })
}

impl Checker {
    pub(super) fn new(scope: Vec<(String, Kind)>) -> Checker {
        Checker {
            scope,
            faults: Vec::new(),
            hints: Vec::new(),
            late: Vec::new(),
            mixed: false,
            builds: false,
        }
    }

    fn fault(&mut self, at: usize, message: impl Into<String>) -> Kind {
        self.faults.push(Fault::new(at, message));
        Kind::Error
    }

    fn variable(&self, name: &str) -> Option<Kind> {
        self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, kind)| kind.clone())
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Kind {
        let near = {
            let own = nearest(name, self.scope.iter().map(|(name, _)| name.as_str()));
            own.or_else(|| nearest(name, names())).map(|near| format!("did you mean {near}?"))
        };
        self.hints.extend(near);
        self.fault(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    /// The kind of an expression; faults are collected.
    pub(super) fn kind(&mut self, expr: &Expr) -> Kind {
        match &expr.node {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Int(_) => Kind::Int,
            Node::Uint(_) => Kind::Uint,
            Node::Double(_) => Kind::Double,
            Node::Text(_) => Kind::Text,
            Node::Bytes(_) => Kind::Bytes,
            Node::Name(name) => {
                if let Some(kind) = self.variable(name) {
                    return kind;
                }
                match type_named(name) {
                    Some(kind) => Kind::Type(Box::new(kind)),
                    None => self.undeclared(expr.at, name),
                }
            }
            Node::Select { operand, field } => {
                if let Some(kind) = self.qualified_type(expr) {
                    return Kind::Type(Box::new(kind));
                }
                self.select(expr.at, operand, field, false)
            }
            Node::Has { operand, field } => {
                // A server points at the dot, which stands behind the operand.
                self.select(expr.at, operand, field, false);
                Kind::Bool
            }
            Node::OptSelect { operand, field } => self.select(expr.at, operand, field, true),
            Node::Call { target, function, args } => self.call(expr.at, target.as_deref(), function, args),
            Node::Logic { terms, .. } => {
                for term in terms {
                    let kind = self.kind(term);
                    if !(kind.is_dyn() || kind == Kind::Bool) {
                        self.fault(term.at, format!("expected type 'bool' but found '{kind}'"));
                    }
                }
                Kind::Bool
            }
            Node::Cond { test, yes, no } => self.cond(expr.at, test, yes, no),
            Node::List(items) => self.list(items),
            Node::Map(entries) => self.map(entries),
            Node::Message { name, fields } => self.message(expr.at, name, fields),
            Node::Macro(inner) => self.fold(expr.at, inner),
        }
    }

    /// An object that is built: of a name that begins with `Object` it may have any fields.
    fn message(&mut self, at: usize, name: &str, fields: &[MessageField]) -> Kind {
        let kind = match name {
            _ if !self.builds => None,
            "JSONPatch" => Some(operation()),
            name if is_open(name) => {
                Some(Kind::Object(Arc::new(Object { name: name.to_owned(), fields: BTreeMap::new() })))
            }
            _ => None,
        };
        let Some(kind) = kind else {
            return match type_named(name) {
                Some(_) => self.fault(at, format!("'{name}' is not a message type")),
                None => self.undeclared(at, name),
            };
        };
        for field in fields {
            let mut given = self.kind(&field.value);
            if field.optional
                && let Kind::Optional(inner) = given
            {
                given = *inner;
            }
            let Kind::Object(object) = &kind else { continue };
            let wanted = match object.fields.get(&field.name) {
                Some(wanted) => wanted.clone(),
                None if is_open(name) => Kind::Dyn,
                // A server says this of a field that there is not.
                None => {
                    let text = format!(
                        "expected type of field '{}' is '' but provided type is '{given}'",
                        field.name
                    );
                    self.fault(field.at, text);
                    continue;
                }
            };
            if given != Kind::Error && !Bound::default().fits(&wanted, &given) {
                let text = format!(
                    "expected type of field '{}' is '{wanted}' but provided type is '{given}'",
                    field.name
                );
                self.fault(field.at, text);
            }
        }
        kind
    }

    fn qualified_type(&self, expr: &Expr) -> Option<Kind> {
        let name = expr.qualified()?;
        let head = name.split('.').next()?;
        if self.variable(head).is_some() { None } else { type_named(&name) }
    }

    fn select(&mut self, at: usize, operand: &Expr, field: &str, optional: bool) -> Kind {
        let kind = self.kind(operand);
        let (inner, optional) = match kind {
            Kind::Optional(inner) => (*inner, true),
            other => (other, optional),
        };
        let found = match &inner {
            Kind::Dyn => Kind::Dyn,
            Kind::Error => return Kind::Error,
            Kind::Map(_, value) => (**value).clone(),
            Kind::Object(object) if is_open(&object.name) => Kind::Dyn,
            Kind::Object(object) => match object.fields.get(field).or_else(|| {
                // Words that are reserved are known under both names.
                reserved(field).and_then(|escaped| object.fields.get(&escaped))
            }) {
                Some(kind) => kind.clone(),
                None => {
                    if let Some(near) = nearest(field, object.fields.keys().map(String::as_str)) {
                        self.hints.push(format!("did you mean {near}?"));
                    } else if !object.fields.is_empty() {
                        let known: Vec<&str> = object.fields.keys().map(String::as_str).take(12).collect();
                        self.hints.push(format!("known are {}", known.join(", ")));
                    }
                    return self.fault(at, format!("undefined field '{field}'"));
                }
            },
            Kind::Opaque(authorizer::AUTHORIZER) if field == "requestResource" => {
                Kind::Opaque(authorizer::RESOURCE)
            }
            other => return self.fault(at, format!("type '{other}' does not support field selection")),
        };
        if optional && found != Kind::Error { Kind::optional(unwrapped(found)) } else { found }
    }

    fn cond(&mut self, at: usize, test: &Expr, yes: &Expr, no: &Expr) -> Kind {
        let kinds = [self.kind(test), self.kind(yes), self.kind(no)];
        let joined = join(&kinds[1], &kinds[2]);
        if !(kinds[0].is_dyn() || kinds[0] == Kind::Bool) || joined.is_none() {
            let [a, b, c] = kinds;
            let text = format!("found no matching overload for '_?_:_' applied to '({a}, {b}, {c})'");
            return self.fault(at, text);
        }
        joined.unwrap_or(Kind::Dyn)
    }

    fn list(&mut self, items: &[(Expr, bool)]) -> Kind {
        let mut common: Option<(Kind, Kind)> = None;
        for (item, optional) in items {
            let mut kind = self.kind(item);
            if *optional {
                kind = match kind {
                    Kind::Optional(inner) => *inner,
                    Kind::Dyn | Kind::Error => Kind::Dyn,
                    other => {
                        let text = format!("expected type 'optional_type({other})' but found '{other}'");
                        self.fault(item.at, text)
                    }
                };
            }
            common = Some(self.homogeneous(item.at, common, kind));
        }
        Kind::list(common.map_or(Kind::Param('E'), |(_, kind)| kind))
    }

    /// Items of a literal have one kind; the first says which.
    fn homogeneous(&mut self, at: usize, common: Option<(Kind, Kind)>, kind: Kind) -> (Kind, Kind) {
        let Some((first, common)) = common else { return (kind.clone(), kind) };
        if first != kind && !self.mixed {
            self.late.push(Fault::new(at, format!("expected type '{first}' but found '{kind}'")));
        }
        let joined = join(&common, &kind).unwrap_or(Kind::Dyn);
        (first, joined)
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Kind {
        let (mut keys, mut values) = (None, None);
        for (key, value, optional) in entries {
            let kind = self.kind(key);
            keys = Some(self.homogeneous(key.at, keys, kind));
            let mut kind = self.kind(value);
            if *optional && let Kind::Optional(inner) = kind {
                kind = *inner;
            }
            values = Some(self.homogeneous(value.at, values, kind));
        }
        let (keys, values) = (keys.map(|(_, kind)| kind), values.map(|(_, kind)| kind));
        Kind::map(keys.unwrap_or(Kind::Param('K')), values.unwrap_or(Kind::Param('V')))
    }

    /// The ways to call a function, where it is known here.
    fn ways(&self, name: &str) -> Option<&'static [Signature]> {
        signatures(name).filter(|_| self.builds || name != "jsonpatch.escapeKey")
    }

    fn call(&mut self, at: usize, target: Option<&Expr>, function: &str, args: &[Expr]) -> Kind {
        let mut receiver = None;
        let mut name = function.to_owned();
        if let Some(target) = target {
            // `sets.contains(a, b)` is a function whose name has a dot, unless `sets` is a variable.
            let qualified = target.qualified().map(|prefix| format!("{prefix}.{function}"));
            match qualified.filter(|name| self.ways(name).is_some()) {
                Some(qualified) => name = qualified,
                None => receiver = Some(self.kind(target)),
            }
        }
        let (method, receiver_failed) = (receiver.is_some(), receiver == Some(Kind::Error));
        let mut kinds: Vec<Kind> = receiver.into_iter().collect();
        let mixed = self.mixed;
        self.mixed = mixed || function == "format";
        kinds.extend(args.iter().map(|arg| self.kind(arg)).collect::<Vec<_>>());
        self.mixed = mixed;
        if let (Some(Expr { node: Node::Text(text), .. }), "format", [Expr { node: Node::List(items), .. }]) =
            (target, function, args)
        {
            self.format(at, text, items);
        }
        let Some(ways) = self.ways(&name) else {
            // Known to servers, but not to rules of custom resources.
            let authorizer = receiver_failed && matches!(name.as_str(), "group" | "path" | "serviceAccount");
            return if authorizer { Kind::Error } else { self.undeclared(at, &name) };
        };
        if kinds.contains(&Kind::Error) {
            return Kind::Error;
        }
        let mut result: Option<Kind> = None;
        for way in ways.iter().filter(|way| way.method == method && way.args.len() == kinds.len()) {
            let mut bound = Bound::default();
            if way.args.iter().zip(&kinds).all(|(wanted, given)| bound.fits(wanted, given)) {
                let found = bound.apply(&way.result);
                result = Some(match result {
                    None => found,
                    Some(before) if before == found => before,
                    Some(_) => Kind::Dyn,
                });
            }
        }
        result.unwrap_or_else(|| {
            let shown: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            let shown = if method {
                format!("{}.({})", shown[0], shown[1..].join(", "))
            } else {
                format!("({})", shown.join(", "))
            };
            self.fault(at, format!("found no matching overload for '{name}' applied to '{shown}'"))
        })
    }

    /// A format that is written out is checked against what it is given.
    fn format(&mut self, at: usize, text: &str, items: &[(Expr, bool)]) {
        let mut quiet = Checker { builds: self.builds, ..Checker::new(self.scope.clone()) };
        let kinds: Vec<(usize, Kind)> = items.iter().map(|(item, _)| (item.at, quiet.kind(item))).collect();
        match super::format::check(text, &kinds) {
            Ok(used) if used < kinds.len() => {
                let given = kinds.len();
                let text =
                    format!("too many arguments supplied to string.format (expected {used}, got {given})");
                self.late.push(Fault::new(at, text));
            }
            Ok(_) => {}
            Err((place, text)) => self.late.push(Fault::new(place.unwrap_or(at), text)),
        }
    }

    fn fold(&mut self, at: usize, inner: &Macro) -> Kind {
        let range = self.kind(&inner.range);
        if matches!(inner.kind, MacroKind::OptMap | MacroKind::OptFlatMap) {
            return self.optional_fold(at, inner, range);
        }
        let (first, second) = match (&range, inner.second.is_some()) {
            (Kind::List(item), false) => ((**item).clone(), Kind::Dyn),
            (Kind::List(item), true) => (Kind::Int, (**item).clone()),
            (Kind::Map(key, value), _) => ((**key).clone(), (**value).clone()),
            (Kind::Dyn | Kind::Error, _) => (Kind::Dyn, Kind::Dyn),
            (other, _) => {
                let text = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.fault(inner.range.at, text);
                (Kind::Error, Kind::Error)
            }
        };
        let open = |kind: Kind| if matches!(kind, Kind::Param(_)) { Kind::Dyn } else { kind };
        let (first, second) = (open(first), open(second));
        let depth = self.scope.len();
        self.scope.push((inner.first.clone(), first.clone()));
        if let Some(name) = &inner.second {
            self.scope.push((name.clone(), second));
        }
        let filter = inner.filter.as_ref().map(|filter| self.kind(filter));
        let body = self.kind(&inner.body);
        self.scope.truncate(depth);
        let result = self.folded(at, inner, &range, (first, body.clone()));
        if let Some(filter) = filter.filter(|kind| !(kind.is_dyn() || *kind == Kind::Bool)) {
            let text =
                format!("found no matching overload for '_?_:_' applied to '({filter}, {result}, {result})'");
            return self.fault(at, text);
        }
        result
    }

    fn folded(&mut self, at: usize, inner: &Macro, range: &Kind, (item, body): (Kind, Kind)) -> Kind {
        let truth = body.is_dyn() || body == Kind::Bool;
        match inner.kind {
            MacroKind::All | MacroKind::Exists => {
                if !truth {
                    return self.fault(inner.body.at, format!("expected type 'bool' but found '{body}'"));
                }
                Kind::Bool
            }
            MacroKind::ExistsOne => {
                if !truth {
                    let text =
                        format!("found no matching overload for '_?_:_' applied to '({body}, int, int)'");
                    return self.fault(at, text);
                }
                Kind::Bool
            }
            MacroKind::Filter => {
                if !truth {
                    let list = Kind::list(item);
                    let text = format!(
                        "found no matching overload for '_?_:_' applied to '({body}, {list}, {list})'"
                    );
                    return self.fault(at, text);
                }
                Kind::list(item)
            }
            MacroKind::Map | MacroKind::TransformList => Kind::list(body),
            MacroKind::TransformMap => {
                let key = match range {
                    Kind::Map(key, _) => (**key).clone(),
                    Kind::List(_) => Kind::Int,
                    _ => Kind::Dyn,
                };
                Kind::map(key, body)
            }
            MacroKind::TransformMapEntry => match body {
                Kind::Map(..) | Kind::Dyn | Kind::Error => body,
                other => {
                    let text = format!(
                        "found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {other})'"
                    );
                    self.fault(at, text)
                }
            },
            MacroKind::SortBy => {
                let sortable = signatures("sort").into_iter().flatten();
                let fits = body.is_dyn()
                    || sortable.map(|way| &way.args[0]).any(|kind| *kind == Kind::list(body.clone()));
                if !fits {
                    let text = format!(
                        "found no matching overload for '@sortByAssociatedKeys' applied to '{range}.(list({body}))'"
                    );
                    return self.fault(at, text);
                }
                range.clone()
            }
            MacroKind::OptMap | MacroKind::OptFlatMap => Kind::Dyn,
        }
    }

    fn optional_fold(&mut self, at: usize, inner: &Macro, range: Kind) -> Kind {
        let item = match range {
            Kind::Optional(inner) => *inner,
            Kind::Dyn | Kind::Error => Kind::Dyn,
            other => {
                let text = format!("found no matching overload for 'hasValue' applied to '{other}.()'");
                self.fault(at, text)
            }
        };
        self.scope.push((inner.first.clone(), item));
        let body = self.kind(&inner.body);
        self.scope.pop();
        match (inner.kind, body) {
            (_, Kind::Error) => Kind::Error,
            (MacroKind::OptMap, body) => Kind::optional(body),
            (_, body @ (Kind::Optional(_) | Kind::Dyn)) => body,
            (_, body) => {
                let text = format!(
                    "found no matching overload for '_?_:_' applied to '(bool, {body}, optional_type(dyn))'"
                );
                self.fault(at, text)
            }
        }
    }
}

fn unwrapped(kind: Kind) -> Kind {
    match kind {
        Kind::Optional(inner) => *inner,
        other => other,
    }
}

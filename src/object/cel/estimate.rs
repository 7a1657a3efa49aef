//! The cost of an expression at worst, estimated as a real server does when it is asked to accept a rule: by
//! the largest sizes that the schema allows, step by step, saturating. It never evaluates anything.
//!
//! Sizes are found by the way through the schema. Where a way does not begin at a variable, a server begins
//! at the top: so do we, since what it refuses hangs on it.

use super::ast::{Expr, Macro, MacroKind, Node};
use super::check::{Checker, type_named};
use super::estimate_calls::{self as calls, Argument};
use super::kind::Kind;
use super::meter::{LIST, MAP, MESSAGE};
use super::shape::{Form, Shape, escape};
use super::signatures::signatures;

/// The least and the most there may be of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Size {
    pub(super) const UNKNOWN: Size = Size { min: 0, max: u64::MAX };

    pub(super) const fn exactly(count: u64) -> Size {
        Size { min: count, max: count }
    }

    pub(super) fn union(self, other: Size) -> Size {
        Size { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    pub(super) fn plus(self, other: Size) -> Size {
        Size { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Size) -> Size {
        Size { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// The cost of the most there may be, at so much for one.
    pub(super) fn at(self, factor: f64) -> u64 {
        at(self.max, factor)
    }
}

/// So many at so much for one.
pub(super) fn at(count: u64, factor: f64) -> u64 {
    // A cast of what is too large gives the largest.
    (count as f64 * factor).ceil() as u64
}

/// The sizes of what is in a list that an expression makes.
type Entry = Size;

/// Where in the schema a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'s> {
    Known(&'s Shape),
    /// A key of a map.
    Key,
    /// Nowhere that is known.
    Lost,
}

impl<'s> Place<'s> {
    fn size(self) -> Option<Size> {
        match self {
            Place::Known(shape) => {
                let max = match shape.form {
                    Form::Object(_) | Form::Integer | Form::Number | Form::Boolean => 0,
                    Form::Map(_) | Form::List(..) | Form::Text(_) | Form::IntOrString | Form::Hidden => {
                        shape.most
                    }
                };
                Some(Size { min: 0, max })
            }
            Place::Key => Some(Size::exactly(0)),
            Place::Lost => None,
        }
    }

    fn field(self, name: &str) -> Place<'s> {
        let Place::Known(Shape { form: Form::Object(fields), .. }) = self else { return Place::Lost };
        let named = |(field, shape): &(&String, &Shape)| {
            shape.kind.is_some()
                && escape(field).is_some_and(|own| own == name || own == format!("__{name}__"))
        };
        fields.iter().find(named).map_or(Place::Lost, |(_, shape)| Place::Known(shape))
    }

    fn item(self) -> Place<'s> {
        match self {
            Place::Known(Shape { form: Form::List(item, _) | Form::Map(item), .. }) => Place::Known(item),
            _ => Place::Lost,
        }
    }

    fn key(self) -> Place<'s> {
        match self {
            Place::Known(Shape { form: Form::Map(_), .. }) => Place::Key,
            _ => Place::Lost,
        }
    }
}

/// The estimate of an expression.
#[derive(Clone, Debug)]
pub(super) struct Estimate<'s> {
    pub(super) cost: u64,
    pub(super) size: Option<Size>,
    entry: Option<Entry>,
    pub(super) place: Option<Place<'s>>,
}

impl Estimate<'_> {
    fn of(cost: u64) -> Self {
        Estimate { cost, size: None, entry: None, place: None }
    }

    pub(super) fn size(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// A variable.
struct Local<'s> {
    place: Option<Place<'s>>,
    size: Option<Size>,
    entry: Option<Entry>,
}

/// The worst-case cost of an expression whose `self` has this shape.
pub(super) fn estimate(expr: &Expr, root: &Shape, scope: Vec<(String, Kind)>) -> u64 {
    let locals = scope.iter().map(|_| Local { place: Some(Place::Known(root)), size: None, entry: None });
    Estimator { root, locals: locals.collect(), scope }.expr(expr).cost
}

struct Estimator<'s> {
    root: &'s Shape,
    scope: Vec<(String, Kind)>,
    locals: Vec<Local<'s>>,
}

fn is_scalar(kind: &Kind) -> bool {
    match kind {
        Kind::Bool | Kind::Double | Kind::Duration | Kind::Int | Kind::Timestamp | Kind::Uint => true,
        Kind::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

impl<'s> Estimator<'s> {
    fn kind(&self, expr: &Expr) -> Kind {
        Checker::new(self.scope.clone()).kind(expr)
    }

    fn push(&mut self, name: &str, kind: Kind, local: Local<'s>) {
        self.scope.push((name.to_owned(), kind));
        self.locals.push(local);
    }

    fn pop(&mut self) {
        self.scope.pop();
        self.locals.pop();
    }

    /// One step further; a way that begins nowhere begins at the top.
    fn beyond(
        &self,
        place: Option<Place<'s>>,
        step: impl FnOnce(Place<'s>) -> Place<'s>,
    ) -> Option<Place<'s>> {
        Some(place.map_or(Place::Known(self.root), step))
    }

    /// The size, where it is not known otherwise: by the place, or by the kind.
    fn sized(&self, expr: &Expr, mut found: Estimate<'s>) -> Estimate<'s> {
        if found.size.is_none() {
            found.size = found.place.and_then(Place::size);
        }
        if found.size.is_none() && is_scalar(&self.kind(expr)) {
            found.size = Some(Size::exactly(1));
        }
        found
    }

    fn expr(&mut self, expr: &Expr) -> Estimate<'s> {
        let literal = |size: u64| Estimate { size: Some(Size::exactly(size)), ..Estimate::of(0) };
        match &expr.node {
            Node::Null | Node::Bool(_) | Node::Int(_) | Node::Uint(_) | Node::Double(_) => literal(1),
            Node::Text(text) => literal(text.chars().count() as u64),
            Node::Bytes(bytes) => literal(bytes.len() as u64),
            Node::Name(name) => self.name(expr, name),
            Node::Select { operand, field } => {
                if expr.qualified().is_some_and(|name| type_named(&name).is_some()) {
                    return self.name(expr, "");
                }
                let of = self.expr(operand);
                let named = matches!(self.kind(operand), Kind::Map(..) | Kind::Object(_) | Kind::Param(_));
                let place = self.beyond(of.place, |place| match place {
                    Place::Known(Shape { form: Form::Map(_), .. }) => Place::Lost,
                    place => place.field(field),
                });
                let cost = of.cost.saturating_add(u64::from(named));
                self.sized(expr, Estimate { place, ..Estimate::of(cost) })
            }
            Node::Has { operand, .. } => literal_cost(self.expr(operand).cost),
            Node::OptSelect { operand, .. } => {
                let cost = self.expr(operand).cost.saturating_add(1);
                self.sized(expr, Estimate::of(cost))
            }
            Node::Logic { terms, .. } => {
                let costs = terms.iter().map(|term| self.expr(term).cost).collect::<Vec<_>>();
                literal_cost(costs.into_iter().fold(0, u64::saturating_add))
            }
            Node::Cond { test, yes, no } => {
                let (test, yes, no) = (self.expr(test), self.expr(yes), self.expr(no));
                either(test.cost, &yes, &no)
            }
            Node::List(items) => {
                let items: Vec<_> = items.iter().map(|(item, _)| self.expr(item)).collect();
                let cost = items.iter().fold(LIST, |sum, item| sum.saturating_add(item.cost));
                let entry = items.iter().map(Estimate::size).reduce(Size::union).unwrap_or(Size::exactly(0));
                let size = Some(Size::exactly(items.len() as u64));
                Estimate { size, entry: Some(entry), ..Estimate::of(cost) }
            }
            Node::Map(entries) => {
                let (mut cost, mut entry) = (MAP, None);
                for (key, value, _) in entries {
                    let (key, value) = (self.expr(key), self.expr(value));
                    cost = cost.saturating_add(key.cost).saturating_add(value.cost);
                    let size = value.size();
                    entry = Some(entry.map_or(size, |known: Size| known.union(size)));
                }
                let size = Some(Size::exactly(entries.len() as u64));
                Estimate { size, entry: entry.or(Some(Size::exactly(0))), ..Estimate::of(cost) }
            }
            Node::Message { fields, .. } => {
                let cost = fields.iter().map(|field| self.expr(&field.value).cost);
                Estimate::of(cost.fold(MESSAGE, u64::saturating_add))
            }
            Node::Call { target, function, args } => self.call(expr, target.as_deref(), function, args),
            Node::Macro(inner) => self.fold(expr, inner),
        }
    }

    fn name(&self, expr: &Expr, name: &str) -> Estimate<'s> {
        let index = self.scope.iter().rposition(|(known, _)| known == name);
        let Some(local) = index.and_then(|index| self.locals.get(index)) else {
            let place = Some(Place::Known(self.root));
            return self.sized(expr, Estimate { place, ..Estimate::of(1) });
        };
        let found = Estimate { place: local.place, entry: local.entry, ..Estimate::of(1) };
        let mut found = self.sized(expr, found);
        found.size = found.size.or(local.size);
        found
    }

    fn call(&mut self, expr: &Expr, target: Option<&Expr>, function: &str, args: &[Expr]) -> Estimate<'s> {
        let qualified = target.and_then(Expr::qualified).map(|prefix| format!("{prefix}.{function}"));
        let qualified = qualified.filter(|name| signatures(name).is_some());
        let (name, target) = match &qualified {
            Some(name) => (name.as_str(), None),
            None => (function, target),
        };
        let estimates: Vec<Estimate<'s>> =
            target.into_iter().chain(args).map(|part| self.expr(part)).collect();
        let spent = estimates.iter().fold(0, |sum: u64, part| sum.saturating_add(part.cost));
        let parts: Vec<&Expr> = target.into_iter().chain(args).collect();
        let arguments: Vec<Argument<'_>> = estimates
            .iter()
            .zip(&parts)
            .map(|(estimate, part)| Argument {
                size: estimate.size(),
                kind: self.kind(part),
                expr: part,
                item: self.item_size(estimate),
            })
            .collect();
        let (cost, size) = calls::call(name, target.is_some(), &arguments);
        let mut found = Estimate { size, ..Estimate::of(spent.saturating_add(cost)) };
        match (name, estimates.as_slice()) {
            ("_[_]", [of, _]) => {
                found.size = of.entry;
                found.place = self.beyond(of.place, Place::item);
            }
            ("dyn", [of]) => {
                found.size = of.size;
                found.entry = of.entry;
                return found;
            }
            ("_+_", [a, b]) => {
                found.entry = a.entry.zip(b.entry).map(|(a, b)| a.union(b));
            }
            _ => {}
        }
        self.sized(expr, found)
    }

    /// The size of a list's items, by its place; unknown where it has none.
    fn item_size(&self, list: &Estimate<'s>) -> Size {
        list.place.and_then(|place| place.item().size()).unwrap_or(Size::UNKNOWN)
    }

    fn fold(&mut self, expr: &Expr, inner: &Macro) -> Estimate<'s> {
        match inner.kind {
            MacroKind::OptMap | MacroKind::OptFlatMap => return self.optional(inner),
            MacroKind::SortBy => return self.sort_by(expr, inner),
            _ => {}
        }
        let range = self.expr(&inner.range);
        self.fold_over(inner, &range)
    }

    /// The variables of a macro, for what goes over a list or a map.
    fn variables(&mut self, inner: &Macro, range: &Estimate<'s>) {
        let kind = self.kind(&inner.range);
        let (key, item) = match &kind {
            Kind::List(item) => (Kind::Int, (**item).clone()),
            Kind::Map(key, value) => ((**key).clone(), (**value).clone()),
            _ => (Kind::Dyn, Kind::Dyn),
        };
        let open = |kind: Kind| if matches!(kind, Kind::Param(_)) { Kind::Dyn } else { kind };
        let is_list = matches!(kind, Kind::List(_));
        let keys = self.beyond(range.place, |place| if is_list { Place::Lost } else { place.key() });
        let items = self.beyond(range.place, Place::item);
        let keyed = Local { place: keys, size: range.entry.map(|_| Size::exactly(1)), entry: None };
        let valued = Local { place: items, size: range.entry, entry: None };
        match &inner.second {
            Some(second) => {
                self.push(&inner.first, open(key), keyed);
                self.push(second, open(item), valued);
            }
            None if is_list => self.push(&inner.first, open(item), valued),
            None => self.push(&inner.first, open(key), keyed),
        }
    }

    fn fold_over(&mut self, inner: &Macro, range: &Estimate<'s>) -> Estimate<'s> {
        self.variables(inner, range);
        let filter = inner.filter.as_ref().map(|filter| self.expr(filter).cost);
        let body = self.expr(&inner.body);
        self.pop();
        if inner.second.is_some() {
            self.pop();
        }
        // The costs before the steps, of each step and at the end, as the macro is written out.
        let chosen = |step: u64| filter.unwrap_or(0).saturating_add(step);
        let (before, step, after) = match inner.kind {
            MacroKind::All => (0, body.cost.saturating_add(3), 1),
            MacroKind::Exists => (0, body.cost.saturating_add(4), 1),
            MacroKind::ExistsOne => (0, body.cost.saturating_add(2), 2),
            MacroKind::Filter => (LIST, body.cost.saturating_add(LIST + 3), 1),
            MacroKind::TransformMap => (MAP, chosen(body.cost.saturating_add(3)), 1),
            MacroKind::TransformMapEntry => (MAP, chosen(body.cost.saturating_add(2)), 1),
            _ => (LIST, chosen(body.cost.saturating_add(LIST + 2)), 1),
        };
        let count = range.size();
        let cost = count.max.saturating_mul(step);
        let cost = range.cost.saturating_add(before).saturating_add(cost).saturating_add(after);
        let (size, entry) = match inner.kind {
            MacroKind::All | MacroKind::Exists | MacroKind::ExistsOne => (Size::exactly(1), None),
            MacroKind::Map | MacroKind::TransformList => (count, Some(Size { min: 0, max: body.size().max })),
            MacroKind::Filter => {
                let item = range.place.and_then(|place| place.item().size()).or(range.entry);
                (count, Some(Size { min: 0, max: item.unwrap_or(Size::UNKNOWN).max }))
            }
            _ => (count, None),
        };
        Estimate { size: Some(size), entry, ..Estimate::of(cost) }
    }

    /// A list with its keys beside it, as the macro is written out.
    fn sort_by(&mut self, expr: &Expr, inner: &Macro) -> Estimate<'s> {
        let range = self.expr(&inner.range);
        self.variables(inner, &range);
        let (body, kind) = (self.expr(&inner.body), self.kind(&inner.body));
        self.pop();
        let step = body.cost.saturating_add(LIST + 2);
        let keys = range.size().max.saturating_mul(step).saturating_add(LIST + 2);
        let (sorted, size) = calls::sorted(range.size(), &kind);
        let cost = [LIST, range.cost, 1, keys, sorted].into_iter().fold(0, u64::saturating_add);
        self.sized(expr, Estimate { size: Some(size), ..Estimate::of(cost) })
    }

    /// A value is first asked for, then read again, and bound.
    fn optional(&mut self, inner: &Macro) -> Estimate<'s> {
        let range = self.expr(&inner.range);
        let item = match self.kind(&inner.range) {
            Kind::Optional(item) => *item,
            _ => Kind::Dyn,
        };
        let size = is_scalar(&item).then_some(Size::exactly(1));
        self.push(&inner.first, item, Local { place: None, size, entry: None });
        let body = self.expr(&inner.body);
        self.pop();
        let asked = range.cost.saturating_add(1);
        let bound = LIST.saturating_add(asked).saturating_add(body.cost);
        let made = u64::from(inner.kind == MacroKind::OptMap);
        // Without a value one call makes an optional of none.
        Estimate::of(asked.saturating_add(bound.saturating_add(made).max(1)))
    }
}

/// A truth value that costs so much.
fn literal_cost<'s>(cost: u64) -> Estimate<'s> {
    Estimate { size: Some(Size::exactly(1)), ..Estimate::of(cost) }
}

fn either<'s>(test: u64, yes: &Estimate<'s>, no: &Estimate<'s>) -> Estimate<'s> {
    let cost = test.saturating_add(yes.cost.max(no.cost));
    let entry = yes.entry.zip(no.entry).map(|(yes, no)| yes.union(no));
    Estimate { size: Some(yes.size().union(no.size())), entry, ..Estimate::of(cost) }
}

//! The cost of calls at worst, and the largest size of their results: a server's tables, function by
//! function.

use super::ast::{Expr, Node};
use super::estimate::{Size, at};
use super::kind::Kind;
use super::meter::LIST;

/// Units of cost for each byte of a text.
const TEXT: f64 = 0.1;
/// Units of cost for each character of a regular expression.
const PATTERN: f64 = 0.25;
/// The longest expression that a format stands for.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT: u64 = 64;

/// An argument of a call, as estimated.
pub(super) struct Argument<'a> {
    pub(super) size: Size,
    pub(super) kind: Kind,
    pub(super) expr: &'a Expr,
    /// The size of its items, where it is a list.
    pub(super) item: Size,
}

impl Argument<'_> {
    /// Returns true if it may be one of these when it is evaluated.
    fn may_be(&self, kinds: &[Kind]) -> bool {
        self.kind.is_dyn() || kinds.contains(&self.kind)
    }

    fn is_text(&self) -> bool {
        self.may_be(&[Kind::Text])
    }

    /// The number that is written out.
    fn number(&self, otherwise: u64) -> u64 {
        match self.expr.node {
            Node::Int(number) => u64::try_from(number).unwrap_or(0),
            _ => otherwise,
        }
    }
}

/// The worst-case cost of a regular expression on a text.
fn matched(text: Size, pattern: Size) -> u64 {
    text.plus(Size::exactly(1)).at(TEXT).saturating_mul(pattern.at(PATTERN))
}

/// A call that makes a list.
fn allocated(factor: f64, size: Size) -> (u64, Option<Size>) {
    (size.at(factor).saturating_add(1 + LIST), Some(size))
}

/// Sorting a list by keys of this kind; the size is the server's, which is that of what is compared.
pub(super) fn sorted(list: Size, keys: &Kind) -> (u64, Size) {
    let factor = if matches!(keys, Kind::Text | Kind::Bytes) { 2.0 + TEXT } else { 2.0 };
    let compared = list.times(list);
    (compared.at(factor).saturating_add(1 + LIST), compared)
}

/// The cost of a call beside its arguments, and the size of its result where that follows from them. The
/// target of a method is the first argument.
pub(super) fn call(name: &str, method: bool, args: &[Argument<'_>]) -> (u64, Option<Size>) {
    let size = |index: usize| args.get(index).map_or(Size::UNKNOWN, |arg| arg.size);
    let first = args.first();
    let texts = [Kind::Text, Kind::Bytes];
    match name {
        "check" => (350_000, None),
        "_==_" | "_!=_" => (equality(name, args), None),
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            let compared = args.iter().all(|arg| arg.may_be(&texts));
            let cost = at(size(0).max.min(size(1).max), TEXT);
            (if compared { cost.max(u64::from(first.is_some_and(|arg| arg.kind.is_dyn()))) } else { 1 }, None)
        }
        "_+_" => {
            let both = size(0).plus(size(1));
            let joined = args.iter().all(|arg| arg.may_be(&texts));
            let lists = args.iter().any(|arg| matches!(arg.kind, Kind::List(_)));
            match (joined, lists) {
                (true, _) => (both.at(TEXT), Some(both)),
                (_, true) => (1, Some(both)),
                _ => (1, None),
            }
        }
        "@in" if args.get(1).is_some_and(|arg| matches!(arg.kind, Kind::List(_) | Kind::Dyn)) => {
            (size(1).max, None)
        }
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => (traversed(args), None),
        "url" | "jsonpatch.escapeKey" | "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            (size(0).at(TEXT), Some(size(0)))
        }
        "replace" => (size(0).at(2.0 * TEXT), Some(replaced(size(0), size(1), size(2)))),
        "split" => {
            let most = args.get(2).map_or(size(0).max, |most| most.number(size(0).max));
            (size(0).at(2.0 * TEXT), Some(Size { min: 0, max: most }))
        }
        "join" => joined(args),
        "find" | "findAll" => (matched(size(0), size(1)), Some(Size { min: 0, max: size(0).max })),
        "matches" if method => (matched(size(0), size(1)), None),
        "contains" => (size(0).at(TEXT).saturating_mul(size(1).at(TEXT)), None),
        "startsWith" | "endsWith" => (size(1).at(TEXT), None),
        "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" | "format" => {
            (size(0).at(TEXT), None)
        }
        "ip" if !method => (size(0).at(TEXT), None),
        "ip.isCanonical" => (size(0).at(2.0 * TEXT), None),
        "containsIP" | "containsCIDR" => {
            let address = Size { min: 4, max: 16 };
            let masked = if name == "containsCIDR" { address.at(TEXT) + 1 } else { 0 };
            let read = args.get(1).filter(|arg| arg.is_text()).map_or(0, |arg| arg.size.at(TEXT));
            (address.plus(address).at(TEXT).saturating_add(masked).saturating_add(read), None)
        }
        "validate" => (at(size(1).at(TEXT), FORMAT_PATTERN * PATTERN), None),
        "bytes" if first.is_some_and(Argument::is_text) => {
            let most = size(0).max.saturating_mul(4);
            (size(0).at(TEXT).max(1), Some(Size { min: size(0).min, max: most }))
        }
        "string" if first.is_some_and(|arg| arg.may_be(&[Kind::Bytes])) => {
            (size(0).at(TEXT).max(1), Some(Size { min: size(0).min / 4, max: size(0).max }))
        }
        "strings.quote" => {
            let most = size(0).max.saturating_mul(2).saturating_add(2);
            (size(0).at(TEXT), Some(Size { min: size(0).min.saturating_add(2), max: most }))
        }
        "sets.contains" | "sets.intersects" => (size(0).times(size(1)).max.saturating_add(1), None),
        "sets.equivalent" => (size(0).times(size(1)).at(2.0).saturating_add(1), None),
        "slice" => {
            let end = args.get(2).map_or(0, |end| end.number(size(0).max));
            let start = args.get(1).map_or(0, |start| start.number(0));
            allocated(1.0, Size::exactly(end.wrapping_sub(start)))
        }
        "lists.range" => allocated(1.0, Size::exactly(first.map_or(0, |count| count.number(u64::MAX)))),
        "reverse" => allocated(1.0, size(0)),
        "flatten" => allocated(args.get(1).map_or(1, |depth| depth.number(u64::MAX)) as f64, size(0)),
        "distinct" => allocated(2.0, size(0).times(size(0))),
        "sort" => {
            let item = match first.map(|list| &list.kind) {
                Some(Kind::List(item)) => (**item).clone(),
                _ => Kind::Dyn,
            };
            let (cost, size) = sorted(size(0), &item);
            (cost, Some(size))
        }
        _ => (1, None),
    }
}

fn equality(name: &str, args: &[Argument<'_>]) -> u64 {
    let [a, b] = args else { return 1 };
    let both = |kind: &str| matches!((&a.kind, &b.kind), (Kind::Opaque(x), Kind::Opaque(y)) if *x == kind && *y == kind);
    if name == "_==_" {
        if both("kubernetes.NamedFormat") {
            return at(FORMAT, TEXT);
        }
        if both("kubernetes.URL") {
            return at(if b.size == Size::UNKNOWN { 1 } else { b.size.max }, TEXT);
        }
        if matches!((&a.kind, &b.kind), (Kind::Opaque(x), Kind::Opaque(y)) if x == y) {
            return 1;
        }
    }
    at(a.size.max.min(b.size.max), TEXT)
}

/// Going through a list, or a text.
fn traversed(args: &[Argument<'_>]) -> u64 {
    let Some(of) = args.first() else { return 1 };
    match &of.kind {
        Kind::List(item) => {
            let texts = matches!(**item, Kind::Text | Kind::Bytes);
            let each = if texts { of.item.at(TEXT).saturating_add(1) } else { 1 };
            of.size.max.saturating_mul(each)
        }
        _ => of.size.at(TEXT),
    }
}

/// The texts of a list with something between.
fn joined(args: &[Argument<'_>]) -> (u64, Option<Size>) {
    let Some(list) = args.first() else { return (1, None) };
    let mut size = list.size.times(list.item);
    if let Some(between) = args.get(1) {
        let gaps = Size { min: list.size.min.saturating_sub(1), max: list.size.max.saturating_sub(1) };
        size = size.plus(between.size.times(gaps));
    }
    (size.at(TEXT), Some(size))
}

/// How long a text may be after parts of it were replaced.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    let (most, kept) = if old.min == 0 {
        (text.max.saturating_add(1), text.max)
    } else if new.max <= old.min {
        (0, text.max)
    } else {
        ((text.max as f64 / old.min as f64).ceil() as u64, 0)
    };
    let (least, still) = if old.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if old.max <= new.min {
        (0, text.min)
    } else {
        ((text.min as f64 / old.max as f64).ceil() as u64, 0)
    };
    Size { min: least, max: most }.times(new).plus(Size { min: still, max: kept })
}

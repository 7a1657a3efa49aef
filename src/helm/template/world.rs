//! The input of a render once a template has changed it, so that two renders can be compared there. Every map
//! that can be reached gets a number anew and notes what is read of it, also those that templates made.

use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::reads::{self, IN_LIST, NodeId, Paths, ROOT, ReadSet, Reads};
use super::text::Str;
use super::value::{Elem, Map, MapType, UintKind, Value};

/// More values than this are not worth comparing.
const MOST_PARTS: usize = 200_000;
/// Deeper than this nothing is compared: a map may hold itself by way of a list.
const MOST_LEVELS: usize = 100;

/// The data of each chart's templates at one moment.
pub struct World {
    charts: Vec<Part>,
}

enum Part {
    Nil,
    Bool(bool),
    Int(i64),
    Int64(i64),
    Uint(bool, u64),
    Float(u64),
    Str(Str),
    List(Elem, bool, Vec<Part>),
    Map(NodeId, MapType, bool, BTreeMap<Str, Part>),
    /// A map that stands elsewhere, too.
    Again(NodeId),
    /// An object of the input.
    Stable(usize),
    /// A value that cannot be compared.
    Other,
}

/// The objects of an input that stay what they are as long as chart, files and cluster do.
#[derive(Default)]
pub struct StableObjects(Vec<*const ()>);

impl StableObjects {
    /// The objects in the data of each chart's templates, before any of them has run.
    #[must_use]
    pub fn in_data(data: &[Map]) -> StableObjects {
        let values = data.iter().flat_map(|map| map.peek_all().values().cloned().collect::<Vec<_>>());
        StableObjects(
            values
                .filter_map(|value| if let Value::Host(host) = value { Some(address(&host)) } else { None })
                .collect(),
        )
    }
}

fn address<T: ?Sized>(object: &Rc<T>) -> *const () {
    Rc::as_ptr(object).cast()
}

struct Survey<'a> {
    reads: &'a Rc<Reads>,
    paths: &'a mut Paths,
    given: &'a StableObjects,
    /// Maps that have a number of their own.
    numbered: HashSet<*const ()>,
    shown: HashSet<*const ()>,
    left: usize,
}

impl World {
    /// Looks at the data of each chart's templates; nothing where there is too much of it.
    #[must_use]
    pub fn survey(
        data: &[Map],
        reads: &Rc<Reads>,
        paths: &mut Paths,
        given: &StableObjects,
    ) -> Option<World> {
        let (numbered, shown) = (HashSet::new(), HashSet::new());
        let mut survey = Survey { reads, paths, given, numbered, shown, left: MOST_PARTS };
        for (at, map) in data.iter().enumerate() {
            let node = survey.paths.child(ROOT, &at.to_string());
            survey.number(map, node, 0)?;
        }
        let charts = data.iter().map(|map| survey.map(map, false, 0)).collect::<Option<_>>()?;
        Some(World { charts })
    }

    /// The differences, as templates read them.
    #[must_use]
    pub fn changes(&self, new: &World) -> Option<ReadSet> {
        let mut found = ReadSet::default();
        if self.charts.len() != new.charts.len() {
            return None;
        }
        for pair in self.charts.iter().zip(&new.charts) {
            match pair {
                (Part::Map(a, .., old), Part::Map(b, .., new)) if a == b => {
                    differences(*a, old, new, &mut found);
                }
                (old, new) if old.same(new) => {}
                _ => return None,
            }
        }
        Some(found)
    }
}

impl Survey<'_> {
    /// Gives a number to every map that is reached by keys alone, the first way there.
    fn number(&mut self, map: &Map, node: NodeId, level: usize) -> Option<()> {
        if level > MOST_LEVELS {
            return None;
        }
        if !self.numbered.insert(map.address()) {
            return Some(());
        }
        self.left = self.left.checked_sub(1)?;
        map.watch(self.reads, node);
        let below: Vec<_> =
            map.peek_all().iter().filter_map(|(key, value)| Some((key.clone(), value.as_map()?))).collect();
        for (key, map) in below {
            let node = self.paths.child(node, &key.text());
            self.number(&map, node, level + 1)?;
        }
        Some(())
    }

    /// A map with a number is shown once, and not inside a list: who reads it there reads it under its
    /// number.
    fn map(&mut self, map: &Map, in_list: bool, level: usize) -> Option<Part> {
        let numbered = self.numbered.contains(&map.address());
        if !numbered {
            map.watch(self.reads, IN_LIST);
        } else if in_list || !self.shown.insert(map.address()) {
            return Some(Part::Again(map.node()));
        }
        let in_list = !numbered;
        let entries: Vec<_> =
            map.peek_all().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let entries =
            entries.into_iter().map(|(key, value)| Some((key, self.part(&value, in_list, level + 1)?)));
        Some(Part::Map(map.node(), map.ty(), map.is_nil(), entries.collect::<Option<_>>()?))
    }

    fn part(&mut self, value: &Value, in_list: bool, level: usize) -> Option<Part> {
        self.left = self.left.checked_sub(1)?;
        if level > MOST_LEVELS {
            return None;
        }
        Some(match value {
            Value::Nil => Part::Nil,
            Value::Bool(value) => Part::Bool(*value),
            Value::Int(value) => Part::Int(*value),
            Value::Int64(value) => Part::Int64(*value),
            Value::Uint(kind, value) => Part::Uint(*kind == UintKind::U8, *value),
            Value::Float(value) => Part::Float(value.to_bits()),
            Value::Str(text) => Part::Str(text.clone()),
            Value::List(list) => {
                let items = list.items().iter().map(|item| self.part(item, true, level + 1));
                Part::List(list.elem(), list.is_nil(), items.collect::<Option<_>>()?)
            }
            Value::Map(map) => self.map(map, in_list, level)?,
            Value::Host(host) => self
                .given
                .0
                .iter()
                .position(|given| *given == address(host))
                .map_or(Part::Other, Part::Stable),
        })
    }
}

impl Part {
    fn same(&self, other: &Part) -> bool {
        match (self, other) {
            (Part::Nil, Part::Nil) => true,
            (Part::Bool(a), Part::Bool(b)) => a == b,
            (Part::Int(a), Part::Int(b)) | (Part::Int64(a), Part::Int64(b)) => a == b,
            (Part::Uint(a, x), Part::Uint(b, y)) => a == b && x == y,
            (Part::Float(a), Part::Float(b)) => a == b,
            (Part::Str(a), Part::Str(b)) => a == b,
            (Part::List(a, x, old), Part::List(b, y, new)) => {
                a == b && x == y && old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.same(b))
            }
            (Part::Map(a, s, x, old), Part::Map(b, t, y, new)) => {
                (a, s, x) == (b, t, y)
                    && old.len() == new.len()
                    && old.iter().zip(new).all(|((k, a), (l, b))| k == l && a.same(b))
            }
            (Part::Again(a), Part::Again(b)) => a == b,
            (Part::Stable(a), Part::Stable(b)) => a == b,
            _ => false,
        }
    }
}

fn differences(node: NodeId, old: &BTreeMap<Str, Part>, new: &BTreeMap<Str, Part>, found: &mut ReadSet) {
    fn pairs(map: &BTreeMap<Str, Part>) -> impl Iterator<Item = (&[u8], &Part)> {
        map.iter().map(|(key, part)| (&**key, part))
    }
    reads::differences(node, pairs(old), pairs(new), found, |_, old, new, found| match (old, new) {
        (Part::Map(a, s, x, old), Part::Map(b, t, y, new)) if (a, s, x) == (b, t, y) && *a != IN_LIST => {
            differences(*a, old, new, found);
            true
        }
        (old, new) => old.same(new),
    });
}

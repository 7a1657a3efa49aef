//! The rows of the custom resources: which ones, in which order, and what they make of their children.
//! Follows the state by what has changed, so that one event costs one row, whatever the number of rows. What
//! looks at every row at each letter typed lies in one place, for at 100,000 rows each pointer followed costs
//! a frame.

use super::filter::{Filter, Subject};
use opdev_event::PrinterColumn;
use opdev_object::meta::ObjectKey;
use opdev_state::health::Level;
use opdev_state::tree;
use opdev_state::tree::Row;
use opdev_state::{Changes, Seen, State, columns};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// How many rows are made out of objects and children at each refresh before somebody asks for them, so that
/// an order by status, or the list of faults, finds them made.
const AHEAD: usize = 500;

/// A column to sort by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Column {
    /// Kind, namespace, name: the order of the keys.
    #[default]
    Kind,
    Namespace,
    Name,
    Status,
    Ready,
    Age,
    /// A printer column of the CRD.
    Printer(PrinterColumn),
}

/// The order of the rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sort {
    pub by: Column,
    pub down: bool,
}

/// The rows that are shown, and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub(crate) filter: String,
    /// Only this one.
    pub(crate) namespace: Option<String>,
    /// Only what has a fault.
    pub(crate) faults: bool,
    /// Deleted ones, too.
    pub(crate) gone: bool,
    pub(crate) sort: Sort,
}

/// The sort key of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum By {
    Nothing,
    Number(i64),
    Text(Arc<str>),
}

impl By {
    /// The sort key of an object; its row is needed where it is sorted by status or readiness.
    fn of(column: &Column, seen: &Seen, row: Option<&Row>, words: &mut HashSet<Arc<str>>) -> Self {
        match column {
            Column::Kind => By::Nothing,
            Column::Namespace => By::Text(word(words, seen.key.namespace.as_deref().unwrap_or_default())),
            Column::Name => By::Text(seen.key.name.as_str().into()),
            Column::Status => row.map_or(By::Nothing, |row| By::Text(word(words, &row.word))),
            // By share, so that what lacks most comes first.
            Column::Ready => match row.and_then(|row| row.ready) {
                None => By::Nothing,
                Some((ready, wanted)) => By::Number(ready.saturating_mul(1_000_000) / wanted.max(1)),
            },
            // The youngest first.
            Column::Age => seen.created.map_or(By::Nothing, |at| By::Number(-at.as_second())),
            Column::Printer(column) => match columns::first(&seen.object, &column.path) {
                None | Some(Value::Null) => By::Nothing,
                Some(Value::Number(number)) => number.as_i64().map_or(By::Nothing, By::Number),
                Some(Value::String(text)) => By::Text(word(words, text)),
                Some(other) => By::Text(word(words, &other.to_string())),
            },
        }
    }

    fn order(&self, other: &By) -> Ordering {
        match (self, other) {
            // Most are the same few words, each kept once.
            (By::Text(a), By::Text(b)) if Arc::ptr_eq(a, b) => Ordering::Equal,
            (By::Text(a), By::Text(b)) => a.cmp(b),
            (By::Number(a), By::Number(b)) => a.cmp(b),
            (By::Nothing, By::Nothing) => Ordering::Equal,
            (By::Nothing, _) | (By::Number(_), By::Text(_)) => Ordering::Less,
            (_, By::Nothing) | (By::Text(_), By::Number(_)) => Ordering::Greater,
        }
    }
}

/// The rows that have to be looked at anew.
pub enum Touched {
    /// Everything.
    All,
    /// These custom resources and what belongs to them.
    Some(BTreeSet<Arc<ObjectKey>>),
}

impl Touched {
    /// Returns true if a custom resource is among them.
    pub fn has(&self, key: Option<&Arc<ObjectKey>>) -> bool {
        match (self, key) {
            (Touched::All, _) => true,
            (Touched::Some(keys), Some(key)) => keys.contains(key),
            (Touched::Some(_), None) => false,
        }
    }
}

/// A custom resource, and what has been made out of it.
struct Entry {
    seen: Arc<Seen>,
    /// Kind, namespace and name as they stand on the screen, in lower case.
    text: Box<str>,
    /// The health from its children, once somebody has looked.
    row: Option<Row>,
    /// The sort key in the list; `None` where it is not shown.
    by: Option<By>,
}

impl Entry {
    fn new(seen: Arc<Seen>) -> Self {
        let key = &seen.key;
        let namespace = key.namespace.as_deref().unwrap_or("");
        let mut text = format!("{} {namespace}/{}", key.kind, key.name);
        text.make_ascii_lowercase();
        Entry { text: text.into(), seen, row: None, by: None }
    }
}

/// The rows, and what they were made of.
#[derive(Default)]
pub struct Table {
    /// Every custom resource, by key.
    entries: Vec<Entry>,
    /// The sort keys of the shown ones, one for each.
    by: Vec<By>,
    /// Words that rows are sorted by.
    words: HashSet<Arc<str>>,
    /// Up to where rows are made before somebody asks.
    ahead: usize,
    wanted: Wanted,
    filter: Filter,
    at: Option<Changes>,
    /// True if the shown rows are other ones since the refresh before.
    pub(crate) fresh: bool,
    /// How many rows were made out of objects and children.
    made: usize,
}

/// The work that follows from changes.
struct Followed {
    /// The custom resources that look different.
    roots: BTreeSet<Arc<ObjectKey>>,
    /// The sort keys of those that are gone.
    gone: BTreeMap<Arc<ObjectKey>, Option<By>>,
}

impl Table {
    /// Brings the shown rows up to a state.
    pub fn refresh(&mut self, shown: &mut Vec<Arc<Seen>>, state: &State, wanted: &Wanted) -> Touched {
        let now = state.objects.changes();
        let other = *wanted != self.wanted;
        if other {
            self.wanted = wanted.clone();
            self.filter = Filter::new(&wanted.filter);
        }
        let changed: Option<BTreeSet<Arc<ObjectKey>>> =
            self.at.as_ref().and_then(|at| now.since(at)).map(|keys| keys.cloned().collect());
        self.at = Some(now.clone());
        let followed = match &changed {
            Some(changed) => Some(self.follow(state, changed)),
            None => {
                let mut all: Vec<&Arc<Seen>> = state.listed().collect();
                all.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                self.entries = all.into_iter().cloned().map(Entry::new).collect();
                self.ahead = 0;
                None
            }
        };
        // An object that is gone is not in the lists of what has changed.
        let gone_too = wanted.gone && changed.is_some_and(|changed| !changed.is_empty());
        let followed = followed.filter(|_| !gone_too);
        self.fresh = other || followed.as_ref().is_none_or(|followed| !followed.roots.is_empty());
        match &followed {
            Some(_) if !self.fresh => {}
            // One by one is quicker only while they are few.
            Some(followed) if !other && followed.roots.len() * shown.len() < 4_000_000 => {
                for root in &followed.roots {
                    self.place(shown, state, root, followed.gone.get(root));
                }
            }
            Some(_) | None => self.rebuild(shown, state),
        }
        self.look_ahead(state);
        followed.map_or(Touched::All, |followed| Touched::Some(followed.roots))
    }

    /// The health that a custom resource has from its children.
    pub fn row(&mut self, state: &State, seen: &Arc<Seen>) -> Row {
        let mut row = match self.find(&seen.key) {
            Ok(at) => self.known(state, at).clone(),
            Err(_) => tree::row(state, seen),
        };
        row.running = state.running.contains_key(seen.key.as_ref());
        row
    }

    fn find(&self, key: &Arc<ObjectKey>) -> Result<usize, usize> {
        self.entries.binary_search_by(|entry| entry.seen.key.cmp(key))
    }

    fn known(&mut self, state: &State, at: usize) -> &Row {
        let entry = &mut self.entries[at];
        self.made += usize::from(entry.row.is_none());
        entry.row.get_or_insert_with(|| tree::row(state, &entry.seen))
    }

    /// How many rows have been made out of objects and children.
    pub fn rows_made(&self) -> usize {
        self.made
    }

    fn look_ahead(&mut self, state: &State) {
        let end = self.entries.len().min(self.ahead + AHEAD);
        for at in self.ahead.min(end)..end {
            self.known(state, at);
        }
        self.ahead = end;
    }

    /// Every custom resource, by key.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Seen>> {
        self.entries.iter().map(|entry| &entry.seen)
    }

    /// Takes in what has changed.
    fn follow(&mut self, state: &State, changed: &BTreeSet<Arc<ObjectKey>>) -> Followed {
        let mut followed = Followed { roots: BTreeSet::new(), gone: BTreeMap::new() };
        for key in changed {
            let new = state.objects.get(key).filter(|_| state.is_listed(key));
            match (self.find(key), new) {
                (Ok(at), Some(seen)) => self.entries[at].seen = Arc::clone(seen),
                (Err(at), Some(seen)) => self.entries.insert(at, Entry::new(Arc::clone(seen))),
                (Ok(at), None) => {
                    followed.gone.insert(Arc::clone(key), self.entries.remove(at).by);
                    followed.roots.insert(Arc::clone(key));
                }
                (Err(_), None) => {}
            }
            followed.roots.extend(tree::roots_of(state, key));
        }
        for root in &followed.roots {
            if let Ok(at) = self.find(root) {
                self.entries[at].row = None;
            }
        }
        followed
    }

    fn is_shown(&mut self, state: &State, at: usize) -> bool {
        let entry = &self.entries[at];
        if !self.passes(&entry.seen, &entry.text) {
            return false;
        }
        !self.wanted.faults || self.known(state, at).level == Level::Bad
    }

    fn passes(&self, seen: &Seen, text: &str) -> bool {
        let namespace = self.wanted.namespace.as_ref();
        if namespace.is_some_and(|wanted| seen.key.namespace.as_ref().is_some_and(|known| known != wanted)) {
            return false;
        }
        self.filter.is_empty()
            || self.filter.passes(Subject { text, object: Some(seen), ..Subject::default() })
    }

    fn rebuild(&mut self, shown: &mut Vec<Arc<Seen>>, state: &State) {
        let mut rows: Vec<(By, usize)> = Vec::with_capacity(self.entries.len());
        for at in 0..self.entries.len() {
            let by = self.is_shown(state, at).then(|| self.by_of(state, at));
            self.entries[at].by.clone_from(&by);
            rows.extend(by.map(|by| (by, at)));
        }
        let mut gone = if self.wanted.gone { tree::gone_customs(state) } else { Vec::new() };
        gone.retain(|seen| {
            let entry = Entry::new(Arc::clone(seen));
            self.passes(seen, &entry.text)
                && (!self.wanted.faults || tree::row(state, seen).level == Level::Bad)
        });
        for (i, seen) in gone.iter().enumerate() {
            let by = By::of(&self.wanted.sort.by, seen, Some(&tree::row(state, seen)), &mut self.words);
            rows.push((by, self.entries.len() + i));
        }
        match (&self.wanted.sort.by, self.wanted.sort.down) {
            (Column::Kind, false) => {}
            (Column::Kind, true) => rows.reverse(),
            // Equal ones stay in the order of the keys, whichever way the others go.
            (_, down) => rows.sort_by(|(a, _), (b, _)| turned(a.order(b), down)),
        }
        let entries = &self.entries;
        *shown = rows
            .iter()
            .map(|(_, at)| entries.get(*at).map_or_else(|| &gone[*at - entries.len()], |entry| &entry.seen))
            .cloned()
            .collect();
        self.by = rows.into_iter().map(|(by, _)| by).collect();
    }

    /// Takes one row out and puts it where it belongs now.
    fn place(
        &mut self,
        shown: &mut Vec<Arc<Seen>>,
        state: &State,
        key: &Arc<ObjectKey>,
        gone: Option<&Option<By>>,
    ) {
        let at = self.find(key);
        let old = match (gone, at) {
            (Some(by), _) => by.clone(),
            (None, Ok(at)) => self.entries[at].by.take(),
            (None, Err(_)) => None,
        };
        if let Some(Ok(place)) = old.map(|old| self.search(shown, key, &old)) {
            shown.remove(place);
            self.by.remove(place);
        }
        let Ok(at) = at else { return };
        if !self.is_shown(state, at) {
            return;
        }
        let by = self.by_of(state, at);
        let (Ok(place) | Err(place)) = self.search(shown, key, &by);
        self.entries[at].by = Some(by.clone());
        shown.insert(place, Arc::clone(&self.entries[at].seen));
        self.by.insert(place, by);
    }

    /// Where a row with this key stands, or would stand.
    fn search(&self, shown: &[Arc<Seen>], key: &Arc<ObjectKey>, by: &By) -> Result<usize, usize> {
        let Sort { by: column, down } = &self.wanted.sort;
        let (mut low, mut high) = (0, shown.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            let order = match (self.by[middle].order(by), column) {
                (Ordering::Equal, Column::Kind) => turned(shown[middle].key.cmp(key), *down),
                (Ordering::Equal, _) => shown[middle].key.cmp(key),
                (order, _) => turned(order, *down),
            };
            match order {
                Ordering::Equal => return Ok(middle),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    fn by_of(&mut self, state: &State, at: usize) -> By {
        if matches!(self.wanted.sort.by, Column::Status | Column::Ready) {
            self.known(state, at);
        }
        let entry = &self.entries[at];
        By::of(&self.wanted.sort.by, &entry.seen, entry.row.as_ref(), &mut self.words)
    }
}

/// A word, kept once.
fn word(words: &mut HashSet<Arc<str>>, text: &str) -> Arc<str> {
    if let Some(known) = words.get(text) {
        return Arc::clone(known);
    }
    let word: Arc<str> = text.into();
    // Columns with a text of its own for each object would only fill it.
    if words.len() < 1_000 {
        words.insert(Arc::clone(&word));
    }
    word
}

fn turned(order: Ordering, down: bool) -> Ordering {
    if down { order.reverse() } else { order }
}

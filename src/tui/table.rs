//! The rows of the custom resources: which ones, in which order, and what they make of their children. Follows the
//! state by what has changed, so that one event costs one row, whatever the number of rows.

use super::filter::{Filter, Subject};
use crate::event::PrinterColumn;
use crate::state::health::Level;
use crate::state::tree::{self, Row};
use crate::state::{Changes, Seen, State, columns};
use opdev_object::meta::ObjectKey;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A column to sort by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Column {
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
pub(super) struct Sort {
    pub(super) by: Column,
    pub(super) down: bool,
}

/// Which rows, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) filter: String,
    /// Only this one.
    pub(super) namespace: Option<String>,
    /// Only what has a fault.
    pub(super) faults: bool,
    /// Deleted ones, too.
    pub(super) gone: bool,
    pub(super) sort: Sort,
}

/// What a row is sorted by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Nothing,
    Number(i64),
    Text(String),
}

/// What has to be looked at anew.
pub(super) enum Touched {
    /// Everything.
    All,
    /// These custom resources and what belongs to them.
    Some(BTreeSet<Arc<ObjectKey>>),
}

impl Touched {
    /// Whether a custom resource is among them.
    pub(super) fn has(&self, key: Option<&Arc<ObjectKey>>) -> bool {
        match (self, key) {
            (Touched::All, _) => true,
            (Touched::Some(keys), Some(key)) => keys.contains(key),
            (Touched::Some(_), None) => false,
        }
    }
}

/// The rows, and what they were made of.
#[derive(Default)]
pub(super) struct Table {
    /// Every custom resource, by key.
    all: Vec<Arc<Seen>>,
    /// What the shown ones are sorted by; empty in the order of the keys.
    by: HashMap<Arc<ObjectKey>, By>,
    /// What has been made out of objects and their children.
    rows: HashMap<Arc<ObjectKey>, Row>,
    wanted: Wanted,
    filter: Filter,
    at: Option<Changes>,
    /// Whether the shown rows are other ones since the refresh before.
    pub(super) fresh: bool,
}

impl Table {
    /// Brings the shown rows up to a state.
    pub(super) fn refresh(&mut self, shown: &mut Vec<Arc<Seen>>, state: &State, wanted: &Wanted) -> Touched {
        let now = state.objects.changes();
        let other = *wanted != self.wanted;
        if other {
            self.wanted = wanted.clone();
            self.filter = Filter::new(&wanted.filter);
        }
        let changed: Option<BTreeSet<Arc<ObjectKey>>> =
            self.at.as_ref().and_then(|at| now.since(at)).map(|keys| keys.cloned().collect());
        self.at = Some(now.clone());
        let touched = match changed {
            // What is gone is not in the lists of what has changed.
            Some(changed) if wanted.gone && !changed.is_empty() => {
                self.follow(state, &changed);
                Touched::All
            }
            Some(changed) => self.follow(state, &changed),
            None => {
                self.rows.clear();
                self.all = state.objects.custom().cloned().collect();
                Touched::All
            }
        };
        self.fresh = other || !matches!(&touched, Touched::Some(roots) if roots.is_empty());
        match &touched {
            Touched::Some(_) if !self.fresh => {}
            // One by one is quicker only while they are few.
            Touched::Some(roots) if !other && roots.len() * shown.len() < 4_000_000 => {
                for root in roots {
                    self.place(shown, state, root);
                }
            }
            Touched::All | Touched::Some(_) => self.rebuild(shown, state),
        }
        touched
    }

    /// What a custom resource makes of its children.
    pub(super) fn row(&mut self, state: &State, seen: &Arc<Seen>) -> Row {
        let mut row = self.known(state, seen).clone();
        row.running = state.running.contains_key(seen.key.as_ref());
        row
    }

    fn known(&mut self, state: &State, seen: &Arc<Seen>) -> &Row {
        self.rows.entry(Arc::clone(&seen.key)).or_insert_with(|| tree::row(state, seen))
    }

    /// Every custom resource, by key.
    pub(super) fn all(&self) -> &[Arc<Seen>] {
        &self.all
    }

    /// Takes in what has changed; gives back the custom resources that look different.
    fn follow(&mut self, state: &State, changed: &BTreeSet<Arc<ObjectKey>>) -> Touched {
        let mut roots = BTreeSet::new();
        for key in changed {
            let place = self.all.binary_search_by(|seen| seen.key.cmp(key));
            let new = state.objects.get(key).filter(|_| state.objects.is_custom(key));
            match (place, new) {
                (Ok(at), Some(seen)) => self.all[at] = Arc::clone(seen),
                (Err(at), Some(seen)) => self.all.insert(at, Arc::clone(seen)),
                (Ok(at), None) => {
                    self.all.remove(at);
                    roots.insert(Arc::clone(key));
                }
                (Err(_), None) => {}
            }
            roots.extend(tree::roots_of(state, key));
        }
        for root in &roots {
            self.rows.remove(root);
        }
        Touched::Some(roots)
    }

    fn is_shown(&mut self, state: &State, seen: &Arc<Seen>, text: &mut String) -> bool {
        let key = &seen.key;
        if let Some(namespace) = &self.wanted.namespace
            && key.namespace.as_ref().is_some_and(|known| known != namespace)
        {
            return false;
        }
        if !self.filter.is_empty() {
            let namespace = key.namespace.as_deref().unwrap_or("");
            text.clear();
            for part in [key.kind.as_str(), " ", namespace, "/", key.name.as_str()] {
                text.push_str(part);
            }
            text.make_ascii_lowercase();
            let subject = Subject { text, kind: &key.kind, namespace, labels: Some(&seen.labels) };
            if !self.filter.passes(subject) {
                return false;
            }
        }
        !self.wanted.faults || self.known(state, seen).level == Level::Bad
    }

    fn rebuild(&mut self, shown: &mut Vec<Arc<Seen>>, state: &State) {
        let (all, mut text) = (std::mem::take(&mut self.all), String::new());
        let gone = if self.wanted.gone { tree::gone_customs(state) } else { Vec::new() };
        *shown =
            all.iter().chain(&gone).filter(|seen| self.is_shown(state, seen, &mut text)).cloned().collect();
        self.all = all;
        self.by.clear();
        if self.wanted.sort.by == Column::Kind {
            if self.wanted.sort.down {
                shown.reverse();
            }
            return;
        }
        let sorted = std::mem::take(shown).into_iter().map(|seen| (self.by_of(state, &seen), seen));
        let mut sorted: Vec<(By, Arc<Seen>)> = sorted.collect();
        sorted.sort_unstable_by(|(a, x), (b, y)| self.order(&x.key, Some(a), &y.key, Some(b)));
        self.by.reserve(sorted.len());
        shown.reserve(sorted.len());
        for (by, seen) in sorted {
            self.by.insert(Arc::clone(&seen.key), by);
            shown.push(seen);
        }
    }

    /// Takes one row out and puts it where it belongs now.
    fn place(&mut self, shown: &mut Vec<Arc<Seen>>, state: &State, key: &Arc<ObjectKey>) {
        let old = self.by.get(key).cloned();
        let sorted = self.wanted.sort.by != Column::Kind;
        if !sorted || old.is_some() {
            let at =
                shown.binary_search_by(|seen| self.order(&seen.key, self.by_known(seen), key, old.as_ref()));
            if let Ok(at) = at {
                shown.remove(at);
            }
            self.by.remove(key);
        }
        let Ok(at) = self.all.binary_search_by(|seen| seen.key.cmp(key)) else { return };
        let seen = Arc::clone(&self.all[at]);
        if !self.is_shown(state, &seen, &mut String::new()) {
            return;
        }
        let by = sorted.then(|| self.by_of(state, &seen));
        let at = shown.binary_search_by(|seen| self.order(&seen.key, self.by_known(seen), key, by.as_ref()));
        let (Ok(at) | Err(at)) = at;
        shown.insert(at, Arc::clone(&seen));
        self.by.extend(by.map(|by| (Arc::clone(&seen.key), by)));
    }

    fn by_known(&self, seen: &Seen) -> Option<&By> {
        self.by.get(&seen.key)
    }

    fn order(
        &self,
        a: &Arc<ObjectKey>,
        by_a: Option<&By>,
        b: &Arc<ObjectKey>,
        by_b: Option<&By>,
    ) -> Ordering {
        let order = by_a.cmp(&by_b);
        let down = self.wanted.sort.down;
        match (order, &self.wanted.sort.by) {
            (Ordering::Equal, Column::Kind) if down => b.cmp(a),
            // Equal ones stay in the order of the keys, whichever way the others go.
            (Ordering::Equal, _) => a.cmp(b),
            (order, _) if down => order.reverse(),
            (order, _) => order,
        }
    }

    fn by_of(&mut self, state: &State, seen: &Arc<Seen>) -> By {
        match self.wanted.sort.by.clone() {
            Column::Kind => By::Nothing,
            Column::Namespace => By::Text(seen.key.namespace.clone().unwrap_or_default()),
            Column::Name => By::Text(seen.key.name.clone()),
            Column::Status => By::Text(self.known(state, seen).word.clone()),
            Column::Ready => match self.known(state, seen).ready {
                None => By::Nothing,
                // By share, so that what lacks most comes first.
                Some((ready, wanted)) => By::Number(ready.saturating_mul(1_000_000) / wanted.max(1)),
            },
            // The youngest first.
            Column::Age => seen.created.map_or(By::Nothing, |at| By::Number(-at.as_second())),
            Column::Printer(column) => match columns::first(&seen.object, &column.path) {
                None | Some(Value::Null) => By::Nothing,
                Some(Value::Number(number)) => number.as_i64().map_or(By::Nothing, By::Number),
                Some(Value::String(text)) => By::Text(text.clone()),
                Some(other) => By::Text(other.to_string()),
            },
        }
    }
}

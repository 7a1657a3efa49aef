//! Candidates of a list, and those that match the typed text. Knows no view.

use crate::fuzzy::{Nearness, Query};
use crate::keys::action::Do;
use opdev_event::{Destination, FaultRule, PodFailure};
use opdev_object::meta::ObjectKey;
use opdev_state::{Changes, State};
use std::collections::HashMap;
use std::sync::Arc;

/// More than these are counted, but cannot be scrolled to: another letter finds them sooner.
const MOST: usize = 1_000;

/// The list that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Every action, and what they take.
    Palette,
    /// Every object, kind, file, reconcile and action.
    Jump,
    /// Namespaces.
    Namespace,
    /// Contexts of the kubeconfig.
    Context,
    /// Themes.
    Theme,
    /// Ways for a pod to fail.
    Failure,
    /// Faults in the calls of the operator's program.
    Disturbance,
    /// Commands of the user's own.
    Commands,
    /// Ports of the selected object.
    Ports,
}

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Action(Do),
    Object(Arc<ObjectKey>),
    Kind {
        group: String,
        kind: String,
    },
    /// A sample to apply, by its path.
    Sample(String),
    /// A file of the project to open in the editor.
    File(String),
    /// A chart or reconciler, and the kind it feeds.
    Source {
        group: String,
        kind: String,
    },
    Reconcile {
        id: u64,
        object: ObjectKey,
    },
    /// All of them, where it is none.
    Namespace(Option<String>),
    Context(Destination),
    Theme(&'static str),
    /// A command of the user's own, by its place among them.
    Own(usize),
    /// A port to forward, as `local:remote`.
    Port(String),
    /// The table of a kind, by its full name.
    Table(String),
    /// It recovers where it is none.
    Failure(Option<PodFailure>),
    /// A rule that is added, or taken away; all are taken away where it is none.
    Disturb(Option<FaultRule>),
}

/// Everything that can be chosen, with the texts to search.
#[derive(Debug, Default)]
pub struct Index {
    pub items: Vec<Item>,
    /// The texts one after the other: what is shown, and then other names.
    pub text: String,
    /// Where each text begins, and where its other names do.
    pub at: Vec<(u32, u32)>,
    /// The texts in lower case.
    pub lower: Vec<u8>,
    /// Names that mean exactly one thing.
    pub exact: HashMap<String, u32>,
}

/// The last search of the jump, good for as long as nothing has changed.
#[derive(Debug)]
pub struct Remembered {
    pub index: Arc<Index>,
    pub changes: Changes,
    pub reconciles: u64,
    pub sources: Option<u64>,
    pub files: Option<Arc<[String]>>,
}

/// The searches that are remembered.
#[derive(Default)]
pub struct Finder {
    /// The text that was typed into the jump last, and the row.
    pub last_jump: (String, usize),
    pub jump_index: Option<Remembered>,
    /// Texts that were typed into the palette, the newest last.
    pub commands: Vec<String>,
}

impl Remembered {
    pub fn of(index: &Arc<Index>, state: &State) -> Self {
        let sources = state.reload.live.as_ref().map(|live| live.sources);
        let changes = state.objects.changes().clone();
        let files = state.files.clone();
        Remembered { index: Arc::clone(index), changes, reconciles: state.history.total, sources, files }
    }

    pub fn fits(&self, state: &State) -> bool {
        state.objects.changes().same(&self.changes)
            && state.history.total == self.reconciles
            && state.reload.live.as_ref().map(|live| live.sources) == self.sources
            && state.files == self.files
    }
}

impl Index {
    pub fn push(&mut self, item: Item, shown: &str, other: &str) {
        let start = small(self.text.len());
        self.text.push_str(shown);
        let middle = small(self.text.len());
        if !other.is_empty() {
            self.text.push(' ');
            self.text.push_str(other);
        }
        self.at.push((start, middle));
        self.items.push(item);
    }

    pub fn named(&mut self, name: &str) {
        self.exact.insert(name.to_lowercase(), small(self.items.len()) - 1);
    }

    pub fn done(mut self) -> Self {
        self.lower = self.text.to_ascii_lowercase().into_bytes();
        self
    }

    /// A name that means one thing, unless it means another one already.
    pub fn also_named(&mut self, name: &str) {
        let last = small(self.items.len()) - 1;
        self.exact.entry(name.to_lowercase()).or_insert(last);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    pub fn item(&self, at: u32) -> &Item {
        &self.items[at as usize]
    }

    pub fn range(&self, at: u32) -> std::ops::Range<usize> {
        let end = self.at.get(at as usize + 1).map_or(self.text.len(), |next| next.0 as usize);
        self.at[at as usize].0 as usize..end
    }

    /// The text of one, as it is shown.
    pub fn shown(&self, at: u32) -> &str {
        let (start, end) = self.at[at as usize];
        &self.text[start as usize..end as usize]
    }

    /// The bytes of the shown text that match.
    pub fn matches(&self, at: u32, query: &Query) -> Vec<usize> {
        let most = self.shown(at).len();
        let mut found = query.positions(&self.lower[self.range(at)]);
        found.retain(|byte| *byte < most);
        found
    }

    pub fn search(&self, typed: &str, query: &Query, among: Option<&[u32]>) -> (Vec<u32>, Vec<u32>) {
        let all: Vec<u32>;
        let among = match among {
            Some(among) => among,
            None => {
                all = (0..small(self.count())).collect();
                &all
            }
        };
        if query.is_empty() {
            return (among.to_vec(), among.iter().copied().take(MOST).collect());
        }
        let exact = self.exact.get(&typed.trim().to_lowercase()).copied();
        let mut scored: Vec<(Nearness, i32, u32)> = among
            .iter()
            .filter_map(|at| {
                let range = self.range(*at);
                let named = range.start + self.named_len(*at);
                let (near, score) = query.rank(&self.lower[range.start..named], &self.lower[range])?;
                Some(if Some(*at) == exact { (Nearness::Name, i32::MIN, *at) } else { (near, score, *at) })
            })
            .collect();
        let matched = scored.iter().map(|(.., at)| *at).collect();
        if scored.len() > MOST {
            scored.select_nth_unstable(MOST);
            scored.truncate(MOST);
        }
        scored.sort_unstable();
        (matched, scored.into_iter().map(|(.., at)| at).collect())
    }

    /// How long the name is that a text begins with; what is said of it follows two blanks.
    pub fn named_len(&self, at: u32) -> usize {
        let (start, end) = self.at[at as usize];
        let shown = &self.text.as_bytes()[start as usize..end as usize];
        shown.windows(2).position(|pair| pair == b"  ").unwrap_or(shown.len())
    }
}

pub fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

//! Lists to choose from by typing a few letters: the palette of all actions, the jump to anything, namespaces,
//! contexts, themes. What can be chosen is gathered when the list opens; `finding` does what was chosen.

use super::action::{ACTIONS, Do};
use super::dialog::Answer;
use super::finding::Seek;
use super::fuzzy::Query;
use super::keys::Key;
use super::theme::Theme;
use super::view::ViewState;
use crate::event::{Destination, PodFailure, words};
use crate::state::{Changes, State};
use crossterm::event::KeyCode;
use opdev_object::meta::ObjectKey;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// More than these are counted, but cannot be scrolled to: another letter finds them sooner.
const MOST: usize = 1_000;

/// Which list it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
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
}

/// Something to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Action(Do),
    Object(Arc<ObjectKey>),
    Kind {
        group: String,
        kind: String,
    },
    /// A sample's path.
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
    /// It recovers where it is none.
    Failure(Option<PodFailure>),
}

/// What can be chosen, with the texts to search.
#[derive(Debug, Default)]
pub(super) struct Index {
    items: Vec<Item>,
    /// The texts one after the other: what is shown, and then other names.
    text: String,
    /// Where each text begins, and where its other names do.
    at: Vec<(u32, u32)>,
    /// The same in lower case.
    lower: Vec<u8>,
    /// Names that mean exactly one thing.
    exact: HashMap<String, u32>,
}

/// What the jump searched last, good for as long as nothing has changed.
#[derive(Debug)]
pub(super) struct Remembered {
    index: Arc<Index>,
    changes: Changes,
    passes: u64,
    sources: Option<u64>,
}

impl Remembered {
    fn of(index: &Arc<Index>, state: &State) -> Self {
        let sources = state.reload.live.as_ref().map(|live| live.sources);
        let changes = state.objects.changes().clone();
        Remembered { index: Arc::clone(index), changes, passes: state.history.total, sources }
    }

    fn fits(&self, state: &State) -> bool {
        state.objects.changes().same(&self.changes)
            && state.history.total == self.passes
            && state.reload.live.as_ref().map(|live| live.sources) == self.sources
    }
}

/// What one look at all objects tells, good for as long as nothing has changed: with 100,000 of them it takes a frame.
#[derive(Debug)]
pub(super) struct Census {
    changes: Changes,
    /// How many objects, by group and kind.
    kinds: BTreeMap<(String, String), usize>,
    namespaces: BTreeSet<String>,
}

impl Census {
    fn of(state: &State) -> Self {
        let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
        let mut namespaces = BTreeSet::new();
        let mut count = |key: &ObjectKey, n: usize| {
            *kinds.entry((key.group.clone(), key.kind.clone())).or_default() += n;
            if let Some(namespace) = key.namespace.as_ref().filter(|name| !namespaces.contains(*name)) {
                namespaces.insert(namespace.clone());
            }
        };
        // Most objects are of one kind and in few namespaces: neighbours are counted together.
        let mut same: Option<(&Arc<ObjectKey>, usize)> = None;
        for key in state.objects.keys() {
            match &mut same {
                Some((known, n))
                    if known.kind == key.kind
                        && known.namespace == key.namespace
                        && known.group == key.group =>
                {
                    *n += 1;
                }
                _ => {
                    if let Some((known, n)) = same.replace((key, 1)) {
                        count(known, n);
                    }
                }
            }
        }
        if let Some((known, n)) = same {
            count(known, n);
        }
        Census { changes: state.objects.changes().clone(), kinds, namespaces }
    }

    /// The newest one.
    fn newest(view: &mut ViewState, state: &State) -> Arc<Census> {
        let known = view.census.take().filter(|known| state.objects.changes().same(&known.changes));
        let census = known.unwrap_or_else(|| Arc::new(Census::of(state)));
        view.census = Some(Arc::clone(&census));
        census
    }
}

/// A list to choose from.
#[derive(Clone, Debug)]
pub struct Picker {
    pub(super) what: What,
    pub(super) typed: String,
    /// Whether what is typed comes from the last time: typing replaces it.
    pub(super) resumed: bool,
    pub(super) index: usize,
    pub(super) of: Arc<Index>,
    /// All that match, in no order; what is searched where more is typed.
    matched: Arc<Vec<u32>>,
    /// The best of them, best first.
    pub(super) best: Arc<Vec<u32>>,
}

impl Index {
    fn push(&mut self, item: Item, shown: &str, other: &str) {
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

    fn named(&mut self, name: &str) {
        self.exact.insert(name.to_lowercase(), small(self.items.len()) - 1);
    }

    fn done(mut self) -> Self {
        self.lower = self.text.to_ascii_lowercase().into_bytes();
        self
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn item(&self, at: u32) -> &Item {
        &self.items[at as usize]
    }

    fn range(&self, at: u32) -> std::ops::Range<usize> {
        let end = self.at.get(at as usize + 1).map_or(self.text.len(), |next| next.0 as usize);
        self.at[at as usize].0 as usize..end
    }

    /// The text of one, as it is shown.
    pub(super) fn shown(&self, at: u32) -> &str {
        let (start, end) = self.at[at as usize];
        &self.text[start as usize..end as usize]
    }

    /// The bytes of the shown text that match.
    pub(super) fn matches(&self, at: u32, query: &Query) -> Vec<usize> {
        let most = self.shown(at).len();
        let mut found = query.positions(&self.lower[self.range(at)]);
        found.retain(|byte| *byte < most);
        found
    }

    fn search(&self, typed: &str, query: &Query, among: Option<&[u32]>) -> (Vec<u32>, Vec<u32>) {
        let all: Vec<u32>;
        let among = match among {
            Some(among) => among,
            None => {
                all = (0..small(self.len())).collect();
                &all
            }
        };
        if query.is_empty() {
            return (among.to_vec(), among.iter().copied().take(MOST).collect());
        }
        let exact = self.exact.get(&typed.trim().to_lowercase()).copied();
        let mut scored: Vec<(i32, u32)> = among
            .iter()
            .filter_map(|at| {
                let score = query.score(&self.lower[self.range(*at)])?;
                Some((if Some(*at) == exact { i32::MIN } else { -score }, *at))
            })
            .collect();
        let matched = scored.iter().map(|(_, at)| *at).collect();
        if scored.len() > MOST {
            scored.select_nth_unstable(MOST);
            scored.truncate(MOST);
        }
        scored.sort_unstable();
        (matched, scored.into_iter().map(|(_, at)| at).collect())
    }
}

fn small(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Picker {
    /// Opens a list; the jump goes on where it was left.
    pub(super) fn open(what: What, view: &mut ViewState, state: &State) -> Self {
        let of = match &view.jump_index {
            Some(known) if what == What::Jump && known.fits(state) => Arc::clone(&known.index),
            Some(_) | None => {
                let census = Census::newest(view, state);
                Arc::new(gather(what, &census, view, state).done())
            }
        };
        if what == What::Jump {
            view.jump_index = Some(Remembered::of(&of, state));
        }
        let (typed, index) = match what {
            What::Jump => view.last_jump.clone(),
            What::Palette | What::Namespace | What::Context | What::Theme | What::Failure => {
                (String::new(), 0)
            }
        };
        let mut picker = Picker {
            what,
            resumed: !typed.is_empty(),
            typed,
            index: 0,
            of,
            matched: Arc::default(),
            best: Arc::default(),
        };
        picker.search(false);
        picker.index = index.min(picker.best.len().saturating_sub(1));
        picker
    }

    /// Opens the jump with something typed.
    pub(super) fn jump_to(typed: &str, view: &mut ViewState, state: &State) -> Self {
        let mut picker = Picker::open(What::Jump, view, state);
        typed.clone_into(&mut picker.typed);
        picker.resumed = false;
        picker.search(false);
        picker
    }

    /// What is typed, as it is searched for.
    pub(super) fn query(&self) -> Query {
        if self.what == What::Palette { Query::close(&self.typed) } else { Query::new(&self.typed) }
    }

    /// How many match.
    pub(super) fn matching(&self) -> usize {
        self.matched.len()
    }

    fn search(&mut self, narrower: bool) {
        let query = self.query();
        let among = narrower.then(|| Arc::clone(&self.matched)).filter(|_| self.what == What::Jump);
        let (matched, best) = self.of.search(&self.typed, &query, among.as_deref().map(Vec::as_slice));
        (self.matched, self.best, self.index) = (Arc::new(matched), Arc::new(best), 0);
    }

    fn push(&mut self, text: &str) {
        let replaced = std::mem::take(&mut self.resumed);
        if replaced {
            self.typed.clear();
        }
        self.typed.push_str(text);
        self.search(!replaced);
    }

    pub(super) fn paste(&mut self, text: &str) {
        if self.typed.len() + text.len() < 500 {
            self.push(text.trim());
        }
    }

    pub(super) fn key(&mut self, key: Key, view: &mut ViewState, state: &State) -> Answer {
        let last = self.best.len().saturating_sub(1);
        let step = |key: Key| match key.code {
            KeyCode::Down | KeyCode::Tab => Some(1),
            KeyCode::Up | KeyCode::BackTab => Some(-1),
            KeyCode::Char('n' | 'j') if key.ctrl => Some(1),
            KeyCode::Char('p' | 'k') if key.ctrl => Some(-1),
            KeyCode::PageDown => Some(10),
            KeyCode::PageUp => Some(-10),
            _ => None,
        };
        if let Some(step) = step(key) {
            self.index = self.index.saturating_add_signed(step).min(last);
            self.resumed = false;
            return Answer::Stay;
        }
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) => {
                self.remember(view);
                return Answer::Close;
            }
            (KeyCode::Enter, _) => {
                let Some(at) = self.best.get(self.index) else { return Answer::Stay };
                let item = self.of.item(*at).clone();
                self.remember(view);
                return view.choose(item, state);
            }
            (KeyCode::Backspace, _) => {
                self.resumed = false;
                self.typed.pop();
                self.search(false);
            }
            (KeyCode::Char('u' | 'w'), None) if key.ctrl => {
                self.typed.clear();
                self.search(false);
            }
            (_, Some(c)) if self.typed.len() < 200 => self.push(c.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        Answer::Stay
    }

    fn remember(&self, view: &mut ViewState) {
        if self.what == What::Jump {
            view.last_jump = (self.typed.clone(), self.index);
        }
    }
}

fn gather(what: What, census: &Census, view: &ViewState, state: &State) -> Index {
    let mut index = Index::default();
    match what {
        What::Palette => {
            actions(&mut index);
            for namespace in namespaces(census, state) {
                index.push(Item::Namespace(Some(namespace.clone())), &format!("ns {namespace}"), "namespace");
            }
            index.push(Item::Namespace(None), "ns all namespaces", "namespace");
            for to in destinations(state) {
                let text = format!("ctx {}", name_of(&to));
                index.push(Item::Context(to), &text, "context cluster");
            }
            for theme in Theme::names() {
                index.push(Item::Theme(theme), &format!("theme {theme}"), "colours");
            }
            kinds(&mut index, census, state);
        }
        What::Jump => {
            kinds(&mut index, census, state);
            files(&mut index, state);
            actions(&mut index);
            objects(&mut index, view, state);
            for pass in state.history.all().iter().rev() {
                let causes = words::causes(&pass.causes);
                let outcome = words::outcome(pass.outcome);
                let text = format!("#{} {} {outcome}  {causes}", pass.id, words::short_ref(&pass.object));
                index.push(Item::Reconcile { id: pass.id, object: pass.object.key() }, &text, "reconcile");
            }
        }
        What::Namespace => {
            index.push(Item::Namespace(None), "all namespaces", "");
            for namespace in namespaces(census, state) {
                index.push(Item::Namespace(Some(namespace.clone())), &namespace, "");
            }
        }
        What::Context => {
            for to in destinations(state) {
                let here = if is_here(&to, state) { "  · here" } else { "" };
                let text = format!("{}{here}", name_of(&to));
                index.push(Item::Context(to), &text, "");
            }
        }
        What::Theme => {
            for theme in Theme::names() {
                index.push(Item::Theme(theme), theme, "");
            }
        }
        What::Failure => {
            for how in PodFailure::ALL {
                index.push(Item::Failure(Some(how)), &format!("{}: it {}", how.word(), how.told()), "");
            }
            index.push(Item::Failure(None), "recover: take the failure away", "");
        }
    }
    index
}

fn actions(index: &mut Index) {
    for action in ACTIONS {
        // The palette in the palette leads nowhere.
        if action.does == Do::Seek(Seek::Palette) {
            continue;
        }
        let other = format!("{} {}", action.id, action.aliases.join(" "));
        index.push(Item::Action(action.does), &format!("{}  {}", action.title, action.about), &other);
        for name in action.aliases.iter().chain([&action.id, &action.title]) {
            index.named(name);
        }
    }
}

/// More than these are not sorted: who looks for one of so many types a part of its name.
const SORTED: usize = 5_000;

fn objects(index: &mut Index, view: &ViewState, state: &State) {
    // Custom resources first; they are sorted already.
    let custom = view.lists.table.all().map(|seen| &seen.key);
    let mut others: Vec<&Arc<ObjectKey>> =
        state.objects.keys().filter(|key| !state.is_custom(&key.group, &key.kind)).collect();
    if others.len() <= SORTED {
        others.sort();
    }
    index.items.reserve(state.objects.len());
    index.at.reserve(state.objects.len());
    index.text.reserve(state.objects.len() * 48);
    let mut text = String::new();
    for key in custom.chain(others) {
        text.clear();
        text.push_str(&key.kind);
        text.push(' ');
        if let Some(namespace) = &key.namespace {
            text.push_str(namespace);
            text.push('/');
        }
        text.push_str(&key.name);
        index.push(Item::Object(Arc::clone(key)), &text, "");
    }
}

fn kinds(index: &mut Index, census: &Census, state: &State) {
    let mut count: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for kind in state.kinds() {
        count.insert((&kind.gvk.group, &kind.gvk.kind), 0);
    }
    count.extend(census.kinds.iter().map(|((group, kind), n)| ((group.as_str(), kind.as_str()), *n)));
    for ((group, kind), count) in count {
        let known = state.kinds().iter().find(|known| known.gvk.group == group && known.gvk.kind == kind);
        let plural = known.map(|known| known.plural.clone()).filter(|plural| !plural.is_empty());
        let plural = plural.unwrap_or_else(|| plural_of(&kind.to_lowercase()));
        let (group, item) = (group.to_owned(), kind.to_owned());
        index.push(Item::Kind { group, kind: item }, &format!("{plural}  kind {kind}, {count} objects"), "");
        index.named(&plural);
        index.named(kind);
        for short in short_names(kind) {
            index.named(short);
        }
    }
}

fn plural_of(kind: &str) -> String {
    match kind {
        "endpoints" => kind.to_owned(),
        _ if kind.ends_with('s') || kind.ends_with('x') || kind.ends_with("ch") => format!("{kind}es"),
        _ if kind.ends_with('y') && !kind.ends_with("ay") && !kind.ends_with("ey") => {
            format!("{}ies", &kind[..kind.len() - 1])
        }
        _ => format!("{kind}s"),
    }
}

/// The short names that kubectl knows.
fn short_names(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &["po"],
        "Service" => &["svc"],
        "Deployment" => &["deploy", "dp"],
        "ReplicaSet" => &["rs"],
        "StatefulSet" => &["sts"],
        "DaemonSet" => &["ds"],
        "ConfigMap" => &["cm"],
        "Secret" => &["sec"],
        "ServiceAccount" => &["sa"],
        "PersistentVolumeClaim" => &["pvc"],
        "Ingress" => &["ing"],
        "HorizontalPodAutoscaler" => &["hpa"],
        "CronJob" => &["cj"],
        _ => &[],
    }
}

fn files(index: &mut Index, state: &State) {
    for sample in state.samples() {
        index.push(Item::File(sample.path.clone()), &format!("file {}", sample.path), "sample apply");
    }
    for kind in state.kinds().iter().filter(|kind| !kind.source.is_empty()) {
        let (group, name) = (kind.gvk.group.clone(), kind.gvk.kind.clone());
        let text = format!("file {}  feeds {}", kind.source, kind.gvk.kind);
        index.push(Item::Source { group, kind: name }, &text, "chart reconciler source");
    }
}

/// The namespaces that are seen anywhere.
fn namespaces(census: &Census, state: &State) -> Vec<String> {
    let mut names: BTreeSet<&str> = census.namespaces.iter().map(String::as_str).collect();
    if let Some(started) = state.started.as_ref().filter(|started| !started.namespace.is_empty()) {
        names.insert(&started.namespace);
    }
    names.into_iter().map(str::to_owned).collect()
}

/// Where one can go: the contexts of the kubeconfig, and the embedded control plane.
fn destinations(state: &State) -> Vec<Destination> {
    let contexts = state.started.iter().flat_map(|started| &started.contexts);
    let mut all: Vec<_> = contexts.map(|name| Destination::Context { name: name.clone() }).collect();
    all.push(Destination::Embedded);
    all
}

fn name_of(to: &Destination) -> String {
    match to {
        Destination::Context { name } => name.clone(),
        Destination::Embedded => to.to_string(),
    }
}

/// Whether opdev works there now.
pub(super) fn is_here(to: &Destination, state: &State) -> bool {
    let Some(started) = &state.started else { return false };
    match to {
        Destination::Embedded => started.cluster.embedded,
        Destination::Context { name } => !started.cluster.embedded && started.cluster.name == *name,
    }
}

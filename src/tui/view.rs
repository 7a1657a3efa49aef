//! What the terminal itself knows: focus, selections, filters, open dialogs. Everything else is in the `State`.
//! `refresh` brings the lists that panes show up to a state; selections follow their objects, not their rows.

use super::candidates::{Census, Remembered};
use super::detail::made_of::MadeOf as LinesMadeOf;
use super::detail::search::Search;
use super::filter::{Filter, Subject};
use super::following::Following;
use super::keymap::Keymap;
use super::keys::Key;
use super::layer::Layer;
use super::layout::{Edge, Shape};
use super::looks::{PassRow, Seeing, pass_rows};
use super::marks::Marks;
use super::open_table::{Asked, Browse};
use super::own_command::OwnCommand;
use super::pane::{Pane, Tab};
use super::selection::Selection;
use super::spots::Spots;
use super::table::{Sort, Table};
use super::text::{Row, width};
use super::theme::Theme;
use crate::event::{Borders, DraftId, Level, Reconcile, Request, RequestId, words};
use crate::state::tree::{self, Node};
use crate::state::{Seen, State};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use opdev_object::meta::ObjectKey;
use ratatui::layout::Rect;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// What the list panes show, brought up to one state.
#[derive(Default)]
pub(super) struct Lists {
    pub(super) resources: Vec<Arc<Seen>>,
    pub(super) table: Table,
    /// Whether they are of more than one namespace.
    pub(super) namespaces_differ: bool,
    pub(super) longest: Longest,
    pub(super) owned: Vec<Node>,
    pub(super) passes: Vec<Arc<Reconcile>>,
    /// The rows of that pane: the passes, and below open ones what is in them.
    pub(super) pass_rows: Vec<PassRow>,
    /// The state it was made from, with the view's own part of it.
    made_of: Option<(State, MadeOf)>,
}

/// What the longest kind, namespace and name of the custom resources need; a sample of rows is enough to tell.
#[derive(Clone, Copy, Default)]
pub(super) struct Longest {
    pub(super) kind: usize,
    pub(super) namespace: usize,
    pub(super) name: usize,
}

impl Longest {
    fn of(resources: &[Arc<Seen>]) -> Longest {
        const SAMPLE: usize = 500;
        resources.iter().take(SAMPLE).fold(Longest::default(), |longest, seen| Longest {
            kind: longest.kind.max(width(&seen.key.kind)),
            namespace: longest.namespace.max(seen.key.namespace.as_deref().map_or(0, width)),
            name: longest.name.max(width(&seen.key.name)),
        })
    }
}

#[derive(Clone, PartialEq, Eq)]
struct MadeOf {
    open: BTreeSet<u64>,
    gone: bool,
    filters: [String; 4],
    all: bool,
    root: Option<ObjectKey>,
}

/// Lines of the detail pane and what they were made of.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) rows: Vec<Row>,
    pub(super) made_of: Option<LinesMadeOf>,
}

impl Lines {
    /// Their texts.
    pub(super) fn texts(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        self.rows.iter().map(|row| row.text().trim_end().to_owned())
    }
}

/// What the terminal itself knows.
pub struct ViewState {
    /// The pane that keys go to.
    pub focus: Pane,
    /// The list that the detail pane's object comes from.
    pub(super) chosen_in: Pane,
    /// Whether that pane has the whole screen.
    pub zoom: bool,
    /// The open tab of the detail pane.
    pub tab: Tab,
    /// Whether reconciles and log are those of all objects.
    pub all: bool,
    /// Whether long lines wrap.
    pub wrap: bool,
    pub(super) resources: Selection<ObjectKey>,
    pub(super) owned: Selection<ObjectKey>,
    /// Whether one has moved in the tree; until then its first line is selected, whatever comes in between.
    pub(super) owned_moved: bool,
    /// A pass and the line below it, 0 for the pass itself. No key means: the newest.
    pub(super) passes: Selection<(u64, usize)>,
    /// The first visible line of the detail pane, and whether it sticks to the end (log).
    pub(super) scroll: usize,
    pub(super) stick: bool,
    pub(super) filters: [String; 4],
    /// Marked rows.
    pub(super) marks: Marks,
    /// The one namespace that is shown.
    pub(super) namespace: Option<String>,
    /// Whether only what has a fault is shown.
    pub(super) faults: bool,
    /// The order of the custom resources.
    pub(super) sort: Sort,
    /// Whether the columns of the CRD are shown, and whether that of the namespace was, as last drawn.
    pub(super) wide: bool,
    pub(super) namespace_shown: bool,
    /// What is searched for in the detail pane.
    pub(super) search: Search,
    /// The chattiest level of the log that is shown, and how many lines there were when it was last followed.
    pub(super) log_level: Level,
    pub(super) log_followed: u64,
    /// What was typed into the jump last, and the row.
    pub(super) last_jump: (String, usize),
    /// What was typed into the palette, the newest last.
    pub(super) commands: Vec<String>,
    pub(super) jump_index: Option<Remembered>,
    /// The kinds and namespaces of all objects, as they were counted last.
    pub(super) census: Option<Arc<Census>>,
    /// What lies over the panes, the topmost last.
    pub(super) layers: Vec<Box<dyn Layer>>,
    /// What to say next to the footer until the next key.
    pub message: Option<String>,
    /// A panic somewhere else in the process.
    pub panicked: Option<String>,
    /// Messages up to this time were dismissed.
    pub(super) dismissed: Option<Timestamp>,
    /// What the project wants, where that was asked already.
    pub(super) trust_asked: Option<std::sync::Arc<crate::event::TrustAsked>>,
    /// Held changes that were asked about.
    pub(super) asked: Vec<String>,
    /// Rounds of drafts that the editor was opened for.
    pub(super) edited: Vec<(DraftId, u32)>,
    /// Stages of drafts that were asked about.
    pub(super) reviewed: Vec<(DraftId, Timestamp)>,
    /// What was asked for last.
    pub(super) did: Option<Request>,
    pub(super) next_request: RequestId,
    /// The user asked to leave.
    pub leaving: bool,
    /// Which key does what.
    pub keymap: Keymap,
    /// Keys typed that begin something longer.
    pub(super) typed: Vec<Key>,
    /// When they were first drawn.
    pub(super) typed_at: Option<Timestamp>,
    /// What came of the settings.
    pub(super) following: Following,
    /// The commands of the user's own settings.
    pub(super) own_commands: Vec<OwnCommand>,
    /// Colours.
    pub theme: Theme,
    /// Whether the mouse selects and scrolls.
    pub mouse: bool,
    /// For times of day.
    pub zone: TimeZone,
    /// How things are looked at.
    pub(super) seeing: Seeing,
    pub(super) lists: Lists,
    /// The table of one kind, while it is open, and what was asked for because of it.
    pub(super) browse: Option<Browse>,
    pub(super) browsing: Asked,
    pub(super) lines: Lines,
    /// Where each pane was last drawn; empty where it was not.
    pub(super) places: [Rect; 4],
    /// Visible rows of each pane as last drawn.
    pub(super) heights: [usize; 4],
    /// Whether one pane at a time is shown, as last drawn.
    pub(super) compact: bool,
    /// How many panes stand beside each other, and where all of them are, as last drawn.
    pub(super) shape: Shape,
    pub(super) body: Rect,
    /// Where the user has moved the borders, and the one that the mouse holds.
    pub(super) borders: Borders,
    pub(super) dragged: Option<Edge>,
    /// What can be clicked, as last drawn.
    pub(super) spots: Spots,
    /// When something on screen changes by itself.
    pub wake: Option<Duration>,
    /// How many clusters were left before the one that is shown.
    pub(super) left: u64,
}

impl Default for ViewState {
    fn default() -> Self {
        ViewState {
            focus: Pane::Resources,
            chosen_in: Pane::Resources,
            zoom: false,
            tab: Tab::Status,
            all: false,
            wrap: false,
            resources: Selection::default(),
            owned: Selection::default(),
            owned_moved: false,
            passes: Selection::default(),
            scroll: 0,
            stick: true,
            filters: Default::default(),
            marks: Marks::default(),
            namespace: None,
            faults: false,
            sort: Sort::default(),
            wide: false,
            namespace_shown: false,
            search: Search::default(),
            log_level: Level::Trace,
            log_followed: 0,
            last_jump: (String::new(), 0),
            commands: Vec::new(),
            jump_index: None,
            census: None,
            layers: Vec::new(),
            message: None,
            panicked: None,
            dismissed: None,
            trust_asked: None,
            asked: Vec::new(),
            edited: Vec::new(),
            reviewed: Vec::new(),
            did: None,
            next_request: 1,
            leaving: false,
            keymap: Keymap::default(),
            typed: Vec::new(),
            typed_at: None,
            following: Following::default(),
            own_commands: Vec::new(),
            theme: Theme::default(),
            mouse: false,
            zone: TimeZone::UTC,
            seeing: Seeing::default(),
            lists: Lists::default(),
            browse: None,
            browsing: Asked::default(),
            lines: Lines::default(),
            places: [Rect::default(); 4],
            heights: [1; 4],
            compact: false,
            shape: Shape::default(),
            body: Rect::default(),
            borders: Borders::default(),
            dragged: None,
            spots: Spots::default(),
            wake: None,
            left: 0,
        }
    }
}

impl ViewState {
    /// The filter of a pane.
    pub fn filter(&self, pane: Pane) -> &str {
        &self.filters[pane.index()]
    }

    /// Why a part of a pane's filter has no effect.
    pub(super) fn filter_problem(&self, pane: Pane) -> Option<String> {
        Filter::new(self.filter(pane)).problem
    }

    /// The selected custom resource.
    pub fn root<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        if self.browse.is_some() {
            return self.table_subject(state);
        }
        state.present_or_gone(self.resources.key.as_ref()?)
    }

    /// The object that YAML, scale and delete are about.
    pub fn subject<'a>(&'a self, state: &'a State) -> Option<&'a Arc<Seen>> {
        let owned = self.owned.key.as_ref().filter(|_| self.chosen_in == Pane::Owned);
        owned.and_then(|key| state.present_or_gone(key)).or_else(|| self.root(state))
    }

    /// The selected pass; the newest where none is.
    pub(super) fn pass(&self) -> Option<&Arc<Reconcile>> {
        self.lists.passes.get(self.lists.pass_rows.get(self.passes.index)?.pass)
    }

    /// Gives the focus to a pane.
    pub(super) fn look_at(&mut self, pane: Pane) {
        // Beside a table there are no reconciles.
        let pane = if self.browse.is_some() && pane == Pane::Reconciles { Pane::Detail } else { pane };
        self.focus = pane;
        if matches!(pane, Pane::Resources | Pane::Owned) && self.chosen_in != pane {
            self.chosen_in = pane;
            self.scroll = 0;
        }
    }

    /// Selects a reconcile.
    pub(super) fn go_to_pass(&mut self, id: u64, state: &State) {
        self.filters[Pane::Reconciles.index()].clear();
        self.passes.key = Some((id, 0));
        self.refresh(state);
        if self.passes.key != Some((id, 0)) && self.lists.passes.iter().any(|pass| pass.id == id) {
            // It stands behind a newer retry of the same failure.
            self.seeing.open.insert(id);
            self.passes.key = Some((id, 0));
            self.refresh(state);
        }
        if self.passes.key != Some((id, 0)) {
            self.message = Some(format!("reconcile #{id} is no longer kept"));
        }
        self.look_at(Pane::Reconciles);
    }

    /// Brings the lists up to a state.
    pub(super) fn refresh(&mut self, state: &State) {
        self.arrive(state);
        self.follow_preferences(state);
        self.refresh_table(state);
        self.settle_marks(state);
        let old = self.lists.made_of.take();
        let before = old.as_ref().map(|(state, view)| (state, view));
        let filter_is = |pane: Pane, filters: &[String; 4]| {
            before.is_some_and(|(_, view)| view.filters[pane.index()] == filters[pane.index()])
        };
        let wanted = self.wanted();
        let lists = &mut self.lists;
        let touched = lists.table.refresh(&mut lists.resources, state, &wanted);
        if lists.table.fresh {
            let first = lists.resources.first().map(|seen| &seen.key.namespace);
            lists.namespaces_differ = lists.resources.iter().any(|seen| Some(&seen.key.namespace) != first);
            lists.longest = Longest::of(&lists.resources);
        }
        self.resources.settle(lists.resources.len(), |i| lists.resources[i].key.as_ref().clone());
        let root = match &self.browse {
            Some(_) => self.root(state).map(|seen| seen.key.as_ref().clone()),
            None => self.resources.key.clone(),
        };
        let lists = &mut self.lists;
        let root_touched = touched.has(root.clone().map(Arc::new).as_ref());
        let same_root = before.is_some_and(|(_, view)| view.root == root);
        if !same_root {
            self.owned = Selection::default();
            self.owned_moved = false;
            self.passes = Selection::default();
            self.scroll = 0;
        }
        let same_gone = before.is_some_and(|(_, view)| view.gone == self.seeing.gone);
        if root_touched || !same_gone || !same_root || !filter_is(Pane::Owned, &self.filters) {
            let mut all = root.as_ref().map(|root| tree::owned(state, root)).unwrap_or_default();
            if let Some(root) = root.as_ref().filter(|_| self.seeing.gone) {
                all.extend(tree::gone_below(state, root));
            }
            lists.owned = filter_tree(all, &self.filters[Pane::Owned.index()]);
        }
        if !self.owned_moved {
            self.owned = Selection::default();
        }
        self.owned.settle(lists.owned.len(), |i| lists.owned[i].seen.key.as_ref().clone());
        let same_history = before
            .is_some_and(|(old, view)| old.history.same(&state.history) && view.all == self.all && same_root);
        let same_rows = before.is_some_and(|(_, view)| view.open == self.seeing.open);
        let same_passes = same_history && filter_is(Pane::Reconciles, &self.filters);
        if !same_passes {
            let filter = Filter::new(&self.filters[Pane::Reconciles.index()]);
            let shown = |pass: &&Arc<Reconcile>| {
                let (causes, outcome) = (words::causes(&pass.causes), words::outcome(pass.outcome));
                let text = format!("{} {causes} {outcome}", pass.object).to_lowercase();
                let object = state.present_or_gone(&pass.object.key()).map(AsRef::as_ref);
                filter.is_empty()
                    || filter.passes(Subject { text: &text, object, about: Some(&pass.object), labels: None })
            };
            lists.passes = match &root {
                Some(root) if !self.all => {
                    state.history.of(root).into_iter().flatten().rev().filter(shown).cloned().collect()
                }
                _ => state.history.all().iter().rev().filter(shown).cloned().collect(),
            };
        }
        if !same_passes || !same_rows {
            lists.pass_rows = pass_rows(&lists.passes, &self.seeing.open);
        }
        if self.passes.key.is_none() {
            (self.passes.index, self.passes.offset) = (0, 0);
        } else {
            self.passes.settle(lists.pass_rows.len(), |i| lists.pass_key(i));
        }
        let (open, gone) = (self.seeing.open.clone(), self.seeing.gone);
        let view = MadeOf { filters: self.filters.clone(), all: self.all, root, open, gone };
        lists.made_of = Some((state.clone(), view));
    }

    /// Moves the selection of a list, or the lines of the detail pane, to a row.
    pub(super) fn go(&mut self, to: usize) {
        let lists = &self.lists;
        match self.focus {
            Pane::Resources if self.browse.is_some() => self.go_in_table(to),
            Pane::Resources => {
                self.resources.go(to, lists.resources.len(), |i| lists.resources[i].key.as_ref().clone());
            }
            Pane::Owned => {
                self.owned_moved = true;
                self.owned.go(to, lists.owned.len(), |i| lists.owned[i].seen.key.as_ref().clone());
            }
            Pane::Reconciles => {
                self.passes.go(to, lists.pass_rows.len(), |i| lists.pass_key(i));
                let newest = lists.passes.first().map(|pass| pass.id);
                if self.passes.index == 0 && newest.is_none_or(|id| !self.seeing.open.contains(&id)) {
                    self.passes.key = None;
                }
            }
            Pane::Detail => {
                let last = self.lines.rows.len().saturating_sub(self.heights[Pane::Detail.index()]);
                self.scroll = to.min(last);
                self.stick = to >= last;
                return;
            }
        }
        if !matches!(self.tab, Tab::Log | Tab::Pods) {
            self.scroll = 0;
        }
    }

    /// The row the focused pane is at.
    pub(super) fn at(&self) -> usize {
        match self.focus {
            Pane::Resources => {
                self.browse.as_ref().map_or(self.resources.index, |table| table.selection.index)
            }
            Pane::Owned => self.owned.index,
            Pane::Reconciles => self.passes.index,
            Pane::Detail => self.scroll,
        }
    }

    /// The first visible row of a pane.
    pub(super) fn offset(&self, pane: Pane) -> usize {
        match pane {
            Pane::Resources => {
                self.browse.as_ref().map_or(self.resources.offset, |table| table.selection.offset)
            }
            Pane::Owned => self.owned.offset,
            Pane::Reconciles => self.passes.offset,
            Pane::Detail => self.scroll,
        }
    }

    /// How many rows the focused pane has.
    pub(super) fn rows(&self) -> usize {
        match self.focus {
            Pane::Resources => {
                self.browse.as_ref().map_or(self.lists.resources.len(), |table| table.shown.len())
            }
            Pane::Owned => self.lists.owned.len(),
            Pane::Reconciles => self.lists.pass_rows.len(),
            Pane::Detail => self.lines.rows.len(),
        }
    }

    /// Asks to be woken when this much time has passed.
    pub(super) fn wake_in(&mut self, duration: Duration) {
        self.wake = Some(self.wake.map_or(duration, |known| known.min(duration)));
    }
}

/// Nodes that pass, with the ones that lead to them.
fn filter_tree(nodes: Vec<Node>, filter: &str) -> Vec<Node> {
    let filter = Filter::new(filter);
    if filter.is_empty() {
        return nodes;
    }
    let mut keep = vec![false; nodes.len()];
    // From the last line up: a node stays if it passes, or if one below it stays.
    let mut needed: Vec<bool> = Vec::new();
    for (i, node) in nodes.iter().enumerate().rev() {
        let depth = node.more.len();
        let child = needed.get(depth + 1).copied().unwrap_or(false);
        needed.truncate(depth + 1);
        let key = &node.seen.key;
        let text = format!("{} {} {}", key.kind, key.name, node.seen.health.word).to_lowercase();
        keep[i] =
            child || filter.passes(Subject { text: &text, object: Some(&node.seen), ..Subject::default() });
        if needed.len() <= depth {
            needed.resize(depth + 1, false);
        }
        needed[depth] |= keep[i];
    }
    let mut keep = keep.into_iter();
    nodes.into_iter().filter(|_| keep.next().unwrap_or(true)).collect()
}

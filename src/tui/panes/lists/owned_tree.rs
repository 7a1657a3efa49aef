//! The tree of what the selected custom resource owns.

use super::filter::{Filter, Subject};
use super::pane_rows::PanePart;
use super::selection::Selection;
use opdev_object::meta::ObjectKey;
use opdev_state::State;
use opdev_state::tree;
use opdev_state::tree::Node;

/// The tree.
#[derive(Default)]
pub struct OwnedTree {
    pub selection: Selection<ObjectKey>,
    /// True if one has moved in it; until then its first line is selected, whatever comes in between.
    pub moved: bool,
    pub filter: String,
    pub nodes: Vec<Node>,
    /// The input of the lines: the owner, deleted objects or not, the filter.
    made_of: Option<(Option<ObjectKey>, bool, String)>,
}

impl OwnedTree {
    /// Another object is selected: nothing of the old tree is.
    pub fn forget_selection(&mut self) {
        self.selection = Selection::default();
        self.moved = false;
    }

    /// Brings the tree up to a state; `touched` where something of this owner has changed.
    pub fn refresh(&mut self, state: &State, owner: Option<&ObjectKey>, gone: bool, touched: bool) {
        let same = self.made_of.as_ref().is_some_and(|(root, with_gone, filter)| {
            root.as_ref() == owner && *with_gone == gone && *filter == self.filter
        });
        if touched || !same {
            let mut all = owner.map(|owner| tree::owned(state, owner)).unwrap_or_default();
            if let Some(owner) = owner.filter(|_| gone) {
                all.extend(tree::gone_below(state, owner));
            }
            self.nodes = filtered(all, &self.filter);
        }
        if !same {
            self.made_of = Some((owner.cloned(), gone, self.filter.clone()));
        }
        if !self.moved {
            self.selection = Selection::default();
        }
        self.selection.settle(self.nodes.len(), |i| self.nodes[i].seen.key.as_ref().clone());
    }
}

impl PanePart for OwnedTree {
    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn at(&self) -> usize {
        self.selection.index
    }

    fn offset(&self) -> usize {
        self.selection.offset
    }

    fn go(&mut self, row: usize, _height: usize) {
        self.moved = true;
        self.selection.go(row, self.nodes.len(), |i| self.nodes[i].seen.key.as_ref().clone());
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }

    fn object(&self, row: usize) -> Option<ObjectKey> {
        self.nodes.get(row).map(|node| node.seen.key.as_ref().clone())
    }
}

/// Nodes that reconcile, with the ones that lead to them.
fn filtered(nodes: Vec<Node>, filter: &str) -> Vec<Node> {
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

//! A list to choose from, and the text that narrows it. Knows no view; `picker` gathers and opens.

use opdev_panes::fuzzy::Query;
use opdev_panes::lists::candidates::{Index, What};
use opdev_panes::theme::Theme;
use std::sync::Arc;

/// A list to choose from.
#[derive(Clone, Debug)]
pub(crate) struct Picker {
    pub(crate) what: What,
    pub(crate) typed: String,
    /// True if what is typed comes from the last time: typing replaces it.
    pub(crate) resumed: bool,
    pub(crate) index: usize,
    /// The command typed before that is shown, counted from the newest.
    pub(crate) recalled: Option<usize>,
    /// True if the kinds of the API server are among what can be chosen.
    pub(crate) has_kinds: bool,
    /// The files that are.
    pub(crate) files: Option<Arc<[String]>>,
    /// The theme to go back to, while another one is tried.
    pub(crate) before: Option<Theme>,
    pub(crate) of: Arc<Index>,
    /// All that match, in no order; what is searched where more is typed.
    pub(crate) matched: Arc<Vec<u32>>,
    /// The best of them, best first.
    pub(crate) best: Arc<Vec<u32>>,
}

impl Picker {
    /// The typed text, as it is searched for.
    pub(crate) fn query(&self) -> Query {
        if self.what == What::Palette { Query::close(&self.typed) } else { Query::new(&self.typed) }
    }

    /// The number of those that match.
    pub(crate) fn matching(&self) -> usize {
        self.matched.len()
    }

    /// Takes another list in, and keeps what is typed.
    pub(crate) fn fill(&mut self, other: Picker) {
        let index = self.index;
        (self.of, self.has_kinds, self.files) = (other.of, other.has_kinds, other.files);
        self.search(false);
        self.index = index.min(self.best.len().saturating_sub(1));
    }

    pub(crate) fn search(&mut self, narrower: bool) {
        let query = self.query();
        let among = narrower.then(|| Arc::clone(&self.matched)).filter(|_| self.what == What::Jump);
        let (matched, best) = self.of.search(&self.typed, &query, among.as_deref().map(Vec::as_slice));
        (self.matched, self.best, self.index) = (Arc::new(matched), Arc::new(best), 0);
    }

    pub(crate) fn push(&mut self, text: &str) {
        let replaced = std::mem::take(&mut self.resumed);
        if replaced {
            self.typed.clear();
        }
        self.typed.push_str(text);
        self.search(!replaced);
    }
}

//! The detail pane: the open tab, its lines and how far they are scrolled, and how they are looked at. What
//! the lines say is in `detail`, a file for each tab.

use super::detail::made_of::MadeOf;
use super::detail::search::Search;
use super::folds::How;
use super::lists::pane_rows::PanePart;
use super::pane::Tab;
use super::text::Row;
use opdev_event::Level;

/// The pane.
pub struct DetailPane {
    /// The open tab.
    pub tab: Tab,
    /// The first visible line, and whether it sticks to the end (log).
    pub scroll: usize,
    pub stick: bool,
    /// True if long lines wrap.
    pub wrap: bool,
    pub filter: String,
    pub lines: Lines,
    /// The searched text.
    pub search: Search,
    pub how: How,
    /// The container whose log is shown alone: its pod's name and its own.
    pub container: Option<(String, String)>,
    /// The chattiest level of the log that is shown, and how many lines there were when it was last followed.
    pub log_level: Level,
    pub log_followed: u64,
}

/// Lines of the detail pane and what they were made of.
#[derive(Default)]
pub struct Lines {
    pub rows: Vec<Row>,
    pub made_of: Option<MadeOf>,
}

impl Lines {
    /// Their texts.
    pub fn texts(&self) -> impl DoubleEndedIterator<Item = String> + '_ {
        self.rows.iter().map(|row| row.text().trim_end().to_owned())
    }
}

impl Default for DetailPane {
    fn default() -> Self {
        DetailPane {
            tab: Tab::STATUS,
            scroll: 0,
            stick: true,
            wrap: false,
            filter: String::new(),
            lines: Lines::default(),
            search: Search::default(),
            how: How::default(),
            container: None,
            log_level: Level::Trace,
            log_followed: 0,
        }
    }
}

impl DetailPane {
    /// This pane on another cluster: its tab and width stay.
    pub fn elsewhere(self) -> Self {
        DetailPane { tab: self.tab, wrap: self.wrap, log_level: self.log_level, ..DetailPane::default() }
    }

    /// Opens a tab, its first lines in sight.
    pub fn open(&mut self, tab: Tab) {
        if self.tab != tab {
            self.tab = tab;
            self.scroll = 0;
            self.stick = true;
        }
    }

    /// Something else is selected: its first lines are in sight, but where the last ones are followed.
    pub fn selection_moved(&mut self) {
        if !self.tab.part().follows_end() {
            self.scroll = 0;
        }
    }
}

impl PanePart for DetailPane {
    fn count(&self) -> usize {
        self.lines.rows.len()
    }

    fn at(&self) -> usize {
        self.scroll
    }

    fn offset(&self) -> usize {
        self.scroll
    }

    fn go(&mut self, row: usize, height: usize) {
        let last = self.lines.rows.len().saturating_sub(height);
        self.scroll = row.min(last);
        self.stick = row >= last;
    }

    fn filter(&self) -> &str {
        &self.filter
    }

    fn filter_mut(&mut self) -> &mut String {
        &mut self.filter
    }
}

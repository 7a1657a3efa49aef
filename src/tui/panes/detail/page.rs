//! What a tab of the detail pane sees, and what every tab has: a name, the action that shows it, what it is about, its
//! lines.

use super::super::detail_pane::Lines;
use super::super::pane::Tab;
use super::super::text::Row;
use super::made_of::{MadeOf, Object};
use crate::event::{Level, Reconcile};
use crate::state::{Seen, State};
use crate::tui::panes::folds::How;
use crate::tui::panes::keys::action::{Action, KeyNames};
use crate::tui::panes::lists::filter::Filter;
use jiff::tz::TimeZone;
use std::sync::Arc;

/// What a tab sees: the state, what is selected, and how it is looked at.
pub(crate) struct Page<'a> {
    pub(in crate::tui) state: &'a State,
    /// How wide the pane is.
    pub(in crate::tui) cells: usize,
    /// The selected custom resource.
    pub(in crate::tui) root: Option<&'a Arc<Seen>>,
    /// The selected object: that one, or one that it owns.
    pub(in crate::tui) subject: Option<&'a Arc<Seen>>,
    /// The selected reconcile, the newest where none is; and whether one is.
    pub(in crate::tui) pass: Option<&'a Arc<Reconcile>>,
    pub(in crate::tui) pass_chosen: bool,
    /// Whether reconciles and log are those of all objects.
    pub(in crate::tui) all: bool,
    pub(in crate::tui) how: &'a How,
    /// The container whose log is shown alone.
    pub(in crate::tui) container: Option<&'a (String, String)>,
    /// The chattiest level of the log that is shown, how many lines there were when it was last followed, and whether it
    /// is followed.
    pub(in crate::tui) log_level: Level,
    pub(in crate::tui) log_followed: u64,
    pub(in crate::tui) stick: bool,
    pub(in crate::tui) zone: &'a TimeZone,
    pub(in crate::tui) keys: &'a dyn KeyNames,
}

impl Page<'_> {
    /// The selected object in two words.
    pub(super) fn subject_name(&self) -> Option<String> {
        self.subject.map(|seen| format!("{} {}", seen.key.kind, seen.key.name))
    }

    /// The selected reconcile by its number.
    pub(super) fn pass_name(&self) -> Option<String> {
        self.pass.map(|pass| format!("#{}", pass.id))
    }
}

/// What lines are made of beside what all tabs look at: they are made anew when one of these is another.
#[derive(Default)]
pub(crate) struct Stamp {
    pub(in crate::tui) object: Option<Object>,
    /// Counts what else goes in.
    pub(in crate::tui) number: u64,
    pub(in crate::tui) dropped: u64,
}

impl Stamp {
    /// Lines about the selected object, and what is counted.
    pub(super) fn of_subject(page: &Page<'_>, number: u64) -> Self {
        Stamp { object: page.subject.cloned().map(Object), number, dropped: 0 }
    }

    /// Lines about what is counted alone.
    pub(super) fn number(number: u64) -> Self {
        Stamp { number, ..Stamp::default() }
    }
}

/// Lines that were made.
pub(crate) struct Made {
    pub(in crate::tui) rows: Vec<Row>,
    /// The line that is to be the first visible one.
    pub(in crate::tui) first: Option<usize>,
}

/// A tab of the detail pane.
pub(crate) trait DetailTab: Sync {
    /// Its name: that of its action.
    fn tab(&self) -> Tab;

    /// What stands in the bar of tabs.
    fn title(&self) -> &'static str;

    /// The action that shows it.
    fn action(&self) -> Action;

    /// Where that stands in help and footer among those of the other tabs.
    fn place(&self) -> u8;

    /// What it is about, behind its title: the selected object, unless the tab says something else.
    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.subject_name()
    }

    /// What its lines are made of: the selected object and all that is known, unless the tab says something else.
    fn stamp(&self, page: &Page<'_>) -> Stamp {
        Stamp::of_subject(page, page.state.version)
    }

    /// Its lines, before they are filtered and wrapped.
    fn rows(&self, page: &Page<'_>) -> Vec<Row>;

    /// Its lines as they are shown; `before` are those of before, of whatever tab.
    fn lines(&self, page: &Page<'_>, made_of: &MadeOf, _before: Lines) -> Made {
        let filter = Filter::new(&made_of.filter);
        let rows = self.rows(page).into_iter();
        let rows = rows.filter(|row| filter.is_empty() || filter.text(&row.text()));
        let wrapped = |row: Row| row.wrapped(made_of.width);
        let rows = if made_of.wrap { rows.flat_map(wrapped).collect() } else { rows.collect() };
        Made { rows, first: None }
    }

    /// Whether what was shown stays while its end is not followed.
    fn holds_still(&self) -> bool {
        false
    }

    /// Whether the newest lines are the last ones, and in sight.
    fn follows_end(&self) -> bool {
        false
    }

    /// Whether it is about an object, so that a row of a table can be shown in it.
    fn is_of_object(&self) -> bool {
        false
    }

    /// Whether it shows more of the selected object than its metadata.
    fn shows_whole_object(&self) -> bool {
        false
    }

    /// The end of the name of a file that its lines are saved in.
    fn file_ending(&self) -> &'static str {
        "txt"
    }

    /// What stands in the lower border.
    fn note(&self, _page: &Page<'_>) -> Row {
        Row::default()
    }
}

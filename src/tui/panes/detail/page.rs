//! The input of a tab of the detail pane, and the parts of every tab: a name, the action that shows it, what
//! it is about, its lines.

use super::super::detail_pane::Lines;
use super::super::pane::Tab;
use super::super::text::Row;
use super::made_of::{MadeOf, Object};
use crate::folds::How;
use crate::keys::action::{Action, KeyNames};
use crate::lists::filter::Filter;
use jiff::tz::TimeZone;
use opdev_event::{Level, Reconcile};
use opdev_state::{Seen, State};
use std::sync::Arc;

/// The input of a tab: the state, what is selected, and how it is looked at.
pub struct Page<'a> {
    pub state: &'a State,
    /// How wide the pane is.
    pub cells: usize,
    /// The selected custom resource.
    pub root: Option<&'a Arc<Seen>>,
    /// The selected object: that one, or one that it owns.
    pub subject: Option<&'a Arc<Seen>>,
    /// The selected reconcile, the newest where none is; and whether one is.
    pub reconcile: Option<&'a Arc<Reconcile>>,
    pub reconcile_chosen: bool,
    /// True if reconciles and log are those of all objects.
    pub all: bool,
    pub how: &'a How,
    /// The container whose log is shown alone.
    pub container: Option<&'a (String, String)>,
    /// The chattiest level of the log that is shown, how many lines there were when it was last followed, and
    /// whether it is followed.
    pub log_level: Level,
    pub log_followed: u64,
    pub stick: bool,
    pub zone: &'a TimeZone,
    pub keys: &'a dyn KeyNames,
}

impl Page<'_> {
    /// The selected object in two words.
    pub(super) fn subject_name(&self) -> Option<String> {
        self.subject.map(|seen| format!("{} {}", seen.key.kind, seen.key.name))
    }

    /// The selected reconcile by its number.
    pub(super) fn reconcile_name(&self) -> Option<String> {
        self.reconcile.map(|reconcile| format!("#{}", reconcile.id))
    }
}

/// Input of lines beside that of all tabs: they are made anew when one of these is another.
#[derive(Default)]
pub struct Stamp {
    pub object: Option<Object>,
    /// Counts what else goes in.
    pub number: u64,
    pub dropped: u64,
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
pub struct Made {
    pub rows: Vec<Row>,
    /// The line that is to be the first visible one.
    pub first: Option<usize>,
}

/// A tab of the detail pane.
pub trait DetailTab: Sync {
    /// Its name: that of its action.
    fn tab(&self) -> Tab;

    /// The text in the bar of tabs.
    fn title(&self) -> &'static str;

    /// The action that shows it.
    fn action(&self) -> Action;

    /// Where that stands in help and footer among those of the other tabs.
    fn place(&self) -> u8;

    /// The subject, behind its title: the selected object, unless the tab says something else.
    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.subject_name()
    }

    /// What its lines are made of: the selected object and all that is known, unless the tab says something
    /// else.
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

    /// Returns true if what was shown stays while its end is not followed.
    fn holds_still(&self) -> bool {
        false
    }

    /// Returns true if the newest lines are the last ones, and in sight.
    fn follows_end(&self) -> bool {
        false
    }

    /// Returns true if it is about an object, so that a row of a table can be shown in it.
    fn is_of_object(&self) -> bool {
        false
    }

    /// Returns true if it shows more of the selected object than its metadata.
    fn shows_whole_object(&self) -> bool {
        false
    }

    /// The end of the name of a file that its lines are saved in.
    fn file_ending(&self) -> &'static str {
        "txt"
    }

    /// The text of the lower border.
    fn note(&self, _page: &Page<'_>) -> Row {
        Row::default()
    }
}

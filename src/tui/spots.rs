//! What can be clicked, as last drawn: tabs, headings of columns, keys of the footer. Each stands in one row.

use super::action::Do;
use super::keys::Key;
use super::pane::{Pane, Tab};
use super::table::Column;
use ratatui::layout::Rect;

/// Something in a row of the screen: its first column, and the one behind its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spot<T> {
    pub(super) y: u16,
    pub(super) from: u16,
    pub(super) to: u16,
    pub(super) what: T,
}

/// A tab of the detail pane, or a pane in the bar of a small screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    Tab(Tab),
    Pane(Pane),
}

/// Everything that can be clicked beside rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Spots {
    pub(super) tabs: Vec<Spot<Shown>>,
    pub(super) headings: Vec<Spot<Column>>,
    pub(super) keys: Vec<Spot<Do>>,
    /// Keys that a dialog names, and where the topmost one stands.
    pub(super) answers: Vec<Spot<Key>>,
    pub(super) dialog: Option<Dialog>,
}

/// Where a dialog stands, and the row of what is chosen in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dialog {
    pub(super) area: Rect,
    pub(super) chosen: Option<u16>,
}

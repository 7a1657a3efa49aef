//! Targets of clicks, as last drawn: tabs, headings of columns, keys of the footer. Each stands in one row.

use super::keys::action::Do;
use super::keys::chord::Key;
use super::lists::table::Column;
use super::pane::{Pane, Tab};
use ratatui::layout::Rect;

/// Something in a row of the screen: its first column, and the one behind its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot<T> {
    pub y: u16,
    pub from: u16,
    pub to: u16,
    pub what: T,
}

/// A tab of the detail pane, or a pane in the bar of a small screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Tab(Tab),
    Pane(Pane),
}

/// Everything that can be clicked beside rows.
#[derive(Clone, Debug, Default)]
pub struct Spots {
    pub tabs: Vec<Spot<Shown>>,
    pub headings: Vec<Spot<Column>>,
    pub keys: Vec<Spot<Do>>,
    /// Keys that a dialog names, and where the topmost one stands.
    pub answers: Vec<Spot<Key>>,
    pub dialog: Option<Dialog>,
}

/// Where a dialog stands, the row of what is chosen in it, and the first row below those to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialog {
    pub area: Rect,
    pub chosen: Option<u16>,
    pub below: u16,
}

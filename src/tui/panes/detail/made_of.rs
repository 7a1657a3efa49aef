//! What the lines of the detail pane were made of.

use super::super::pane::Tab;
use crate::event::Level;
use crate::state::Seen;
use crate::tui::panes::folds::How;
use std::sync::Arc;

/// What lines were made of; equal ones make equal lines.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MadeOf {
    pub(in crate::tui) tab: Tab,
    pub(in crate::tui) pass: Option<u64>,
    pub(in crate::tui) object: Option<Object>,
    /// Counts what else goes in.
    pub(in crate::tui) stamp: u64,
    pub(in crate::tui) dropped: u64,
    pub(in crate::tui) width: usize,
    pub(in crate::tui) wrap: bool,
    pub(in crate::tui) all: bool,
    pub(in crate::tui) how: How,
    pub(in crate::tui) container: Option<(String, String)>,
    pub(in crate::tui) filter: String,
    pub(in crate::tui) level: Level,
}

/// An object, equal to itself only.
#[derive(Clone, Debug)]
pub(in crate::tui) struct Object(pub(in crate::tui) Arc<Seen>);

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

//! The input that the lines of the detail pane were made of.

use super::super::pane::Tab;
use crate::folds::How;
use opdev_event::Level;
use opdev_state::Seen;
use std::sync::Arc;

/// The input of lines; equal input makes equal lines.
#[derive(Clone, Debug, PartialEq)]
pub struct MadeOf {
    pub tab: Tab,
    pub reconcile: Option<u64>,
    pub object: Option<Object>,
    /// Counts what else goes in.
    pub stamp: u64,
    pub dropped: u64,
    pub width: usize,
    pub wrap: bool,
    pub all: bool,
    pub how: How,
    pub container: Option<(String, String)>,
    pub filter: String,
    pub level: Level,
}

/// An object, equal to itself only.
#[derive(Clone, Debug)]
pub struct Object(pub(crate) Arc<Seen>);

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

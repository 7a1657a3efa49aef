//! The common parts of the panes: rows, one of them selected, and a filter. Each pane keeps its own; keys and
//! the mouse move in whichever has the focus.

use opdev_object::meta::ObjectKey;

/// One pane.
pub trait PanePart {
    /// How many rows it has.
    fn count(&self) -> usize;

    /// The row it is at.
    fn at(&self) -> usize;

    /// The first visible row.
    fn offset(&self) -> usize;

    /// Moves to a row; `height` rows are visible.
    fn go(&mut self, row: usize, height: usize);

    /// The filter, as typed.
    fn filter(&self) -> &str;

    /// The filter as typed, to be changed.
    fn filter_mut(&mut self) -> &mut String;

    /// The object of a row, where its rows can be marked.
    fn object(&self, _row: usize) -> Option<ObjectKey> {
        None
    }
}

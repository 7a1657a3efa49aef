//! The dialogs that can be open, each with what it holds.

use super::candidates::Picker;
use super::dialog::{Confirm, Delete, HeldDialog, ReviewDialog, Scale, Switching, TrustDialog, Unlock};
use super::pane::Pane;
use crate::event::Destination;

/// An open dialog.
#[derive(Clone, Debug)]
pub enum Layer {
    /// All keys.
    Help {
        /// The first visible line.
        scroll: usize,
        /// What is searched for in it.
        typed: Option<String>,
    },
    /// A filter being typed.
    Filter {
        /// Of which pane.
        pane: Pane,
        /// What it was before.
        before: String,
    },
    /// A sample to choose.
    Samples {
        /// What was typed to narrow the list.
        typed: String,
        /// The chosen row.
        index: usize,
    },
    /// Replicas to type.
    Scale(Scale),
    /// Something to delete.
    Delete(Delete),
    /// A held change to answer.
    Held(HeldDialog),
    /// What the project wants to be trusted with.
    Trust(TrustDialog),
    /// A question about several objects.
    Confirm(Confirm),
    /// What a draft would change.
    Review(ReviewDialog),
    /// What a new object begins with.
    New {
        /// What was typed to narrow the list.
        typed: String,
        /// The chosen row.
        index: usize,
    },
    /// What to copy.
    Copy {
        /// The chosen row.
        index: usize,
    },
    /// What becomes of custom resources when opdev leaves a cluster.
    Leave {
        /// The chosen row.
        index: usize,
        /// Where it goes; nowhere where it ends.
        to: Option<Destination>,
    },
    /// Another cluster is on its way.
    Switching(Switching),
    /// What can be undone.
    Undo {
        /// The chosen row.
        index: usize,
    },
    /// Who holds how much memory.
    Memory,
    /// Requests under way and ended.
    Tasks {
        /// The chosen row.
        index: usize,
    },
    /// A list to choose from.
    Picker(Box<Picker>),
    /// A text to search for in the detail pane.
    Search {
        /// What was searched for before.
        before: String,
    },
    /// The name of a context to type.
    Unlock(Unlock),
}

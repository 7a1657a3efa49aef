//! Inputs from the terminal, and commands to the world outside the view.

use opdev_event::{ProgramRun, Request, RequestId};
use opdev_panes::keys::chord::Key;
use std::path::PathBuf;

/// An action of the mouse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    /// A click at a column and a row.
    Click(u16, u16),
    /// The button is held and the mouse is at another place.
    Drag(u16, u16),
    /// The button was let go.
    Release,
    /// The wheel, up or down.
    Wheel {
        /// Towards the beginning.
        up: bool,
        /// Column and row.
        at: (u16, u16),
    },
}

/// Input of the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A key.
    Key(Key),
    /// Pasted text: goes into text fields only, never into actions.
    Paste(String),
    /// The mouse.
    Mouse(Mouse),
}

/// An action outside the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Ask the inner loop.
    Request(RequestId, Request),
    /// Put a text on the terminal's clipboard.
    Copy(String),
    /// Open a file of the project in the editor, at a line and a column; 0 where they are unknown.
    OpenFile {
        /// Its path.
        path: PathBuf,
        /// Line.
        line: u32,
        /// Column.
        column: u32,
    },
    /// Give the terminal to a program until it ends.
    Run(ProgramRun),
    /// Paint everything anew.
    Redraw,
    /// Give the terminal back to the shell for a while.
    Suspend,
    /// Leave now.
    Leave,
}

//! The terminal: draws snapshots of the state, turns keys into requests. Never touches a cluster or a file.
//! Read `keys/registry.rs` for what can be done, `update` for how keys get there, `draw` for what is seen, `run` for the loop.

mod act;
mod asked;
mod cluster_changed;
mod command;
mod detail_lines;
mod dialog;
mod drafts;
pub mod draw;
mod find;
mod focus;
mod keys;
mod kind_table;
mod layer;
mod links;
mod pages;
pub mod run;
mod settings;
mod shown_notices;
mod toast;
pub mod update;
mod view;

#[cfg(test)]
mod tests;

pub use command::{Command, Input, Mouse};
pub use draw::draw;
pub use keys::keymap::Keymap;
pub use opdev_panes::keys::chord::{Chord, Key};
pub use opdev_panes::pane::{Pane, Tab};
pub use opdev_panes::theme::{Role, Theme};
pub use opdev_terminal::editor::interrupt_is_the_editors;
pub use opdev_terminal::restore;
pub use run::{TuiInput, run, usable};
pub use update::update;
pub use view::ViewState;

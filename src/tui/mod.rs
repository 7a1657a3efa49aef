//! The terminal: draws snapshots of the state, turns keys into requests. Never touches a cluster or a file.
//! Read `action` for what can be done, `update` for what keys do, `draw` for what is seen, `run` for the loop.

mod acting;
pub mod action;
mod allowed;
mod arriving;
mod background;
mod borders;
mod browse;
mod candidates;
mod command;
mod detail;
mod dialog;
mod drafts;
mod draw;
mod editor;
mod enabled;
mod filter;
mod finding;
mod following;
mod fuzzy;
mod gather;
mod keymap;
mod keys;
mod kubectl;
mod layer;
mod layout;
mod leaving;
mod looks;
mod marking;
mod marks;
mod mouse;
mod open_table;
mod opening;
mod own_command;
mod pane;
mod picker;
mod preferences;
mod programs;
mod replicas;
mod run;
mod seeing;
mod selection;
mod spots;
mod table;
mod terminal;
mod text;
mod theme;
mod toast;
mod update;
mod view;
mod waterfall;

#[cfg(test)]
mod tests;

pub use command::{Command, Input, Mouse};
pub use draw::draw;
pub use editor::interrupt_is_the_editors;
pub use keymap::Keymap;
pub use keys::{Chord, Key};
pub use pane::{Pane, Tab};
pub use run::{TuiInput, run, usable};
pub use terminal::restore;
pub use theme::{Role, Theme};
pub use update::update;
pub use view::ViewState;

//! The terminal: draws snapshots of the state, turns keys into requests. Never touches a cluster or a file.
//! Read `action` for what can be done, `update` for what keys do, `draw` for what is seen, `run` for the loop.

pub mod action;
mod detail;
mod dialog;
mod draw;
mod keys;
mod run;
mod terminal;
mod text;
mod theme;
mod toast;
mod update;
mod view;

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod keys_and_commands;

pub use draw::draw;
pub use keys::{Key, Keymap};
pub use run::{TuiInput, run, usable};
pub use terminal::restore;
pub use theme::{Role, Theme};
pub use update::{Command, Input, update};
pub use view::{Pane, Tab, ViewState};

//! Actions and their keys: the registry that feeds keys, footer, help and palette.

pub mod action;
pub(crate) mod chord;
pub(crate) mod keymap;
pub(crate) mod registry;
pub(crate) mod user_command;

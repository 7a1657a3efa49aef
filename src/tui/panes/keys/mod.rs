//! Actions and their keys: the registry that feeds keys, footer, help and palette.

pub mod action;
pub mod chord;
pub mod keymap;
pub mod registry;
pub mod user_command;

//! Actions in words, chords of keys, and the commands of the user. Which action has which row, is in `src/tui/keys`.

pub mod action;
pub mod chord;
pub mod user_command;

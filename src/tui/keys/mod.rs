//! The keys of the screen: `registry` has one row for each action, `row` says what such a row holds, `keymap` which key starts
//! which of them, and what was typed so far.

pub(crate) mod keymap;
pub(crate) mod registry;
pub(crate) mod row;

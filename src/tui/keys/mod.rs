//! The keys of the screen: `registry` has one row for each action, `row` says what such a row holds, `keymap` which key starts
//! which of them, `pending` what was typed so far.

pub(crate) mod keymap;
pub(crate) mod pending;
pub(crate) mod registry;
pub(crate) mod row;

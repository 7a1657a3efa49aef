//! Panes: what each of them holds and how its lines look; the keys, the theme and the terminal that all share. Knows no
//! dialog and makes no request.

pub(crate) mod below;
pub(crate) mod click_targets;
pub(crate) mod detail;
pub(crate) mod detail_pane;
pub(crate) mod disabled;
pub(crate) mod folds;
pub(crate) mod fuzzy;
pub(crate) mod glyphs;
pub mod keys;
pub(crate) mod kubectl;
pub(crate) mod layout;
pub mod lists;
pub(crate) mod log_pane;
pub(crate) mod pane;
pub(crate) mod replicas;
pub(crate) mod screen;
pub(crate) mod terminal;
pub(crate) mod text;
pub(crate) mod theme;
pub(crate) mod waterfall;

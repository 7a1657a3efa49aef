//! Panes: what each of them holds and how its lines look; the keys and the theme that all share. Knows no
//! dialog and makes no request.

pub mod below;
pub mod click_targets;
pub mod detail;
pub mod detail_pane;
pub mod disabled;
pub mod finding_sign;
pub mod folds;
pub mod fuzzy;
pub mod glyphs;
pub mod header;
pub mod keys;
pub mod kubectl;
pub mod layout;
pub mod lists;
pub mod log_pane;
pub mod pages;
pub mod pane;
pub mod replicas;
pub mod screen;
pub mod text;
pub mod theme;
pub mod waterfall;

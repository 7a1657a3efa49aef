//! Owners, watches and names of children.

pub(crate) mod change_not_applied;
pub(crate) mod config_not_rolled;
pub(crate) mod cross_namespace_owner;
pub(crate) mod drift_left;
pub(crate) mod event_dropped;
pub(crate) mod foreign_metadata;
pub(crate) mod foreign_object;
pub(crate) mod left_behind;
pub(crate) mod missing_owner;
pub(crate) mod missing_watch;
pub(crate) mod name_budget;
pub(crate) mod name_collision;
pub(crate) mod overlapping_selector;
pub(crate) mod owner_gone;
pub(crate) mod referenced_unwatched;

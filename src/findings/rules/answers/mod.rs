//! Answers of the API server, errors, and what the status says.

pub(crate) mod deprecated_api;
pub(crate) mod error_swallowed;
pub(crate) mod failure_not_told;
pub(crate) mod kind_missing;
pub(crate) mod lost_status;
pub(crate) mod missing_right;
pub(crate) mod no_observed_generation;
pub(crate) mod not_idempotent_after_restart;
pub(crate) mod own_object_gone;
pub(crate) mod panic;
pub(crate) mod pruned_field;
pub(crate) mod ready_too_early;
pub(crate) mod refused_write;
pub(crate) mod result_ignored;
pub(crate) mod same_error;

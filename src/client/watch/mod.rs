//! Parts that the watches of the operator and those of the panes share: the time at which a watch that was
//! refused for want of a right is tried again.

pub mod backoff;
pub mod busy;

pub use super::forbidden::{FORBIDDEN_HINT, FORBIDDEN_PAUSE};
pub use crate::watch::backoff::Pauses;

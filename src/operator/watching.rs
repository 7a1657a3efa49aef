//! What the watches of the operator and those of the panes have in common: when one that was refused for want of a right is
//! tried again.

pub(crate) use super::missing_right::{FORBIDDEN_HINT, FORBIDDEN_PAUSE};
pub(crate) use super::watch::pauses::Pauses;

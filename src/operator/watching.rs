//! What the watches of the operator and those of the panes have in common: when one that was refused for want of a right is
//! tried again.

pub(crate) use super::watch::pauses::Pauses;
pub(crate) use super::watch::stream::{FORBIDDEN_HINT, FORBIDDEN_PAUSE};

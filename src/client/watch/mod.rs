//! What the watches of the operator and those of the panes have in common: when one that was refused for want of a right is
//! tried again.

pub(crate) mod backoff;
pub(crate) mod busy;

pub(crate) use super::forbidden::{FORBIDDEN_HINT, FORBIDDEN_PAUSE};
pub(crate) use crate::client::watch::backoff::Pauses;

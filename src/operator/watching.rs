//! What the watches of the operator and those of the panes have in common: which refusals are for want of a right, and when
//! such a watch is tried again.

pub(crate) use super::watch::stream::{FORBIDDEN_HINT, FORBIDDEN_PAUSE, describe, is_forbidden};

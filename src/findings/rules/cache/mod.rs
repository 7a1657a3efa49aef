//! The cache, and writes that meet others.

pub(crate) mod cache_mutated;
pub(crate) mod cache_too_wide;
pub(crate) mod conflict;
pub(crate) mod duplicate;
pub(crate) mod lost_update;
pub(crate) mod stale_read;

//! The Go types of a project: which files they are, and the CRDs that come of them. Never runs Go.

pub mod crd_patches;
pub mod files;
pub(crate) mod types;

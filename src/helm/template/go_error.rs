//! The mark of errors whose text is the one that Go's function gives, so that a template's function reports
//! it as it is.

use crate::semver::{ConstraintError, VersionError};
use opdev_object::go::duration::DurationError;
use opdev_object::go::pattern::PatternError;
use std::fmt;

/// An error that speaks Go's words; `FuncError` is made of it.
pub(super) trait GoError: fmt::Display {}

impl GoError for DurationError {}

impl GoError for PatternError {}

impl GoError for VersionError {}

impl GoError for ConstraintError {}

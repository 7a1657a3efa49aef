//! Keeps a panic of a library for CEL from becoming one of opdev: the rule is a user's, so it is an error
//! about the rule.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The step panicked; what it worked on must not be used again.
pub(crate) struct Panicked;

/// Runs one step.
pub(crate) fn run<T>(step: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_ends_or_is_told_to_have_panicked() {
        assert!(matches!(run(|| 1), Ok(1)));
        assert!(run(|| assert_eq!(1, 2)).is_err());
    }
}

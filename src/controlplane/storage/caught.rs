//! Panics of the database that are expected: a damaged file can lead it astray at any place. Whoever reports
//! panics asks here whether one is caught, and told in other words.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// How many calls of `caught` this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Does something that may panic. What it leaves half done is thrown away by the caller.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> std::thread::Result<T> {
    DEPTH.set(DEPTH.get() + 1);
    let done = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    done
}

/// Returns true if a panic on this thread is caught by the store, which tells what it means.
pub fn panics_are_caught() -> bool {
    DEPTH.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_knows_that_it_is_caught() {
        assert!(!panics_are_caught());
        assert!(caught(|| caught(panics_are_caught).unwrap()).unwrap());
        assert!(caught(|| -> u32 { panic!("astray") }).is_err());
        assert!(!panics_are_caught());
    }
}

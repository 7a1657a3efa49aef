//! The reads and outputs of the last render of each release, for the releases rendered last: an edit then
//! runs only the templates that it reaches. Bounded; what falls out costs one full render.

use opdev_helm::engine::{Memory, ParseCache};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of output are kept for all releases together.
const MOST_BYTES: usize = 32 << 20;
/// How many releases are kept.
const MOST_RELEASES: usize = 256;

/// Memory that all renders share, and memories by release, the one used last at the end.
#[derive(Default)]
pub struct Renders {
    /// Templates parsed before, for all charts.
    pub(crate) templates: Arc<ParseCache>,
    kept: Mutex<VecDeque<(String, Arc<Memory>)>>,
}

impl Renders {
    /// The memory of a release, under any name that tells it from others.
    pub(crate) fn of(&self, key: &str) -> Arc<Memory> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(known, _)| known == key);
        let (_, memory) =
            at.and_then(|at| kept.remove(at)).unwrap_or_else(|| (key.to_owned(), Arc::default()));
        kept.push_back((key.to_owned(), Arc::clone(&memory)));
        memory
    }

    /// Lets go of what was not used for longest until the rest fits.
    pub(crate) fn shrink(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes: usize = kept.iter().map(|(_, memory)| memory.bytes()).sum();
        while bytes > MOST_BYTES || kept.len() > MOST_RELEASES {
            let Some((_, memory)) = kept.pop_front() else { return };
            bytes -= memory.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_used_last() {
        let key = |n: usize| n.to_string();
        let renders = Renders::default();
        let first = renders.of(&key(0));
        let second = renders.of(&key(1));
        for n in 2..=MOST_RELEASES {
            renders.of(&key(n));
        }
        assert!(Arc::ptr_eq(&first, &renders.of(&key(0))));
        renders.shrink();
        assert!(Arc::ptr_eq(&first, &renders.of(&key(0))));
        assert!(!Arc::ptr_eq(&second, &renders.of(&key(1))));
    }
}

//! Spreads work over the machine's cores where there is enough of it: reading files, parsing templates, reading
//! documents. The result is the same.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};

/// Below so many bytes a thread costs more than it saves.
pub(crate) const WORTH: usize = 48 << 10;
/// More threads than this would wait for each other.
const MOST: usize = 4;
/// Templates nest, and a thread's usual stack is small.
const STACK: usize = 64 << 20;

/// How many threads the process may use; asked once, for the answer is read from four files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST)))
}

/// Starts a thread for every core but the one that asks; where there can be none, that one does all the work.
pub(crate) fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl Fn() + Clone + Send + 'scope) {
    for _ in 1..cores() {
        let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work.clone());
    }
}

/// Does a piece of work for each item, on several threads where all of it comes to many bytes.
pub(crate) fn for_each<T: Sync>(items: &[T], bytes: usize, work: impl Fn(&T) + Sync) {
    if bytes < WORTH {
        return items.iter().for_each(work);
    }
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    thread::scope(|scope| {
        start(scope, take);
        take();
    });
}

//! Spreads work over the machine's cores where there is enough of it: reading files, parsing and running
//! templates, reading documents. The result is the same.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, Scope};

/// Below so many bytes a thread costs more than it saves.
pub(crate) const WORTH: usize = 48 << 10;
/// More threads than this would wait for each other.
const MOST: usize = 4;
/// So many items are taken from a line at most.
const AT_ONCE: usize = 16;
/// Templates nest, and a thread's usual stack is small.
const STACK: usize = 64 << 20;

/// How many threads the process may use; asked once, for the answer is read from four files.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST)))
}

/// How many threads there can be beside the one that asks.
pub(crate) fn others() -> usize {
    cores() - 1
}

/// Starts a thread for every core but the one that asks; where there can be none, that one does all the work.
fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl Fn() + Clone + Send + 'scope) {
    if others() == 0 {
        return;
    }
    let elsewhere = placing::other();
    for _ in 0..others() {
        let work = work.clone();
        let placed = move || {
            elsewhere.enter();
            work();
        };
        let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, placed);
    }
    // They may wait behind this thread for its core.
    thread::yield_now();
}

/// Some schedulers, of virtual machines above all, let a new thread wait for the core of the one that started
/// it, for milliseconds: longer than most charts take. Here it asks for another one by itself.
#[cfg(target_os = "linux")]
mod placing {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

    #[derive(Clone, Copy)]
    pub(super) struct Cores(Option<CpuSet>);

    /// The cores that the process may use, but the one that asks.
    pub(super) fn other() -> Cores {
        let mut cores = sched_getaffinity(None).ok();
        let own = sched_getcpu();
        if let Some(cores) = cores.as_mut().filter(|_| own < CpuSet::MAX_CPU) {
            cores.unset(own);
        }
        Cores(cores)
    }

    impl Cores {
        /// Brings this thread to them; where that is forbidden, it stays where it is.
        pub(super) fn enter(&self) {
            if let Some(cores) = &self.0 {
                let _ = sched_setaffinity(None, cores);
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod placing {
    #[derive(Clone, Copy)]
    pub(super) struct Cores;

    pub(super) fn other() -> Cores {
        Cores
    }

    impl Cores {
        pub(super) fn enter(&self) {}
    }
}

/// Does a piece of work for each item, on several threads where all of it comes to many bytes.
pub(crate) fn for_each<T: Sync>(items: &[T], bytes: usize, work: impl Fn(&T) + Sync) {
    if bytes < WORTH {
        return items.iter().for_each(work);
    }
    beside(|| items.iter().collect(), |item: &&T| work(item), || ());
}

/// Does something else while other threads list items and begin with a piece of work for each, then helps
/// them.
pub(crate) fn beside<T: Send + Sync, R>(
    items: impl Fn() -> Vec<T> + Sync,
    work: impl Fn(&T) + Sync,
    other: impl FnOnce() -> R,
) -> (R, Vec<T>) {
    let (listed, next) = (OnceLock::new(), AtomicUsize::new(0));
    let take = || {
        while let Some(item) = listed.get_or_init(&items).get(next.fetch_add(1, Ordering::Relaxed)) {
            work(item);
        }
    };
    let made = thread::scope(|scope| {
        start(scope, take);
        let made = other();
        take();
        made
    });
    (made, listed.into_inner().unwrap_or_default())
}

/// Does a piece of work for each item that `make` gives with about how many bytes it comes to: on other
/// threads while more are made, once there is enough of it; else on this one afterwards. What comes of it is
/// in no order.
pub(crate) fn while_made<T: Send, R: Send, M>(
    work: impl Fn(T) -> R + Sync,
    make: impl FnOnce(&mut dyn FnMut(T, usize)) -> M,
) -> (M, Vec<R>) {
    let line = Line { queue: Mutex::default(), changed: Condvar::new(), done: Mutex::default() };
    let made = thread::scope(|scope| {
        let _ends = Ends(&line);
        let (line, work) = (&line, &work);
        let made = make(&mut |item, bytes| {
            if line.push(item, bytes) {
                start(scope, move || line.take(work));
            }
        });
        line.end();
        line.take(work);
        made
    });
    (made, line.done.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Items that wait for a thread, and what came of those that did not have to wait any longer.
struct Line<T, R> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
    done: Mutex<Vec<R>>,
}

struct Queue<T> {
    waiting: VecDeque<T>,
    /// Bytes given so far.
    bytes: usize,
    helped: bool,
    /// Threads that found nothing to do.
    idle: usize,
    ended: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, helped: false, idle: 0, ended: false }
    }
}

impl<T, R> Line<T, R> {
    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an item; whether other threads are to begin now.
    fn push(&self, item: T, bytes: usize) -> bool {
        let mut queue = self.queue();
        queue.bytes += bytes;
        queue.waiting.push_back(item);
        let begin = queue.bytes >= WORTH && !queue.helped;
        queue.helped |= begin;
        // To wake nobody takes a system call, too.
        if queue.idle > 0 {
            self.changed.notify_one();
        }
        begin
    }

    /// Says that no more will come.
    fn end(&self) {
        self.queue().ended = true;
        self.changed.notify_all();
    }

    /// Works until there are no more. To wait for the lock of a line can take longer than some items, so
    /// several are taken at a time.
    fn take(&self, work: &impl Fn(T) -> R) {
        let mut done = Vec::new();
        loop {
            let mut queue = self.queue();
            while queue.waiting.is_empty() && !queue.ended {
                queue.idle += 1;
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
            }
            let count = queue.waiting.len().div_ceil(2 * MOST).min(AT_ONCE);
            let taken: Vec<T> = queue.waiting.drain(..count).collect();
            drop(queue);
            if taken.is_empty() {
                break;
            }
            done.extend(taken.into_iter().map(work));
        }
        self.done.lock().unwrap_or_else(PoisonError::into_inner).append(&mut done);
    }
}

/// Lets the other threads go when the items end, however they do.
struct Ends<'a, T, R>(&'a Line<T, R>);

impl<T, R> Drop for Ends<'_, T, R> {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, WORTH, beside, for_each, while_made};
    use std::sync::Mutex;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_new_thread_leaves_the_core_of_the_one_that_starts_it() {
        use rustix::thread::sched_getaffinity;
        let before = sched_getaffinity(None).unwrap();
        let elsewhere = super::placing::other();
        let placed = || {
            elsewhere.enter();
            sched_getaffinity(None).unwrap()
        };
        let after = std::thread::scope(|scope| scope.spawn(placed).join().unwrap());
        // With a single core there is nowhere else to go.
        assert_eq!(after.count(), if before.count() > 1 { before.count() - 1 } else { 1 });
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn each_item_is_worked_on_once_however_many_threads_there_are() {
        for (count, bytes) in [(0, 0), (1, 1), (7, WORTH), (40 * AT_ONCE, WORTH / 9)] {
            let all: Vec<usize> = (0..count).collect();
            let (made, mut done) = while_made(
                |item| item,
                |give| {
                    all.iter().for_each(|item| give(*item, bytes));
                    "made"
                },
            );
            done.sort_unstable();
            assert_eq!((made, &done), ("made", &all));
            let seen = Mutex::new(Vec::new());
            for_each(&all, count * bytes, |item| seen.lock().unwrap().push(*item));
            let (other, listed) = beside(|| all.clone(), |item| seen.lock().unwrap().push(*item), || "other");
            assert_eq!((other, &listed), ("other", &all));
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen, all.iter().flat_map(|item| [*item, *item]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn threads_that_wait_for_more_are_let_go_when_the_items_end_in_a_panic() {
        let fails = || {
            while_made(
                |item: usize| item,
                |give| {
                    give(1, WORTH);
                    panic!("no more");
                },
            )
        };
        assert!(std::panic::catch_unwind(fails).is_err());
    }
}

//! Spreads work over the machine's cores where there is enough of it: reading files, parsing templates, reading
//! documents. The result is the same.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
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
fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl Fn() + Clone + Send + 'scope) {
    if cores() == 1 {
        return;
    }
    let elsewhere = placing::other();
    for _ in 1..cores() {
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

/// Some schedulers, of virtual machines above all, let a new thread wait for the core of the one that started it, for
/// milliseconds: longer than most charts take. Here it asks for another one by itself.
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

/// Does something else while other threads list items and begin with a piece of work for each, then helps them.
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

/// Does a piece of work for each item that `make` gives with about how many bytes it comes to: on other threads while
/// more are made, once there is enough of it; else on this one afterwards.
pub(crate) fn while_made<T: Send, R>(
    work: impl Fn(T) + Sync,
    make: impl FnOnce(&mut dyn FnMut(T, usize)) -> R,
) -> R {
    let line = Line { queue: Mutex::default(), changed: Condvar::new() };
    thread::scope(|scope| {
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
    })
}

/// Items that wait for a thread.
struct Line<T> {
    queue: Mutex<Queue<T>>,
    changed: Condvar,
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

impl<T> Line<T> {
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

    /// Works until there are no more.
    fn take(&self, work: &impl Fn(T)) {
        loop {
            let mut queue = self.queue();
            let item = loop {
                match queue.waiting.pop_front() {
                    Some(next) => break next,
                    None if queue.ended => return,
                    None => {
                        queue.idle += 1;
                        queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                        queue.idle -= 1;
                    }
                }
            };
            drop(queue);
            work(item);
        }
    }
}

/// Lets the other threads go when the items end, however they do.
struct Ends<'a, T>(&'a Line<T>);

impl<T> Drop for Ends<'_, T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

//! Spreads a large render over the machine's cores: templates are parsed on all of them, and documents are read on the
//! others while templates still run. A small render stays on the thread it is asked on. The result is the same.

use super::memory::{Output, Outputs};
use crate::manifest;
use crate::template::Compat;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Below so many bytes a thread costs more than it saves.
const WORTH: usize = 48 << 10;
/// More threads than this would wait for each other.
const MOST: usize = 4;
/// Templates nest, and a thread's usual stack is small.
const STACK: usize = 64 << 20;

/// Starts a thread for every core but the one that asks; where there can be none, that one does all the work.
fn start<'scope>(scope: &'scope Scope<'scope, '_>, work: impl Fn() + Clone + Send + 'scope) {
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST));
    for _ in 1..cores {
        let _ = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work.clone());
    }
}

/// Does a piece of work for each item, on several threads where all of it comes to many bytes.
pub(super) fn for_each<T: Sync>(items: &[T], bytes: usize, work: impl Fn(&T) + Sync) {
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

/// Makes outputs with `render`, which gives each one as soon as it is there, and reads their documents, the ones that
/// stood in the outputs before excepted. What is broken is told to who wants it.
pub(super) fn reading<T>(
    before: &Outputs,
    compat: Compat,
    render: impl FnOnce(&mut dyn FnMut(&str, &Arc<Output>)) -> T,
) -> T {
    let documents = Documents { before, compat, queue: Mutex::default(), changed: Condvar::new() };
    thread::scope(|scope| {
        let _ends = Ends(&documents);
        let made = render(&mut |path, output| documents.push(path, output, scope));
        documents.end();
        documents.read();
        made
    })
}

/// Outputs whose documents are to be read.
struct Documents<'r> {
    before: &'r Outputs,
    compat: Compat,
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(String, Arc<Output>)>,
    /// Bytes given so far.
    bytes: usize,
    helped: bool,
    ended: bool,
}

impl Documents<'_> {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an output; where there are many, other threads begin with them.
    fn push<'s>(&'s self, path: &str, output: &Arc<Output>, scope: &'s Scope<'s, '_>) {
        if manifest::is_notes(path) {
            return;
        }
        let mut queue = self.queue();
        queue.bytes += output.text.len();
        queue.waiting.push_back((path.to_owned(), Arc::clone(output)));
        if queue.bytes >= WORTH && !queue.helped {
            queue.helped = true;
            start(scope, || self.read());
        }
        if queue.helped {
            self.changed.notify_one();
        }
    }

    /// Says that no more will come.
    fn end(&self) {
        self.queue().ended = true;
        self.changed.notify_all();
    }

    /// Reads outputs until there are no more. One that is broken is left as it is: who wants its documents finds out.
    fn read(&self) {
        loop {
            let mut queue = self.queue();
            let (path, output) = loop {
                match queue.waiting.pop_front() {
                    Some(next) => break next,
                    None if queue.ended => return,
                    None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(queue);
            let _ = output.documents(&path, self.before.get(&path), self.compat);
        }
    }
}

/// Lets the other threads go when a render ends, however it does.
struct Ends<'a, 'r>(&'a Documents<'r>);

impl Drop for Ends<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

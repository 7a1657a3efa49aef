//! The documents of a large render are read on other cores while templates still run. A small render stays on the thread
//! it is asked on.

use super::memory::{Output, Outputs};
use crate::manifest;
use crate::spread::{WORTH, start};
use crate::template::Compat;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

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

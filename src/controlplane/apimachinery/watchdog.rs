//! Finds workers of the async runtime that do not come back, and says what they are busy with. `blocking`
//! keeps workers from waiting; what is left are faults: a lock that is never released, a loop that never
//! ends. A thread of its own looks at what every worker said that it is doing. It counts its own looks and
//! reads no clock, so a process that was stopped for a while, or a machine that slept, is not taken for a
//! fault.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, Thread};
use std::time::Duration;
use tokio::runtime::Handle;

/// Time between two looks while something may be stuck.
const PERIOD: Duration = Duration::from_millis(250);
/// Time between two looks otherwise: each wakes the workers, and most of the day nothing happens.
const CALM: Duration = Duration::from_secs(1);
/// After so many looks without progress something is stuck: two seconds, and up to one until the first of
/// them.
const LOOKS: u32 = 8;
/// How many looks later it may turn out in what the workers are stuck that take nothing up.
const LATER: u32 = 4;

/// The work of one thread.
#[derive(Debug, Default)]
struct Section {
    thread: String,
    /// Grows whenever the thread begins something or is done with it.
    moves: AtomicU64,
    /// `None` while it does nothing that is watched.
    what: Mutex<Option<Arc<str>>>,
}

/// The sections of all threads that ever had one and still run.
static SECTIONS: Mutex<Vec<Weak<Section>>> = Mutex::new(Vec::new());

thread_local! {
    static SECTION: Arc<Section> = {
        let thread = thread::current().name().unwrap_or("unnamed").to_owned();
        let section = Arc::new(Section { thread, ..Section::default() });
        let mut sections = locked(&SECTIONS);
        sections.retain(|known| known.strong_count() > 0);
        sections.push(Arc::downgrade(&section));
        section
    };
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Section {
    fn replace(&self, what: Option<Arc<str>>) -> Option<Arc<str>> {
        self.moves.fetch_add(1, Ordering::Relaxed);
        std::mem::replace(&mut *locked(&self.what), what)
    }
}

/// The current thread is busy with something until this is dropped.
pub struct Busy {
    before: Option<Arc<str>>,
}

/// Notes what the current thread begins.
pub fn busy(what: &Arc<str>) -> Busy {
    let before = SECTION.try_with(|section| section.replace(Some(what.clone())));
    Busy { before: before.ok().flatten() }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // A thread that ends has no section any more.
        let _ = SECTION.try_with(|section| section.replace(self.before.take()));
    }
}

/// Work whose every step on a worker is watched.
pub async fn watched<F: Future>(what: Arc<str>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|context| {
        let _busy = busy(&what);
        work.as_mut().poll(context)
    })
    .await
}

/// An observation of the watchdog.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Finding {
    /// A thread does not come back from what it is busy with.
    Stuck { thread: String, what: String },
    /// It has come back after all.
    Free { thread: String, what: String },
    /// No worker takes anything up any more.
    Silent { stuck: Vec<String> },
    /// Workers take work up again.
    Answers,
}

/// A thread that has been found, and since when.
struct Seen {
    section: Weak<Section>,
    moves: u64,
    looks: u32,
    /// The text that was logged for it.
    told: Option<String>,
}

/// The running watchdog. Dropping it ends its thread.
#[derive(Debug)]
pub struct Watchdog {
    over: Arc<AtomicBool>,
    thread: Thread,
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

impl Watchdog {
    /// Watches all workers of this process, and whether those of this runtime take up work. Findings are
    /// logged.
    ///
    /// # Errors
    /// Where the system starts no thread.
    pub fn start(runtime: Handle) -> std::io::Result<Self> {
        let teller = Teller::new();
        Watchdog::telling(runtime, move |finding| {
            let of_process = matches!(finding, Finding::Stuck { .. } | Finding::Free { .. });
            if !of_process || teller.is_first() {
                log(finding);
            }
        })
    }

    fn telling(runtime: Handle, tell: impl Fn(Finding) + Send + 'static) -> std::io::Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let ends = over.clone();
        let look = move || {
            let mut looks = Looks { seen: Vec::new(), pulse: Pulse::new(runtime), silent: false, tell };
            while !ends.load(Ordering::Acquire) {
                let suspicious = looks.look();
                pause(if suspicious { PERIOD } else { CALM });
            }
        };
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(look)?.thread().clone();
        Ok(Watchdog { over, thread })
    }
}

#[expect(clippy::disallowed_methods, reason = "the watchdog's own thread waits between its looks")]
fn pause(time: Duration) {
    thread::park_timeout(time);
}

/// One of several watchdogs of a process tells of its threads: each sees all of them.
#[derive(Debug)]
struct Teller(u64);

/// The first one of those that run; 0 while there is none.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// How many there were.
static TELLERS: AtomicU64 = AtomicU64::new(0);

impl Teller {
    fn new() -> Teller {
        Teller(TELLERS.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Returns true if it is the one; where there is none, it is from now on.
    fn is_first(&self) -> bool {
        let first = FIRST.compare_exchange(0, self.0, Ordering::Relaxed, Ordering::Relaxed);
        first.is_ok() || first == Err(self.0)
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let _ = FIRST.compare_exchange(self.0, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// A sign that a runtime takes up the tasks it is given.
struct Pulse {
    runtime: Handle,
    /// Beats that were asked for.
    asked: u64,
    given: Arc<AtomicU64>,
    /// Looks since a beat was asked for that has not come.
    missed: u32,
}

impl Pulse {
    fn new(runtime: Handle) -> Self {
        Pulse { runtime, asked: 0, given: Arc::default(), missed: 0 }
    }

    /// The number of looks for which nothing was taken up.
    fn missed(&mut self) -> u32 {
        if self.given.load(Ordering::Acquire) < self.asked {
            self.missed += 1;
            return self.missed;
        }
        self.missed = 0;
        self.asked += 1;
        let (given, beat) = (self.given.clone(), self.asked);
        self.runtime.spawn(async move { given.store(beat, Ordering::Release) });
        0
    }
}

/// All that the watchdog remembers between two looks.
struct Looks<T> {
    seen: Vec<Seen>,
    pulse: Pulse,
    /// True if it was told that no worker takes anything up.
    silent: bool,
    tell: T,
}

impl<T: Fn(Finding)> Looks<T> {
    /// Returns true if something may be stuck.
    fn look(&mut self) -> bool {
        let mut suspicious = false;
        self.take_in();
        for seen in &mut self.seen {
            let Some(section) = seen.section.upgrade() else { continue };
            let (moves, what) = (section.moves.load(Ordering::Relaxed), locked(&section.what).clone());
            if moves != seen.moves {
                (seen.moves, seen.looks) = (moves, 0);
                if let Some(what) = seen.told.take() {
                    (self.tell)(Finding::Free { thread: section.thread.clone(), what });
                }
                continue;
            }
            seen.looks = seen.looks.saturating_add(1);
            suspicious |= what.is_some();
            if let Some(what) = what
                && seen.looks >= LOOKS
                && seen.told.is_none()
            {
                seen.told = Some(what.to_string());
                (self.tell)(Finding::Stuck { thread: section.thread.clone(), what: what.to_string() });
            }
        }
        self.feel() || suspicious
    }

    /// Takes in threads that are new, and forgets those that have ended.
    fn take_in(&mut self) {
        self.seen.retain(|seen| seen.section.strong_count() > 0);
        for section in locked(&SECTIONS).iter() {
            if !self.seen.iter().any(|seen| seen.section.ptr_eq(section)) {
                self.seen.push(Seen { section: section.clone(), moves: 0, looks: 0, told: None });
            }
        }
    }

    /// Returns true if a beat that was asked for has not come.
    fn feel(&mut self) -> bool {
        let missed = self.pulse.missed();
        if missed == 0 && self.silent {
            self.silent = false;
            (self.tell)(Finding::Answers);
        }
        if missed < LOOKS || self.silent {
            return missed > 0;
        }
        let stuck: Vec<String> = self.seen.iter().filter_map(|seen| seen.told.clone()).collect();
        if !stuck.is_empty() || missed >= LOOKS + LATER {
            self.silent = true;
            (self.tell)(Finding::Silent { stuck });
        }
        true
    }
}

fn log(finding: Finding) {
    let after = PERIOD * LOOKS;
    match finding {
        Finding::Stuck { thread, what } => {
            tracing::error!(thread, ?after, "a worker of the API server is stuck in: {what}");
        }
        Finding::Free { thread, what } => {
            tracing::warn!(thread, "a worker of the API server that was stuck goes on: {what}");
        }
        Finding::Silent { stuck } => {
            let stuck =
                if stuck.is_empty() { "something that is not watched".to_owned() } else { stuck.join("; ") };
            tracing::error!(
                ?after,
                "the API server answers nothing: all of its workers are stuck, in: {stuck}"
            );
        }
        Finding::Answers => tracing::warn!("the API server answers again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{self, Receiver};

    /// Findings of one test's threads, and of its runtime.
    fn findings(runtime: &Handle) -> (Watchdog, Receiver<Finding>) {
        let (tell, told) = mpsc::channel();
        (Watchdog::telling(runtime.clone(), move |finding| drop(tell.send(finding))).unwrap(), told)
    }

    #[test]
    fn a_worker_that_is_stuck_is_told_with_what_it_does() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("stuck-worker")
            .enable_all()
            .build()
            .unwrap();
        let (_watchdog, told) = findings(runtime.handle());
        let (open, gate) = mpsc::channel::<()>();
        runtime.spawn(watched("GET /stuck".into(), async move {
            tokio::task::yield_now().await;
            gate.recv().unwrap();
        }));
        let mine = |finding: &Finding| match finding {
            Finding::Stuck { thread, .. } | Finding::Free { thread, .. } => thread == "stuck-worker",
            Finding::Silent { .. } | Finding::Answers => true,
        };
        let mut mine = told.iter().filter(mine);
        let (thread, what) = ("stuck-worker".to_owned(), "GET /stuck".to_owned());
        let both = [mine.next().unwrap(), mine.next().unwrap()];
        let stuck = Finding::Stuck { thread: thread.clone(), what: what.clone() };
        assert!(both.contains(&stuck), "{both:?}");
        assert!(both.iter().any(|finding| matches!(finding, Finding::Silent { .. })), "{both:?}");
        open.send(()).unwrap();
        let both = [mine.next().unwrap(), mine.next().unwrap()];
        assert!(both.contains(&Finding::Free { thread, what }), "{both:?}");
        assert!(both.contains(&Finding::Answers), "{both:?}");
    }

    /// A torture has a plane for each of its runs, and all of them in one process.
    #[test]
    fn one_of_several_watchdogs_tells_of_the_threads() {
        let (one, other) = (Teller::new(), Teller::new());
        let told = [&one, &other].iter().filter(|teller| teller.is_first()).count();
        assert_eq!(told, 1);
        assert!(one.is_first() && !other.is_first());
        drop(one);
        assert!(other.is_first());
    }

    #[test]
    fn what_is_begun_inside_of_something_ends_before_it() {
        let (outer, inner): (Arc<str>, Arc<str>) = ("outer".into(), "inner".into());
        let now = || SECTION.with(|section| locked(&section.what).clone());
        {
            let _outer = busy(&outer);
            {
                let _inner = busy(&inner);
                assert_eq!(now(), Some(inner.clone()));
            }
            assert_eq!(now(), Some(outer.clone()));
        }
        assert_eq!(now(), None);
    }
}

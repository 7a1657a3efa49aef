//! The reconciles that a traced program tells of while it runs: which are under way, and which fail again and
//! again. Without it a program is quiet once it makes no call for a while; a reconcile that sleeps makes
//! none.

use opdev_facts::record::{Begin, End, Record, TraceCause, Traced, Why};
use opdev_facts::simulated::names_pods;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use opdev_trace::instrument::{Listener, ManagerOptions, environment, socket_path};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The delay before the first new try in the queues of controller-runtime; it doubles with each.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
/// The longest one.
const LONGEST_BACKOFF: Duration = Duration::from_secs(1000);
/// A reconcile that comes by itself later than that is not waited for.
const SOON: Duration = Duration::from_secs(2);
/// One that did not come by then does not come.
const OVERDUE: Duration = Duration::from_secs(1);
/// Reconciles of an object without any change after which the next one is not waited for: of one that only
/// comes by itself, and of one that fails.
const IDLE: u32 = 2;
const TRIES: u32 = 6;

/// Entries of each kind that are remembered.
const MOST: usize = 400;
/// An entry that is older says nothing about why it goes on.
pub const LATELY: Duration = Duration::from_secs(10);

/// The last entries, oldest first.
#[derive(Debug)]
pub struct Lately<T> {
    all: VecDeque<(Instant, T)>,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Lately { all: VecDeque::new() }
    }
}

impl<T> Lately<T> {
    /// Adds an entry; the oldest one goes where there are too many.
    pub fn note(&mut self, now: Instant, one: T) {
        if self.all.len() == MOST {
            self.all.pop_front();
        }
        self.all.push_back((now, one));
    }

    /// Entries from not long before `now`, the newest first.
    pub fn newest(&self, now: Instant) -> impl Iterator<Item = &T> {
        let recent = self.all.iter().rev();
        recent.take_while(move |(at, _)| now.duration_since(*at) <= LATELY).map(|(_, one)| one)
    }
}

/// A reconcile that began: whose, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Begun {
    /// The object with its controller.
    pub of: String,
    /// Why, in words.
    pub causes: Vec<String>,
}

impl Begun {
    /// A reconcile of an object, as its trace tells it.
    pub fn new(of: &str, begin: &Begin) -> Begun {
        Begun { of: of.to_owned(), causes: begin.causes.iter().map(cause).collect() }
    }
}

/// A cause in words.
fn cause(cause: &TraceCause) -> String {
    let seconds = |nanos: i64| Duration::from_nanos(nanos.unsigned_abs()).as_secs_f64();
    match cause.why {
        Why::Retry => format!("another try after {}", first_line(&cause.error)),
        Why::Requeue if cause.after > 0 => {
            format!("the reconcile before asked for it after {:.1} s", seconds(cause.after))
        }
        Why::Requeue => "the reconcile before asked for it".to_owned(),
        _ => match &cause.object {
            Some(object) => {
                let name = match object.namespace.as_str() {
                    "" => object.name.clone(),
                    namespace => format!("{namespace}/{}", object.name),
                };
                format!("{} of {} {name}", cause.event, object.kind)
            }
            None => cause.event.clone(),
        },
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("an error")
}

/// Listens to one start of a program.
pub struct UnderWay {
    seen: Arc<Mutex<Reconciles>>,
    news: watch::Receiver<u64>,
    socket: PathBuf,
    _listener: Listener,
    _hearing: AbortOnDropHandle<()>,
}

/// Reconciles by what was told of them. Pure.
#[derive(Debug, Default)]
struct Reconciles {
    /// By the id: its controller and object, and since when.
    open: HashMap<String, (String, Instant)>,
    /// Reconciles that began lately.
    begun: Lately<Begun>,
    /// By controller and object: when the next reconcile comes by itself.
    later: HashMap<String, Instant>,
    /// By the same: reconciles that have ended since the last change.
    idle: HashMap<String, u32>,
    /// How often in a row those of an object failed, and the last error.
    failing: BTreeMap<String, (u32, String)>,
    /// Those whose last error came from a simulated pod: the application in it does not answer.
    without_pods: BTreeSet<String>,
}

impl Reconciles {
    fn begin(&mut self, begin: &Begin) {
        let object = match begin.namespace.as_str() {
            "" => begin.name.clone(),
            namespace => format!("{namespace}/{}", begin.name),
        };
        let (of, now) = (format!("{} by {}", object, begin.controller), Instant::now());
        self.begun.note(now, Begun::new(&of, begin));
        self.later.remove(&of);
        self.open.insert(begin.id.clone(), (of, now));
    }

    fn end(&mut self, end: &End) {
        let Some((of, _)) = self.open.remove(&end.id) else { return };
        *self.idle.entry(of.clone()).or_default() += 1;
        let failed = !end.error.is_empty() || !end.panic.is_empty();
        let after = match end.requeue_after {
            0 if (failed && !end.terminal) || end.requeue => Some(self.backoff(&of)),
            0 => None,
            nanos => Some(Duration::from_nanos(nanos.unsigned_abs())),
        };
        if let Some(due) = after.and_then(|after| Instant::now().checked_add(after)) {
            self.later.insert(of.clone(), due);
        }
        self.without_pods.remove(&of);
        if end.error.is_empty() && end.panic.is_empty() {
            self.failing.remove(&of);
            return;
        }
        if end.panic.is_empty() && names_pods(&end.error) {
            self.without_pods.insert(of.clone());
        }
        let place = match end.panic_place.as_str() {
            "" => String::new(),
            place => format!(" ({place})"),
        };
        let failed = self.failing.entry(of).or_default();
        failed.0 += 1;
        // A panic passes through the reconciler before anybody makes an error of it.
        let why = end.error.lines().next().unwrap_or("it panics");
        failed.1 = format!("{why}{place}");
    }
}

impl Reconciles {
    /// The delay of the queue before the next try, as controller-runtime has it unless the operator says
    /// otherwise.
    fn backoff(&self, of: &str) -> Duration {
        let failed = self.failing.get(of).map_or(0, |(failed, _)| *failed);
        (FIRST_BACKOFF * 2u32.saturating_pow(failed.min(20))).min(LONGEST_BACKOFF)
    }

    /// Returns true if a reconcile is under way, or comes by itself so soon that it may be part of what goes
    /// on. An object that has been reconciled often without any change waits for nothing that comes by
    /// itself.
    fn is_busy(&self, now: Instant) -> bool {
        let soon = |of: &String, due: &Instant| {
            let idle = self.idle.get(of).copied().unwrap_or_default();
            let tries = if self.failing.contains_key(of) { TRIES } else { IDLE };
            idle < tries && *due <= now + SOON && now <= *due + OVERDUE
        };
        !self.open.is_empty() || self.later.iter().any(|(of, due)| soon(of, due))
    }

    fn fail_often(&self, attempts: u32) -> Vec<(String, String)> {
        let often = self
            .failing
            .iter()
            .filter(|(of, (failed, _))| *failed >= attempts && !self.without_pods.contains(*of));
        often.map(|(of, (_, why))| (of.clone(), why.clone())).collect()
    }
}

impl UnderWay {
    /// Listens; `folder` is one that only this user can read. `judge` gets what was told.
    ///
    /// # Errors
    /// Where the socket cannot be made.
    pub fn listen(folder: &Path, judge: impl Fn(Traced) + Send + 'static) -> Result<UnderWay> {
        let socket = socket_path(folder);
        let (listener, mut records) =
            Listener::start(&socket).context("no socket for the program's trace")?;
        let seen = Arc::new(Mutex::new(Reconciles::default()));
        let (tell, news) = watch::channel(0);
        let heard = Arc::clone(&seen);
        let hearing = tokio::spawn(async move {
            while let Some(traced) = records.recv().await {
                match &traced.record {
                    Record::Begin(begin) => lock(&heard).begin(begin),
                    Record::End(end) => lock(&heard).end(end),
                    Record::Controller(_) | Record::Read(_) => {
                        judge(traced);
                        continue;
                    }
                    // A reconcile that was under way when records were lost may have ended since.
                    Record::Dropped { .. } | Record::Closed => {
                        let mut heard = lock(&heard);
                        heard.open.clear();
                        heard.later.clear();
                    }
                    _ => continue,
                }
                judge(traced);
                tell.send_modify(|count| *count += 1);
            }
        });
        let hearing = AbortOnDropHandle::new(hearing);
        Ok(UnderWay { seen, news, socket, _listener: listener, _hearing: hearing })
    }

    /// The variables that the program needs. Several of them run at once, so that none has the usual port for
    /// its webhooks, which nobody calls.
    pub fn environment(&self, certificates: &Path) -> Vec<(&'static str, String)> {
        let webhook_cert_dir = Some(certificates.display().to_string());
        let options = ManagerOptions { webhook_port: Some(0), webhook_cert_dir, ..ManagerOptions::default() };
        environment(&self.socket, &options)
    }

    /// Returns true if a reconcile is under way or comes soon.
    pub fn is_busy(&self) -> bool {
        lock(&self.seen).is_busy(Instant::now())
    }

    /// Something has changed: what follows by itself may change more.
    pub fn changed(&self) {
        lock(&self.seen).idle.clear();
    }

    /// Gives what began lately, and what is under way with how long.
    pub fn lately<T>(&self, give: impl FnOnce(&Lately<Begun>, Vec<(String, Duration)>) -> T) -> T {
        let seen = lock(&self.seen);
        let open = seen.open.values().map(|(of, since)| (of.clone(), since.elapsed())).collect();
        give(&seen.begun, open)
    }

    /// Failures so far count no more.
    pub fn forget_failures(&self) {
        lock(&self.seen).failing.clear();
    }

    /// Counts what was told.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.news.clone()
    }

    /// Objects whose reconciles failed at least so often in a row, with the last error.
    pub fn failing(&self, attempts: u32) -> Vec<(String, String)> {
        lock(&self.seen).fail_often(attempts)
    }
}

fn lock(seen: &Mutex<Reconciles>) -> MutexGuard<'_, Reconciles> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_remembered() {
        let mut lately = Lately::default();
        (0..MOST + 5).for_each(|number| lately.note(Instant::now(), number));
        assert_eq!(lately.newest(Instant::now()).count(), MOST);
        assert_eq!(lately.newest(Instant::now()).next(), Some(&(MOST + 4)));
        assert_eq!(lately.newest(Instant::now() + LATELY * 2).count(), 0);
    }

    #[test]
    fn failures_in_a_row_are_counted_by_object_and_end_with_a_success() {
        let mut told = Reconciles::default();
        let mut once = |id: &str, name: &str, error: &str| {
            told.begin(&Begin {
                id: id.to_owned(),
                name: name.to_owned(),
                controller: "store".to_owned(),
                ..Begin::default()
            });
            let place = if error.is_empty() { "" } else { "controllers/a.go:4" };
            told.end(&End {
                id: id.to_owned(),
                error: error.to_owned(),
                panic_place: place.to_owned(),
                ..End::default()
            });
        };
        once("1", "a", "no luck\nat all");
        once("2", "a", "no luck");
        once("3", "b", "no luck");
        once("4", "b", "");
        assert!(told.open.is_empty());
        let failing: Vec<_> = told.failing.into_iter().collect();
        assert_eq!(failing, [("a by store".to_owned(), (2, "no luck (controllers/a.go:4)".to_owned()))]);
    }

    #[test]
    fn an_application_that_does_not_answer_is_no_fault_of_the_operator() {
        let mut told =
            ended(Duration::ZERO, "All attempts fail:\n#1: Get \"http://db.default.svc:4000\": refused");
        assert!(told.fail_often(1).is_empty());
        told.once("2", Duration::ZERO, "no luck");
        assert_eq!(told.fail_often(1).len(), 1);
    }

    #[test]
    fn a_panic_that_nobody_made_an_error_of_is_told_with_its_place() {
        let mut told = Reconciles::default();
        told.begin(&Begin { id: "1".to_owned(), name: "a".to_owned(), ..Begin::default() });
        let (panic, panic_place) = ("goroutine 1 [running]:\nmain.f()".to_owned(), "a.go:4".to_owned());
        told.end(&End { id: "1".to_owned(), panic, panic_place, ..End::default() });
        let why: Vec<_> = told.failing.into_values().collect();
        assert_eq!(why, [(1, "it panics (a.go:4)".to_owned())]);
    }

    fn ended(requeue_after: Duration, error: &str) -> Reconciles {
        let mut told = Reconciles::default();
        told.once("1", requeue_after, error);
        told
    }

    impl Reconciles {
        fn once(&mut self, id: &str, requeue_after: Duration, error: &str) {
            let (id, error) = (id.to_owned(), error.to_owned());
            self.begin(&Begin { id: id.clone(), name: "a".to_owned(), ..Begin::default() });
            let requeue_after = i64::try_from(requeue_after.as_nanos()).unwrap();
            self.end(&End { id, error, requeue_after, ..End::default() });
        }
    }

    #[test]
    fn a_reconcile_that_comes_soon_is_waited_for_until_one_changes_nothing() {
        let now = Instant::now();
        let mut told = ended(Duration::from_secs(1), "");
        assert!(told.is_busy(now));
        assert!(!told.is_busy(now + SOON + OVERDUE), "it did not come");
        told.once("2", Duration::from_secs(1), "");
        assert!(!told.is_busy(now), "the second one changed nothing");
        told.idle.clear();
        assert!(told.is_busy(now), "now something has changed");
        assert!(!ended(Duration::from_secs(60), "").is_busy(now), "a period is nothing to wait for");
        assert!(!ended(Duration::ZERO, "").is_busy(now));
    }

    #[test]
    fn tries_after_an_error_are_waited_for_a_few_times() {
        let mut told = ended(Duration::ZERO, "no luck");
        let tries = (2..20).take_while(|number| {
            let busy = told.is_busy(Instant::now());
            told.once(&number.to_string(), Duration::ZERO, "no luck");
            busy
        });
        assert_eq!(tries.count(), TRIES as usize - 1);
    }
}

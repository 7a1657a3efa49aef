//! One call: a fresh engine on a thread of its own, served by the calling thread, which owns the `Host`. A
//! second thread keeps the time. A script that does not stop when it is told to, because it is inside one
//! native operation, is left behind, named, and not called again while it lasts.

use super::code::Code;
use super::machine::{Declared, Machine};
use super::trace;
use crate::contract::{
    ChartAnswer, ChartQuestion, Desired, Exec, Executed, Fetch, Fetched, Host, HostError, Limits, Observed,
    Read,
};
use crate::time;
use opdev_object::meta::Gvk;
use opdev_types::diagnostic::Diagnostic;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// How long a script has to stop once its time is over.
const GRACE: Duration = Duration::from_millis(400);
/// Stack of native code beside the script's own.
pub(super) const NATIVE_STACK: usize = 2 << 20;
/// How many answers of the host are kept for a second look.
const MOST_PAST: usize = 10_000;

/// A call to make.
pub(super) struct Job {
    pub(super) code: Arc<Code>,
    pub(super) function: &'static str,
    pub(super) observed: Observed,
    pub(super) owns: Vec<Gvk>,
    /// The question of a script beside a chart.
    pub(super) question: Option<ChartQuestion>,
}

/// A request of a script to the host.
pub(super) enum Ask {
    Get(Read),
    List(Read),
    Kind(String),
    Fetch(Fetch),
    Exec(Exec),
    Log(String, String),
}

/// The answer of the host.
#[derive(Clone)]
pub(super) enum Reply {
    Object(Option<Arc<serde_json::Value>>),
    Objects(Vec<Arc<serde_json::Value>>),
    Kind(Gvk),
    Fetched(Fetched),
    Executed(Executed),
    Logged,
    Refused(String),
}

enum Message<T> {
    Ask(Ask),
    Done(Box<Result<T, Box<Diagnostic>>>),
    TimeIsOver,
}

/// The script's end of the way to its host.
pub(super) struct Answers {
    ask: Box<dyn Fn(Ask) -> bool>,
    replies: Receiver<Reply>,
    past: RefCell<Vec<Reply>>,
    /// Where in the past a call that is made again stands.
    again: Cell<Option<usize>>,
}

impl Answers {
    /// Asks and waits; `None` when nobody listens any more.
    pub(super) fn ask(&self, question: Ask) -> Option<Reply> {
        if let Some(at) = self.again.get() {
            self.again.set(Some(at + 1));
            return self.past.borrow().get(at).cloned();
        }
        if !(self.ask)(question) {
            return None;
        }
        let reply = self.replies.recv().ok()?;
        let mut past = self.past.borrow_mut();
        if past.len() < MOST_PAST {
            past.push(reply.clone());
        }
        Some(reply)
    }

    fn record(&self) {
        self.past.borrow_mut().clear();
        self.again.set(None);
    }

    /// From now on the answers are those of before.
    fn repeat(&self) {
        self.again.set(Some(0));
    }
}

/// Runs the top level of a script and reads what it exports.
pub(super) fn load(code: &Arc<Code>, limits: &Limits, stuck: &Stuck) -> Result<Declared, Box<Diagnostic>> {
    let (own, limits) = (Arc::clone(code), *limits);
    let task = move |answers: &Rc<Answers>, stop: &Arc<AtomicBool>| {
        attempt(&own, &limits, answers, stop, |machine| machine.declared(answers))
    };
    supervise(code, None, &limits, stuck, task)
}

/// Calls a function of a script.
pub(super) fn reconcile(
    job: Job,
    host: &dyn Host,
    limits: &Limits,
    stuck: &Stuck,
) -> Result<Desired, Box<Diagnostic>> {
    let (code, limits) = (Arc::clone(&job.code), *limits);
    let task = move |answers: &Rc<Answers>, stop: &Arc<AtomicBool>| {
        attempt(&job.code, &limits, answers, stop, |machine| machine.call(&job, answers))
    };
    supervise(&code, Some(host), &limits, stuck, task)
}

/// Asks a script beside a chart.
pub(super) fn ask(
    job: Job,
    host: &dyn Host,
    limits: &Limits,
    stuck: &Stuck,
) -> Result<ChartAnswer, Box<Diagnostic>> {
    let (code, limits) = (Arc::clone(&job.code), *limits);
    let task = move |answers: &Rc<Answers>, stop: &Arc<AtomicBool>| {
        attempt(&job.code, &limits, answers, stop, |machine| machine.ask(&job, answers))
    };
    supervise(&code, Some(host), &limits, stuck, task)
}

/// Makes a call. Where memory ran out there is none left to say where; then the call is made once more with
/// room to spare and the same answers of the host, up to the moment before.
fn attempt<T>(
    code: &Arc<Code>,
    limits: &Limits,
    answers: &Answers,
    stop: &Arc<AtomicBool>,
    call: impl Fn(Machine) -> Result<T, Box<Diagnostic>>,
) -> Result<T, Box<Diagnostic>> {
    let watch = Watch::new(Arc::clone(stop), u64::MAX);
    let ticks = Arc::clone(&watch.ticks);
    let wide = Limits { memory: limits.memory.saturating_mul(2), ..*limits };
    answers.record();
    let failed = match Machine::new(Arc::clone(code), limits, watch).and_then(&call) {
        Err(failed) if trace::is_out_of_memory(&failed) && failed.stack.is_empty() => failed,
        done => return done,
    };
    let ticks = ticks.load(Ordering::Relaxed);
    if ticks == 0 {
        return Err(failed);
    }
    answers.repeat();
    let watch = Watch::new(Arc::clone(stop), ticks);
    match Machine::new(Arc::clone(code), &wide, watch).and_then(&call) {
        Err(found) if !found.stack.is_empty() => {
            Err(Box::new(Diagnostic { place: found.place, stack: found.stack, ..*failed }))
        }
        _ => Err(failed),
    }
}

/// When to interrupt a script.
pub(super) struct Watch {
    pub(super) stop: Arc<AtomicBool>,
    /// The number of times that the engine has asked.
    ticks: Arc<AtomicU64>,
    /// At which time of asking to say yes.
    last: u64,
}

impl Watch {
    fn new(stop: Arc<AtomicBool>, last: u64) -> Watch {
        Watch { stop, ticks: Arc::default(), last }
    }

    /// Asked by the engine again and again.
    pub(super) fn interrupts(&self) -> bool {
        let ticks = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        self.stop.load(Ordering::Relaxed) || ticks >= self.last
    }
}

/// The call that was given up and may still be running.
pub(super) type Stuck = Mutex<Weak<()>>;

/// Runs a task on its own thread and serves it until it is done or its time is over.
fn supervise<T: Send + 'static>(
    code: &Code,
    host: Option<&dyn Host>,
    limits: &Limits,
    stuck: &Stuck,
    task: impl FnOnce(&Rc<Answers>, &Arc<AtomicBool>) -> Result<T, Box<Diagnostic>> + Send + 'static,
) -> Result<T, Box<Diagnostic>> {
    let fail = |message: String| Box::new(Diagnostic::error(message, Some(code.start())));
    let is_stuck = stuck.lock().unwrap_or_else(PoisonError::into_inner).upgrade().is_some();
    if is_stuck {
        return Err(fail(format!(
            "{} is not called: an earlier call is still inside one operation that cannot be interrupted",
            code.entry
        )));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let (say, hear) = mpsc::channel::<Message<T>>();
    let (reply, replies) = mpsc::channel();
    let late = say.clone();
    let clock = time::stop_after(limits.time, Arc::clone(&stop), move || {
        let _ = late.send(Message::TimeIsOver);
    });
    let no_thread = |error: std::io::Error| fail(format!("no thread for {}: {error}", code.entry));
    let clock = clock.map_err(no_thread)?;
    let alive = Arc::new(());
    let running = Arc::downgrade(&alive);
    let entry = code.entry.clone();
    let script = move || {
        let ask = say.clone();
        let ask = Box::new(move |question| ask.send(Message::Ask(question)).is_ok());
        let answers = Rc::new(Answers { ask, replies, past: RefCell::default(), again: Cell::new(None) });
        let done = catch_unwind(AssertUnwindSafe(|| task(&answers, &stop)));
        let done = done.unwrap_or_else(|_| {
            Err(Box::new(Diagnostic::error(format!("the script engine failed inside {entry}"), None)))
        });
        drop(alive);
        let _ = say.send(Message::Done(Box::new(done)));
    };
    let stack = limits.stack.saturating_add(NATIVE_STACK);
    thread::Builder::new().name("script".to_owned()).stack_size(stack).spawn(script).map_err(no_thread)?;
    let done = serve(host, &hear, &reply);
    drop(clock);
    match done {
        Some(done) => *done,
        None => {
            *stuck.lock().unwrap_or_else(PoisonError::into_inner) = running;
            Err(fail(format!(
                "{} did not end within {} and is inside one operation that cannot be interrupted",
                code.entry,
                time::in_words(limits.time)
            )))
        }
    }
}

/// Answers a script until it is done; `None` if it does not stop although its time is over.
fn serve<T>(
    host: Option<&dyn Host>,
    hear: &Receiver<Message<T>>,
    reply: &Sender<Reply>,
) -> Option<Box<Result<T, Box<Diagnostic>>>> {
    let mut late = false;
    loop {
        let message = if late { hear.recv_timeout(GRACE).ok()? } else { hear.recv().ok()? };
        match message {
            Message::Done(done) => return Some(done),
            Message::TimeIsOver => late = true,
            Message::Ask(_) if late => {
                let _ = reply.send(Reply::Refused("the time of this call is over".to_owned()));
            }
            Message::Ask(question) => {
                let _ = reply.send(answer_of(host, question));
            }
        }
    }
}

fn answer_of(host: Option<&dyn Host>, question: Ask) -> Reply {
    let Some(host) = host else {
        return match question {
            Ask::Log(..) => Reply::Logged,
            Ask::Get(_) | Ask::List(_) | Ask::Kind(_) | Ask::Fetch(_) | Ask::Exec(_) => {
                Reply::Refused("nothing can be reached while the file is loaded".to_owned())
            }
        };
    };
    let refused = |error: HostError| Reply::Refused(error.to_string());
    match question {
        Ask::Get(read) => host.get(&read).map_or_else(refused, Reply::Object),
        Ask::List(read) => host.list(&read).map_or_else(refused, Reply::Objects),
        Ask::Kind(text) => host.kind(&text).map_or_else(refused, Reply::Kind),
        Ask::Fetch(fetch) => host.fetch(&fetch).map_or_else(refused, Reply::Fetched),
        Ask::Exec(exec) => host.exec(&exec).map_or_else(refused, Reply::Executed),
        Ask::Log(level, line) => {
            host.log(&level, &line);
            Reply::Logged
        }
    }
}

//! Records of a traced process about its controllers, as it comes over its socket: one record a line. Plain
//! data; `program/trace` reads it off the socket and makes reconciles of it.

pub mod fields;

use jiff::Timestamp;
use opdev_event::LogLine;
use serde::{Deserialize, Serialize};

/// A record with where it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Traced {
    /// The connection it came over, counted from 1; a process has one for as long as it lives.
    pub process: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// The text.
    pub record: Record,
}

/// A record of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase")]
pub enum Record {
    /// The first one of each process.
    Hello(Hello),
    /// A manager was made, with what was set in its options.
    Manager(ManagerMade),
    /// A controller was added to a manager.
    Controller(ControllerAdded),
    /// A worker took an object from the queue.
    Begin(Begin),
    /// The reconcile is over and what comes of it is decided.
    End(End),
    /// The cache answered a read.
    Read(CacheRead),
    /// A read waits until the cache has what the program wrote itself.
    Waiting(CacheRead),
    /// A reconcile handed an Event to its recorder.
    Recorded(RecordedEvent),
    /// A line of the structured log.
    Log(LogRecord),
    /// Records found no room and were dropped.
    Dropped {
        /// How many since the last such record.
        records: u64,
    },
    /// A line that is no record.
    #[serde(skip)]
    Unreadable {
        /// Its beginning.
        line: String,
        /// Its error.
        why: String,
    },
    /// The process has closed its end, mostly because it is gone.
    #[serde(skip)]
    Closed,
}

/// Bytes of a line that are quoted.
const QUOTED: usize = 120;

impl Record {
    /// Reads a line. Never fails: what cannot be read is a record that says so.
    pub fn read(line: &[u8]) -> Record {
        serde_json::from_slice(line).unwrap_or_else(|error| Record::unreadable(line, &error.to_string()))
    }

    /// A line that is no record, for a reason.
    pub fn unreadable(line: &[u8], why: &str) -> Record {
        let line = String::from_utf8_lossy(&line[..line.len().min(QUOTED)]).trim_end().to_owned();
        Record::Unreadable { line, why: why.to_owned() }
    }
}

/// The first line of a program: it says what speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hello {
    /// Its process id.
    pub pid: u32,
    /// How much was added to its build (`full`, `passes`, `header`), or `kopf` of a program in Python.
    pub rung: String,
    /// The Go it was built with, such as `go1.26.8`.
    pub go: String,
    /// The version of controller-runtime in it.
    pub controller_runtime: String,
    /// The version of client-go in it.
    pub client_go: String,
}

impl Hello {
    /// Returns true if reads of its managers can wait until the cache has what the program wrote: since
    /// controller-runtime 0.25.
    pub fn reads_can_wait(&self) -> bool {
        let mut parts = self.controller_runtime.trim_start_matches('v').split('.');
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u32>().ok());
        (number(parts.next()), number(parts.next())) >= (Some(0), Some(25))
    }

    /// The text in the place of a rung where the program is in Python, which has no build.
    pub const KOPF: &str = "kopf";
}

/// A manager with what was set in its options, such as `leaderElection=false`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagerMade {
    /// Option and value, as far as they differ from what the program wanted.
    pub set: Vec<String>,
}

/// A controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerAdded {
    /// Its name, one of a kind in its process.
    pub name: String,
    /// The group of the kind it is for, where the builder says so.
    pub group: String,
    /// The kind it is for, where the builder says so.
    pub kind: String,
    /// How many reconciles may run at once.
    pub workers: u32,
    /// The hooks that are seen: `reconciler`, `queue`.
    pub hooks: Vec<String>,
}

/// The beginning of a reconcile. Times are nanoseconds since 1970 by the clock of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Begin {
    /// When.
    pub t: i64,
    /// The reconcile id of controller-runtime; every call of the reconcile carries it.
    pub id: String,
    /// The controller's name.
    pub controller: String,
    /// Namespace of the request; empty for objects without one.
    pub namespace: String,
    /// Name of the request.
    pub name: String,
    /// When it was first put into the queue; 0 where that was not seen.
    pub queued: i64,
    /// All that put it there since the reconcile before.
    pub causes: Vec<TraceCause>,
    /// How many more causes there were than are told.
    pub more: u32,
}

/// An Event that a reconcile handed to its recorder, which sends it later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecordedEvent {
    /// When.
    pub t: i64,
    /// The reconcile.
    pub id: String,
    /// The object that the Event is about.
    pub object: TraceObject,
    /// Its reason.
    pub reason: String,
    /// The beginning of its message.
    pub message: String,
}

/// The event that put a request into a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceCause {
    /// When.
    pub t: i64,
    /// The value before.
    pub why: Why,
    /// The event that is a cause: `add`, `update`, `delete`.
    pub event: String,
    /// True if the event belongs to the initial list.
    pub initial: bool,
    /// The object of an event.
    pub object: Option<TraceObject>,
    /// The resourceVersion before an `update`.
    pub old: String,
    /// The reconcile that asked for a requeue.
    #[serde(rename = "pass")]
    pub reconcile: String,
    /// The number of reconciles that have failed in a row before a retry.
    pub attempt: u32,
    /// The error before a retry, in short.
    pub error: String,
    /// The nanoseconds that a requeue asked for.
    pub after: i64,
}

/// The reasons for which a request is put into a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Why {
    /// An event of a watched object.
    Event,
    /// The reconcile before failed.
    Retry,
    /// The reconcile before asked for another one, at once or later.
    Requeue,
    /// Somebody asked on the socket.
    User,
    /// opdev asked on the socket, to find out whether a change was missed.
    Check,
    /// A source that is no watch, such as a channel.
    #[default]
    Other,
}

/// An object that a record is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TraceObject {
    /// Its group; empty for the core group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub rv: String,
}

/// The end of a reconcile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct End {
    /// When the reconciler returned.
    pub t: i64,
    /// The reconcile.
    pub id: String,
    /// The error it returned; empty where there is none.
    pub error: String,
    /// True if the error says that there is no point in trying again.
    pub terminal: bool,
    /// The goroutine's stack where it panicked; empty where it did not.
    pub panic: String,
    /// The place in the project where it panicked, such as `controllers/web.go:42`; empty where that is not
    /// known.
    pub panic_place: String,
    /// After how many nanoseconds it wants to run again; 0 where it does not say.
    pub requeue_after: i64,
    /// True if it wants to run again, with the delay of the queue.
    pub requeue: bool,
    /// After how many nanoseconds it wanted to run again beside an error that is tried again: that wish is ignored.
    pub ignored_after: i64,
    /// Goroutines of the process at its end; 0 where that is not known.
    pub goroutines: u32,
    /// The increase of that number since its beginning.
    pub more: i32,
}

/// A read that the cache answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheRead {
    /// When it began.
    pub t: i64,
    /// The reconcile that read.
    pub id: String,
    /// Nanoseconds it took.
    pub took: i64,
    /// Nanoseconds that it had waited before, until the cache had what the program wrote itself.
    pub waited: i64,
    /// `get` or `list`.
    pub verb: String,
    /// The object that was read; of a list without name and resourceVersion.
    pub object: TraceObject,
    /// The label selector of a list in text; empty where there is none.
    pub labels: String,
    /// The field selector of a list in text; empty where there is none.
    pub fields: String,
    /// The objects of a list, at most 256.
    pub items: Vec<TraceItem>,
    /// The number of objects in a list.
    pub count: u32,
    /// Why it failed, such as `NotFound`; empty where it did not.
    pub error: String,
}

/// One object of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceItem {
    /// Its namespace; empty where it has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its resourceVersion.
    pub rv: String,
}

/// A line of the structured log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogRecord {
    /// When.
    pub t: i64,
    /// The reconcile it belongs to; empty where it belongs to none.
    pub id: String,
    /// The verbosity: 0 is info, more is chattier, -1 is an error.
    pub level: i32,
    /// The logger's name.
    pub logger: String,
    /// The text.
    pub message: String,
    /// The error it was given.
    pub error: String,
    /// Keys with their values in text, but for what names controller and request.
    pub values: Vec<(String, String)>,
    /// The name of the line where the process prints it, too; empty where it does not.
    pub printed: String,
}

/// The name of a line that a process both prints and tells, such as `4711.12`: its process id and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineName {
    /// The process id.
    pub pid: u32,
    /// Counted from 1.
    pub number: u64,
}

impl LineName {
    /// The field of a printed line that holds its name.
    pub const FIELD: &str = "opdev";

    /// Reads a name; `None` where the text is none.
    pub fn read(text: &str) -> Option<LineName> {
        let (pid, number) = text.split_once('.')?;
        Some(LineName { pid: pid.parse().ok()?, number: number.parse().ok()? })
    }
}

/// A line that a process has printed, and that it tells over its socket, too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrintedLine {
    /// Its name.
    pub name: LineName,
    /// The line as it was printed, whole.
    pub line: LogLine,
    /// The stack that was printed below it, which the record lacks; empty where there is none.
    pub stack: String,
}

/// A wish: put this object into the queue of this controller now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "do", rename = "reconcile", rename_all = "camelCase")]
pub struct ReconcileNow {
    /// The controller's name; empty for all controllers of the process.
    pub controller: String,
    /// Namespace of the object; empty where it has none.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// Why: a person asks where it is `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
}

//! The host of a running program: objects from the caches or the API server, what `opdev.yaml` allows of the
//! outside, and the log. Every read is remembered, so that it is watched. Runs on the program's thread; never
//! writes.

use super::outside;
use opdev_cache::caches::Hub;
use opdev_client::recorder::Recorder;
use opdev_client::{Api, ApiError, At, Resource};
use opdev_event::{Call, Level};
use opdev_object::meta::{self, Gvk, ObjectKey};
use opdev_object::selector::LabelSelector;
use opdev_script::contract::{Exec, Executed, Fetch, Fetched, Host, HostError, HostErrorKind, Read};
use opdev_sources::Allow;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How much of a program's log one reconcile keeps.
const MOST_LINES: usize = 1000;
/// How many objects read are searched for secrets.
const MOST_OBJECTS: usize = 1000;

/// Why an object is not read.
#[derive(Debug)]
enum ReadError {
    /// The reconcile has no time left.
    TimeIsOver,
    /// The API server has not answered before the time was over.
    NoAnswer,
    /// The call has failed.
    Api(ApiError),
    /// The kind of the object cannot be looked up.
    Kind(ApiError),
    /// One object is asked for without its name.
    NoName,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::TimeIsOver => f.write_str("the time of this reconcile is over"),
            ReadError::NoAnswer => f.write_str("the API server did not answer in time"),
            ReadError::Api(error) => error.fmt(f),
            // A script shows it in one line.
            ReadError::Kind(error) => f.write_str(&error.to_string().replace('\n', "; ")),
            ReadError::NoName => f.write_str("get needs a name"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Api(error) | ReadError::Kind(error) => Some(error),
            ReadError::TimeIsOver | ReadError::NoAnswer | ReadError::NoName => None,
        }
    }
}

impl From<ReadError> for HostError {
    fn from(error: ReadError) -> HostError {
        let kind = match &error {
            ReadError::TimeIsOver | ReadError::NoAnswer => HostErrorKind::TimeIsOver,
            ReadError::Api(ApiError::NotServed(_) | ApiError::NoMatch(_))
            | ReadError::Kind(ApiError::NotServed(_) | ApiError::NoMatch(_)) => HostErrorKind::NotServed,
            ReadError::Api(_) | ReadError::Kind(_) => HostErrorKind::Failed,
            ReadError::NoName => HostErrorKind::Invalid,
        };
        HostError::new(kind, error)
    }
}

/// A dry run does nothing that can have an effect.
#[derive(Clone, Debug)]
pub struct NotInTrial {
    /// The call that was to be made, such as `exec helm`.
    what: String,
}

impl fmt::Display for NotInTrial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not done in a dry run", self.what)
    }
}

impl std::error::Error for NotInTrial {}

/// The outside of one call.
pub struct Outside {
    api: Api,
    hub: Arc<Hub>,
    allow: Allow,
    namespace: Option<String>,
    handle: Handle,
    recorder: Option<Arc<Recorder>>,
    deadline: Instant,
    /// Nothing that can have an effect is done.
    shadow: bool,
    ended: AtomicBool,
    heard: Mutex<Heard>,
}

/// The result of a call.
#[derive(Default)]
pub struct Heard {
    pub reads: BTreeSet<Read>,
    pub logs: Vec<(Level, String)>,
    /// Objects that came from the API server.
    pub known: Vec<Arc<Value>>,
    /// Objects that were read, to be searched for secrets.
    pub objects: Vec<Arc<Value>>,
    /// Why a shadow run says nothing: it would have had to do something.
    pub refused: Option<NotInTrial>,
}

impl Outside {
    /// For one call of a script or a program.
    pub fn new(
        api: &Api,
        hub: &Arc<Hub>,
        typed: &opdev_sources::TypeReconciler,
        namespace: Option<String>,
        shadow: bool,
    ) -> Outside {
        Outside {
            api: api.clone(),
            hub: Arc::clone(hub),
            allow: typed.allow.clone(),
            namespace,
            handle: Handle::current(),
            recorder: Recorder::current(),
            deadline: Instant::now() + typed.limits.time,
            shadow,
            ended: AtomicBool::new(false),
            heard: Mutex::default(),
        }
    }

    /// The call is over: a program that goes on gets no answers any more.
    pub fn end(&self) -> Heard {
        self.ended.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that the call has left.
    fn left(&self) -> Result<Duration, ReadError> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if self.ended.load(Ordering::Relaxed) || left.is_zero() {
            return Err(ReadError::TimeIsOver);
        }
        Ok(left)
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, ApiError>>) -> Result<T, ReadError> {
        let left = self.left()?;
        let timed = async {
            match tokio::time::timeout(left, work).await {
                Ok(answer) => answer.map_err(ReadError::Api),
                Err(_) => Err(ReadError::NoAnswer),
            }
        };
        match &self.recorder {
            Some(recorder) => self.handle.block_on(Arc::clone(recorder).scope(timed)),
            None => self.handle.block_on(timed),
        }
    }

    /// The resource, and the read as it is watched: of a cluster-scoped kind without a namespace, of one
    /// object of a namespaced kind with one.
    fn resolve(&self, read: &Read) -> Result<(Arc<Resource>, Read), ReadError> {
        let found = self.wait(self.api.resource(&read.gvk));
        let mut read = read.clone();
        let resource = match found {
            Ok(resource) => resource,
            Err(why) => {
                // A kind that comes later wakes the reconcile, too.
                self.lock().reads.insert(read);
                return Err(match why {
                    ReadError::Api(error) => ReadError::Kind(error),
                    other => other,
                });
            }
        };
        if !resource.namespaced {
            read.namespace = None;
        } else if read.name.is_some() && read.namespace.is_none() {
            read.namespace.clone_from(&self.namespace);
        }
        self.lock().reads.insert(read.clone());
        Ok((resource, read))
    }

    fn keep(&self, objects: &[Arc<Value>], live: bool) {
        let mut heard = self.lock();
        if live {
            heard.known.extend(objects.iter().cloned());
        }
        let room = MOST_OBJECTS.saturating_sub(heard.objects.len());
        heard.objects.extend(objects.iter().take(room).cloned());
    }

    fn cached(&self, verb: &str, resource: &Resource, read: &Read) {
        if let Some(recorder) = &self.recorder {
            let mut path = resource.collection(read.namespace.as_deref());
            let mut target = resource.plural.clone();
            if let Some(name) = &read.name {
                path = format!("{path}/{name}");
                target = format!("{target}/{name}");
            } else if !read.selector.is_empty() {
                path = format!("{path}?labelSelector={}", read.selector);
            }
            note_cached_in(recorder, verb, &path, &target);
        }
    }

    fn effect(&self, what: String) -> Result<Duration, HostError> {
        let left = self.left()?;
        if self.shadow {
            let why = NotInTrial { what };
            self.lock().refused.get_or_insert_with(|| why.clone());
            return Err(HostError::new(HostErrorKind::NotAllowed, why));
        }
        Ok(left)
    }
}

impl Host for Outside {
    fn get(&self, read: &Read) -> Result<Option<Arc<Value>>, HostError> {
        let (resource, read) = self.resolve(read)?;
        let Some(name) = read.name.clone() else { return Err(ReadError::NoName.into()) };
        let follow = self.hub.follow_of(&read.gvk, read.namespace.as_deref());
        let key = ObjectKey {
            group: read.gvk.group.clone(),
            kind: read.gvk.kind.clone(),
            namespace: read.namespace.clone(),
            name: name.clone(),
        };
        if let Some(found) = self.hub.get(&follow, &key) {
            self.cached("get", &resource, &read);
            found.iter().for_each(|object| self.keep(std::slice::from_ref(object), false));
            return Ok(found);
        }
        let at = At { resource: &resource, namespace: read.namespace.as_deref(), name: &name };
        let found = self.wait(self.api.get(&at))?.map(Arc::new);
        found.iter().for_each(|object| self.keep(std::slice::from_ref(object), true));
        Ok(found)
    }

    fn list(&self, read: &Read) -> Result<Vec<Arc<Value>>, HostError> {
        let selector = LabelSelector::parse(&read.selector);
        let selector = selector.map_err(|error| HostError::new(HostErrorKind::Invalid, error))?;
        let (resource, read) = self.resolve(read)?;
        let follow = self.hub.follow_of(&read.gvk, read.namespace.as_deref());
        let inside =
            |object: &Value| read.namespace.is_none() || read.namespace.as_deref() == meta::namespace(object);
        let mut found: Vec<Arc<Value>> = match self.hub.list(&follow) {
            Some(all) => {
                self.cached("list", &resource, &read);
                let labels = |object: &Value| {
                    object.pointer("/metadata/labels").and_then(Value::as_object).cloned().unwrap_or_default()
                };
                let mut picked = all;
                picked.retain(|object| inside(object) && selector.matches(&labels(object)));
                self.keep(&picked, false);
                picked
            }
            None => {
                let all = self.wait(self.api.list(&resource, read.namespace.as_deref(), &read.selector))?;
                let all: Vec<Arc<Value>> = all.into_iter().map(Arc::new).collect();
                self.keep(&all, true);
                all
            }
        };
        found.sort_by_key(|object| {
            (meta::namespace(object).map(str::to_owned), meta::name(object).map(str::to_owned))
        });
        Ok(found)
    }

    fn kind(&self, text: &str) -> Result<Gvk, HostError> {
        let served = self.wait(self.api.discovery.served())?;
        served.kind(text).map_err(|error| HostError::new(HostErrorKind::NotServed, error))
    }

    fn fetch(&self, request: &Fetch) -> Result<Fetched, HostError> {
        let host = outside::host_of(&request.url)?;
        let safe = matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "");
        let left = if safe { self.left()? } else { self.effect(format!("{} {host}", request.method))? };
        Ok(outside::fetch(request, &self.allow, left, self.recorder.as_deref())?)
    }

    fn exec(&self, command: &Exec) -> Result<Executed, HostError> {
        let left = self.effect(format!("exec {}", command.program))?;
        Ok(outside::exec(command, &self.allow, left, self.recorder.as_deref())?)
    }

    fn log(&self, level: &str, message: &str) {
        let level = match level {
            "error" => Level::Error,
            "warn" | "warning" => Level::Warn,
            "debug" => Level::Debug,
            "trace" => Level::Trace,
            _ => Level::Info,
        };
        let mut heard = self.lock();
        if heard.logs.len() < MOST_LINES {
            heard.logs.push((level, message.to_owned()));
        }
    }
}

/// Records a read that a cache has answered.
pub fn note_cached(verb: &str, path: &str, target: &str) {
    let Some(recorder) = Recorder::current() else { return };
    note_cached_in(&recorder, verb, path, target);
}

/// Records a read that a cache has answered, for a thread that has the recorder at hand.
fn note_cached_in(recorder: &Recorder, verb: &str, path: &str, target: &str) {
    recorder.note(Call {
        verb: verb.to_owned(),
        path: format!("cache:{path}"),
        target: target.to_owned(),
        start: recorder.elapsed(),
        took: std::time::Duration::ZERO,
        status: 200,
        reason: None,
        place: None,
    });
}

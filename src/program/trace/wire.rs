//! Reconciles of a program that tells nothing of them: guessed from its calls and from the events of its
//! watches. Calls about one custom resource, or about what belongs to it, are one reconcile as long as they
//! follow each other closely and none of the writes is made twice, but for a call that the server has not
//! served and the client repeats. What was seen of the object since its
//! reconcile before is taken for the cause.

use super::Attribution;
use crate::reconcile::{Open, Write};
use jiff::{SignedDuration, Timestamp};
use opdev_event::{Cause, CauseKind, Event, TraceLevel};
use opdev_facts::observed::{ObjectLine, ObservedCall, ObservedEvent};
use opdev_facts::record::fields::nanoseconds;
use opdev_facts::record::{Begin, End, TraceCause, TraceObject, Why};
use opdev_object::api_path::ApiPath;
use opdev_object::meta::{Gvk, ObjectKey, ObjectRef, controller, owner_references, resource_version};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// A reconcile without a call for so long is over: between two calls of a reconcile a program does nothing
/// but think.
const GAP: SignedDuration = SignedDuration::from_millis(50);
/// After a write of a child a reconcile goes on for longer, as long as nobody else has changed anything: the
/// status is written last, and a JVM loads classes on the way there.
const GAP_AFTER_CHILD: SignedDuration = SignedDuration::from_millis(400);
/// Clients repeat a call by themselves that a server has not served: the shortest time to wait for that, as a
/// `Retry-After` of one second makes it, and how much longer each wait may be than the one before.
const RETRY: (SignedDuration, i32) = (SignedDuration::from_millis(1500), 3);
/// Tries of one call. fabric8 and client-go make ten at most.
const TRIES: u32 = 10;
/// Lines about an object that come so soon after its reconcile are the reconcile's.
const AFTER: Duration = Duration::from_millis(200);
/// A line that says why an object is reconciled belongs to a reconcile that begins so soon after it.
const BEFORE: SignedDuration = SignedDuration::from_secs(1);
/// Lines that wait for their reconcile.
const REASONS: usize = 1_000;
/// Causes of one reconcile.
const CAUSES: usize = 16;
/// Objects of whose causes and reconciles something is known.
const OBJECTS: usize = 20_000;
/// Why a reconcile began before which nothing was seen.
const UNSEEN: &str = "nothing was seen that led to it: a timer of the program, or another try";
/// Owners above each other.
const OWNERS: usize = 8;

/// The reconciles that are guessed.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Since when the program runs; none where it tells of its reconciles itself.
    started: Option<Timestamp>,
    /// Reconciles that were guessed so far.
    count: u64,
    /// The reconciles that are under way, by the object they are for.
    open: HashMap<ObjectKey, Guess>,
    /// Changes of an object, and of objects that belong to it, since its reconcile before.
    causes: HashMap<ObjectKey, Vec<TraceCause>>,
    /// Objects that had a reconcile since the start.
    known: HashSet<ObjectKey>,
    /// Why objects are reconciled, as lines said before their reconcile began: when, what the line calls the
    /// object, and why.
    reasons: VecDeque<(Timestamp, String, String)>,
}

/// A reconcile that is under way.
#[derive(Debug)]
struct Guess {
    id: String,
    /// When its last call was answered.
    last: Timestamp,
    /// Its writes, by method, path and name.
    writes: BTreeSet<(String, String)>,
    /// The error of its last call; empty where it succeeded.
    error: String,
    /// For how long another call may still be its own.
    gap: SignedDuration,
    /// Its last call, where the server did not serve it.
    unserved: Option<Unserved>,
}

/// A call that a client may repeat by itself.
#[derive(Debug)]
struct Unserved {
    place: (String, String),
    tries: u32,
}

impl Guess {
    /// Takes in a call; `about_root` where it is about the custom resource itself.
    fn take(&mut self, call: &ObservedCall, place: (String, String), about_root: bool) {
        let waited = call.at.duration_since(self.last);
        self.last = self.last.max(call.done());
        self.error = refusal(call);
        let before = self.unserved.take().filter(|before| before.place == place);
        self.gap = match call.status {
            0 | 429 | 500.. => {
                let tries = before.map_or(1, |before| before.tries + 1);
                self.unserved = Some(Unserved { place: place.clone(), tries }).filter(|_| tries < TRIES);
                let longer = if tries > 1 { waited * RETRY.1 } else { RETRY.0 };
                longer.max(RETRY.0)
            }
            200..=299 if call.writes() && !about_root => GAP_AFTER_CHILD,
            _ => GAP,
        };
        if call.writes() {
            self.writes.insert(place);
        }
    }

    /// Returns true if a call comes too late to be its own: the time for that is over, or somebody else has
    /// changed something (`is_caused`) or something else is asked for.
    fn is_over_before(&self, call: &ObservedCall, place: &(String, String), is_caused: bool) -> bool {
        let since = call.at.duration_since(self.last);
        let again = call.writes() && self.writes.contains(place);
        match &self.unserved {
            // Queues try a reconcile again sooner than a client does a call.
            Some(unserved) if unserved.place == *place => {
                again && since < GAP || is_caused || since >= self.gap
            }
            Some(_) => again || since >= GAP,
            None => again || since >= self.gap || (is_caused && since >= GAP),
        }
    }
}

impl Wire {
    /// A program was started of which nothing is known yet.
    pub(super) fn starting(&mut self, at: Timestamp) {
        *self = Wire { started: Some(at), count: self.count, ..Wire::default() };
    }

    /// The program tells of its reconciles itself.
    pub(super) fn told(&mut self) {
        self.started = None;
    }

    pub(super) fn is_on(&self) -> bool {
        self.started.is_some()
    }
}

/// Returns true if a group is not Kubernetes' own: such kinds are what operators are for.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

impl Attribution {
    /// When something may be over, where nothing else comes.
    pub fn due(&self) -> Option<Timestamp> {
        let ends =
            self.wire.open.values().map(|guess| guess.last.checked_add(guess.gap).unwrap_or(guess.last));
        ends.min()
    }

    /// Ends what is over by now.
    pub fn elapsed(&mut self, now: Timestamp) -> Vec<Event> {
        let is_over = |guess: &Guess| now.duration_since(guess.last) >= guess.gap;
        let over: Vec<ObjectKey> =
            self.wire.open.iter().filter(|(_, guess)| is_over(guess)).map(|(key, _)| key.clone()).collect();
        over.iter().filter_map(|key| self.end_guess(key)).collect()
    }

    fn end_guess(&mut self, key: &ObjectKey) -> Option<Event> {
        let guess = self.wire.open.remove(key)?;
        let end = End { t: nanoseconds(guess.last), id: guess.id, error: guess.error, ..End::default() };
        self.end(&end)
    }

    /// The kind that a path is about, from an answer.
    pub(super) fn learn_kind_of_call(&mut self, call: &ObservedCall) {
        let Some(object) = call.answered.as_ref().filter(|object| object["metadata"]["name"].is_string())
        else {
            return;
        };
        let (Some(gvk), place) = (Gvk::of(object), place_of(&call.path)) else { return };
        // A subresource has another kind.
        if gvk.group == place.0 {
            self.kinds.entry(place).or_insert(gvk);
        }
    }

    /// Guesses a cause from an event of a watch that has only the metadata of objects.
    pub(super) fn guess_cause_of_metadata(&mut self, event: &ObservedEvent) {
        let Some(gvk) = self.kinds.get(&place_of(&event.path)) else { return };
        let mut event = event.clone();
        opdev_object::meta::put(&mut event.object, &["apiVersion"], gvk.api_version());
        opdev_object::meta::put(&mut event.object, &["kind"], gvk.kind.clone());
        self.guess_cause(&event);
    }

    /// Notes an event as a cause of the next reconcile of what it belongs to.
    pub(super) fn guess_cause(&mut self, event: &ObservedEvent) {
        let Some(started) = self.wire.started else { return };
        let Some(object) = ObjectRef::of(&event.object) else { return };
        let plural = opdev_object::api_path::plural(&object.gvk.kind);
        self.kinds.entry((object.gvk.group.clone(), plural)).or_insert_with(|| object.gvk.clone());
        let Some(root) = self.root_of(&event.object) else { return };
        // To the second, as Kubernetes writes it.
        let created: Option<Timestamp> =
            event.object["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse().ok());
        let (key, rv) = (object.key(), resource_version(&event.object).unwrap_or_default().to_owned());
        let old = self.versions.before(&key, &rv);
        let old = old.as_deref().and_then(resource_version).unwrap_or_default().to_owned();
        let cause = TraceCause {
            t: nanoseconds(event.at),
            why: Why::Event,
            event: match event.kind.as_str() {
                "ADDED" => "add",
                "DELETED" => "delete",
                _ => "update",
            }
            .to_owned(),
            initial: event.kind == "ADDED"
                && created.is_some_and(|created| created.as_second() < started.as_second()),
            object: Some(TraceObject {
                group: object.gvk.group,
                version: object.gvk.version,
                kind: object.gvk.kind,
                namespace: object.namespace.unwrap_or_default(),
                name: object.name,
                uid: object.uid.unwrap_or_default(),
                rv,
            }),
            old,
            ..TraceCause::default()
        };
        if self.wire.causes.len() > OBJECTS {
            self.wire.causes.clear();
        }
        let causes = self.wire.causes.entry(root.key()).or_default();
        causes.push(cause);
        if causes.len() > CAUSES {
            causes.remove(0);
        }
    }

    /// Takes in a line about an object; the answer is the reconcile that it belongs to: the one that is under
    /// way, or the one that has just ended.
    pub(super) fn take_line(&mut self, about: &ObjectLine) -> Option<u64> {
        if !self.wire.is_on() {
            return self.reconcile_of_line(about);
        }
        let open = self.wire.open.iter().find(|(key, _)| is_called(key, &about.object));
        if let Some(open) = open.and_then(|(_, guess)| self.open.get_mut(&guess.id)) {
            open.heard();
            return Some(open.number);
        }
        if let Some(reason) = &about.reason {
            if self.wire.reasons.len() == REASONS {
                self.wire.reasons.pop_front();
            }
            self.wire.reasons.push_back((about.line.at, about.object.clone(), reason.clone()));
        }
        self.ended_before(about)
    }

    /// The reconcile that a line belongs to, for a program that tells of its reconciles but not of its lines:
    /// the only one of the object that is under way.
    fn reconcile_of_line(&self, about: &ObjectLine) -> Option<u64> {
        let mut open = self.open.values().filter(|open| is_called(&open.object.key(), &about.object));
        match (open.next(), open.next()) {
            (Some(one), None) => Some(one.number),
            (Some(_), Some(_)) => None,
            (None, _) => self.ended_before(about),
        }
    }

    fn ended_before(&self, about: &ObjectLine) -> Option<u64> {
        let (_, last) = self
            .ended
            .iter()
            .rev()
            .find(|(_, reconcile)| is_called(&reconcile.object.key(), &about.object))?;
        let since = about.line.at.duration_since(last.at).unsigned_abs().saturating_sub(last.took);
        (since <= AFTER).then_some(last.id)
    }

    /// The reconcile that a call belongs to, which may begin with it, and whether that is less than likely.
    pub(super) fn guess_reconcile(
        &mut self,
        call: &ObservedCall,
        write: Option<&Write>,
        out: &mut Vec<Event>,
    ) -> Option<(String, bool)> {
        if call.path.contains("/leases") || call.path.contains("reviews") {
            return None;
        }
        let Some(root) = self.root_of_call(call, write) else {
            // A list is about nobody: it is taken for the only reconcile that is under way.
            let mut open = self.wire.open.values_mut();
            return match (open.next(), open.next()) {
                (Some(guess), None) if !call.writes() => {
                    guess.last = guess.last.max(call.done());
                    Some((guess.id.clone(), true))
                }
                _ => None,
            };
        };
        let key = root.key();
        // A path of a create has no name.
        let name = write.map(|write| write.object.name.clone()).or_else(|| {
            let sent = call.sent.as_ref()?;
            Some(sent["metadata"]["name"].as_str()?.to_owned())
        });
        let place = (call.method.clone(), format!("{} {}", call.path, name.unwrap_or_default()));
        let is_over = |guess: &Guess| {
            let is_caused = self.is_caused(&key, guess.last, call.at);
            guess.is_over_before(call, &place, is_caused)
        };
        if self.wire.open.get(&key).is_some_and(is_over) {
            out.extend(self.end_guess(&key));
        }
        if !self.wire.open.contains_key(&key) {
            out.push(self.begin_guess(root, call));
        }
        let about_root = self.is_about(call, &key);
        let guess = self.wire.open.get_mut(&key)?;
        guess.take(call, place, about_root);
        Some((guess.id.clone(), false))
    }

    /// Returns true if somebody else has changed the object, or what belongs to it, between two times. What
    /// was seen after a call began may be its effect.
    fn is_caused(&self, key: &ObjectKey, since: Timestamp, until: Timestamp) -> bool {
        let causes = self.wire.causes.get(key).into_iter().flatten();
        let between = causes.filter(|cause| cause.t > nanoseconds(since) && cause.t <= nanoseconds(until));
        between.into_iter().any(|cause| !self.is_own(cause))
    }

    /// Returns true if the path of a call names this object, or its status.
    fn is_about(&self, call: &ObservedCall, key: &ObjectKey) -> bool {
        let (target, place) = (ApiPath::of(&call.path), place_of(&call.path));
        let kind = self.kinds.get(&place).map(|gvk| gvk.kind.as_str());
        target.name == key.name && place.0 == key.group && kind.is_none_or(|kind| kind == key.kind)
    }

    fn begin_guess(&mut self, root: ObjectRef, call: &ObservedCall) -> Event {
        self.wire.count += 1;
        let (id, key) = (format!("guess-{}", self.wire.count), root.key());
        // A change that was seen after the call may be its effect.
        let (mut causes, later): (Vec<_>, Vec<_>) = self
            .wire
            .causes
            .remove(&key)
            .unwrap_or_default()
            .into_iter()
            .partition(|cause| cause.t <= nanoseconds(call.at));
        if !later.is_empty() {
            self.wire.causes.insert(key.clone(), later);
        }
        // An own write is no cause where something else may be one.
        if causes.iter().any(|cause| !self.is_own(cause)) {
            causes.retain(|cause| !self.is_own(cause));
        }
        let first = self.wire.known.len() < OBJECTS && self.wire.known.insert(key.clone());
        if causes.is_empty() && first {
            // At the start a program lists what is there already.
            let start = TraceCause { why: Why::Event, initial: true, ..TraceCause::default() };
            causes.push(TraceCause { t: nanoseconds(call.at), ..start });
        }
        let begin = Begin { t: nanoseconds(call.at), id: id.clone(), causes, ..Begin::default() };
        let (mut causes, own_writes) = self.causes_of(&begin, &root);
        let said = self.reason_of(&key, call.at);
        let level = if said.is_some() { TraceLevel::Log } else { TraceLevel::Wire };
        if causes.is_empty() {
            let why = said.map_or_else(|| UNSEEN.to_owned(), |reason| format!("its log says: {reason}"));
            causes.push(Cause { at: call.at, kind: CauseKind::Wait { why } });
        }
        let open = Open::new(self.numbers.next(), &begin, root, causes, own_writes).at_level(level);
        let started = open.started();
        self.open.insert(id.clone(), open);
        let guess = Guess {
            id,
            last: call.done(),
            writes: BTreeSet::new(),
            error: String::new(),
            gap: GAP,
            unserved: None,
        };
        self.wire.open.insert(key, guess);
        Event::ReconcileStarted(started)
    }

    /// Why an object is reconciled, as its lines have said since its reconcile before.
    fn reason_of(&mut self, key: &ObjectKey, at: Timestamp) -> Option<String> {
        let mut last = None;
        self.wire.reasons.retain(|(said, object, reason)| {
            let is_its = is_called(key, object) && *said <= at;
            if is_its && at.duration_since(*said) <= BEFORE {
                last = Some(reason.clone());
            }
            !is_its
        });
        last
    }

    /// Returns true if a cause is a write of a reconcile.
    fn is_own(&self, cause: &TraceCause) -> bool {
        let written =
            |object: &TraceObject| (opdev_facts::record::fields::reference(object).key(), object.rv.clone());
        cause.object.as_ref().is_some_and(|object| self.written.contains_key(&written(object)))
    }

    /// The custom resource that a call is about.
    fn root_of_call(&self, call: &ObservedCall, write: Option<&Write>) -> Option<ObjectRef> {
        let is_object = |value: &&Value| {
            value["kind"] != "Status" && value["metadata"]["name"].is_string() && value["kind"].is_string()
        };
        let sent = call.sent.as_ref().filter(is_object);
        let about = call.answered.as_ref().filter(is_object).or(sent);
        let about = about.map(|value| Arc::new(value.clone()));
        let about = about.or_else(|| write.and_then(|write| write.old.clone()));
        let about = about.or_else(|| self.named(&call.path))?;
        let of_event = about.get("involvedObject").or_else(|| about.get("regarding"));
        let about = match of_event {
            Some(of) => self.versions.newest(&named_by(of)?)?,
            None => about,
        };
        let root = self.root_of(&about)?;
        // An object that is made for another one is a part of that one's reconcile, as long as it is under
        // way.
        let above = self.owner_of(&about).and_then(|owner| self.root_of(&owner));
        let goes_on = |above: &ObjectRef| {
            let guess = self.wire.open.get(&above.key());
            guess.is_some_and(|guess| call.at.duration_since(guess.last) < GAP)
        };
        let has_its_own = self.wire.open.contains_key(&root.key());
        Some(above.filter(|above| !has_its_own && goes_on(above)).unwrap_or(root))
    }

    /// The newest version of the object that a path names.
    fn named(&self, path: &str) -> Option<Arc<Value>> {
        let target = ApiPath::of(path);
        let gvk = self.kinds.get(&place_of(path))?;
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let key = ObjectKey {
            group: gvk.group.clone(),
            kind: gvk.kind.clone(),
            namespace: some(target.namespace),
            name: some(target.name)?,
        };
        self.versions.newest(&key)
    }

    /// The custom resource that an object is, or belongs to.
    fn root_of(&self, object: &Value) -> Option<ObjectRef> {
        let mut current = Arc::new(object.clone());
        for _ in 0..OWNERS {
            let own = ObjectRef::of(&current)?;
            if is_custom(&own.gvk.group) {
                return Some(own);
            }
            current = self.owner_of(&current)?;
        }
        None
    }

    /// The owner of an object: as it was seen last, or as far as the reference describes it.
    fn owner_of(&self, object: &Value) -> Option<Arc<Value>> {
        let owner = controller(object).or_else(|| owner_references(object).into_iter().next())?;
        let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
        let namespace = object["metadata"]["namespace"].as_str().map(str::to_owned);
        let key = |namespace: Option<String>| ObjectKey {
            group: gvk.group.clone(),
            kind: gvk.kind.clone(),
            namespace,
            name: owner.name.clone(),
        };
        let known = self.versions.newest(&key(namespace.clone()));
        known.or_else(|| self.versions.newest(&key(None))).or_else(|| {
            let told = serde_json::json!({"apiVersion": owner.api_version, "kind": owner.kind,
                "metadata": {"name": owner.name, "namespace": namespace, "uid": owner.uid}});
            Some(Arc::new(told))
        })
    }
}

/// Returns true if a line names an object so.
fn is_called(key: &ObjectKey, text: &str) -> bool {
    let namespace = key.namespace.as_deref().unwrap_or_default();
    let plain = match namespace {
        "" => text == key.name,
        _ => text.strip_suffix(&key.name).is_some_and(|rest| rest.strip_suffix('/') == Some(namespace)),
    };
    // As kube-rs writes it.
    let long = || {
        let (kind, name) = text.split_once('/')?;
        let of_kind = kind.split('.').next() == Some(key.kind.as_str());
        Some(
            of_kind
                && name.strip_suffix(namespace).is_some_and(|rest| rest.trim_end_matches('.') == key.name),
        )
    };
    plain || long().unwrap_or(false)
}

/// Group and plural that a path names.
pub(super) fn place_of(path: &str) -> (String, String) {
    let group = path.strip_prefix("/apis/").and_then(|rest| rest.split('/').next()).unwrap_or_default();
    (group.to_owned(), ApiPath::of(path).resource.to_owned())
}

/// The object that an Event is about.
fn named_by(reference: &Value) -> Option<ObjectKey> {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let gvk = Gvk::from_api_version(text("apiVersion"), text("kind"));
    let namespace = Some(text("namespace").to_owned()).filter(|namespace| !namespace.is_empty());
    let name = Some(text("name").to_owned()).filter(|name| !name.is_empty())?;
    Some(ObjectKey { group: gvk.group, kind: gvk.kind, namespace, name })
}

/// The error of a refused write. Errors for objects that exist already, are gone or are newer are part of
/// many a reconcile and do not count.
fn refusal(call: &ObservedCall) -> String {
    if !call.writes() || matches!(call.status, 200..=399 | 404 | 409) {
        return String::new();
    }
    let answer = call.answered.as_ref().and_then(|answer| answer["message"].as_str());
    let status = if call.status == 0 { "no answer".to_owned() } else { call.status.to_string() };
    let said = answer.map_or_else(String::new, |message| format!(": {message}"));
    format!("{} {} was answered with {status}{said}", call.method, call.target())
}

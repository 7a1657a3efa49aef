//! Evidence of a reconcile of a process, for findings: each write by object and path with hashes of its
//! values, each refusal with the field that the server named. Pure.

use super::reconcile::{Open, Write};
use super::spelling::means_same;
use super::{signs, workloads};
use jiff::Timestamp;
use opdev_event::evidence::{
    EventFact, Evidence, FieldFact, OwnerFact, ReadFact, RefusalFact, StaleFact, WarningFact, WriteFact,
    WriteVerb,
};
use opdev_event::reconcile::object_change::{last_writer, managers_of};
use opdev_event::{TraceLevel, mask};
use opdev_facts::observed::ObservedCall;
use opdev_facts::record::fields::{reference, time};
use opdev_facts::record::{Begin, CacheRead, End};
use opdev_object::api_path::ApiPath;
use opdev_object::diff::{Change, diff, reorderings};
use opdev_object::meta::{self, ObjectKey, ObjectRef, finalizers, owner_references, resource_version};
use opdev_object::path::{Path, Segment};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

/// Paths of one write that are kept.
const FIELDS: usize = 24;
/// The longest value that is shown.
const SHORT: usize = 48;

/// Facts beside a call and the object it stored.
pub(super) struct Beside<'a> {
    /// The object of the reconcile, where there is one.
    pub(super) primary: Option<&'a Value>,
    /// The version that the reconcile had read of the object.
    pub(super) read: Option<&'a Value>,
}

/// A write as findings see it.
pub(super) fn write_fact(call: &ObservedCall, write: &Write, beside: &Beside<'_>) -> WriteFact {
    let sent = call.sent.as_ref().unwrap_or(&Value::Null);
    let subresource = subresource(&call.path);
    let newest = write.new.as_deref().or(write.old.as_deref()).unwrap_or(&Value::Null);
    let manager = match (&write.new, write.unchanged) {
        (Some(new), false) => last_writer(write.old.as_deref(), new, false).unwrap_or_default(),
        _ => String::new(),
    };
    let fields = match (&write.old, &write.new) {
        (Some(old), Some(new)) if !write.unchanged && !write.created => {
            fields(write, old, new, sent, &manager, beside)
        }
        _ => Vec::new(),
    };
    let after: Vec<&str> = write.new.as_deref().map(finalizers).unwrap_or_default();
    let released = write.old.as_deref().filter(|_| write.new.is_some()).map(finalizers).unwrap_or_default();
    let released = released.into_iter().filter(|one| !after.contains(one)).map(str::to_owned).collect();
    WriteFact {
        at: write.at,
        place: call.place(),
        object: write.object.clone(),
        verb: verb(call),
        created: write.created,
        content: if write.created { signs::content(sent) } else { 0 },
        generated: write.created && signs::is_generated(sent, &write.object.name),
        unchanged: write.unchanged,
        empty: call.method == "PATCH" && sent.as_object().is_some_and(serde_json::Map::is_empty),
        fields,
        released,
        deleting: meta::deletion_timestamp(newest).is_some(),
        held: !after.is_empty(),
        owners: owners(newest),
        tied: beside.primary.is_some_and(|primary| tied(newest, primary)),
        generation: meta::generation(newest),
        became_ready: is_ready(newest) && !write.old.as_deref().is_some_and(is_ready),
        signs: signs::brought(write.old.as_deref(), newest),
        before: write.old.as_deref().map(managers).unwrap_or_default(),
        lost: lost(call, write, sent, &subresource),
        pruned: pruned(call, write, sent, &subresource),
        beside_status: beside_status(call, write, sent, &subresource),
        event: (write.object.gvk.is_event() && write.created).then(|| event(newest)),
        manager,
        subresource,
    }
}

/// A call that was refused, as findings see it.
pub(super) fn refusal(call: &ObservedCall, secrets: &[String]) -> Option<RefusalFact> {
    if !(400..600).contains(&call.status) {
        return None;
    }
    let answer = call.answered.as_ref().unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = answer["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
    let terminating = causes.iter().any(|cause| cause["reason"] == "NamespaceTerminating");
    let sent = call.sent.as_ref();
    Some(RefusalFact {
        at: call.done(),
        verb: call.verb().to_owned(),
        target: call.target(),
        object: sent.and_then(ObjectRef::of).map(|object| object.key()),
        status: call.status,
        reason: if terminating { "NamespaceTerminating".to_owned() } else { text(&answer["reason"]) },
        field: causes.first().map(|cause| text(&cause["field"])).unwrap_or_default(),
        message: mask::text(&text(&answer["message"]), secrets),
        sent: sent.and_then(resource_version).unwrap_or_default().to_owned(),
        place: call.place(),
        repeated: false,
        dry_run: call.query.contains("dryRun="),
        disturbed: call.disturbed,
    })
}

/// The warnings in answers to calls, each text once.
fn warnings(calls: &[ObservedCall], secrets: &[String]) -> Vec<WarningFact> {
    let mut found: Vec<WarningFact> = Vec::new();
    for call in calls {
        for text in &call.warnings {
            let text = mask::text(text, secrets);
            if found.len() < FIELDS && !found.iter().any(|known| known.text == text) {
                let (verb, target) = (call.verb().to_owned(), call.target());
                found.push(WarningFact { verb, target, text, place: call.place() });
            }
        }
    }
    found
}

/// All that a reconcile proves, once it has ended.
pub(super) fn evidence(
    open: &Open,
    (begin_more, end): (bool, &End),
    stale: Vec<StaleFact>,
    primary: Option<&Value>,
    secrets: &[String],
) -> Evidence {
    let mut refusals: Vec<RefusalFact> =
        open.calls.iter().filter_map(|call| refusal(call, secrets)).collect();
    for refused in &mut refusals {
        let same = |call: &&ObservedCall| {
            call.verb() == refused.verb
                && call.target() == refused.target
                && (200..300).contains(&call.status)
        };
        let repeated = open.calls.iter().filter(same).any(|call| call.done() > refused.at);
        refused.repeated = repeated;
    }
    let mut calls = DefaultHasher::new();
    for call in &open.calls {
        (call.verb(), &call.path, call.status).hash(&mut calls);
    }
    let panic = open.panic.clone().unwrap_or_else(|| end.panic.lines().next().unwrap_or_default().to_owned());
    Evidence {
        reconcile: open.number,
        controller: open.controller.clone(),
        object: open.object.clone(),
        level: Some(open.level),
        at: open.at,
        ended: time(end.t),
        queued: open.queued,
        causes: open.causes.clone(),
        more_causes: begin_more,
        reads: open.reads.iter().map(read_fact).collect(),
        writes: masked(open.facts.clone(), secrets),
        refusals,
        warnings: warnings(&open.calls, secrets),
        beside: Vec::new(),
        stale,
        cached: Vec::new(),
        error: mask::text(&end.error, secrets),
        panic: if end.panic.is_empty() { String::new() } else { mask::text(&panic, secrets) },
        place: super::reconcile::panic_place(end).map(|(place, _)| place),
        requeue: requeue(end).filter(|_| open.level == TraceLevel::Full),
        ignored: (end.ignored_after > 0).then(|| Duration::from_nanos(end.ignored_after.unsigned_abs())),
        calls: calls.finish(),
        live: u32::try_from(open.calls.len()).unwrap_or(u32::MAX),
        pods: looks_at_pods(open),
        goroutines: end.goroutines,
        more_goroutines: end.more,
        read_live: read_live(&open.calls),
        live_reads: workloads::live_reads(open),
        configs: Vec::new(),
        workloads: Vec::new(),
        tolerates: primary.is_some_and(|primary| workloads::tolerates(&primary["spec"])),
        finalizers: primary.map(finalizers).unwrap_or_default().into_iter().map(str::to_owned).collect(),
        generation: primary.map(meta::generation),
        deleting: primary.is_some_and(|primary| meta::deletion_timestamp(primary).is_some()),
        keeps: primary.is_some_and(|primary| keeps(&primary["spec"])),
        wanted: primary.map(|primary| workloads::wanted(&primary["spec"])).unwrap_or_default(),
    }
}

/// Writes with short texts of the values that are shown, without secrets: a program may copy one into any
/// object. A text is cut only once it is masked, for half of a secret is not found.
pub(super) fn masked(mut writes: Vec<WriteFact>, secrets: &[String]) -> Vec<WriteFact> {
    for field in writes.iter_mut().flat_map(|write| &mut write.fields) {
        let (old, new) = &field.shown;
        field.shown = (short(&mask::text(old, secrets)), short(&mask::text(new, secrets)));
    }
    writes
}

/// True if more led to a reconcile than it tells.
pub(super) fn has_more(begin: &Begin) -> bool {
    begin.more > 0
}

fn requeue(end: &End) -> Option<Duration> {
    if end.requeue_after > 0 {
        return Some(Duration::from_nanos(end.requeue_after.unsigned_abs()));
    }
    end.requeue.then_some(Duration::ZERO)
}

fn read_fact(read: &CacheRead) -> ReadFact {
    let of = reference(&read.object);
    let objects = match read.verb.as_str() {
        "get" => vec![of.key()],
        _ => read
            .items
            .iter()
            .map(|item| ObjectKey {
                group: of.gvk.group.clone(),
                kind: of.gvk.kind.clone(),
                namespace: Some(item.namespace.clone()).filter(|namespace| !namespace.is_empty()),
                name: item.name.clone(),
            })
            .collect(),
    };
    let version = read.object.rv.clone();
    ReadFact { objects, missing: !read.error.is_empty(), version }
}

/// True if it read pods, the objects that hold their addresses, or those that count them for a Deployment.
fn looks_at_pods(open: &Open) -> bool {
    let cached = |read: &CacheRead| {
        let kind = read.object.kind.as_str();
        matches!(kind, "Pod" | "ReplicaSet" | "Endpoints" | "EndpointSlice") && read.error.is_empty()
    };
    let asked = |call: &ObservedCall| {
        let target = call.target();
        let resource = target.split('/').next().unwrap_or_default();
        matches!(resource, "pods" | "replicasets" | "endpoints" | "endpointslices") && !call.writes()
    };
    open.reads.iter().any(cached) || open.calls.iter().any(asked)
}

/// Objects that were read from the API server three times or more.
fn read_live(calls: &[ObservedCall]) -> Vec<(String, u32)> {
    let mut times: BTreeMap<(&str, String), u32> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.verb() == "get" && !call.disturbed) {
        *times.entry((call.path.as_str(), call.target())).or_default() += 1;
    }
    times.into_iter().filter(|(_, times)| *times >= 3).map(|((_, target), times)| (target, times)).collect()
}

/// True if an object says of its newest generation that it is ready.
fn is_ready(object: &Value) -> bool {
    let generation = meta::generation(object);
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().any(|condition| {
        matches!(condition["type"].as_str(), Some("Ready" | "Available"))
            && condition["status"] == "True"
            && condition["observedGeneration"].as_i64().is_none_or(|observed| observed == generation)
    })
}

/// The subresource that a path names.
fn subresource(path: &str) -> String {
    let target = ApiPath::of(path).text;
    target.split('/').nth(2).unwrap_or_default().to_owned()
}

fn verb(call: &ObservedCall) -> WriteVerb {
    match call.method.as_str() {
        "POST" => WriteVerb::Create,
        "DELETE" => WriteVerb::Delete,
        // Only apply names its object in what it sends, and only it has to name its manager.
        "PATCH" if call.query.contains("fieldManager=") && call.sent.as_ref().is_some_and(is_whole) => {
            WriteVerb::Apply
        }
        "PATCH" => WriteVerb::Patch,
        _ => WriteVerb::Update,
    }
}

fn is_whole(sent: &Value) -> bool {
    sent["apiVersion"].is_string() && sent["kind"].is_string()
}

fn fields(
    write: &Write,
    old: &Value,
    new: &Value,
    sent: &Value,
    manager: &str,
    beside: &Beside<'_>,
) -> Vec<FieldFact> {
    let kind = write.object.gvk.kind.as_str();
    let mut orders = reorderings(old, new);
    // The API server keeps managedFields in an order of its own.
    orders.retain(|order| !is_bookkeeping(&order.path));
    let within = |change: &Change| orders.iter().any(|order| change.path.starts_with(&order.path));
    let mut changes: Vec<Change> = diff(old, new)
        .into_iter()
        .filter(|change| !is_bookkeeping(&change.path) && !within(change))
        .collect();
    changes.extend(orders);
    changes.truncate(FIELDS);
    let without_version = resource_version(sent).is_none();
    let one = |change: &Change| {
        let place = |root| change.path.get(root);
        let read = beside.read.filter(|_| without_version && !sent.is_null());
        let carried = read.is_some_and(|read| place(read) == place(new) && place(read) != place(old));
        let shown = mask::changes(kind, vec![change.clone()]);
        let text = |value: Option<&Value>| value.map(self::text).unwrap_or_default();
        let shown = shown.first().map(|one| (text(one.old.as_ref()), text(one.new.as_ref())));
        let times = [&change.old, &change.new].into_iter().flatten().all(is_time);
        FieldFact {
            path: steady(&change.path),
            old: hash(change.old.as_ref()),
            new: hash(change.new.as_ref()),
            shown: shown.unwrap_or_default(),
            reordered: reordered(change),
            time: times && change.new.is_some(),
            grew: grew(change),
            scalar: !matches!(change.new, Some(Value::Array(_) | Value::Object(_)) | None),
            sent: sent.is_array() || sent.is_null() || change.new.is_none() || place(sent).is_some(),
            other: other(old, &change.path, manager),
            carried,
        }
    };
    changes.iter().map(one).collect()
}

/// The other manager that had written a field.
fn other(old: &Value, path: &Path, manager: &str) -> String {
    managers_of(old, path, manager).into_iter().next().unwrap_or_default()
}

fn is_bookkeeping(path: &Path) -> bool {
    let at = |place: usize| match path.0.get(place) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    at(0) == "metadata"
        && matches!(at(1), "resourceVersion" | "generation" | "managedFields" | "uid" | "creationTimestamp")
}

/// A path that is the same wherever an item stands in its list.
fn steady(path: &Path) -> String {
    let mut text = String::new();
    for segment in &path.0 {
        match segment {
            Segment::Index(_) => text.push_str("[]"),
            other => text.push_str(&Path(vec![other.clone()]).to_string()),
        }
    }
    text
}

/// How many items or parts there are, where only their order differs: those of a list, lines of a text, or
/// what a comma separates.
fn reordered(change: &Change) -> Option<u32> {
    if let Some(items) = change.reordered() {
        return u32::try_from(items).ok();
    }
    let (old, new) = (change.old.as_ref()?.as_str()?, change.new.as_ref()?.as_str()?);
    let parts = |text: &str, by: char| {
        let mut parts: Vec<String> = text.split(by).map(|part| part.trim().to_owned()).collect();
        parts.sort_unstable();
        parts
    };
    let same = ['\n', ',', ' '].into_iter().map(|by| (parts(old, by), parts(new, by)));
    let (found, _) = same.into_iter().find(|(old, new)| old.len() > 1 && old == new)?;
    u32::try_from(found.len()).ok()
}

fn grew(change: &Change) -> bool {
    match (&change.old, &change.new) {
        (Some(Value::Array(old)), Some(Value::Array(new))) => new.len() > old.len(),
        (Some(Value::Object(old)), Some(Value::Object(new))) => new.len() > old.len(),
        (Some(Value::String(old)), Some(Value::String(new))) => {
            new.len() > old.len() && new.starts_with(old.as_str())
        }
        // An item more in a list.
        (None, Some(_)) => matches!(change.path.0.last(), Some(Segment::Index(_))),
        _ => false,
    }
}

fn is_time(value: &Value) -> bool {
    let Some(text) = value.as_str() else { return false };
    text.len() >= 20 && text.parse::<Timestamp>().is_ok()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn short(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(SHORT).collect();
    if line.len() < text.len() { format!("{line}…") } else { line }
}

pub(super) fn hash(value: Option<&Value>) -> u64 {
    let Some(value) = value else { return 0 };
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish().max(1)
}

fn owners(object: &Value) -> Vec<OwnerFact> {
    let one = |owner: meta::OwnerReference| OwnerFact {
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        controller: owner.controller,
    };
    owner_references(object).into_iter().map(one).collect()
}

/// The managers that have a part in an object, the first one first.
fn managers(object: &Value) -> Vec<String> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let mut entries: Vec<&Value> = entries.into_iter().flatten().collect();
    entries.sort_by_key(|entry| entry["time"].as_str().unwrap_or_default());
    entries.iter().filter_map(|entry| entry["manager"].as_str()).map(str::to_owned).collect()
}

/// Returns true if a label or an annotation of an object leads to another one, or the spec of that one names
/// it.
fn tied(object: &Value, primary: &Value) -> bool {
    let (name, uid) = (meta::name(primary).unwrap_or_default(), meta::uid(primary).unwrap_or_default());
    let leads = |field: &str| {
        let values = object["metadata"][field].as_object().into_iter().flatten();
        values
            .filter_map(|(_, value)| value.as_str())
            .any(|value| !name.is_empty() && value.contains(name) || !uid.is_empty() && value.contains(uid))
    };
    let named = meta::name(object).is_some_and(|name| says(&primary["spec"], name));
    leads("labels") || leads("annotations") || named
}

fn says(value: &Value, text: &str) -> bool {
    match value {
        Value::String(said) => said == text,
        Value::Array(items) => items.iter().any(|item| says(item, text)),
        Value::Object(fields) => fields.values().any(|value| says(value, text)),
        _ => false,
    }
}

/// Returns true if a spec asks for something to outlive its object.
fn keeps(value: &Value) -> bool {
    let stays = |text: &str| ["retain", "orphan", "keep"].iter().any(|word| text.eq_ignore_ascii_case(word));
    match value {
        Value::String(text) => stays(text),
        Value::Array(items) => items.iter().any(keeps),
        Value::Object(fields) => fields.values().any(keeps),
        _ => false,
    }
}

fn event(object: &Value) -> EventFact {
    let about =
        if object["involvedObject"].is_object() { &object["involvedObject"] } else { &object["regarding"] };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&about["apiVersion"]);
    let group = group.split_once('/').map(|(group, _)| group.to_owned()).unwrap_or_default();
    let message = if object["message"].is_string() { &object["message"] } else { &object["note"] };
    EventFact {
        about: ObjectKey {
            group,
            kind: text(&about["kind"]),
            namespace: about["namespace"].as_str().filter(|text| !text.is_empty()).map(str::to_owned),
            name: text(&about["name"]),
        },
        reason: text(&object["reason"]),
        message: hash(Some(message)),
    }
}

/// Every value below, with its path; lists are values.
fn leaves<'a>(value: &'a Value, at: &Path, out: &mut Vec<(Path, &'a Value)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                leaves(value, &at.field(name), out);
            }
        }
        other => out.push((at.clone(), other)),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

fn part<'a>(object: &'a Value, name: &str) -> Vec<(Path, &'a Value)> {
    let mut all = Vec::new();
    if let Some(value) = object.get(name) {
        leaves(value, &Path::root().field(name), &mut all);
    }
    all
}

/// A value of the status that an update of the whole object sent in vain.
fn lost(call: &ObservedCall, write: &Write, sent: &Value, subresource: &str) -> String {
    let (Some(old), Some(new)) = (&write.old, &write.new) else { return String::new() };
    if call.method != "PUT" || !subresource.is_empty() || !is_custom(&write.object.gvk.group) {
        return String::new();
    }
    let differs = |(path, value): &(Path, &Value)| {
        let is = |there: Option<&Value>| there.is_some_and(|there| means_same(there, value));
        !is_zero(value) && !is(path.get(old)) && !is(path.get(new))
    };
    part(sent, "status").into_iter().find(differs).map(|(path, _)| path.to_string()).unwrap_or_default()
}

/// Fields that were sent to `/status` and are no status. Defaults that a program puts into its copy are no
/// loss.
fn beside_status(call: &ObservedCall, write: &Write, sent: &Value, subresource: &str) -> String {
    let Some(old) = &write.old else { return String::new() };
    if call.method != "PUT" || subresource != "status" || !is_custom(&write.object.gvk.group) {
        return String::new();
    }
    for name in ["finalizers", "labels", "annotations", "ownerReferences"] {
        let of = |object: &Value| object["metadata"].get(name).filter(|value| !is_zero(value)).cloned();
        if of(sent) != of(old) {
            return format!(".metadata.{name}");
        }
    }
    let differs = |(path, value): &(Path, &Value)| {
        let had = path.get(old);
        !value.is_array() && had.is_some_and(|had| !is_zero(had) && !means_same(had, value))
    };
    part(sent, "spec").into_iter().find(differs).map(|(path, _)| path.to_string()).unwrap_or_default()
}

/// A field that was sent whole and that the answer lacks.
fn pruned(call: &ObservedCall, write: &Write, sent: &Value, subresource: &str) -> String {
    let Some(new) = &write.new else { return String::new() };
    if !matches!(call.method.as_str(), "PUT" | "POST") || !is_custom(&write.object.gvk.group) {
        return String::new();
    }
    let root = if subresource == "status" { "status" } else { "spec" };
    let gone = |(path, value): &(Path, &Value)| {
        let time = matches!(path.0.last(), Some(Segment::Field(name)) if name == "creationTimestamp");
        !time && !value.is_array() && !is_zero(value) && path.get(new).is_none()
    };
    part(sent, root).into_iter().find(gone).map(|(path, _)| path.to_string()).unwrap_or_default()
}

/// Returns true if a group is not Kubernetes' own.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

//! The impact of a change on the objects there are: each is pruned, defaulted and checked as the API server
//! would do it with the new definition. Findings that hit no object are toned down, with words. Shows kinds
//! of values, never values.

use super::finding::{Change, Finding, Severity, sort};
use super::paths::{covers, related};
use super::same;
use super::words::sort_of;
use opdev_cel::structural;
use opdev_object::schema::{self, SchemaRef};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectRef {
    /// apiVersion and kind, as the object says them.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ObjectRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// An object that the new schema refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The object.
    pub object: ObjectRef,
    /// The field, as the API server names it.
    pub path: String,
    /// Why, in the API server's words. May quote the value.
    pub message: String,
    /// An update that does not touch the field is still accepted.
    pub untouched_update_passes: bool,
}

/// A stored field that the new schema does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The object.
    pub object: ObjectRef,
    /// The field.
    pub path: String,
    /// The kind of value that is lost, such as `list of 3`; never the value.
    pub value: String,
}

/// The effect of a change on the existing objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Objects that the new schema refuses, one entry for each error.
    pub broken: Vec<Broken>,
    /// Fields that are lost at the next write.
    pub lost: Vec<Lost>,
}

/// Checks each object against `new` and tones findings down that hit none. `findings` are those of
/// [`compare`](super::compare) of the same definitions; they stay sorted.
pub fn live(old: Option<&Value>, new: &Value, objects: &[Arc<Value>], findings: &mut [Finding]) -> Live {
    let new = same::normal(new);
    let (after, before) = (Schemas::from_crd(&new), old.map(|old| Schemas::from_crd(&same::normal(old))));
    let mut live = Live::default();
    for object in objects {
        let name = reference(object);
        let Some(schema) = after.for_object(object) else { continue };
        let mut value = Value::clone(object);
        for path in schema::prune(&mut value, schema) {
            let lost = at(object, &path).map(sort_of).unwrap_or_default();
            live.lost.push(Lost { object: name.clone(), path, value: lost });
        }
        schema::default(&mut value, schema);
        let errors = schema::admit(&value, None, schema);
        if errors.is_empty() {
            continue;
        }
        let known: BTreeSet<String> = before
            .as_ref()
            .and_then(|schemas| schemas.for_object(object))
            .map(|schema| schema::admit(object, None, schema).iter().map(ToString::to_string).collect())
            .unwrap_or_default();
        let touched: BTreeSet<String> =
            schema::admit(&value, Some(&value), schema).iter().map(ToString::to_string).collect();
        for error in errors {
            let text = error.to_string();
            // An object that was wrong before is no news.
            if known.contains(&text) {
                continue;
            }
            live.broken.push(Broken {
                object: name.clone(),
                path: error.path,
                message: error.message,
                untouched_update_passes: !touched.contains(&text),
            });
        }
    }
    for finding in findings.iter_mut() {
        judge(finding, &live, objects.len());
    }
    sort(findings);
    live
}

/// The schemas of the versions.
struct Schemas {
    group: String,
    versions: BTreeMap<String, SchemaRef>,
    storage: String,
}

impl Schemas {
    fn from_crd(crd: &Value) -> Schemas {
        let mut versions = BTreeMap::new();
        let mut storage = String::new();
        for version in crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
            let name = version["name"].as_str().unwrap_or_default();
            if version["storage"] == true {
                name.clone_into(&mut storage);
            }
            if let Ok(schema) = structural(&version["schema"]["openAPIV3Schema"]) {
                versions.insert(name.to_owned(), schema);
            }
        }
        let group = crd.pointer("/spec/group").and_then(Value::as_str).unwrap_or_default().to_owned();
        Schemas { group, versions, storage }
    }

    /// The schema an object is checked with: its own version's, else the one it is stored at.
    fn for_object(&self, object: &Value) -> Option<&SchemaRef> {
        let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
        if group != self.group {
            return None;
        }
        self.versions.get(version).or_else(|| self.versions.get(&self.storage))
    }
}

fn reference(object: &Value) -> ObjectRef {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    ObjectRef {
        api_version: text("/apiVersion"),
        kind: text("/kind"),
        namespace: text("/metadata/namespace"),
        name: text("/metadata/name"),
    }
}

/// The value at a path as `prune` writes it. Keys with dots are not found; then nothing is said of the value.
fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut found = object;
    for part in path.split('.') {
        let mut pieces = part.split('[');
        found = found.get(pieces.next()?)?;
        for piece in pieces {
            found = found.get(piece.trim_end_matches(']').parse::<usize>().ok()?)?;
        }
    }
    Some(found)
}

/// The relation of a finding to objects.
#[derive(PartialEq)]
enum About {
    /// Values at its path may be refused.
    Values,
    /// Values at its path may be lost.
    Data,
    /// Any object may lose data.
    Everything,
    /// It concerns clients, or nothing that objects show.
    Clients,
}

fn about(kind: Change) -> About {
    match kind {
        Change::Type
        | Change::Required
        | Change::Enum
        | Change::Pattern
        | Change::Bound
        | Change::NullableRemoved
        | Change::Composition
        | Change::Rule
        | Change::ListType
        | Change::MapKeys
        | Change::Embedded => About::Values,
        Change::PropertyRemoved
        | Change::PropertyRenamed
        | Change::PropertyMoved
        | Change::UnknownFieldsPruned => About::Data,
        Change::StorageVersion | Change::DefinitionRemoved => About::Everything,
        Change::Identity
        | Change::StoredVersionRemoved
        | Change::Refused
        | Change::DefinitionAdded
        | Change::TypeWidened
        | Change::RequiredDefaultRemoved
        | Change::EnumWidened
        | Change::NullableAdded
        | Change::Unserved
        | Change::VersionRemoved
        | Change::StatusSubresource
        | Change::Scale
        | Change::SelectableField
        | Change::Default
        | Change::Topology
        | Change::Expensive
        | Change::Relaxed
        | Change::Conversion
        | Change::Names
        | Change::Deprecated
        | Change::Unknown
        | Change::PropertyAdded
        | Change::VersionAdded
        | Change::Column
        | Change::Documentation
        | Change::Metadata => About::Clients,
    }
}

fn judge(finding: &mut Finding, live: &Live, total: usize) {
    if finding.severity < Severity::Break || finding.severity == Severity::Block {
        return;
    }
    let hit: BTreeSet<&ObjectRef> = match about(finding.kind) {
        About::Clients => return,
        About::Values => {
            // An error that spans several fields has no path of its own.
            let fits = |path: &str| path == "<nil>" || related(&finding.path, path);
            live.broken.iter().filter(|broken| fits(&broken.path)).map(|broken| &broken.object).collect()
        }
        About::Data => {
            let whole = finding.path == "spec.preserveUnknownFields" || finding.path.is_empty();
            let fits = |path: &str| whole || covers(&finding.path, path);
            live.lost.iter().filter(|lost| fits(&lost.path)).map(|lost| &lost.object).collect()
        }
        About::Everything => {
            finding.objects = Some(total);
            if total == 0 {
                finding.severity = Severity::Warn;
                finding.what.push_str("; there is no object, so nothing is lost");
            }
            return;
        }
    };
    finding.objects = Some(hit.len());
    let words =
        if finding.severity == Severity::Loss { losing(hit.len(), total) } else { breaking(&hit, total) };
    finding.what.push_str("; ");
    finding.what.push_str(&words);
    if hit.is_empty() {
        finding.severity = Severity::Warn;
    }
}

fn losing(hit: usize, total: usize) -> String {
    match (hit, total) {
        (0, 0) => "there is no object: nothing to lose".to_owned(),
        (0, 1) => "the one object does not have it: nothing to lose".to_owned(),
        (0, _) => format!("none of {total} objects has it: nothing to lose"),
        (1, _) => "1 object loses it".to_owned(),
        (count, _) => format!("{count} objects lose it"),
    }
}

fn breaking(hit: &BTreeSet<&ObjectRef>, total: usize) -> String {
    let first = hit.iter().next().map(ToString::to_string).unwrap_or_default();
    match (hit.len(), total) {
        (0, 0) => "there is no object that could break".to_owned(),
        (0, 1) => "the one object there is still fits".to_owned(),
        (0, _) => format!("all {total} objects still fit"),
        (1, _) => format!("1 object no longer fits: {first}"),
        (count, _) => format!("{count} objects no longer fit, such as {first}"),
    }
}

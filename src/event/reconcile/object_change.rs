//! The change of a watched object and its writer, in the short form that a cause carries. Bookkeeping of the
//! API server is left out, secrets are masked. Pure.

use crate::{FieldChange, mask};
use opdev_object::diff::{Change, diff, reorderings};
use opdev_object::path::{Path, Segment};
use serde_json::{Map, Value};

/// The longest value in a cause.
const SHORT: usize = 60;
/// Characters that are shown before the part of a long value that differs.
const CONTEXT: usize = 8;
/// How many fields a cause names.
const FIELDS: usize = 12;

/// Bookkeeping of the API server in `metadata`. A generation says that the spec has changed, or, without a
/// status subresource, that the status has.
const BOOKKEEPING: [&str; 3] = ["resourceVersion", "managedFields", "generation"];

/// Returns true if an update of a dependent asks for a reconcile: not when only its status or bookkeeping
/// changed.
pub fn dependent_update_counts(old: &Value, new: &Value) -> bool {
    !same_but_status(old, new, &[])
}

/// Returns true if an update of a child, or of an object that was read, asks a program again: its status
/// counts, too.
pub fn child_update_counts(old: &Value, new: &Value) -> bool {
    old["status"] != new["status"] || dependent_update_counts(old, new)
}

/// Returns true if an update of a custom resource has changed nothing but what its own reconcile writes:
/// status and finalizers.
pub fn is_own_part(old: &Value, new: &Value) -> bool {
    same_but_status(old, new, &["finalizers"])
}

/// Returns true if two states of an object are the same but for status, bookkeeping and `left_out` of their
/// metadata. Each change of an object asks this, so nothing is copied.
fn same_but_status(old: &Value, new: &Value, left_out: &[&str]) -> bool {
    let is_left_out = |name: &str| BOOKKEEPING.contains(&name) || left_out.contains(&name);
    same_fields(old, new, &|name| name == "status", &|name, old, new| {
        if name == "metadata" {
            same_fields(old, new, &is_left_out, &|_, old, new| old == new)
        } else {
            old == new
        }
    })
}

/// Returns true if two objects have the same fields, some of which are left out, and others compared in a way
/// of their own.
fn same_fields(
    old: &Value,
    new: &Value,
    left_out: &dyn Fn(&str) -> bool,
    same: &dyn Fn(&str, &Value, &Value) -> bool,
) -> bool {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return old == new };
    let counts = |fields: &Map<String, Value>| fields.keys().filter(|name| !left_out(name)).count();
    let mut kept = old.iter().filter(|(name, _)| !left_out(name));
    kept.all(|(name, old)| new.get(name).is_some_and(|new| same(name, old, new)))
        && counts(old) == counts(new)
}

/// The changed fields, without the API server's bookkeeping; of a dependent also without its status, which
/// never asks for a reconcile.
pub fn changed_fields(old: &Value, new: &Value, dependent: bool) -> Vec<FieldChange> {
    let kind = new.get("kind").and_then(Value::as_str).unwrap_or_default();
    let mut changes = counting(old, new, dependent);
    let orders = reorderings(old, new);
    changes.retain(|change| !orders.iter().any(|order| change.path.starts_with(&order.path)));
    let status = |path: &Path| matches!(path.0.first(), Some(Segment::Field(name)) if name == "status");
    changes.extend(
        orders.into_iter().filter(|order| !(is_bookkeeping(&order.path) || dependent && status(&order.path))),
    );
    changes.truncate(FIELDS);
    mask::changes(kind, changes).iter().map(FieldChange::from).collect()
}

fn counting(old: &Value, new: &Value, dependent: bool) -> Vec<Change> {
    let status = |path: &Path| matches!(path.0.first(), Some(Segment::Field(name)) if name == "status");
    let left_out = |path: &Path| is_bookkeeping(path) || (dependent && status(path));
    diff(old, new).into_iter().filter(|change| !left_out(&change.path)).collect()
}

fn is_bookkeeping(path: &Path) -> bool {
    let field = |at: usize| match path.0.get(at) {
        Some(Segment::Field(name)) => name.as_str(),
        _ => "",
    };
    field(0) == "metadata" && BOOKKEEPING.contains(&field(1))
}

impl From<&Change> for FieldChange {
    /// Shortens the values; both show where they begin to differ.
    fn from(change: &Change) -> Self {
        let path = change.path.to_string();
        if let Some(items) = change.reordered() {
            let (old, new) = (format!("{items} items"), "the same in another order".to_owned());
            return FieldChange { path, old: Some(old), new: Some(new) };
        }
        if let (Some(old), Some(new)) = (&change.old, &change.new) {
            let (old, new) = (text(old), text(new));
            let (line_of_old, line_of_new) = differing_lines(&old, &new);
            let from = differing_from(line_of_old, line_of_new);
            let (old, new) = (short(&old, line_of_old, from), short(&new, line_of_new, from));
            return FieldChange { path, old: Some(old), new: Some(new) };
        }
        let one = |value: &Value| {
            let text = text(value);
            short(&text, text.lines().next().unwrap_or_default(), 0)
        };
        FieldChange { path, old: change.old.as_ref().map(one), new: change.new.as_ref().map(one) }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first line of each text that the other one does not have at that place.
fn differing_lines<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let (mut before, mut after) = (old.lines(), new.lines());
    loop {
        match (before.next(), after.next()) {
            (Some(a), Some(b)) if a == b => {}
            (None, None) => return (old, new),
            (a, b) => return (a.unwrap_or_default(), b.unwrap_or_default()),
        }
    }
}

/// The character from which on two lines are shown: a little before the first that differs, where the lines
/// are long.
fn differing_from(old: &str, new: &str) -> usize {
    if old.chars().count() <= SHORT && new.chars().count() <= SHORT {
        return 0;
    }
    let same = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    if same < SHORT / 2 { 0 } else { same - CONTEXT }
}

/// A part of a line of a text; ellipses stand for what is missing before and after it.
fn short(text: &str, line: &str, from: usize) -> String {
    let mut part: String = line.chars().skip(from).take(SHORT).collect();
    let ends = line.chars().count() <= from + SHORT && (line.len() == text.len() || from > 0);
    if from > 0 {
        part.insert(0, '…');
    }
    if !ends {
        part.push('…');
    }
    part
}

/// The field manager that wrote last: the newest one that owns a changed field, of a new object the newest of
/// all. A field that nobody owns, such as the time of a deletion, tells nothing.
pub fn last_writer(old: Option<&Value>, new: &Value, dependent: bool) -> Option<String> {
    let entries = entries(new);
    let changes = old.map(|old| counting(old, new, dependent)).unwrap_or_default();
    let mut owners: Vec<&Value> = changes.iter().flat_map(|change| owners(new, &change.path)).collect();
    if old.is_none() {
        owners = entries.iter().collect();
    }
    owners
        .into_iter()
        .max_by_key(|entry| entry.get("time").and_then(Value::as_str).unwrap_or_default())
        .and_then(|entry| entry.get("manager")?.as_str())
        .map(str::to_owned)
}

/// The managers, other than `own`, that own the field at `path`.
pub fn managers_of(object: &Value, path: &Path, own: &str) -> Vec<String> {
    let mut managers: Vec<String> = owners(object, path)
        .into_iter()
        .filter_map(|entry| entry.get("manager")?.as_str())
        .filter(|manager| *manager != own)
        .map(str::to_owned)
        .collect();
    managers.sort();
    managers.dedup();
    managers
}

fn entries(object: &Value) -> &[Value] {
    object.pointer("/metadata/managedFields").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The entries that own the field at `path` most closely: itself, else the nearest of what it is in.
fn owners<'a>(object: &'a Value, path: &Path) -> Vec<&'a Value> {
    let owned: Vec<(usize, &Value)> = entries(object)
        .iter()
        .filter_map(|entry| {
            let fields = entry.get("fieldsV1").unwrap_or(&Value::Null);
            Some((owned_depth(fields, &path.0, object)?, entry))
        })
        .collect();
    let closest = owned.iter().map(|(depth, _)| *depth).max();
    owned.into_iter().filter(|(depth, _)| Some(*depth) == closest).map(|(_, entry)| entry).collect()
}

/// How many steps of `path` a field set in its `fieldsV1` form goes along, if it then ends (and so holds all
/// that is below) or the path does.
fn owned_depth(fields: &Value, path: &[Segment], value: &Value) -> Option<usize> {
    let Value::Object(members) = fields else { return None };
    let Some((first, rest)) = path.split_first() else { return Some(0) };
    let inside = |key: &str, below: Option<&Value>| {
        let owned = members.get(key)?;
        let ends = owned.as_object().is_none_or(serde_json::Map::is_empty);
        let below = if ends { Some(0) } else { owned_depth(owned, rest, below.unwrap_or(&Value::Null)) };
        below.map(|depth| depth + 1)
    };
    match first {
        Segment::Field(name) => inside(&format!("f:{name}"), value.get(name)),
        Segment::Index(index) => {
            let item = value.get(index);
            members.keys().filter(|key| is_item(key, item, *index)).find_map(|key| inside(key, item))
        }
        Segment::Key(keys) => {
            let item = value.as_array().and_then(|items| {
                items.iter().find(|item| keys.iter().all(|(name, key)| item.get(name) == Some(key)))
            })?;
            members.keys().filter(|key| is_item(key, Some(item), 0)).find_map(|key| inside(key, Some(item)))
        }
    }
}

fn is_item(key: &str, item: Option<&Value>, index: usize) -> bool {
    if let Some(keys) = key.strip_prefix("k:") {
        let Ok(Value::Object(keys)) = serde_json::from_str(keys) else { return false };
        return item.is_some_and(|item| keys.iter().all(|(name, value)| item.get(name) == Some(value)));
    }
    if let Some(value) = key.strip_prefix("v:") {
        return serde_json::from_str::<Value>(value).is_ok_and(|value| Some(&value) == item);
    }
    key.strip_prefix("i:").and_then(|at| at.parse::<usize>().ok()) == Some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment(replicas: i64, version: &str) -> Value {
        json!({
            "kind": "Deployment",
            "metadata": {
                "name": "web", "resourceVersion": version, "generation": replicas,
                "managedFields": [
                    {"manager": "helm", "time": "2026-01-01T00:00:02Z", "fieldsV1": {"f:spec": {
                        "f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"web\"}": {".": {}, "f:image": {}}}}}}}},
                    {"manager": "kubectl", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
                    {"manager": "kube-controller-manager", "time": "2026-01-01T00:00:03Z", "subresource": "status",
                     "fieldsV1": {"f:status": {"f:replicas": {}}}},
                ],
            },
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "web", "image": "a"}]}}},
            "status": {"replicas": replicas},
        })
    }

    #[test]
    fn status_and_bookkeeping_do_not_count() {
        let old = deployment(3, "1");
        let mut new = deployment(3, "2");
        new["status"]["replicas"] = json!(2);
        new["metadata"]["managedFields"][0]["time"] = json!("later");
        assert!(!dependent_update_counts(&old, &new));
        new["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
        assert!(dependent_update_counts(&old, &new));
        assert!(dependent_update_counts(&old, &deployment(5, "2")));
    }

    #[test]
    fn a_field_that_comes_or_goes_counts_and_finalizers_are_a_reconcile_s_own() {
        let old = deployment(3, "1");
        let change = |at: &str, field: &str| {
            let mut new = old.clone();
            let fields = new.pointer_mut(at).and_then(Value::as_object_mut).unwrap();
            if fields.remove(field).is_none() {
                fields.insert(field.to_owned(), json!(["x"]));
            }
            new
        };
        let both = |one: &Value, two: &Value| {
            assert_eq!(dependent_update_counts(one, two), dependent_update_counts(two, one));
            assert_eq!(is_own_part(one, two), is_own_part(two, one));
            (dependent_update_counts(one, two), child_update_counts(one, two), is_own_part(one, two))
        };
        assert_eq!(both(&old, &change("", "spec")), (true, true, false));
        assert_eq!(both(&old, &change("", "data")), (true, true, false));
        assert_eq!(both(&old, &change("", "metadata")), (true, true, false));
        assert_eq!(both(&old, &change("", "status")), (false, true, true));
        assert_eq!(both(&old, &change("/metadata", "generation")), (false, false, true));
        assert_eq!(both(&old, &change("/metadata", "finalizers")), (true, true, true));
        assert_eq!(both(&old, &change("/metadata", "labels")), (true, true, false));
        assert_eq!(both(&old, &old), (false, false, true));
    }

    #[test]
    fn a_change_names_field_values_and_the_writer() {
        let (old, new) = (deployment(3, "1"), deployment(5, "2"));
        let fields = changed_fields(&old, &new, false);
        assert_eq!(fields[0].path, ".spec.replicas");
        assert_eq!((fields.len(), changed_fields(&old, &new, true).len()), (2, 1));
        assert_eq!((fields[0].old.as_deref(), fields[0].new.as_deref()), (Some("3"), Some("5")));
        assert_eq!(last_writer(Some(&old), &new, true).as_deref(), Some("kubectl"));
        let mut spec_only = new.clone();
        spec_only["status"] = old["status"].clone();
        assert_eq!(last_writer(Some(&old), &spec_only, false).as_deref(), Some("kubectl"));
        assert_eq!(
            last_writer(None, &new, true).as_deref(),
            Some("kube-controller-manager"),
            "the newest of all"
        );
    }

    #[test]
    fn owners_of_list_items_are_found_by_key_and_position() {
        let object = deployment(3, "1");
        let template = Path::root().field("spec").field("template").field("spec").field("containers");
        let by_position = template.index(0).field("image");
        let by_key = template.with(Segment::Key(vec![("name".into(), json!("web"))])).field("image");
        assert_eq!(managers_of(&object, &by_position, "x"), ["helm"]);
        assert_eq!(managers_of(&object, &by_key, "x"), ["helm"]);
        assert!(managers_of(&object, &by_key, "helm").is_empty());
        assert!(managers_of(&object, &template.index(0).field("ports"), "x").is_empty());
    }

    #[test]
    fn the_owner_of_a_field_comes_before_the_owner_of_what_it_is_in() {
        let object = |extra: i64| {
            let now = "2026-01-01T00:00:00Z";
            json!({"spec": {"extra": extra}, "metadata": {"managedFields": [
                {"manager": "somebody", "time": now, "fieldsV1": {"f:spec": {"f:extra": {}}}},
                {"manager": "creator", "time": now, "fieldsV1": {"f:spec": {}}}]}})
        };
        assert_eq!(last_writer(Some(&object(1)), &object(2), false).as_deref(), Some("somebody"));
        let path = Path::root().field("spec");
        assert_eq!(managers_of(&object(1), &path.field("extra"), "helm"), ["somebody"]);
        assert_eq!(managers_of(&object(1), &path.field("other"), "helm"), ["creator"]);
    }

    #[test]
    fn nobody_is_named_for_a_field_that_nobody_owns() {
        let old = deployment(3, "1");
        let mut new = deployment(3, "2");
        new["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:09Z");
        assert_eq!(last_writer(Some(&old), &new, false), None);
    }

    #[test]
    fn of_long_values_the_part_that_differs_shows() {
        let shown = |old: &str, new: &str| {
            let object = |text: &str| json!({"kind": "ConfigMap", "data": {"a": text}});
            let field = changed_fields(&object(old), &object(new), false).remove(0);
            (field.old.unwrap_or_default(), field.new.unwrap_or_default())
        };
        let hash = |end: &str| format!("sha256:{}{end}", "1".repeat(60));
        assert_eq!(shown(&hash("aa0"), &hash("bb0")), ("…11111111aa0".to_owned(), "…11111111bb0".to_owned()));
        let manifest = |replicas: u8| format!("---\nkind: Deployment\nspec:\n  replicas: {replicas}\n");
        assert_eq!(
            shown(&manifest(3), &manifest(5)),
            ("  replicas: 3…".to_owned(), "  replicas: 5…".to_owned())
        );
        assert_eq!(shown("a", "a\nb"), (String::new() + "…", "b…".to_owned()));
    }

    #[test]
    fn secret_values_never_show_and_long_values_are_cut() {
        let old = json!({"kind": "Secret", "data": {"a": "aGVsbG8="}});
        let new = json!({"kind": "Secret", "data": {"a": "d29ybGQ="}, "type": "x".repeat(200)});
        let fields = changed_fields(&old, &new, false);
        assert_eq!(fields[0].old.as_deref(), Some(mask::MASK));
        assert_eq!(fields[1].new.as_ref().unwrap().chars().count(), SHORT + 1);
    }
}

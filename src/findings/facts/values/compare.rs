//! Values of a spec that have changed, and the places in a child where one of them stands.

use opdev_object::facts::{pod_fields, replicas};
use serde_json::Value;
use std::collections::BTreeSet;

/// More fields at once are another version of the whole, not a change that somebody looks after.
pub(super) const FEW: usize = 8;
/// A text of this length stands in a child for no other reason.
const TELLING: usize = 8;
/// Names that stand in many places with the same value, and those for which the API server has a value of its
/// own.
const EVERYWHERE: [&str; 14] = [
    "name",
    "namespace",
    "type",
    "key",
    "value",
    "mode",
    "kind",
    "protocol",
    "scheme",
    "periodSeconds",
    "timeoutSeconds",
    "failureThreshold",
    "successThreshold",
    "initialDelaySeconds",
];
/// Numbers from this one on, such as ports, say something where two children have the same.
const TELLING_NUMBER: i64 = 1000;
/// The ends of names of maps that operators hand over to their children entry by entry.
const HANDED_OVER: [&str; 6] = ["labels", "annotations", "nodeselector", "env", "envvars", "environment"];
/// Parts of children that cannot be changed.
const UNCHANGEABLE: [&str; 3] = ["selector", "matchLabels", "volumeClaimTemplates"];
/// Kinds with a template for pods.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// Switches of a spec that tell the operator to leave its children alone.
const PAUSES: [&str; 4] = ["suspend", "pause", "stop", "unmanaged"];

/// A part of a spec that somebody has changed: a text, a number, or a field that pods have, too.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChangedValue {
    /// Its path, such as `.spec.server.image`.
    pub path: String,
    /// The last part of the path.
    pub(super) name: String,
    /// The value before; null where there was none.
    pub old: Value,
    /// The value now; null where there is none.
    pub new: Value,
    /// The other entries of a map to which it was added.
    pub(super) beside: Vec<(String, Value)>,
}

impl ChangedValue {
    /// True if it is a text or a number before and after: a child that has the old one is sure to be meant.
    pub fn is_scalar(&self) -> bool {
        let is = |value: &Value| value.is_string() || value.is_number();
        is(&self.old) && is(&self.new)
    }

    /// The place in a child where the old value still stands.
    pub(super) fn old_in(&self, child: &Value, kind: &str) -> Option<String> {
        if !self.beside.is_empty() {
            return lacking(child, self);
        }
        if self.is_scalar() {
            let parts = ["spec", "data"].iter();
            return parts.into_iter().find_map(|part| {
                still(&child[*part], &format!(".{part}"), &|name, value| is_same(name, value, self))
            });
        }
        let template = child.pointer("/spec/template/spec").filter(|_| WORKLOADS.contains(&kind))?;
        match named(template, ".spec.template.spec", &self.name) {
            // The pods have it already, with what the API server has added to it.
            Some((_, value)) if !self.new.is_null() && holds(value, &self.new) => None,
            Some((path, value)) => (!self.old.is_null() && holds(value, &self.old)).then_some(path),
            None => self.old.is_null().then(|| ".spec.template.spec".to_owned()),
        }
    }

    /// The place in a child where the old value stands beyond doubt, though another child has the new one at
    /// the path `there`: two children may have the same small number for reasons of their own.
    pub(super) fn kept_in(&self, child: &Value, there: &str) -> Option<String> {
        let last = there.rsplit('.').next().unwrap_or(there);
        let kept = |name: &str, value: &Value| {
            let same = name.eq_ignore_ascii_case(&self.name) || name == last;
            let telling = match (value, &self.old) {
                (Value::String(there), Value::String(old)) => there == old && is_telling(old),
                (Value::Number(there), Value::Number(old)) => {
                    there == old && old.as_i64().is_some_and(|old| old >= TELLING_NUMBER)
                }
                _ => false,
            };
            same && telling && !replicas::is_name(name)
        };
        let parts = ["spec", "data"].iter();
        parts.into_iter().find_map(|part| still(&child[*part], &format!(".{part}"), &kept))
    }

    /// True if a write has changed a field of a child from the old value to the new one.
    pub(super) fn is_reached_by(&self, (before, now): (&str, &str)) -> bool {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.is_scalar() && before == text(&self.old) && now == text(&self.new)
    }
}

/// True if a part of a spec has this very value somewhere.
pub(super) fn says(part: &Value, wanted: &Value) -> bool {
    match part {
        Value::Object(fields) => fields.values().any(|value| says(value, wanted)),
        Value::Array(items) => items.iter().any(|value| says(value, wanted)),
        value => value == wanted,
    }
}

/// True if the custom resource says that its children are to be left alone.
pub(super) fn is_paused(object: &Value) -> bool {
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let mut annotations = annotations.map(|(name, _)| name.to_ascii_lowercase());
    says_pause(&object["spec"], 2)
        || annotations.any(|name| ["pause", "reconcil", "unmanaged"].iter().any(|word| name.contains(word)))
}

/// True if a switch says so, or a state such as `managementState: Unmanaged`.
fn says_pause(part: &Value, depth: usize) -> bool {
    let mut fields = part.as_object().into_iter().flatten();
    fields.any(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let pauses = PAUSES.iter().any(|word| name.contains(word));
        match value {
            Value::Bool(on) => *on && pauses,
            Value::String(state) => {
                matches!(state.to_ascii_lowercase().as_str(), "unmanaged" | "paused" | "disabled")
            }
            Value::Object(inner) => {
                let on = inner.get("enabled") == Some(&Value::Bool(true));
                pauses && on || depth > 0 && says_pause(value, depth - 1)
            }
            _ => false,
        }
    })
}

/// The texts, numbers and fields of pods that have another value now; one more than a few at most.
pub(super) fn changed(old: &Value, new: &Value, path: &str, out: &mut Vec<ChangedValue>) {
    let nothing = |value: &Value| match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        value => value.is_null(),
    };
    if out.len() > FEW || old == new || nothing(old) && nothing(new) {
        return;
    }
    let name = path.rsplit('.').next().unwrap_or(path).split('[').next().unwrap_or_default();
    let filled = |value: &Value| if nothing(value) { Value::Null } else { value.clone() };
    let whole = || ChangedValue {
        path: path.to_owned(),
        name: name.to_owned(),
        old: filled(old),
        new: filled(new),
        beside: Vec::new(),
    };
    let is_map = is_handed_over(path);
    // Pods have a list of variables, and a custom resource may have a map of them.
    let by_name = is_map && name == "env" && old.is_object() && new.is_object();
    if pod_fields::is_name(name) && !path.ends_with(']') && !by_name {
        out.push(whole());
        return;
    }
    if is_map {
        added(old, new, path, out);
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let (before, now) = (old.get(name), new.get(name));
                let both = before.is_some() && now.is_some() || pod_fields::is_name(name);
                if both {
                    let (before, now) = (before.unwrap_or(&Value::Null), now.unwrap_or(&Value::Null));
                    changed(before, now, &format!("{path}.{name}"), out);
                }
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (at, (before, value)) in old.iter().zip(new).enumerate() {
                changed(before, value, &format!("{path}[{at}]"), out);
            }
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) => {
            out.push(whole());
        }
        _ => {}
    }
}

/// True for a map such as `podLabels`. Selectors cannot be changed.
fn is_handed_over(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (above, name) = path.rsplit_once('.').unwrap_or(("", &path));
    HANDED_OVER.iter().any(|end| name.ends_with(end)) && name != "matchlabels" && !above.contains("selector")
}

/// The entries of a map or a list of variables, by name.
fn entries(part: &Value) -> Vec<(&str, &Value)> {
    let is_one = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    match part {
        Value::Object(fields) => fields
            .iter()
            .filter(|(_, value)| is_one(value))
            .map(|(name, value)| (name.as_str(), value))
            .collect(),
        Value::Array(items) => {
            let named = items.iter().filter_map(|item| Some((item["name"].as_str()?, item.get("value")?)));
            named.filter(|(_, value)| is_one(value)).collect()
        }
        _ => Vec::new(),
    }
}

/// Entries that were added to a map that had others before, which have stayed.
fn added(old: &Value, new: &Value, path: &str, out: &mut Vec<ChangedValue>) {
    let before = entries(old);
    let beside: Vec<(String, Value)> =
        before.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
    let now = entries(new);
    if before.is_empty() || !before.iter().all(|one| now.contains(one)) {
        return;
    }
    let is_new = |(name, _): &(&str, &Value)| before.iter().all(|(known, _)| known != name);
    out.extend(now.into_iter().filter(is_new).take(FEW).map(|(name, value)| ChangedValue {
        path: format!("{path}.{name}"),
        name: name.to_owned(),
        old: Value::Null,
        new: value.clone(),
        beside: beside.clone(),
    }));
}

/// The place in a child where all other entries of a map stand, and not the one that was added. `None` where
/// the child has that one anywhere.
fn lacking(child: &Value, field: &ChangedValue) -> Option<String> {
    let metadata =
        ["labels", "annotations"].map(|part| (format!(".metadata.{part}"), &child["metadata"][part]));
    let parts = ["spec", "data"].map(|part| (format!(".{part}"), &child[part]));
    let mut found = None;
    for (path, part) in metadata.into_iter().chain(parts) {
        if has_entry(part, field, &path, &mut found) {
            return None;
        }
    }
    found
}

/// True if the entry that was added stands in a part of a child; else notes where it is missing.
fn has_entry(part: &Value, field: &ChangedValue, path: &str, found: &mut Option<String>) -> bool {
    let entries = entries(part);
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let has = |name: &str, wanted: &Value| {
        entries.iter().any(|(known, value)| *known == name && text(value) == text(wanted))
    };
    if entries.iter().any(|(name, _)| *name == field.name) {
        return true;
    }
    if found.is_none() && field.beside.iter().all(|(name, value)| has(name, value)) {
        *found = Some(path.to_owned());
    }
    match part {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !UNCHANGEABLE.contains(&name.as_str()))
            .any(|(name, value)| has_entry(value, field, &format!("{path}.{name}"), found)),
        Value::Array(items) => {
            items.iter().enumerate().any(|(at, item)| has_entry(item, field, &format!("{path}[{at}]"), found))
        }
        _ => false,
    }
}

/// The first place below a part of a child that is meant. Claims of a StatefulSet cannot be changed.
fn still(part: &Value, path: &str, is_meant: &dyn Fn(&str, &Value) -> bool) -> Option<String> {
    match part {
        Value::Object(fields) => {
            fields.iter().filter(|(name, _)| *name != "volumeClaimTemplates").find_map(|(name, value)| {
                let path = format!("{path}.{name}");
                if is_meant(name, value) { Some(path) } else { still(value, &path, is_meant) }
            })
        }
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| still(item, &format!("{path}[{at}]"), is_meant))
        }
        _ => None,
    }
}

/// True if the old value stands under a name: the name of the field, or a text that nothing else would say.
fn is_same(name: &str, value: &Value, field: &ChangedValue) -> bool {
    let pods = name == "replicas" && replicas::is_name(&field.name) && !replicas::is_of_storage(&field.path);
    let named = name.eq_ignore_ascii_case(&field.name) && !EVERYWHERE.contains(&name);
    match (value, &field.old) {
        (Value::String(there), Value::String(old)) => {
            // The version of an image stands behind its colon.
            let tag =
                name == "image" && there.strip_suffix(old.as_str()).is_some_and(|rest| rest.ends_with(':'));
            there == old && (named || is_telling(old)) || tag && !old.is_empty()
        }
        (Value::Number(there), Value::Number(old)) => (named || pods) && there == old,
        _ => false,
    }
}

/// True for a text that is no word of Kubernetes, such as `OnDelete`.
fn is_telling(text: &str) -> bool {
    text.len() >= TELLING && text.contains(|c: char| !c.is_ascii_alphabetic())
}

/// The first field with this name, and where it stands.
fn named<'a>(part: &'a Value, path: &str, wanted: &str) -> Option<(String, &'a Value)> {
    match part {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = format!("{path}.{name}");
            if name == wanted { Some((path, value)) } else { named(value, &path, wanted) }
        }),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| named(item, &format!("{path}[{at}]"), wanted))
        }
        _ => None,
    }
}

/// True if a value has all that another one says: the API server and the operator may add to it.
fn holds(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (_, Value::Null) => true,
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| there.get(name).is_some_and(|there| holds(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            wanted.iter().all(|value| there.iter().any(|there| holds(there, value)))
        }
        (there, wanted) => there == wanted,
    }
}

//! Points of a run at which it may be disturbed: a write by its signature, and its how-manieth it is. Pure.

use opdev_event::mask;
use opdev_normal::{is_time, steady_name};
use opdev_object::diff::{Change, diff};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The longest value that is part of a signature.
const LONGEST: usize = 40;
/// Fields that a signature names at most.
const MOST_FIELDS: usize = 6;

/// A write of the operator, found again in another run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Point {
    /// Its signature.
    pub(super) write: String,
    /// It is the so-manieth with this signature, counted from 1.
    pub(super) nth: u32,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.write)?;
        if self.nth > 1 { write!(f, " (number {} of these)", self.nth) } else { Ok(()) }
    }
}

/// How a call is named: verb, resource with subresource, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) verb: &'a str,
    pub(super) resource: &'a str,
    pub(super) subresource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl Call<'_> {
    /// The call in words. What stands for a random name is in `object`, the object as it is after the write.
    pub(super) fn words(&self, object: Option<&Value>) -> String {
        let named = object.and_then(|object| object["metadata"]["name"].as_str());
        let name = if self.name.is_empty() { named.unwrap_or_default() } else { self.name };
        let name = steady_name(object, name);
        let mut text = format!("{} {}", self.verb, self.resource);
        if !self.subresource.is_empty() {
            text.push('/');
            text.push_str(self.subresource);
        }
        text.push(' ');
        if !self.namespace.is_empty() {
            text.push_str(self.namespace);
            text.push('/');
        }
        text.push_str(&name);
        text
    }
}

/// The signature of a write: the call, and the fields that it changed.
pub(super) fn signature(call: &Call<'_>, before: Option<&Value>, after: Option<&Value>) -> String {
    let mut text = call.words(after.or(before));
    if let (Some(before), Some(after)) = (before, after) {
        let mut changed: Vec<String> =
            diff(before, after).iter().filter_map(|change| field(call, change)).collect();
        let more = changed.len() > MOST_FIELDS;
        changed.truncate(MOST_FIELDS);
        if !changed.is_empty() {
            text.push_str(&format!(" ({}{})", changed.join(", "), if more { ", …" } else { "" }));
        }
    }
    text
}

/// A changed field in words; nothing where every write changes it.
fn field(call: &Call<'_>, change: &Change) -> Option<String> {
    const OF_EVERY_WRITE: [&str; 4] = ["managedFields", "resourceVersion", "generation", "creationTimestamp"];
    let path = change.path.to_string();
    let metadata = path.trim_start_matches('.').strip_prefix("metadata.");
    if metadata.is_some_and(|rest| OF_EVERY_WRITE.iter().any(|name| rest.starts_with(name))) {
        return None;
    }
    let path = format!(".{}", path.trim_start_matches('.'));
    if call.resource == "secrets" || mask::is_secret_path(&path) {
        return Some(path);
    }
    // A hash or a manifest in the status is another one in each run.
    Some(format!("{path} {} → {}", value(&change.old), value(&change.new)))
}

fn value(of: &Option<Value>) -> String {
    match of {
        None => "none".to_owned(),
        Some(Value::String(text)) if is_time(text) || is_hash(text) || text.chars().count() > LONGEST => {
            "*".to_owned()
        }
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(_) | Value::Array(_)) => "…".to_owned(),
        Some(other) => other.to_string(),
    }
}

/// Returns true if a text is one of digits that nobody wrote: a hash, a uid, an address.
fn is_hash(text: &str) -> bool {
    let hex = text.chars().all(|letter| letter.is_ascii_hexdigit() || letter == '-');
    (hex && text.len() >= 16) || text.parse::<std::net::IpAddr>().is_ok()
}

/// Counts signatures as they come.
#[derive(Debug, Default)]
pub(super) struct Counter(BTreeMap<String, u32>);

impl Counter {
    /// The next point with this signature.
    pub(super) fn next(&mut self, write: String) -> Point {
        let nth = self.0.entry(write.clone()).or_default();
        *nth += 1;
        Point { write, nth: *nth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call<'a>(verb: &'a str, resource: &'a str, name: &'a str) -> Call<'a> {
        Call { verb, resource, subresource: "", namespace: "shop", name }
    }

    #[test]
    fn a_signature_names_what_changed_but_nothing_that_differs_from_run_to_run() {
        let before = json!({"metadata": {"resourceVersion": "4"}, "spec": {"replicas": 1}, "status": {"at": "2026-11-28T09:01:02Z"}});
        let after = json!({"metadata": {"resourceVersion": "9"}, "spec": {"replicas": 3}, "status": {"at": "2026-11-28T09:01:05Z"}});
        let signed = signature(&call("update", "statefulsets", "db"), Some(&before), Some(&after));
        assert_eq!(signed, "update statefulsets shop/db (.spec.replicas 1 → 3, .status.at * → *)");
        let made = json!({"metadata": {"generateName": "job-", "name": "job-x7k2"}});
        assert_eq!(signature(&call("create", "jobs", ""), None, Some(&made)), "create jobs shop/job-*");
        assert_eq!(signature(&call("delete", "jobs", "a"), Some(&made), None), "delete jobs shop/job-*");
    }

    #[test]
    fn points_with_one_signature_are_counted() {
        let mut counter = Counter::default();
        assert_eq!(counter.next("a".to_owned()).nth, 1);
        assert_eq!(counter.next("b".to_owned()).nth, 1);
        assert_eq!(counter.next("a".to_owned()).to_string(), "a (number 2 of these)");
    }
}

//! The status of a custom resource as both engines write it: conditions and the deployed release. Pure.

use opdev_object::meta;
use serde_json::{Map, Value, json};

/// Seen by the operator.
pub const INITIALIZED: &str = "Initialized";
/// Installed or upgraded.
pub const DEPLOYED: &str = "Deployed";
/// Install, upgrade or uninstall failed.
pub const RELEASE_FAILED: &str = "ReleaseFailed";
/// The custom resource is left alone.
pub const PAUSED: &str = "Paused";
/// The state of the release could not be told or repaired.
pub const IRRECONCILABLE: &str = "Irreconcilable";

/// The status to write. Only what the operator knows is kept of the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    conditions: Vec<Condition>,
    deployed_release: Option<(String, String)>,
    now: String,
    /// Conditions are written in the order of their types.
    sorted: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Condition {
    kind: String,
    status: String,
    reason: String,
    message: String,
    since: String,
}

impl Status {
    /// Reads the status of an object; `now` dates what changes from here on.
    pub fn of(object: &Value, now: jiff::Timestamp) -> Status {
        let status = object.get("status").unwrap_or(&Value::Null);
        let text =
            |value: &Value, field: &str| value.get(field).and_then(Value::as_str).unwrap_or("").to_owned();
        let conditions = status.get("conditions").and_then(Value::as_array).into_iter().flatten();
        let release = status.get("deployedRelease").filter(|release| release.is_object());
        Status {
            conditions: conditions
                .map(|condition| Condition {
                    kind: text(condition, "type"),
                    status: text(condition, "status"),
                    reason: text(condition, "reason"),
                    message: text(condition, "message"),
                    since: text(condition, "lastTransitionTime"),
                })
                .filter(|condition| !condition.kind.is_empty())
                .collect(),
            deployed_release: release.map(|release| (text(release, "name"), text(release, "manifest"))),
            now: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            sorted: false,
        }
    }

    /// The conditions in the order of their types, as the helm-operator-plugins library writes them.
    #[must_use]
    pub fn sorted(self) -> Status {
        Status { sorted: true, ..self }
    }

    /// Sets a condition; its time changes only when its status does.
    pub fn set(&mut self, kind: &str, status: bool, reason: &str, message: &str) {
        self.put(kind, if status { "True" } else { "False" }, reason, message);
    }

    /// Nothing is known of a condition.
    pub fn unknown(&mut self, kind: &str) {
        self.put(kind, "Unknown", "", "");
    }

    /// Sets a condition with any status.
    pub fn put(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let known = self.conditions.iter().position(|condition| condition.kind == kind);
        let since = known
            .map(|at| &self.conditions[at])
            .filter(|condition| condition.status == status && !condition.since.is_empty())
            .map_or_else(|| self.now.clone(), |condition| condition.since.clone());
        let condition = Condition {
            kind: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            since,
        };
        match known {
            Some(at) => self.conditions[at] = condition,
            None => self.conditions.push(condition),
        }
    }

    /// Removes a condition: absent means false.
    pub fn clear(&mut self, kind: &str) {
        self.conditions.retain(|condition| condition.kind != kind);
    }

    /// Takes a condition away that has this reason: another one may be somebody else's.
    pub fn clear_own(&mut self, kind: &str, reason: &str) {
        self.conditions.retain(|condition| condition.kind != kind || condition.reason != reason);
    }

    /// Names the release that is deployed and its manifest, or none.
    pub fn release(&mut self, release: Option<(&str, &str)>) {
        self.deployed_release = release.map(|(name, manifest)| (name.to_owned(), manifest.to_owned()));
    }

    /// The JSON to write.
    pub fn to_json(&self) -> Value {
        let mut status = Map::new();
        let mut conditions: Vec<&Condition> = self.conditions.iter().collect();
        if self.sorted {
            conditions.sort_by(|a, b| a.kind.cmp(&b.kind));
        }
        let conditions: Vec<Value> = conditions.into_iter().map(Condition::to_json).collect();
        status.insert("conditions".to_owned(), Value::Array(conditions));
        if let Some((name, manifest)) = &self.deployed_release {
            let mut release = json!({"name": name});
            if !manifest.is_empty() {
                meta::put(&mut release, &["manifest"], manifest.as_str());
            }
            status.insert("deployedRelease".to_owned(), release);
        }
        Value::Object(status)
    }
}

impl Condition {
    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        for (name, value) in [
            ("type", &self.kind),
            ("status", &self.status),
            ("reason", &self.reason),
            ("message", &self.message),
            ("lastTransitionTime", &self.since),
        ] {
            if !value.is_empty() {
                fields.insert(name.to_owned(), Value::from(value.as_str()));
            }
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn a_first_status_has_no_empty_fields() {
        let mut status = Status::of(&json!({}), at(0));
        status.set(INITIALIZED, true, "", "");
        status.set(DEPLOYED, true, "InstallSuccessful", "notes");
        status.release(Some(("web", "---\n")));
        assert_eq!(
            status.to_json(),
            json!({
                "conditions": [
                    {"type": "Initialized", "status": "True", "lastTransitionTime": "1970-01-01T00:00:00Z"},
                    {"type": "Deployed", "status": "True", "reason": "InstallSuccessful", "message": "notes",
                     "lastTransitionTime": "1970-01-01T00:00:00Z"}],
                "deployedRelease": {"name": "web", "manifest": "---\n"},
            })
        );
    }

    #[test]
    fn the_time_of_a_condition_moves_only_with_its_status() {
        let mut first = Status::of(&json!({}), at(0));
        first.set(DEPLOYED, true, "InstallSuccessful", "");
        let mut second = Status::of(&json!({"status": first.to_json()}), at(60));
        second.set(DEPLOYED, true, "UpgradeSuccessful", "");
        assert_eq!(second.conditions[0].since, "1970-01-01T00:00:00Z");
        second.set(DEPLOYED, false, "UninstallSuccessful", "");
        assert_eq!(second.conditions[0].since, "1970-01-01T00:01:00Z");
    }

    #[test]
    fn unknown_fields_go_and_reading_back_changes_nothing() {
        let object =
            json!({"status": {"extra": 1, "conditions": [{"type": "ReleaseFailed", "status": "True"}]}});
        let mut status = Status::of(&object, at(0));
        assert_eq!(status.to_json(), json!({"conditions": [{"type": "ReleaseFailed", "status": "True"}]}));
        status.clear(RELEASE_FAILED);
        assert_eq!(Status::of(&json!({"status": status.to_json()}), at(0)), status);
    }
}

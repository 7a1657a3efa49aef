//! Custom resources and children as the API server has them.

use super::said::StatusWords;
use super::selectors::Selects;
use super::templates::Template;
use super::values::CHANGED_IN_PLACE;
use super::{Live, Table, Workload, is_plane};
use jiff::Timestamp;
use opdev_event::ObjectSeen;
use opdev_object::meta::{self, ObjectKey};
use serde_json::Value;

impl Table {
    /// An object as the API server has it.
    pub fn object_seen(&mut self, seen: &ObjectSeen) {
        let key = seen.object_ref.key();
        self.child_seen(&key, seen.object_ref.uid.as_deref(), seen.at);
        if key.group == "apps"
            && matches!(key.kind.as_str(), "Deployment" | "StatefulSet")
            && !seen.metadata_only
        {
            let object = seen.object.read();
            let number = |value: &Value| value.as_i64().unwrap_or_default();
            let ready = number(&object["status"]["readyReplicas"]);
            let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
            self.workloads.insert(key.clone(), Workload { wanted, ready });
        }
        if key.group == "apps" && !seen.metadata_only {
            if matches!(key.kind.as_str(), "Deployment" | "StatefulSet" | "DaemonSet") {
                let template = Template::of(&seen.object.read(), seen.at, self.templates.get(&key));
                self.templates.insert(key.clone(), template);
            }
            match Selects::of(&key, &seen.object.read()) {
                Some(selects) => _ = self.selectors.insert(key.clone(), selects),
                None => _ = self.selectors.remove(&key),
            }
        }
        if !self.custom.contains(&(key.group.clone(), key.kind.clone())) {
            if !seen.metadata_only && CHANGED_IN_PLACE.contains(&key.kind.as_str()) {
                self.drift_seen(&key, &seen.object, seen.at);
                self.values.take(&key, &seen.object, false, seen.at);
            }
            self.stranger_seen(&key, seen);
            return;
        }
        let object = seen.object.read();
        let stranger = self.live.get(&key).is_some_and(|old| meta::generation(&object) > old.generation);
        if stranger {
            self.outside(&key, last_manager(&object).as_deref(), "changed", seen.at);
        }
        let at = seen.at;
        let old = self.live.get(&key);
        let metadata = metadata(&object);
        let generation = meta::generation(&object);
        let by = last_manager(&object);
        let own = by.as_ref().is_some_and(|by| self.own.contains(by) || is_plane(by));
        let part = match old {
            Some(old) if !own && old.gone.is_none() && !self.disturbed => {
                if generation > old.generation {
                    Some("spec")
                } else if metadata != old.metadata {
                    Some("labels or annotations")
                } else {
                    None
                }
            }
            _ => None,
        };
        let by_else = part == Some("spec");
        self.values.take(&key, &seen.object, by_else, seen.at);
        let changed = part.map(|part| (at, part)).or_else(|| old.and_then(|old| old.changed));
        let deleting =
            meta::deletion_timestamp(&object).map(|_| old.and_then(|old| old.deleting).unwrap_or(at));
        let live = Live {
            uid: meta::uid(&object).unwrap_or_default().to_owned(),
            generation,
            observed: observed(&object),
            has_status: object["status"].as_object().is_some_and(|status| !status.is_empty()),
            deleting,
            finalizers: meta::finalizers(&object).into_iter().map(str::to_owned).collect(),
            said: StatusWords::of(&object),
            gone: None,
            object: seen.object_ref.clone(),
            metadata,
            changed: changed.filter(|_| deleting.is_none()),
            asked: old.and_then(|old| old.asked),
            awaited: old.map_or(0, |old| old.awaited),
        };
        self.live.insert(key, live);
    }

    /// An object that is no custom resource of the project; it may be one that reconciles read.
    fn stranger_seen(&mut self, key: &ObjectKey, seen: &ObjectSeen) {
        if self.tracks.values().any(|track| track.touched.contains_key(key)) {
            let by = last_manager(&seen.object.read()).unwrap_or_default();
            self.outside(key, Some(&by), "changed", seen.at);
        }
    }

    /// A child is there.
    pub fn child_seen(&mut self, key: &ObjectKey, uid: Option<&str>, at: Timestamp) {
        self.now = self.now.max(at);
        self.shown.insert(key.clone(), at);
        if let Some(maker) = self.makers.get_mut(key) {
            (maker.seen, maker.gone) = (true, false);
            if let Some(uid) = uid {
                maker.object.uid = Some(uid.to_owned());
            }
        }
    }

    /// An object is gone.
    pub fn object_gone(&mut self, key: &ObjectKey, at: Timestamp) {
        self.now = self.now.max(at);
        self.outside(key, None, "deleted", at);
        if let ("Pod", Some(namespace)) = (key.kind.as_str(), &key.namespace) {
            self.pods_gone.insert(namespace.clone(), at);
        }
        if let Some(live) = self.live.get_mut(key) {
            live.gone = Some(at);
        }
        if let Some(maker) = self.makers.get_mut(key) {
            let heard = self.controllers.get(&maker.controller).is_none_or(|controller| {
                controller.unclear || controller.echoed.contains(&(key.group.clone(), key.kind.clone()))
            });
            if !self.disturbed && !heard && !maker.gone && maker.deleted.is_none() && self.taken.len() < 1_000
            {
                self.taken.push((at, key.clone()));
            }
            (maker.gone, maker.went) = (true, Some(at));
        }
        self.shown.remove(key);
        self.values.gone(key);
        self.workloads.remove(key);
        self.templates.remove(key);
        self.selectors.remove(key);
        self.written_at.remove(key);
        self.rewritten.retain(|(object, _), _| object != key);
        self.running.remove(key);
        self.tracks.retain(|(_, object), _| object != key);
        self.pending.retain(|one| one.about.key() != *key && one.primary.key() != *key);
    }
}

/// The generation that a status is about: as it says as a whole, or else in the newest of its conditions.
fn observed(object: &Value) -> Option<i64> {
    let status = &object["status"];
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let newest = || conditions.filter_map(|condition| condition["observedGeneration"].as_i64()).max();
    status["observedGeneration"].as_i64().or_else(newest)
}

/// Labels and annotations as a number; what kubectl keeps for itself is left out.
fn metadata(object: &Value) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    for field in ["labels", "annotations"] {
        for (name, value) in object["metadata"][field].as_object().into_iter().flatten() {
            if name != "kubectl.kubernetes.io/last-applied-configuration" {
                (field, name, value.to_string()).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// The last writer of an object.
fn last_manager(object: &Value) -> Option<String> {
    let entries = object.pointer("/metadata/managedFields")?.as_array()?;
    let last = entries.iter().max_by_key(|entry| entry["time"].as_str().unwrap_or_default())?;
    last["manager"].as_str().map(str::to_owned)
}

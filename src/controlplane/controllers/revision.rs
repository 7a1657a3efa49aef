//! Hashes of pod templates and the ControllerRevisions of StatefulSets and DaemonSets.
//! Never writes; gives the writes back.

use super::fields::{controller_reference, count, map_copy, name, put, same, text, uid};
use crate::contract::{View, Write};
use opdev_apimachinery::attributes::Lookup;
use opdev_object::meta;
use serde_json::{Value, json};
use std::sync::Arc;

/// FNV-1a over the canonical JSON, as 8 to 10 characters that are safe in names and spell no words.
pub(crate) fn hash(value: &Value, collisions: Option<i64>) -> String {
    let mut state: u32 = 0x811c_9dc5;
    let mut feed = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    };
    feed(value.to_string().as_bytes());
    if let Some(collisions) = collisions {
        feed(&collisions.to_le_bytes());
    }
    safe(&format!("{state:08}"))
}

/// Maps each byte of a text into an alphabet without vowels.
fn safe(text: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    text.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

/// The revisions of a workload.
pub(crate) struct Revisions {
    /// Existing revisions, oldest first.
    pub all: Vec<Arc<Value>>,
    /// Name of the revision of the template as it is now.
    pub(crate) update: String,
    /// Hash of that revision, the last part of its name.
    pub(crate) update_hash: String,
    /// Writes that make it exist with the highest number.
    pub(crate) writes: Vec<Write>,
    /// `status.collisionCount` as it has to be.
    pub(crate) collisions: i64,
}

const RESOURCE: &str = "apps/controllerrevisions";

fn data_of(owner: &Value) -> Value {
    let mut template = owner.pointer("/spec/template").cloned().unwrap_or_else(|| json!({}));
    put(&mut template, "/$patch", "replace".into());
    json!({"spec": {"template": template}})
}

/// The template stored in a revision.
pub(crate) fn template_of(revision: &Value) -> Option<Value> {
    let mut template = revision.pointer("/data/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    Some(template)
}

/// Finds or makes the revision of the template as it is now.
pub(crate) fn revisions(view: &dyn View, owner: &Value, hash_label: &str) -> Revisions {
    let own = Lookup::ControlledBy(uid(owner));
    let mut all = view.select(RESOURCE, meta::namespace(owner), &own, &|revision| {
        revision.controller().is_some_and(|controller| controller.uid == uid(owner))
    });
    all.sort_by_key(|revision| (count(revision, "/revision"), name(revision).to_owned()));
    let data = data_of(owner);
    let highest = all.last().map_or(0, |revision| count(revision, "/revision"));
    let mut collisions = count(owner, "/status/collisionCount");
    let found = all.iter().rev().find(|r| r.get("data").is_some_and(|have| same(have, &data)));
    if let Some(found) = found {
        let mut writes = Vec::new();
        if count(found, "/revision") < highest {
            let mut newest = Value::clone(found);
            put(&mut newest, "/revision", (highest + 1).into());
            writes.push(Write::Update { resource: RESOURCE.into(), object: newest });
        }
        let update = name(found).to_owned();
        let update_hash = text(found, &format!("/metadata/labels/{}", super::fields::step(hash_label)));
        let update_hash = update_hash.rsplit('-').next().unwrap_or_default().to_owned();
        return Revisions { update, update_hash, writes, collisions, all: all.clone() };
    }
    let (update, update_hash) = loop {
        let hash = hash(&data, Some(collisions));
        let candidate = format!("{}-{hash}", name(owner));
        if view.get(RESOURCE, meta::namespace(owner), &candidate).is_none() {
            break (candidate, hash);
        }
        collisions += 1;
    };
    let mut labels = map_copy(owner, "/spec/template/metadata/labels");
    labels.insert(hash_label.to_owned(), update_hash.clone().into());
    let mut metadata = json!({
        "name": update, "namespace": meta::namespace(owner), "labels": labels,
        "ownerReferences": [controller_reference(owner)],
    });
    let annotations = map_copy(owner, "/metadata/annotations");
    if !annotations.is_empty() {
        put(&mut metadata, "/annotations", annotations.into());
    }
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata,
        "data": data, "revision": highest + 1,
    });
    let writes = vec![Write::Create { resource: RESOURCE.into(), object }];
    Revisions { all, update, update_hash, writes, collisions }
}

/// Deletes the oldest revisions that nothing uses, down to the limit.
pub(crate) fn truncate(owner: &Value, revisions: &Revisions, live: &[&str]) -> Vec<Write> {
    let limit = super::fields::int(owner, "/spec/revisionHistoryLimit").unwrap_or(10).max(0) as usize;
    let unused: Vec<_> = revisions
        .all
        .iter()
        .filter(|revision| name(revision) != revisions.update && !live.contains(&name(revision)))
        .collect();
    let surplus = unused.len().saturating_sub(limit);
    unused.into_iter().take(surplus).map(|revision| delete(revision)).collect()
}

fn delete(revision: &Value) -> Write {
    Write::Delete {
        resource: RESOURCE.into(),
        namespace: meta::namespace(revision).map(str::to_owned),
        name: name(revision).to_owned(),
        uid: meta::uid(revision).map(str::to_owned),
        propagation: None,
        grace: None,
    }
}

/// Names of the revisions that pods carry in a label.
pub(crate) fn revisions_in_use<'a>(pods: &'a [Arc<Value>], label: &str) -> Vec<&'a str> {
    pods.iter().filter_map(|pod| meta::label(pod, label)).collect()
}

#[cfg(test)]
mod tests {
    use super::hash;
    use serde_json::json;

    #[test]
    fn hashes_are_short_safe_and_differ() {
        let one = hash(&json!({"a": 1}), None);
        let two = hash(&json!({"a": 2}), None);
        assert!((8..=10).contains(&one.len()), "{one}");
        assert!(one.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)), "{one}");
        assert_ne!(one, two);
        assert_ne!(one, hash(&json!({"a": 1}), Some(1)));
    }
}

//! Children of which a reconcile saw more than the spec asks for, and left them all. Pure.

use crate::reconcile::Open;
use opdev_event::{FindingKind, ReadFinding, Reconcile};
use opdev_facts::record::CacheRead;
use opdev_facts::versions::Versions;
use opdev_object::meta::{ObjectKey, controller};
use serde_json::Value;
use std::collections::HashMap;

/// The fields of a spec that say how many children there are to be.
const WANTED: [&str; 2] = ["replicas", "size"];
/// Objects of which it was told.
const OBJECTS: usize = 5_000;

/// The last notice about an object: how many it wanted and how many there were.
pub(crate) type Told = HashMap<ObjectKey, (u64, u64)>;

/// Looks at a reconcile that has ended well, wrote nothing to any child and asks for no other reconcile. The
/// status has to count the same children, for an operator may well make two pods for each replica.
pub(crate) fn surplus(
    open: &Open,
    reconcile: &Reconcile,
    versions: &Versions,
    told: &mut Told,
) -> Option<ReadFinding> {
    let key = open.object.key();
    let object = versions.newest(&key)?;
    let (field, wanted) = WANTED
        .iter()
        .find_map(|field| Some((*field, object.pointer(&format!("/spec/{field}"))?.as_u64()?)))?;
    let acts = open.writes.iter().any(|write| write.object.gvk.kind != "Event" && write.object.key() != key);
    let rests = reconcile.failure.is_none() && reconcile.requeue.is_none();
    let found = open.reads.iter().find_map(|read| {
        let count = own_children(open, read, versions)?;
        Some((read, count, counted(&object, count)?)).filter(|_| count > wanted)
    });
    let Some((read, count, status)) = found.filter(|_| !acts && rests) else {
        told.remove(&key);
        return None;
    };
    if told.len() > OBJECTS {
        told.clear();
    }
    if told.insert(key, (wanted, count)) == Some((wanted, count)) {
        return None;
    }
    let kind = &read.object.kind;
    Some(ReadFinding {
        kind: FindingKind::SurplusLeft,
        message: format!(
            "{count} {kind}s of its own are there (.status.{status}) where .spec.{field} asks for {wanted}; the reconcile removed \
             none and asks for no other reconcile"
        ),
        hint: "look at the condition under which it removes what is too many: it may stand where it is never reached"
            .to_owned(),
        object: open.object.clone(),
        reconcile: None,
    })
}

/// How many objects of a list belong to the object of the reconcile. None where that is not known of all, or
/// one of them is about to go: whoever waits for it is at work.
fn own_children(open: &Open, read: &CacheRead, versions: &Versions) -> Option<u64> {
    if read.verb != "list" || !read.error.is_empty() || read.count as usize > read.items.len() {
        return None;
    }
    let mut own = 0;
    for item in &read.items {
        let key = ObjectKey {
            group: read.object.group.clone(),
            kind: read.object.kind.clone(),
            namespace: Some(item.namespace.clone()).filter(|namespace| !namespace.is_empty()),
            name: item.name.clone(),
        };
        let child = versions.newest(&key)?;
        let owner = controller(&child);
        if !owner.is_some_and(|owner| owner.kind == open.object.gvk.kind && owner.name == open.object.name) {
            continue;
        }
        if versions.is_gone(&key) || child["metadata"]["deletionTimestamp"].is_string() {
            return None;
        }
        own += 1;
    }
    Some(own)
}

/// The field of the status that says so many.
fn counted(object: &Value, count: u64) -> Option<&str> {
    let fields = object["status"].as_object()?;
    fields.iter().find(|(_, value)| value.as_u64() == Some(count)).map(|(name, _)| name.as_str())
}

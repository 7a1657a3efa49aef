//! The garbage collector: what has lost all its owners goes, in background, foreground and orphan mode.
//! Never deletes an object with a living owner. Owners are found by kind and name and compared by uid.

use super::fields::{self, deleting, flag, list, text, uid};
use super::owners::patch_references;
use super::pods::note;
use crate::contract::{Actor, Change, Controller, Key, NoteKind, Observed, Propagation, Sync, View, Write};
use jiff::Timestamp;
use opdev_apimachinery::attributes::{Attributes, Lookup};
use opdev_object::meta::{self, Gvk, OwnerReference};
use serde_json::{Value, json};

/// See the module.
pub(crate) struct GarbageCollector;

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// The state of the object that an owner reference points at.
enum Owner {
    /// It lives.
    Solid,
    /// It is gone, or another object has its name.
    Absent,
    /// It waits for its dependents.
    Waiting,
    /// It is not known whether the owner exists, so nothing is done.
    Unknown,
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "garbage-collector-controller"
    }

    fn actor(&self) -> Actor {
        Actor::kube_controller_manager("system:serviceaccount:kube-system:generic-garbage-collector")
    }

    fn keys(&self, view: &dyn View, change: &Change) -> Vec<Key> {
        if matches!(change.resource.as_str(), "events" | "events.k8s.io/events") {
            return Vec::new();
        }
        let mut keys = Vec::new();
        let Some(object) = change.object() else { return keys };
        let (before, after) = (
            change.before.as_ref().map(Observed::attributes),
            change.after.as_ref().map(Observed::attributes),
        );
        let waiting = after.is_some_and(waits);
        if let Some(after) = after
            && (!after.owners().is_empty() || waiting)
            && before.map(lifeline) != Some(lifeline(after))
        {
            keys.extend(change.key());
        }
        if change.gone() || waiting {
            keys.extend(view.dependent_keys(object.attributes().uid()));
        }
        if change.resource == "apiextensions.k8s.io/customresourcedefinitions" {
            // Owners of a kind that was unknown may be found now.
            keys.extend(owners_unknown(view));
        }
        // An owner in foreground deletion waits for this object to go or to stop blocking.
        for owner in before.map(Attributes::owners).unwrap_or_default() {
            if let Some(key) = locate(view, object.namespace(), owner)
                && known(view, &key).is_some_and(|known| waits(&known))
            {
                keys.push(key);
            }
        }
        keys
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        if stays(view, key) {
            return Sync::done();
        }
        let Some(object) = key.read(view) else { return Sync::done() };
        let writes = if deleting(&object) && has(&object, ORPHAN) {
            orphan(view, key, &object)
        } else if deleting(&object) && has(&object, FOREGROUND) {
            foreground(view, key, &object)
        } else if deleting(&object) {
            Vec::new()
        } else {
            collect(view, key, &object)
        };
        Sync { writes, ..Sync::default() }
    }
}

fn has(object: &Value, finalizer: &str) -> bool {
    meta::finalizers(object).contains(&finalizer)
}

/// Being deleted, with work for the collector.
fn waits(known: &Attributes) -> bool {
    known.deleting() && known.finalizers().iter().any(|name| [FOREGROUND, ORPHAN].contains(&name.as_str()))
}

/// The parts of an object that decide whether the collector has work for it.
fn lifeline(known: &Attributes) -> (&[OwnerReference], &[String], bool) {
    (known.owners(), known.finalizers(), known.deleting())
}

fn owners_unknown(view: &dyn View) -> Vec<Key> {
    let mut keys = Vec::new();
    for info in view.resources().iter().filter(|info| info.deletable && info.resource != "events") {
        keys.extend(
            view.select_keys(&info.resource, None, &Lookup::All, &|known| !known.owners().is_empty()),
        );
    }
    keys
}

/// The key of the kind and name an owner reference gives, whatever its uid.
fn locate(view: &dyn View, namespace: Option<&str>, owner: &OwnerReference) -> Option<Key> {
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    let info = view.resource_of(&gvk.group, &gvk.kind)?;
    let namespace = if info.namespaced { Some(namespace?) } else { None };
    Some(Key::new(&info.resource, namespace, &owner.name))
}

/// The attributes of an object, without reading it.
fn known(view: &dyn View, key: &Key) -> Option<Attributes> {
    view.attributes(&key.resource, key.namespace.as_deref(), &key.name)
}

/// Returns true if all owners are there, so that the object stays as it is. Told without reading the object:
/// of nearly all that is so.
fn stays(view: &dyn View, key: &Key) -> bool {
    let solid =
        |owner: &OwnerReference| matches!(classify(view, key.namespace.as_deref(), owner), Owner::Solid);
    known(view, key).is_some_and(|known| !known.deleting() && known.owners().iter().all(solid))
}

fn classify(view: &dyn View, namespace: Option<&str>, owner: &OwnerReference) -> Owner {
    if view.has_gone(&owner.uid) {
        return Owner::Absent;
    }
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    let Some(info) = view.resource_of(&gvk.group, &gvk.kind) else { return Owner::Unknown };
    if info.namespaced && namespace.is_none() {
        // A cluster-scoped object cannot be owned from within a namespace: that never resolves.
        return Owner::Unknown;
    }
    let namespace = if info.namespaced { namespace } else { None };
    let key = Key::new(&info.resource, namespace, &owner.name);
    let waits = || key.read(view).is_some_and(|found| deleting(&found) && has(&found, FOREGROUND));
    match known(view, &key) {
        Some(found) if found.uid() != owner.uid => Owner::Absent,
        Some(found) if found.deleting() && waits() => Owner::Waiting,
        Some(_) => Owner::Solid,
        None => Owner::Absent,
    }
}

/// Returns true if an owner of that uid lives in some other namespace: the mistake people make.
fn lives_elsewhere(view: &dyn View, owner: &OwnerReference) -> bool {
    let gvk = Gvk::from_api_version(&owner.api_version, &owner.kind);
    let Some(info) = view.resource_of(&gvk.group, &gvk.kind).filter(|info| info.namespaced) else {
        return false;
    };
    let mut lives = false;
    view.each(&info.resource, None, &Lookup::All, &mut |found| lives |= found.uid() == owner.uid);
    lives
}

fn collect(view: &dyn View, key: &Key, object: &Value) -> Vec<Write> {
    let owners = meta::owner_references(object);
    if owners.is_empty() {
        return Vec::new();
    }
    let (mut solid, mut absent, mut waiting) = (0, Vec::new(), Vec::new());
    for owner in &owners {
        match classify(view, meta::namespace(object), owner) {
            Owner::Solid => solid += 1,
            Owner::Absent => absent.push(owner),
            Owner::Waiting => waiting.push(owner),
            Owner::Unknown => return Vec::new(),
        }
    }
    if solid > 0 {
        if absent.is_empty() && waiting.is_empty() {
            return Vec::new();
        }
        let gone: Vec<_> = absent.iter().chain(&waiting).map(|owner| owner.uid.as_str()).collect();
        let mut references = list(object, "/metadata/ownerReferences").to_vec();
        references.retain(|reference| !gone.contains(&text(reference, "/uid")));
        return vec![patch_references(&key.resource, object, references)];
    }
    let mut writes: Vec<_> = absent
        .iter()
        .filter(|owner| lives_elsewhere(view, owner))
        .map(|owner| {
            let message = format!(
                "ownerRef [{}/{}, namespace: {}, name: {}, uid: {}] does not exist in namespace \"{}\"",
                owner.api_version,
                owner.kind,
                meta::namespace(object).unwrap_or_default(),
                owner.name,
                owner.uid,
                meta::namespace(object).unwrap_or_default(),
            );
            note(object, NoteKind::Warning, "OwnerRefInvalidNamespace", &message)
        })
        .collect();
    let dependents = view.dependents(uid(object));
    let propagation = if !waiting.is_empty() && !dependents.is_empty() {
        if dependents.iter().any(|(_, dependent)| deleting(dependent) && has(dependent, FOREGROUND)) {
            // Two objects that wait for each other: let go of the owner, as upstream does against cycles.
            writes.push(unblock(key, object));
        }
        Propagation::Foreground
    } else if has(object, ORPHAN) {
        Propagation::Orphan
    } else if has(object, FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    writes.push(Write::Delete {
        resource: key.resource.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Some(uid(object).to_owned()),
        propagation: Some(propagation),
        grace: None,
    });
    writes
}

fn unblock(key: &Key, object: &Value) -> Write {
    let mut references = list(object, "/metadata/ownerReferences").to_vec();
    for reference in &mut references {
        fields::put(reference, "/blockOwnerDeletion", false.into());
    }
    patch_references(&key.resource, object, references)
}

fn without(key: &Key, object: &Value, finalizer: &str) -> Write {
    let rest: Vec<_> = meta::finalizers(object).into_iter().filter(|have| *have != finalizer).collect();
    Write::Patch {
        resource: key.resource.clone(),
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        patch: json!({"metadata": {
            "uid": uid(object),
            "resourceVersion": meta::resource_version(object),
            "finalizers": if rest.is_empty() { Value::Null } else { json!(rest) },
        }}),
    }
}

/// Dependents forget the owner, then the owner goes.
fn orphan(view: &dyn View, key: &Key, object: &Value) -> Vec<Write> {
    let mut writes = Vec::new();
    for (resource, dependent) in view.dependents(uid(object)) {
        let mut references = list(&dependent, "/metadata/ownerReferences").to_vec();
        references.retain(|reference| text(reference, "/uid") != uid(object));
        writes.push(patch_references(&resource, &dependent, references));
    }
    writes.push(without(key, object, ORPHAN));
    writes
}

/// Once nothing blocks any more the owner goes; its dependents are collected by their own keys.
fn foreground(view: &dyn View, key: &Key, object: &Value) -> Vec<Write> {
    let blocked = view.dependents(uid(object)).iter().any(|(_, dependent)| {
        list(dependent, "/metadata/ownerReferences")
            .iter()
            .any(|reference| text(reference, "/uid") == uid(object) && flag(reference, "/blockOwnerDeletion"))
    });
    if blocked { Vec::new() } else { vec![without(key, object, FOREGROUND)] }
}

//! Claiming: which objects a controller manages, adopting orphans that match and releasing those that no
//! longer do. Never creates or deletes.

use super::fields::{controller_reference, deleting, name, uid};
use super::selector::Selector;
use crate::contract::{Change, Key, View, Write};
use opdev_apimachinery::attributes::{Attributes, Lookup};
use opdev_object::meta;
use serde_json::{Value, json};
use std::sync::Arc;

/// The objects that an owner manages, and the writes that adopt or release them.
pub(crate) struct Claim {
    pub(crate) owned: Vec<Arc<Value>>,
    pub(crate) writes: Vec<Write>,
}

/// Claims the objects of a resource for an owner.
pub(crate) fn claim(view: &dyn View, owner: &Value, resource: &str, selector: &Selector) -> Claim {
    let mut claim = Claim { owned: Vec::new(), writes: Vec::new() };
    let own = uid(owner);
    let concerns = |known: &Attributes| match known.controller() {
        Some(controller) => controller.uid == own,
        None => selector.selects(known),
    };
    for object in view.select(resource, meta::namespace(owner), &Lookup::ClaimableBy(own), &concerns) {
        match meta::controller(&object) {
            Some(controller) if controller.uid != own => {}
            Some(_) if selector.matches(&object) => claim.owned.push(object),
            Some(_) if deleting(owner) || deleting(&object) => {}
            Some(_) => claim.writes.push(release(resource, &object, owner)),
            None if deleting(owner) || deleting(&object) || !selector.matches(&object) => {}
            None => {
                claim.writes.push(adopt(resource, &object, owner));
                claim.owned.push(object);
            }
        }
    }
    claim
}

fn raw_references(object: &Value) -> Vec<Value> {
    super::fields::list(object, "/metadata/ownerReferences").to_vec()
}

fn adopt(resource: &str, object: &Value, owner: &Value) -> Write {
    let mut references = raw_references(object);
    references.push(controller_reference(owner));
    patch_references(resource, object, references)
}

fn release(resource: &str, object: &Value, owner: &Value) -> Write {
    let mut references = raw_references(object);
    references.retain(|reference| super::fields::text(reference, "/uid") != uid(owner));
    patch_references(resource, object, references)
}

/// Replaces all owner references, on the object as it was read.
pub(crate) fn patch_references(resource: &str, object: &Value, references: Vec<Value>) -> Write {
    let references = if references.is_empty() { Value::Null } else { Value::Array(references) };
    Write::Patch {
        resource: resource.to_owned(),
        namespace: meta::namespace(object).map(str::to_owned),
        name: name(object).to_owned(),
        patch: json!({"metadata": {
            "uid": uid(object),
            "resourceVersion": meta::resource_version(object),
            "ownerReferences": references,
        }}),
    }
}

/// Keys of the owners of a changed object: its managing controllers before and after, and for an orphan every
/// owner of that resource whose selector matches.
pub(crate) fn owner_keys(view: &dyn View, change: &Change, kind: &str, resource: &str) -> Vec<Key> {
    owner_keys_by(view, change, kind, resource, &|owner| Selector::parse(owner.pointer("/spec/selector")))
}

/// Keys of the owners of a changed object, for owners that say in a way of their own which objects they
/// select.
pub(crate) fn owner_keys_by(
    view: &dyn View,
    change: &Change,
    kind: &str,
    resource: &str,
    selector: &dyn Fn(&Value) -> Option<Selector>,
) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut add = |key: Key| {
        if !keys.contains(&key) {
            keys.push(key);
        }
    };
    for object in [&change.before, &change.after].into_iter().flatten() {
        if let Some(controller) = object.attributes().controller()
            && controller.kind == kind
        {
            add(Key::new(resource, object.namespace(), &controller.name));
        }
    }
    if let Some(object) = &change.after
        && object.attributes().controller().is_none()
        && object.attributes().labels().is_object()
    {
        for owner in view.list(resource, object.namespace()) {
            if selector(&owner).is_some_and(|selector| !selector.is_empty() && selector.matches(object)) {
                add(Key::of_object(resource, &owner));
            }
        }
    }
    keys
}
